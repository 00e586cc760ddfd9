"""Stragglers as in SSP 6.2: each worker is disturbed independently, by arrivals of a Poisson process.

A disturbance takes a share of the processor for a while: work that takes c seconds alone takes c / (1 - share) then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from emberlog.diagnostics import UsageError


@dataclass(frozen=True, slots=True)
class Straggle:
    """`rate` disturbances a second, each of `duration` seconds, that take `share` of the processor."""

    rate: float
    duration: float
    share: float

    @staticmethod
    def of(text: str) -> Straggle:
        """From `rate,duration,share`. Raises UsageError."""
        try:
            rate, duration, share = (float(word) for word in text.split(","))
        except (ValueError, AttributeError):
            raise UsageError(f"straggle is rate,duration,share, not {text!r}", fix="such as 0.5,2,0.75") from None
        if not (0 < rate < 1e9 and 0 < duration < 1e9 and 0 < share < 1):
            raise UsageError(
                f"straggle {text!r}: rate and duration are positive numbers, share is between 0 and 1",
                fix="such as 0.5,2,0.75",
            )
        return Straggle(rate, duration, share)

    def __str__(self) -> str:
        return f"{self.rate:g},{self.duration:g},{self.share:g}"


def disturbances(straggle: Straggle | None, seed: int, size: int) -> list[Disturbance] | None:
    """What each of so many workers suffers; None if they are left alone."""
    return None if straggle is None else [Disturbance(straggle, seed, rank) for rank in range(size)]


@dataclass
class Disturbance:
    """What one worker suffers, seeded. Asked with times that do not go back."""

    straggle: Straggle
    seed: int
    rank: int
    _ends: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed}/{self.rank}")
        self._ends.append(self._next(0.0))

    def _next(self, after: float) -> tuple[float, float]:
        """The disturbance that arrives next after a time; one that arrives during another begins when that is over."""
        start = after + self._random.expovariate(self.straggle.rate)
        return start, start + self.straggle.duration

    def stretched(self, now: float, seconds: float) -> float:
        """How long work takes that begins now and takes so many seconds undisturbed."""
        at, left = now, seconds
        while left > 0:
            start, end = self._ends[-1]
            if at >= end:
                self._ends[-1] = self._next(end)
            elif at < start:
                step = min(left, start - at)
                at, left = at + step, left - step
            else:
                pace = 1 - self.straggle.share
                step = min(left, (end - at) * pace)
                at, left = at + step / pace if step < (end - at) * pace else end, left - step
        return at - now
