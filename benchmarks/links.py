"""What it costs two workers in different processes to talk: facts in one direction, and rounds without any facts."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from emberlog.components.program import Table
from emberlog.kernels.cluster.links import Links, open_links
from emberlog.kernels.cluster.meeting import meet_in
from emberlog.kernels.cluster.peers import SocketPeers
from emberlog.kernels.parts.letters import Letters
from emberlog.kernels.parts.parcels import Rows
from emberlog.workers.drive import drive
from emberlog.workers.messages import Facts, Message
from emberlog.workers.part import Parcel, Work
from emberlog.workers.worker import Worker

TRANSPORTS = ("ipc", "tcp")
PARCEL_ROWS = 1 << 21  # of two columns: 32 MB
PARCELS = 30
ROUNDS = 3000
REPEATS = 3
TABLE = Table("p", ("int", "int"))


@dataclass(frozen=True)
class Talk:
    """What was measured: megabytes of facts a second in one direction, and seconds of a round without any."""

    transport: str
    megabytes: float
    round: float


@dataclass
class Counted:
    """A part that has a fact to take up in each of so many rounds, from which nothing follows."""

    rounds: int

    @property
    def waiting(self) -> int:
        return int(self.rounds > 0)

    @property
    def left(self) -> float:
        return float(self.rounds)

    def put(self, parcel: Parcel) -> None:
        raise AssertionError("nothing is sent")

    inbox = put

    def take(self, least: float = 0.0) -> Work:
        self.rounds -= 1
        return Work(1)

    def held(self) -> Mapping[int, int]:
        return {}

    def outbox(self, peer: int) -> Parcel:
        raise AssertionError("nothing is held")

    def snapshot(self) -> object:
        return self.rounds

    def restore(self, state: Any) -> None:
        self.rounds = state


def measure(quick: bool) -> list[Talk]:
    """Both transports, between two processes of this machine."""
    return [_measured(transport, quick) for transport in TRANSPORTS]


def _measured(transport: str, quick: bool) -> Talk:
    fresh = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="emberlog-") as folder:
        ours, theirs = fresh.Pipe()
        processes = [
            fresh.Process(target=_work, args=(rank, transport, Path(folder), theirs, quick)) for rank in range(2)
        ]
        for process in processes:
            process.start()
        theirs.close()  # so that processes that fail are not waited for
        try:
            megabytes, seconds = ours.recv()
        finally:
            for process in processes:
                process.join(60)
                process.kill()
    return Talk(transport, megabytes, seconds)


def _work(rank: int, transport: str, folder: Path, told: Any, quick: bool) -> None:
    """One of the two processes; the first one tells what it measured."""
    at = folder if transport == "ipc" else "127.0.0.1"
    links = open_links(Links(rank, 2, at, "bench"), meet_in(folder, rank, 2))
    try:
        peers = SocketPeers(links, Letters((TABLE,)))
        parcels, rounds = (3, 100) if quick else (PARCELS, ROUNDS)
        rates = [_one_way(peers, parcels) for _ in range(REPEATS)]
        begun = perf_counter()
        drive(Worker(Counted(rounds), peers, "bsp"), peers)
        seconds = (perf_counter() - begun) / rounds
        peers.leave()
        if rank == 0:
            told.send((median(rates), seconds))
    finally:
        links.close()


def _one_way(peers: SocketPeers, parcels: int) -> float:
    """Megabytes a second from the second process to the first, from its first fact to the answer to the last."""
    facts = parcels * PARCEL_ROWS
    begun = perf_counter()
    if peers.rank == 1:
        parcel = Rows({TABLE.name: [np.arange(PARCEL_ROWS), np.arange(PARCEL_ROWS)]})
        for number in range(parcels):
            peers.send(0, Message(1, 0, number, Facts(parcel)))
        _await_facts(peers, 1)
    else:
        _await_facts(peers, facts)
        one = np.zeros(1, np.int64)
        peers.send(1, Message(0, 0, 0, Facts(Rows({TABLE.name: [one, one]}))))
    return 16 * facts / 1e6 / (perf_counter() - begun)


def _await_facts(peers: SocketPeers, facts: int) -> None:
    while facts > 0:
        for message in peers.receive():
            assert isinstance(message.body, Facts)
            facts -= message.body.parcel.facts
        if facts > 0:
            peers.wait(None)
