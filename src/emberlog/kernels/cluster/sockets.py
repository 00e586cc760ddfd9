"""The exchange between processes, over ZeroMQ: `ipc` on one host, else `tcp` with CURVE.

Each pair of workers has a socket of its own: the one of lower rank listens, the other connects. Over `tcp` every
worker has a key made for the run, and the socket for a peer admits that peer's key only. Over `ipc` the sockets lie in
a folder that only this user may enter. Once all workers are connected, nobody else is admitted, whatever the key.

A connection that ends, or is silent for some seconds though ZeroMQ's own thread answers while a worker computes, means
that the peer is lost. ZeroMQ would connect again by itself, but what was under way would be missing, so this is final.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostbyname
from time import monotonic
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import Array, PeerLost, Received, Summary, check_outgoing, plain
from emberlog.kernels.cluster.meeting import Meeting

ZAP = "inproc://zeromq.zap.01"
IPC = "ipc://"
LINGER = 10_000  # ms: how long a closing worker waits for others to take what it sent
LINGER_FAILED = 2_000  # ms: the same in a run that has failed, where others may have left without taking it
GRACE = 200  # ms: for what a lost peer had sent to show up


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    connect: float = 30.0  # for all workers to be connected
    handshake: float = 5.0  # for a client to prove who it is
    heartbeat: float = 1.0  # between two signs of life
    silence: float = 5.0  # without a sign of life, until a peer is lost


@dataclass(frozen=True)
class Card:
    """What a worker tells the others before they connect."""

    rank: int
    key: str  # the public key; empty over ipc
    endpoints: Mapping[int, str]  # by rank of the peer: where this worker listens for it

    def encode(self) -> str:
        return json.dumps({"rank": self.rank, "key": self.key, "endpoints": dict(self.endpoints)})


def decode_card(text: str) -> Card:
    found = json.loads(text)
    endpoints = {int(rank): str(endpoint) for rank, endpoint in found["endpoints"].items()}
    return Card(int(found["rank"]), str(found["key"]), endpoints)


class _Peer:
    """The socket to one peer, and what is known of its connection."""

    def __init__(self, rank: int, socket: zmq.Socket[bytes]) -> None:
        self.rank = rank
        self.socket = socket
        self.monitor = socket.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED)
        self.greeted = False
        self.lost = False
        self._connections: set[int] = set()  # by descriptor; once the peer has come, only those that were there then

    def look(self) -> None:
        """Reads what happened to the connections.

        Strangers may come too, until they are turned away, and ZeroMQ does not say which connection is whose. So a
        peer that has come is lost when all connections of that moment are gone.
        """
        while self.monitor.poll(0):
            event = parse_monitor_message(self.monitor.recv_multipart())
            if event["event"] == zmq.EVENT_DISCONNECTED:
                self._connections.discard(event["value"])
            elif not self.greeted:
                self._connections.add(event["value"])
        self.lost = self.greeted and not self._connections

    def greet(self) -> None:
        self.look()
        self.greeted = True


class SocketExchange:
    """One worker's end. `listen` opens it, `connect` completes it with the cards of all workers."""

    def __init__(self, rank: int, size: int, listen_at: Path | str, run: str, patience: Patience | None = None) -> None:
        """`listen_at` is a folder for ipc, or this host as others know it for tcp; `run` is told when workers meet."""
        self.rank = rank
        self.size = size
        self.bytes_sent = 0
        self._run = run
        self._patience = patience or Patience()
        self._step = 0
        self._failed = False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=max(1, min(size - 1, 2)))
        self._peers: dict[int, _Peer] = {}
        self.card = Card(rank, "", {})
        self._keys = None if isinstance(listen_at, Path) else zmq.curve_keypair()
        self._zap = self._context.socket(zmq.REP)
        try:
            self._zap.bind(ZAP)  # before anybody listens: without it any key would do
            self.card = Card(rank, self._keys[0].decode() if self._keys else "", self._listen(listen_at))
        except zmq.ZMQError as error:
            self.close()
            raise ExecutionError(f"worker {rank} cannot listen at {listen_at}: {error}") from error

    # --- connecting ----------------------------------------------------------------------------------------------

    def _socket(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.set_hwm(0)  # a step is sent whole; the receiver takes it when it comes to that step
        socket.linger = 0
        socket.setsockopt(zmq.MAXMSGSIZE, wire.FRAME_LIMIT)
        socket.setsockopt(zmq.HANDSHAKE_IVL, int(self._patience.handshake * 1000))
        socket.setsockopt(zmq.HEARTBEAT_IVL, int(self._patience.heartbeat * 1000))
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, int(self._patience.silence * 1000))
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        if self._keys:
            socket.curve_publickey, socket.curve_secretkey = self._keys
        return socket

    def _listen(self, listen_at: Path | str) -> dict[int, str]:
        endpoints = {}
        for peer in range(self.rank + 1, self.size):
            socket = self._socket()
            self._peers[peer] = _Peer(peer, socket)
            if isinstance(listen_at, Path):
                endpoints[peer] = f"{IPC}{listen_at / f'{self.rank}-{peer}'}"
                socket.bind(endpoints[peer])
            else:
                socket.curve_server = True
                socket.setsockopt(zmq.ZAP_DOMAIN, str(peer).encode())
                socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
                endpoints[peer] = f"tcp://{listen_at}:{_bind_tcp(socket, listen_at)}"
        return endpoints

    def connect(self, cards: Sequence[Card]) -> None:
        """Connects with all workers, given the cards of all. Raises when one does not come in time."""
        for card in cards:
            if card.rank < self.rank:
                socket = self._socket()
                self._peers[card.rank] = _Peer(card.rank, socket)
                if card.key:
                    socket.curve_serverkey = card.key.encode()
                socket.connect(card.endpoints[self.rank])
                socket.send(self._greeting(self.rank))
        keys = {str(card.rank).encode(): z85.decode(card.key) for card in cards if card.key}
        self._await_greetings(keys)
        # From here on nobody can come in: a socket that asks and gets no answer refuses, and one in a folder is gone.
        self._zap.close()
        self._hide()

    def _greeting(self, rank: int) -> bytes:
        return wire.HELLO + f"{self._run} {rank}".encode()

    def _await_greetings(self, keys: Mapping[bytes, bytes]) -> None:
        deadline = monotonic() + self._patience.connect
        poller = zmq.Poller()
        for socket in (self._zap, *(peer.socket for peer in self._peers.values())):
            poller.register(socket, zmq.POLLIN)
        while waiting := [peer for peer in self._peers.values() if not peer.greeted]:
            if monotonic() > deadline:
                raise PeerLost(
                    f"worker {self.rank} waited {self._patience.connect:g} s for a connection with worker "
                    f"{waiting[0].rank}"
                )
            ready = dict(poller.poll(100))
            if self._zap in ready:
                self._answer_zap(keys)
            for peer in waiting:
                if peer.socket in ready and peer.socket.recv() == self._greeting(peer.rank):
                    peer.greet()
                    if peer.rank > self.rank:
                        peer.socket.send(self._greeting(self.rank))

    def _answer_zap(self, keys: Mapping[bytes, bytes]) -> None:
        """Says whether a client may come in: its key has to be the one of the peer that this socket is for."""
        version, request, domain, _, _, mechanism, *credentials = self._zap.recv_multipart()
        known = mechanism == b"CURVE" and credentials == [keys.get(domain)]
        code, text = (b"200", b"OK") if known else (b"400", b"unknown key")
        self._zap.send_multipart([version, request, code, text, b"", b""])

    def _hide(self) -> None:
        """Removes the sockets of ipc from their folder; connections go on."""
        for endpoint in self.card.endpoints.values():
            if endpoint.startswith(IPC):
                Path(endpoint.removeprefix(IPC)).unlink(missing_ok=True)

    # --- steps ---------------------------------------------------------------------------------------------------

    def swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary = ()) -> Received:
        check_outgoing(outgoing, self.size)
        self._step += 1
        summary = plain(summary)
        try:
            return self._swap(outgoing, summary)
        except PeerLost:
            self._failed = True
            raise

    def _swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary) -> Received:
        under_way = [self._send(peer, outgoing[peer.rank], summary) for peer in self._peers.values()]
        arrays: list[list[Array]] = [[] for _ in range(self.size)]
        summaries: list[Summary] = [()] * self.size
        arrays[self.rank], summaries[self.rank] = list(outgoing[self.rank]), summary
        for rank, incoming in self._receive().items():
            arrays[rank], summaries[rank] = incoming.arrays, incoming.head.summary
        for peer, trackers in zip(self._peers.values(), under_way, strict=True):
            self._await_sent(peer, trackers)
        return arrays, summaries

    def _send(self, peer: _Peer, arrays: Sequence[Array], summary: Summary) -> list[Any]:
        """Starts to send; nothing is copied, so what comes back tells when the arrays are free again."""
        head = wire.head_of(self._step, summary, arrays)
        trackers = []
        with suppress(zmq.Again):  # only when the connection is gone; what came before is to be read all the same
            peer.socket.send(head.encode(), zmq.NOBLOCK)
            for array in arrays:
                self.bytes_sent += array.nbytes
                for frame in wire.frames(array):
                    trackers.append(peer.socket.send(frame, zmq.NOBLOCK, copy=False, track=True))
        return trackers

    def _receive(self) -> dict[int, wire.Incoming]:
        done: dict[int, wire.Incoming] = {}
        begun: dict[int, wire.Incoming] = {}
        poller = zmq.Poller()
        for peer in self._peers.values():
            poller.register(peer.socket, zmq.POLLIN)
            poller.register(peer.monitor, zmq.POLLIN)
        while len(done) < len(self._peers):
            poller.poll(1000)
            for peer in [peer for peer in self._peers.values() if peer.rank not in done]:
                peer.look()  # before reading: what came before the connection ended still counts
                if self._take(peer, begun):
                    done[peer.rank] = begun[peer.rank]
                    poller.unregister(peer.socket)
                    poller.unregister(peer.monitor)
                elif peer.lost and not peer.socket.poll(GRACE):
                    raise PeerLost(f"worker {peer.rank} is gone, which worker {self.rank} noticed")
        return done

    def _take(self, peer: _Peer, begun: dict[int, wire.Incoming]) -> bool:
        """Takes what is there; has the peer sent all of this step?"""
        try:
            while True:
                incoming = begun.get(peer.rank)
                if incoming is None:
                    begun[peer.rank] = wire.Incoming(self._head(peer, peer.socket.recv(zmq.NOBLOCK)))
                elif incoming.complete:
                    return True
                else:
                    incoming.took(peer.socket.recv_into(incoming.place, flags=zmq.NOBLOCK))
        except zmq.Again:
            return False
        except wire.WireError as error:
            raise PeerLost(f"worker {peer.rank} sent worker {self.rank} a wrong message: {error}") from error

    def _head(self, peer: _Peer, message: bytes) -> wire.Head:
        if message[:1] == wire.FAILED:
            raise PeerLost(f"worker {peer.rank} failed: {message[1:].decode(errors='replace')}")
        return wire.decode_head(message, self._step)

    def _await_sent(self, peer: _Peer, trackers: list[Any]) -> None:
        for tracker in trackers:
            while not tracker.done:
                try:
                    tracker.wait(0.2)
                except zmq.NotDone:
                    peer.look()
                    if peer.lost:
                        raise PeerLost(f"worker {peer.rank} is gone, which worker {self.rank} noticed") from None

    # --- the end -------------------------------------------------------------------------------------------------

    def abort(self, reason: str) -> None:
        self._failed = True
        for peer in self._peers.values():
            if peer.greeted:
                with suppress(zmq.Again):
                    peer.socket.send(wire.FAILED + reason.encode()[: wire.FRAME_BYTES], zmq.NOBLOCK)

    def close(self) -> None:
        for peer in self._peers.values():
            peer.look()
            peer.socket.disable_monitor()
            peer.monitor.close(linger=0)
            patience = LINGER_FAILED if self._failed else LINGER
            peer.socket.close(linger=patience if peer.greeted and not peer.lost else 0)
        self._peers.clear()
        self._hide()
        self._zap.close(linger=0)
        self._context.term()


def _bind_tcp(socket: zmq.Socket[bytes], host: str) -> int:
    """Listens at a free port of the host's address, or of all addresses when this machine does not have that one."""
    try:
        return int(socket.bind_to_random_port(f"tcp://{gethostbyname(host)}"))
    except (OSError, zmq.ZMQError):
        return int(socket.bind_to_random_port("tcp://*"))


def open_exchange(exchange: SocketExchange, meeting: Meeting) -> SocketExchange:
    """Connects an exchange with those of the other workers of the meeting."""
    try:
        exchange.connect([decode_card(text) for text in meeting(exchange.card.encode())])
    except BaseException:
        exchange.close()
        raise
    return exchange
