"""`aap`: adaptive asynchronous parallel (Fan et al., SIGMOD 2018, as "Coordination, read closely" remembers it).

A round runs to the local fixpoint. Before the next one a worker delays by

    DS = (L - eta) / s - (the time that it has waited already),     L = max(eta, L_min) + dt * s

with eta facts arrived, s the rate at which they do, and dt a `share` of the time that the next round is expected to
take. Nothing arrived yet, or no rate known: no delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from emberlog.workers.modes.base import Coordination, Decision, Go, Hold, View


@dataclass
class AAP(Coordination):
    """`least` is L_min in facts, `tau` the longest delay in seconds."""

    least: float = 0.0
    share: float = 0.5
    tau: float = 0.05
    name: ClassVar[str] = "aap"
    _arrived: int = 0
    _rate: float = 0.0  # facts a second, smoothed
    _last: float | None = None
    _each: float = 0.0  # seconds for a fact, smoothed
    _delay: float = 0.0

    def decide(self, view: View) -> Decision:
        self._delay = delay(self._arrived, self._rate, self.least, self.share * self._each * view.waiting)
        until = view.since + min(self._delay, self.tau)
        if view.now < until:
            return Hold(until)
        self._arrived = 0
        return Go(None)

    def arrived(self, sender: int, facts: int, now: float) -> None:
        self._arrived += facts
        if self._last is not None and now > self._last:
            rate = facts / (now - self._last)
            self._rate = rate if not self._rate else (self._rate + rate) / 2
        self._last = now

    def worked(self, taken: int, seconds: float, now: float) -> None:
        if taken:
            self._each = seconds / taken if not self._each else (self._each + seconds / taken) / 2

    def figures(self) -> Mapping[str, float]:
        return {"delay": self._delay, "rate": self._rate}


def delay(arrived: int, rate: float, least: float, expected: float) -> float:
    """DS before what the worker has waited is taken off: the seconds until L facts are expected to have gathered."""
    if not arrived or rate <= 0:
        return 0.0
    enough = max(arrived, least) + expected * rate
    return (enough - arrived) / rate
