"""The sockets between workers: who may come in, what is taken in, and how soon a lost peer is noticed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
import zmq

from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import PeerLost
from emberlog.kernels.cluster.links import Card, Links, Patience, decode_card, open_links
from emberlog.kernels.cluster.meeting import meet_in
from emberlog.kernels.cluster.sockets import SocketExchange

QUICK = Patience(connect=3, handshake=1, heartbeat=0.2, silence=1)


def connected(size: int, at: Path | str, patience: Patience = QUICK) -> list[Links]:
    """Workers in this process, connected with one another."""
    made = [Links(rank, size, at, "run", patience) for rank in range(size)]
    cards = [exchange.card for exchange in made]
    with ThreadPoolExecutor(size) as pool:
        list(pool.map(lambda exchange: exchange.connect(cards), made))
    return made


@contextmanager
def stranger(endpoint: str, server_key: str, own: tuple[bytes, bytes] | None = None) -> Iterator[zmq.Socket[bytes]]:
    """A client with a key of its own, or another one."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.curve_publickey, socket.curve_secretkey = own or zmq.curve_keypair()
    socket.curve_serverkey = server_key.encode()
    try:
        socket.connect(endpoint)
        yield socket
    finally:
        socket.close()
        context.term()


def outcome(socket: zmq.Socket[bytes]) -> list[int]:
    """What happens to a client's connection within two seconds."""
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    seen: list[int] = []
    deadline = monotonic() + 2
    while not seen and monotonic() < deadline:
        if monitor.poll(100):
            seen.append(int.from_bytes(monitor.recv_multipart()[0][:2], "little"))
    socket.disable_monitor()
    monitor.close()
    return seen


def test_an_unknown_key_is_refused_while_workers_connect() -> None:
    first, second = (Links(rank, 2, "127.0.0.1", "run", QUICK) for rank in range(2))
    cards = [first.card, second.card]
    with closing(first), stranger(first.card.endpoints[1], first.card.key) as socket:
        socket.send(wire.HELLO + b"run 1")
        seen: list[int] = []
        listener = Thread(target=lambda: seen.extend(outcome(socket)))
        listener.start()
        with pytest.raises(PeerLost, match="waited 3 s for a connection with worker 1"):
            first.connect(cards)
        listener.join()
    assert seen == [zmq.EVENT_HANDSHAKE_FAILED_AUTH]
    second.close()


def test_a_stranger_does_not_hinder_the_workers() -> None:
    first, second = (Links(rank, 2, "127.0.0.1", "run", QUICK) for rank in range(2))
    cards = [first.card, second.card]
    with stranger(first.card.endpoints[1], first.card.key) as socket, ThreadPoolExecutor(2) as pool:
        socket.send(wire.HELLO + b"run 1")
        sleep(0.3)
        list(pool.map(lambda exchange: exchange.connect(cards), (first, second)))
        done = list(
            pool.map(lambda exchange: SocketExchange(exchange).swap([[], []], (exchange.rank,)), (first, second))
        )
        assert [summaries for _, summaries in done] == [[(0,), (1,)]] * 2
        first.close()
        with pytest.raises(PeerLost):
            SocketExchange(second).swap([[], []])
        second.close()


@pytest.mark.parametrize("known", [False, True])
def test_nobody_comes_in_later_whatever_the_key(known: bool) -> None:
    first, second = connected(2, "127.0.0.1")
    with closing(first), closing(second):
        key = second._keys if known else None
        with stranger(first.card.endpoints[1], first.card.key, key) as socket:
            socket.send(wire.HELLO + b"run 1")
            assert zmq.EVENT_HANDSHAKE_SUCCEEDED not in outcome(socket)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda exchange: SocketExchange(exchange).swap([[], []]), (first, second)))


def test_the_key_of_one_peer_does_not_open_the_door_of_another() -> None:
    exchanges = [Links(rank, 3, "127.0.0.1", "run", QUICK) for rank in range(3)]
    first, _, third = exchanges
    cards = [exchange.card for exchange in exchanges]
    with stranger(first.card.endpoints[1], first.card.key, third._keys) as socket:
        seen: list[int] = []
        listener = Thread(target=lambda: seen.extend(outcome(socket)))
        listener.start()
        with pytest.raises(PeerLost):
            first.connect(cards)
        listener.join()
    assert seen == [zmq.EVENT_HANDSHAKE_FAILED_AUTH]
    for exchange in exchanges:
        exchange.close()


