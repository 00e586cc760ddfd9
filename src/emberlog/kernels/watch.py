"""Holds running loops to the limits of a run, and tells how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import sleep
from typing import Protocol

from emberlog.diagnostics import sized
from emberlog.memory import Budget
from emberlog.stats import Meter, RoundLimit, StratumStats


class Failed(Exception):
    """An operation had no value. The relational evaluator finds out whether that counts, and tells it."""


class Unsuited(Exception):
    """The data have something that the kernels cannot hold. The relational evaluator takes over."""


class Overworked(Exception):
    """More than the interpreter should do: compiled loops take over."""


class Watch(Protocol):
    """What loops ask while they run. `most_rounds` is how many rounds one fixpoint may take."""

    @property
    def most_rounds(self) -> int: ...

    def look(self, facts: int) -> None:
        """Raises when rows or time are over their limits."""

    def rounds(self, deltas: list[int], facts: int) -> None:
        """So many rounds were made, which took up so many facts each. Raises when they are too many."""

    def failed(self, code: int) -> None:
        """Raises what a loop ended with."""

    def halting(self, halt: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls `halt`, from another thread, if the run is to end while what is inside goes on."""

    def halted(self) -> None:
        """Raises why the run is to end, after `halt` was called."""


UNLIMITED = 1 << 60


class MeterWatch:
    """Watches by the meter of a run, and by its budget of memory. `default` is the limit on rounds where the user set
    none: it depends on facts."""

    def __init__(
        self, meter: Meter, stats: StratumStats, growing: bool, inventing: int | None, budget: Budget | None = None
    ) -> None:
        self.meter = meter
        self.stats = stats
        self.growing = growing
        self.inventing = inventing
        self.budget = budget
        self.facts = 0

    @property
    def most_rounds(self) -> int:
        limit = self.meter.limits.rounds
        return limit - 1 if limit is not None else self._default() or UNLIMITED

    def _default(self) -> int | None:
        from emberlog.stats import default_rounds

        return default_rounds(self.facts) if self.growing else self.inventing

    def look(self, facts: int) -> None:
        self.facts = max(self.facts, facts)
        self.meter.check(self.stats, facts)
        self._check_memory()

    def _check_memory(self) -> None:
        if self.budget is not None and self.budget.is_full():
            used, total = sized(self.budget.used()), sized(self.budget.total)
            raise Unsuited(f"{self.facts:,} facts and what finds them need {used}, and {total} may be used (memory=)")

    def rounds(self, deltas: list[int], facts: int) -> None:
        self.facts = max(self.facts, facts)
        self.meter.rounds(self.stats, deltas, facts, self._default())
        self._check_memory()

    def failed(self, code: int) -> None:
        if code == 2:
            self.stats.rounds = self.meter.limits.rounds or self.most_rounds
            self.meter.allow_round(self.stats, self.most_rounds)
            raise RoundLimit(f"stopped after {self.stats.rounds:,} rounds")
        raise Failed

    @contextmanager
    def halting(self, halt: Callable[[], None]) -> Iterator[None]:
        with self.meter.stop.interruptible(halt, self.meter.seconds_here):
            yield

    def halted(self) -> None:
        while True:
            self.look(self.facts)
            sleep(0.001)  # whoever called `halt` was a moment early
