"""The connections between worker processes, over ZeroMQ: `ipc` on one host, else `tcp` with CURVE.

Each pair of workers has a socket of its own: the one of lower rank listens, the other connects. Over `tcp` every
worker has a key made for the run, and the socket for a peer admits that peer's key only. Over `ipc` the sockets lie in
a folder that only this user may enter. Once all workers are connected, nobody else is admitted, whatever the key.

A connection that ends, or is silent for some seconds though ZeroMQ's own thread answers while a worker computes, means
that the peer is lost. ZeroMQ would connect again by itself, but what was under way would be missing, so this is final.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, gethostbyname
from socket import socket as system_socket
from time import monotonic, strftime
from typing import Any, TypeVar

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import Array, PeerGone, PeerLost
from emberlog.kernels.cluster.meeting import Meeting

Announcing = TypeVar("Announcing", bound=wire.Announces)

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
        self.failed: str | None = None  # what it said when it gave up
        self.ended = ""  # when it was noticed that the connection has ended
        self.begun: tuple[Any, wire.Incoming] | None = None  # a message of which a part has come
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
        if self.greeted and not self._connections and not self.lost:
            self.lost, self.ended = True, strftime("%H:%M:%S")

    def greet(self) -> None:
        self.look()
        self.greeted = True


class Links:
    """One worker's connections with all others. `connect` completes them, given the cards of all workers."""

    def __init__(self, rank: int, size: int, listen_at: Path | str, run: str, patience: Patience | None = None) -> None:
        """`listen_at` is a folder for ipc, or this host as others know it for tcp; `run` is told when workers meet."""
        self.rank = rank
        self.size = size
        self.bytes_sent = 0
        self._run = run
        self._patience = patience or Patience()
        self._failed = False
        self._poller = zmq.Poller()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=max(1, min(size - 1, 2)))
        self._peers: dict[int, _Peer] = {}
        self.card = Card(rank, "", {})
        self._keys = None if isinstance(listen_at, Path) else zmq.curve_keypair()
        self._zap = self._context.socket(zmq.REP)
        try:
            self._zap.bind(ZAP)  # before anybody listens: without it any key would do
            self.card = Card(rank, self._keys[0].decode() if self._keys else "", self._listen(listen_at))
        except (zmq.ZMQError, OSError) as error:
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
        for peer in self._peers.values():
            self._poller.register(peer.socket, zmq.POLLIN)
            self._poller.register(peer.monitor, zmq.POLLIN)

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

    # --- messages ------------------------------------------------------------------------------------------------

    @property
    def others(self) -> list[int]:
        return list(self._peers)

    def send(self, to: int, head: bytes, arrays: Sequence[Array] = ()) -> list[Any]:
        """Starts to send a message. Arrays are not copied: what comes back tells when they are free again."""
        peer, trackers = self._peers[to], []
        with suppress(zmq.Again):  # only when the connection is gone; what came before is to be read all the same
            peer.socket.send(head, zmq.NOBLOCK)
            for array in arrays:
                self.bytes_sent += array.nbytes
                for frame in wire.frames(array):
                    trackers.append(peer.socket.send(frame, zmq.NOBLOCK, copy=False, track=True))
        return trackers

    def receive(self, rank: int, decode: Callable[[int, bytes], Announcing]) -> tuple[Announcing, list[Array]] | None:
        """The next message of a peer, head and arrays; None as long as it has not arrived whole. `decode` reads heads;
        it raises `WireError` for those that no worker of ours sends, before memory is taken for what they announce.
        """
        peer = self._peers[rank]
        try:
            if peer.begun is None:
                message = peer.socket.recv(zmq.NOBLOCK)
                if message[:1] == wire.FAILED:
                    peer.failed = message[1:].decode(errors="replace")
                    return None
                found = decode(rank, message)
                peer.begun = (found, wire.Incoming(found.arrays))
            head, incoming = peer.begun
            while not incoming.complete:
                incoming.took(peer.socket.recv_into(incoming.place, flags=zmq.NOBLOCK))
        except zmq.Again:
            return None
        except wire.WireError as error:
            raise self.failure(f"worker {rank} sent worker {self.rank} a wrong message: {error}") from error
        peer.begun = None
        return head, incoming.arrays

    def wait(self, seconds: float | None) -> None:
        """Returns when something has come or a connection has ended, or after so many seconds."""
        self._poller.poll(None if seconds is None else ceil(max(seconds, 0.0) * 1000))

    def check(self, rank: int) -> None:
        """Raises if a peer has failed or is gone, and has sent nothing that was not read."""
        peer = self._peers[rank]
        peer.look()
        if peer.failed is not None:
            raise self.failure(f"worker {rank} failed: {peer.failed}")
        if peer.lost and not peer.socket.poll(GRACE):
            raise self.failure(
                f"worker {rank} is gone, which worker {self.rank} noticed: its connection ended at {peer.ended}, "
                f"after at most {self._patience.silence:g} s of silence",
                PeerGone,
            )

    def failure(self, reason: str, kind: type[PeerLost] = PeerLost) -> PeerLost:
        """The error of a peer that failed or is gone; closing waits less from now on."""
        self._failed = True
        return kind(reason)

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
    """Listens at a free port of the address by which peers know this host; where no interface has it, at that of the
    interface that leads there. Never at all of them."""
    address = gethostbyname(host)
    try:
        return int(socket.bind_to_random_port(f"tcp://{address}"))
    except zmq.ZMQError:
        with system_socket(AF_INET, SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # nothing is sent: this only asks for the way
            return int(socket.bind_to_random_port(f"tcp://{probe.getsockname()[0]}"))


def open_links(links: Links, meeting: Meeting) -> Links:
    """Connects a worker with the other workers of the meeting."""
    try:
        links.connect([decode_card(text) for text in meeting(links.card.encode())])
    except BaseException:
        links.close()
        raise
    return links
