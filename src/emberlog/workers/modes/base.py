"""The interface of a mode of coordination: when a worker goes on, for how long, and when it sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class View:
    """What a worker knows when it asks its mode. Some facts wait.

    `clock` counts its own local iterations in this epoch, `clocks` has the last one received of every peer that is not
    finished. `since` is when it began to wait for this decision.
    """

    now: float
    waiting: int
    clock: int
    clocks: Mapping[int, int]
    since: float


@dataclass(frozen=True, slots=True)
class Go:
    """Make so many local iterations, or as many as there are facts for (None), then send what is due."""

    iterations: int | None = 1


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait for a message, at most until a time, then ask again."""

    until: float | None = None


Decision: TypeAlias = Go | Hold


class Coordination:
    """A mode, one object for each worker. The defaults never wait and send at once."""

    name: ClassVar[str]
    stepped: ClassVar[bool] = False  # rounds that end at a barrier
    positive: ClassVar[frozenset[str]] = frozenset()  # parameters that cannot be 0
    tells_clock: ClassVar[bool] = False  # after a batch every peer is sent the clock, with facts or alone
    threshold: float = 0.0  # changes of sums that are less wait for others

    def decide(self, view: View) -> Decision:
        """What to do while facts wait."""
        return Go()

    def due(self, peer: int, facts: int, now: float) -> float:
        """When the buffer for a peer, which holds so many facts, is to be sent."""
        return now

    def flushed(self, peer: int, facts: int, now: float) -> None:
        """A buffer was sent."""

    def arrived(self, sender: int, facts: int, now: float) -> None:
        """Facts of a peer were merged."""

    def worked(self, taken: int, seconds: float, now: float) -> None:
        """A local iteration took up so many facts in so many seconds."""

    def figures(self) -> Mapping[str, float]:
        """What the mode goes by at the moment: omega, tau, rho, beta."""
        return {}
