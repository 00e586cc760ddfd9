"""Workers on threads of one process: messages change hands, nothing is copied."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Thread
from time import monotonic

from emberlog.diagnostics import ExecutionError
from emberlog.workers.drive import drive
from emberlog.workers.messages import Message
from emberlog.workers.straggle import Disturbance
from emberlog.workers.worker import Worker

LOOK = 0.1  # seconds between two looks of the caller while workers work


class Abandoned(ExecutionError):
    """Another worker failed, so that this one cannot go on."""


class ThreadPeers:
    """One thread's end. A buffer for each ordered pair has one producer and one consumer: `deque` needs no lock."""

    def __init__(self, rank: int, all_peers: list[ThreadPeers], started: float, over: Event) -> None:
        self.rank = rank
        self._all = all_peers
        self._started = started
        self._over = over
        self._buffers: dict[int, deque[Message]] = {}  # by sender, made on first use
        self._arrival = Event()

    @property
    def size(self) -> int:
        return len(self._all)

    def now(self) -> float:
        return monotonic() - self._started

    def send(self, to: int, message: Message) -> None:
        peer = self._all[to]
        peer._buffers.setdefault(self.rank, deque()).append(message)
        peer._arrival.set()

    def receive(self) -> list[Message]:
        if self._over.is_set():
            raise Abandoned(f"worker {self.rank} stops: another one failed")
        self._arrival.clear()  # what arrives from now on sets it again
        arrived = []
        for buffer in list(self._buffers.values()):
            while buffer:
                arrived.append(buffer.popleft())
        return arrived

    def wait(self, until: float | None) -> None:
        """Returns when a message has arrived, or it is that time."""
        self._arrival.wait(None if until is None else max(until - self.now(), 0.0))

    def wake(self) -> None:
        self._arrival.set()


def thread_peers(size: int) -> list[ThreadPeers]:
    """The ends of the workers of one run."""
    peers: list[ThreadPeers] = []
    over = Event()
    peers += [ThreadPeers(rank, peers, monotonic(), over) for rank in range(size)]
    return peers


def run_threads(
    workers: Sequence[Worker],
    peers: Sequence[ThreadPeers],
    disturbances: Sequence[Disturbance] | None = None,
    look: Callable[[], None] = lambda: None,
) -> float:
    """Runs every worker in a thread of its own; the seconds that this took. The caller asks `look` meanwhile: what that
    raises, or a worker, ends all of them and is raised here."""
    failures: list[BaseException] = []
    over = peers[0]._over

    def work(worker: Worker, own: ThreadPeers, disturbance: Disturbance | None) -> None:
        try:
            drive(worker, own, disturbance)
        except Abandoned:
            pass
        except BaseException as error:
            failures.append(error)
            _abandon(over, peers)

    begun = monotonic()
    threads = [
        Thread(target=work, args=(worker, own, disturbances and disturbances[own.rank]), daemon=True)
        for worker, own in zip(workers, peers, strict=True)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK)
                look()
    finally:
        _abandon(over, peers)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if failures:
        raise failures[0]
    return monotonic() - begun


def _abandon(over: Event, peers: Sequence[ThreadPeers]) -> None:
    """Wakes everybody; whoever is still at work stops when it next looks for messages."""
    over.set()
    for one in peers:
        one.wake()
