"""Where the time of a run goes.

A run is made of steps, some inside others: checking the program, loading sources, evaluating strata, reading results. A
row has the seconds of one step without those of the steps inside it, so that the rows of a run add up to what the
clock on the wall says. `StratumStats` are rows too: a row is whatever counts its `seconds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Lock, local
from time import monotonic
from typing import Protocol

OTHER = "other"  # what no other row has: loading modules, bookkeeping
LEAST = 0.0005  # seconds: a shorter step is not worth a row


class Row(Protocol):
    """Something that counts seconds."""

    seconds: float


@dataclass(slots=True)
class Step:
    """Work of a run that is no stratum: what was done, with which relation (if it was with one), for how long."""

    name: str
    of: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.of}".strip()


class Clock:
    """The rows of a run, in the order in which they began. Each thread that reads results has steps of its own."""

    def __init__(self) -> None:
        self.started = monotonic()  # of the run: its time limit counts from here
        self.rows: list[Row] = []
        self._known: set[int] = set()  # identities of the rows
        self._steps: dict[tuple[str, str], Step] = {}
        self._rows_lock = Lock()
        self._of_thread = _Open()

    @contextmanager
    def step(self, name: str, of: str = "") -> Iterator[None]:
        """Times what is done inside as a step; one that was there before goes on."""
        with self.time(self._step(name, of)):
            yield

    @contextmanager
    def time(self, row: Row) -> Iterator[None]:
        """Adds the time that passes inside to a row, less what steps inside take."""
        with self._rows_lock:
            if id(row) not in self._known:
                self._add(row)
        running = self._of_thread
        running.pass_time()
        running.rows.append(row)
        try:
            yield
        finally:
            running.pass_time()
            running.rows.pop()

    @contextmanager
    def lent(self) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """While this thread waits for another one, its steps go on there, inside of what is given here."""
        own, rows = self._of_thread, list(self._of_thread.rows)
        own.pass_time()

        @contextmanager
        def borrowed() -> Iterator[None]:
            other = self._of_thread
            before, other.rows, other.since = other.rows, list(rows), monotonic()
            try:
                yield
            finally:
                other.pass_time()
                other.rows = before

        try:
            yield borrowed
        finally:
            own.since = monotonic()

    def part(self, name: str, of: str, seconds: float) -> None:
        """Of the time of the row that runs now, so much was this step: somebody else measured it."""
        running = self._of_thread
        running.pass_time()
        if running.rows and seconds > 0:
            taken = min(seconds, running.rows[-1].seconds)
            running.rows[-1].seconds -= taken
            self._step(name, of).seconds += taken

    def _step(self, name: str, of: str) -> Step:
        with self._rows_lock:
            found = self._steps.get((name, of))
            if found is None:
                found = self._steps[name, of] = Step(name, of)
                self._add(found)
            return found

    def _add(self, row: Row) -> None:
        self._known.add(id(row))
        self.rows.append(row)


class _Open(local):
    """The rows whose time runs in this thread, innermost last."""

    def __init__(self) -> None:
        self.started = monotonic()  # of the run: its time limit counts from here
        self.rows: list[Row] = []
        self.since = monotonic()

    def pass_time(self) -> None:
        now = monotonic()
        if self.rows:
            self.rows[-1].seconds += now - self.since
        self.since = now


class Stopwatch:
    """Adds up the time during which somebody is inside, in whichever threads."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = 0
        self._since = 0.0
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._since = monotonic()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self.seconds += monotonic() - self._since
