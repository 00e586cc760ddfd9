"""`adaptive`: PowerLog's buffers (5.3, "Coordination, read closely").

Work never waits. A buffer is sent when it holds beta facts or tau has passed since it was sent last. When it is sent,
its pace |B| / dT is compared with beta / tau: outside [1/r, r] times that, beta becomes alpha * tau * |B| / dT. No
global information is used.

Of sums, changes of at least `threshold` are taken up at once, smaller ones gather until nothing else waits (5.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from emberlog.workers.modes.base import Coordination

LEAST = 1.0  # facts of a buffer: one that is smaller would never be sent by its size


@dataclass
class Adaptive(Coordination):
    alpha: float = 0.8
    r: float = 2.0
    tau: float = 0.002
    beta: float = 256.0
    threshold: float = 0.0
    name: ClassVar[str] = "adaptive"
    positive: ClassVar[frozenset[str]] = frozenset({"r", "tau"})
    _sizes: dict[int, float] = field(default_factory=dict)
    _sent: dict[int, float] = field(default_factory=dict)

    def due(self, peer: int, facts: int, now: float) -> float:
        if facts >= self._sizes.get(peer, self.beta):
            return now
        return self._sent.setdefault(peer, now) + self.tau

    def flushed(self, peer: int, facts: int, now: float) -> None:
        before = self._sent.get(peer, now)
        self._sizes[peer] = resized(self._sizes.get(peer, self.beta), facts, now - before, self)
        self._sent[peer] = now

    def figures(self) -> Mapping[str, float]:
        sizes = self._sizes.values()
        return {"beta": sum(sizes) / len(sizes)} if sizes else {}


def resized(beta: float, facts: int, seconds: float, by: Adaptive) -> float:
    """The size of a buffer after so many facts gathered in it in so many seconds."""
    if seconds <= 0:
        return beta
    pace = facts / seconds
    if beta / by.tau / by.r <= pace <= by.r * beta / by.tau:
        return beta
    return max(by.alpha * by.tau * pace, LEAST)
