"""`dws`: DCDatalog's dynamic weight-based strategy (Algorithm 2, "Coordination, read closely").

Before every local iteration omega and tau are renewed from the queueing model of the worker's buffers (`queues`). With
0 < |delta| < omega it waits tau, collects, and goes on after the time-out whatever came. Where the model is undefined
(rho >= 1, empty buffers) it does not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from emberlog.workers.modes.base import Coordination, Decision, Go, Hold, View
from emberlog.workers.modes.queues import Arrivals, Queue, Times, queue


@dataclass
class DWS(Coordination):
    """`omega` and `tau` are caps, in facts and in seconds."""

    omega: float = 100_000.0
    tau: float = 0.05
    name: ClassVar[str] = "dws"
    _service: Times = field(default_factory=Times)
    _between: dict[int, Times] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)
    _buffered: dict[int, int] = field(default_factory=dict)
    _queue: Queue | None = None
    _is_old: bool = True  # of the queue: an iteration was made since

    def decide(self, view: View) -> Decision:
        found = self._renewed()
        if found is None or view.waiting >= found.omega or view.now >= view.since + found.tau:
            self._buffered.clear()
            self._is_old = True
            return Go()
        return Hold(view.since + found.tau)

    def _renewed(self) -> Queue | None:
        """omega and tau, computed once for each local iteration."""
        if self._is_old:
            buffers = [
                Arrivals(facts, self._between[peer].mean, self._between[peer].variance)
                for peer, facts in self._buffered.items()
                if peer in self._between
            ]
            self._queue = queue(buffers, self._service, self.omega, self.tau)
            self._is_old = False
        return self._queue

    def arrived(self, sender: int, facts: int, now: float) -> None:
        self._buffered[sender] = self._buffered.get(sender, 0) + facts
        if sender in self._last:
            self._between.setdefault(sender, Times()).add(facts, now - self._last[sender])
        self._last[sender] = now

    def worked(self, taken: int, seconds: float, now: float) -> None:
        if taken:
            self._service.add(taken, seconds)

    def figures(self) -> Mapping[str, float]:
        if self._queue is None:
            return {}
        return {"omega": self._queue.omega, "tau": self._queue.tau, "rho": self._queue.rho}