def test_a_message_that_is_too_large_ends_the_connection() -> None:
    first, second = connected(2, "127.0.0.1")
    with closing(first), closing(second):
        second._peers[0].socket.send(bytes(wire.FRAME_LIMIT + 1))
        with pytest.raises(PeerLost, match="worker 1 is gone"):
            SocketExchange(first).swap([[], []])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "not the head of a step"),
        (b"s[", "cannot be read"),
        (b"s[2, [], []]", "worker 1 is at step 2, worker 0 at 1"),
        (b's[1, [], [["<i8", 1000000000000]]]', "it announces more than"),
        (b's[1, [], [["|O", 3]]]', "of a kind that is not sent"),
        (b's[1, [], [["<i8", -3]]]', "of a kind that is not sent"),
        (b's[1, ["x"], []]', "something else than numbers"),
    ],
)
def test_wrong_messages_are_told(tmp_path: Path, message: bytes, reason: str) -> None:
    first, second = connected(2, tmp_path)
    with closing(first), closing(second):
        second._peers[0].socket.send(message)
        with pytest.raises(PeerLost, match=reason):
            SocketExchange(first).swap([[], []])


def test_a_frame_of_another_length_is_told(tmp_path: Path) -> None:
    first, second = connected(2, tmp_path)
    with closing(first), closing(second):
        second._peers[0].socket.send(wire.Head(1, (), (("<i8", 2),)).encode())
        second._peers[0].socket.send(b"12345678")
        with pytest.raises(PeerLost, match="another length than its head says"):
            SocketExchange(first).swap([[], []])


def test_arrays_that_cannot_be_sent(tmp_path: Path) -> None:
    first, second = connected(2, tmp_path)
    with closing(first), closing(second):
        for array in (np.zeros((2, 2)), np.array(["x"], object)):
            with pytest.raises(ValueError, match="cannot be sent"):
                SocketExchange(first).swap([[], [array]])


def test_strided_arrays_arrive(tmp_path: Path) -> None:
    first, second = connected(2, tmp_path)
    with closing(first), closing(second), ThreadPoolExecutor(2) as pool:
        every_third = np.arange(30)[::3]
        done = pool.map(lambda exchange: SocketExchange(exchange).swap([[every_third]] * 2), (first, second))
        assert all(array.tolist() == every_third.tolist() for arrays, _ in done for (array,) in arrays)


def test_sockets_in_a_folder_are_gone_once_all_are_connected(tmp_path: Path) -> None:
    exchanges = connected(3, tmp_path)
    assert list(tmp_path.iterdir()) == []
    for exchange in exchanges:
        exchange.close()
    lonely = Links(0, 2, tmp_path, "run", QUICK)
    assert len(list(tmp_path.iterdir())) == 1
    lonely.close()
    assert list(tmp_path.iterdir()) == []


def test_cards_are_read_as_written() -> None:
    card = Card(1, "key", {2: "tcp://x:1", 3: "tcp://x:2"})
    assert decode_card(card.encode()) == card


def test_workers_that_do_not_start_are_missed(tmp_path: Path) -> None:
    with pytest.raises(PeerLost, match=r"worker 0 waited 0.1 s for worker 1 to start"):
        meet_in(tmp_path, 0, 2, 0.1)("hello")


# --- processes ---------------------------------------------------------------------------------------------------


def _process(rank: int, size: int, folder: Path, at: Path | str, told: Any) -> None:
    exchange = SocketExchange(open_links(Links(rank, size, at, "run", QUICK), meet_in(folder, rank, size)))
    try:
        for step in range(10_000):
            exchange.swap([[np.arange(10_000)]] * size)
            if step == 2:
                told.send("going")
            sleep(0.01)
    except PeerLost as error:
        told.send(error.message)
    finally:
        exchange.close()


@pytest.mark.apart
@pytest.mark.parametrize(("transport", "how"), [("ipc", signal.SIGKILL), ("tcp", signal.SIGSTOP)])
def test_a_lost_process_is_noticed_in_seconds(tmp_path: Path, transport: str, how: signal.Signals) -> None:
    at = tmp_path if transport == "ipc" else "127.0.0.1"
    fresh = multiprocessing.get_context("spawn")
    # A pipe for each: a killed process would keep the lock of a queue.
    ends = [fresh.Pipe() for _ in range(3)]
    processes = [
        fresh.Process(target=_process, args=(rank, 3, tmp_path, at, theirs), daemon=True)
        for rank, (_, theirs) in enumerate(ends)
    ]
    for process in processes:
        process.start()
    try:
        for ours, _ in ends:
            assert ours.poll(30) and ours.recv() == "going"
        killed, victim = monotonic(), processes[1].pid
        assert victim is not None
        os.kill(victim, how)
        lost = [ends[rank][0].recv() for rank in (0, 2) if ends[rank][0].poll(10)]
        assert monotonic() - killed < 6
        # The first to notice leaves, and the other may notice that first.
        assert len(lost) == 2 and any(what.startswith("worker 1 is gone") for what in lost)
    finally:
        for process in processes:
            process.kill()
            process.join(10)
