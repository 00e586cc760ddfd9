"""Workers in different processes: the same answers over sockets, and a format that takes in nothing else."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from emberlog.components.program import Id, Table
from emberlog.kernels.cluster.exchange import PeerLost
from emberlog.kernels.cluster.links import Card, Links, Patience
from emberlog.kernels.cluster.peers import SocketPeers
from emberlog.kernels.cluster.wire import WireError
from emberlog.kernels.parts import letters
from emberlog.kernels.parts.letters import ANNOUNCED, CONTROLS, FACTS, HEAD, KINDS, LETTER, MOST_BYTES, Letters
from emberlog.kernels.parts.parcels import Rows
from emberlog.kernels.parts.part import ComponentPart
from emberlog.workers.drive import drive
from emberlog.workers.messages import (
    Answer,
    Body,
    End,
    Facts,
    Halt,
    Halted,
    Message,
    Poll,
    Release,
    Report,
    Save,
    Saved,
    Tick,
)
from emberlog.workers.modes import Auto
from emberlog.workers.worker import Worker
from workers.programs import ACYCLIC, MODES, PROGRAMS, graph, inputs, state

QUICK = Patience(connect=3, handshake=1, heartbeat=0.2, silence=1)
TABLES = (Table("p", (Id(0), Id(0))), Table("q", (Id(0), "float"), "sum", 1))
FORMAT = Letters(TABLES)
REPORT = CONTROLS[KINDS[Report]][1]


def connect(links: list[Links], cards: list[Card] | None = None) -> None:
    with ThreadPoolExecutor(len(links)) as pool:
        list(pool.map(lambda one: one.connect(cards or [each.card for each in links]), links))


def work(parts: list[ComponentPart], mode: str, links: list[Links]) -> list[Worker]:
    """Lets workers with these parts work over links, each in a thread."""
    connect(links)

    def run(rank: int) -> Worker:
        peers = SocketPeers(links[rank], Letters(parts[rank].plan.placed.tables))
        worker = Worker(parts[rank], peers, mode, Auto() if mode == "auto" else None)
        drive(worker, peers)
        peers.leave()
        return worker

    with ThreadPoolExecutor(len(links)) as pool:
        workers = list(pool.map(run, range(len(links))))
    for one in links:
        one.close()
    return workers


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_the_same_answer_over_sockets(mode: str, tmp_path: Path) -> None:
    for number, name in enumerate(("non-linear", "mutual", "all pairs", "count", "paths")):
        found = inputs({**PROGRAMS, **ACYCLIC}[name], graph(Random(f"{name}{mode}"), name in ACYCLIC, 12))
        whole = found.parts(1)
        while whole[0].waiting:
            whole[0].take()
        size = number % 3 + 2
        at = tmp_path if number else "127.0.0.1"
        parts = found.parts(size)
        work(parts, mode, [Links(rank, size, at, "run", QUICK) for rank in range(size)])
        assert state(parts) == state(whole)


def test_many_facts_travel_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "MOST_BYTES", 64)
    found = inputs(PROGRAMS["mutual"], [(i, (i * 5 + 1) % 14, 1) for i in range(14)])
    whole = found.parts(1)
    while whole[0].waiting:
        whole[0].take()
    parts = found.parts(2)
    workers = work(parts, "bsp", [Links(rank, 2, tmp_path, "run", QUICK) for rank in range(2)])
    assert state(parts) == state(whole)
    assert sum(worker.sent for worker in workers) == sum(worker.consumed for worker in workers) > 50


# --- the format ------------------------------------------------------------------------------------------------------

BODIES: list[Body] = [
    Tick(True),
    Report(3, 2, 1, 0.5, 0.25, float("inf")),
    Poll(7),
    Answer(7, 3, 3, False),
    Release(4, "ssp:3"),
    Release(5, None),
    End(),
    Halt(2),
    Halted(2, 5, 4, True),
    Save(2),
    Saved(2, 100, 12345, 6, "disk full"),
]


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_messages_are_read_as_written(body: Body) -> None:
    message = Message(1, 3, 9, body)
    ((head, arrays),) = FORMAT.encode(message)
    assert arrays == [] and FORMAT.decode(1, head).message([]) == message


def test_facts_are_read_as_written() -> None:
    rows = {"q": [np.arange(3), np.array([0.5, -1.0, 2.0])], "p": [np.arange(6)[::3], np.array([7, 8])]}
    ((head, arrays),) = FORMAT.encode(Message(1, 0, 2, Facts(Rows(rows))))
    letter = FORMAT.decode(0, head)
    assert letter.arrays == [("<i8", 2), ("<i8", 2), ("<i8", 3), ("<f8", 3)]
    found = letter.message(arrays).body
    assert isinstance(found, Facts) and isinstance(found.parcel, Rows) and found.parcel.facts == 5
    assert [column.tolist() for column in found.parcel.tables["p"]] == [[0, 3], [7, 8]]


def head(kind: int, body: bytes = b"", epoch: int = 0, clock: int = 0, first: bytes = LETTER) -> bytes:
    return HEAD.pack(first, kind, epoch, clock) + body


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "not the head of a message"),
        (b"m", "not the head of a message"),
        (head(0, b"\1", first=b"x"), "not the head of a message"),
        (head(0), "another form"),
        (head(0, b"\1\1"), "another form"),
        (head(200), "another form"),
        (head(0, b"\1", epoch=-1), "negative"),
        (head(1, REPORT.pack(-1, 0, 0, 0, 0, 0)), "negative"),
        (head(1, REPORT.pack(1, 0, 0, float("nan"), 0, 0)), "negative"),
        (head(4, struct.pack("<q120s", 1, b"__import__('os')")), "there is no coordination"),
        (head(4, struct.pack("<q120s", 1, b"\xff\xfe")), "there is no coordination"),
        (head(FACTS, ANNOUNCED.pack(9, 1)), "it has facts of table 9"),
        (head(FACTS, ANNOUNCED.pack(0, 2**63)), "at most"),
        (head(FACTS, ANNOUNCED.pack(0, MOST_BYTES)), "at most"),
        (head(FACTS, ANNOUNCED.pack(0, 1) * 2), "twice"),
        (head(FACTS, ANNOUNCED.pack(0, 1)[:-1]), "another form"),
        (head(FACTS, ANNOUNCED.pack(0, 1) * 3), "another form"),
    ],
)
def test_what_no_worker_sends_is_refused(message: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        FORMAT.decode(1, message)


def test_random_bytes_are_refused_or_announce_little() -> None:
    random = Random(0)
    for _ in range(3000):
        data = random.randbytes(random.randint(0, 60))
        message = data if random.random() < 0.3 else LETTER + bytes([random.randint(0, FACTS + 1)]) + data
        try:
            letter = FORMAT.decode(0, message)
        except WireError:
            continue
        assert sum(8 * rows for _, rows in letter.arrays) <= 2 * MOST_BYTES


@pytest.mark.parametrize("message", [b"nonsense", head(FACTS, ANNOUNCED.pack(0, 2**60)), head(99)])
def test_a_wrong_message_of_a_peer_ends_the_run(tmp_path: Path, message: bytes) -> None:
    first, second = (Links(rank, 2, tmp_path, "run", QUICK) for rank in range(2))
    with closing(first), closing(second):
        connect([first, second])
        second.send(0, message)
        peers = SocketPeers(first, FORMAT)
        with pytest.raises(PeerLost, match="worker 1 sent worker 0 a wrong message"):
            receive(peers, [], 1)


# --- strangers -------------------------------------------------------------------------------------------------------


@contextmanager
def recorded(endpoint: str) -> Iterator[tuple[str, list[bytes]]]:
    """A way to an endpoint that writes down what passes to it: its own endpoint, and the bytes."""
    host, port = endpoint.removeprefix("tcp://").split(":")
    server = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []
    opened: list[socket.socket] = []

    def pass_on(source: socket.socket, target: socket.socket, record: bool) -> None:
        while data := source.recv(1 << 16):
            if record:
                seen.append(data)
            target.sendall(data)

    def accept() -> None:
        client, _ = server.accept()
        there = socket.create_connection((host, int(port)))
        opened.extend((client, there))
        for source, target, record in ((client, there, True), (there, client, False)):
            Thread(target=quietly, args=(pass_on, source, target, record), daemon=True).start()

    Thread(target=quietly, args=(accept,), daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", seen
    finally:
        for one in (server, *opened):
            one.close()


def quietly(what: Callable[..., None], *arguments: Any) -> None:
    try:
        what(*arguments)
    except OSError:
        return


def test_what_was_recorded_or_made_up_changes_nothing_when_it_is_sent_again() -> None:
    """All bytes of a worker, sent once more by somebody else, and bytes that mean nothing; before and after."""
    first, second = (Links(rank, 2, "127.0.0.1", "run", QUICK) for rank in range(2))
    endpoint = first.card.endpoints[1]
    with recorded(endpoint) as (way, seen), closing(first), closing(second):
        intrude(endpoint, [os.urandom(500)])
        connect([first, second], [Card(0, first.card.key, {1: way}), second.card])
        ours, theirs = SocketPeers(first, FORMAT), SocketPeers(second, FORMAT)
        arrived: list[Message] = []
        for number in range(3):
            theirs.send(0, Message(1, 0, number, Poll(number)))
        receive(ours, arrived, 3)
        assert sum(map(len, seen)) > 500  # the greeting and three messages, encrypted
        intrude(endpoint, seen)
        intrude(endpoint, [os.urandom(5000)])
        theirs.send(0, Message(1, 0, 9, Tick()))
        receive(ours, arrived, 4)
        sleep(0.2)
        arrived += ours.receive()
        assert [message.clock for message in arrived] == [0, 1, 2, 9]


def receive(peers: SocketPeers, arrived: list[Message], number: int) -> None:
    """Waits for so many messages."""
    end = monotonic() + 5
    while len(arrived) < number and monotonic() < end:
        arrived += peers.receive()


def intrude(endpoint: str, pieces: list[bytes]) -> None:
    """Another process that sends bytes to an endpoint."""
    host, port = endpoint.removeprefix("tcp://").split(":")
    code = (
        "import socket, sys\n"
        f"s = socket.create_connection(({host!r}, {port}))\n"
        "s.settimeout(0.5)\n"
        "try:\n"
        "    s.sendall(sys.stdin.buffer.read())\n"
        "    while s.recv(4096): pass\n"
        "except OSError: pass\n"
    )
    subprocess.run([sys.executable, "-c", code], input=b"".join(pieces), check=True, timeout=20)


def test_sockets_listen_at_the_address_of_the_host_only() -> None:
    links = Links(0, 2, "127.0.0.1", "run", QUICK)
    with closing(links):
        port = links.card.endpoints[1].rpartition(":")[2]
        lines = Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
        own = [line.split()[1] for line in lines if f":{int(port):04X} " in line.split("  ", 1)[-1] and " 0A " in line]
        assert own == [f"0100007F:{int(port):04X}"]
