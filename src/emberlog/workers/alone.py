"""A single worker: it is its own coordinator, and nothing is sent to anybody else."""

from __future__ import annotations

from collections import deque
from time import monotonic, sleep

from emberlog.workers.messages import Message
from emberlog.workers.peers import Wait
from emberlog.workers.worker import Worker


class Alone:
    """The peers of a single worker."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self._arrived: deque[Message] = deque()

    def now(self) -> float:
        return monotonic()

    def send(self, to: int, message: Message) -> None:
        self._arrived.append(message)

    def receive(self) -> list[Message]:
        arrived = list(self._arrived)
        self._arrived.clear()
        return arrived


def run_alone(worker: Worker) -> float:
    """Lets a single worker work; the seconds that this took."""
    begun = monotonic()
    for pause in worker.run():
        if isinstance(pause, Wait) and pause.until is not None:
            sleep(max(pause.until - monotonic(), 0.0))
    return monotonic() - begun
