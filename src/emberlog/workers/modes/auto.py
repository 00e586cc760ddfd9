"""`auto`: begins with rounds, and changes the mode at a quiescent epoch when measurements say so.

At a barrier nothing is on its way, so that clocks may restart in another mode. What is looked at: the share of time in
which workers wait, how many facts wait for a round, and whether facts to one key replace each other (extrema and sums),
so that what was derived from stale ones was in vain (SSP 6.2: compute grows with the slack). `why` says what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emberlog.workers.messages import Report

LOOKS = 2  # rounds before the first look
WAITS = 0.2  # a share of waiting below this is not worth a change
FEW = 64  # facts a worker and round: less than a barrier costs


@dataclass
class Auto:
    """Chooses for all workers; it lives with the coordinator. `condenses` says that values of a key replace each
    other."""

    condenses: bool = False
    why: str = "rounds: they were over before there was anything to measure"
    chosen: str = "bsp"

    def __call__(self, epoch: int, reports: Mapping[int, Report]) -> str | None:
        if epoch < LOOKS or self.chosen != "bsp":
            return None
        compute, idle = sum(one.compute for one in reports.values()), sum(one.idle for one in reports.values())
        share = idle / (compute + idle) if compute + idle else 0.0
        facts = sum(one.waiting for one in reports.values()) / len(reports)
        seen = f"after {epoch} rounds workers waited {share:.0%} of the time, and {facts:,.0f} facts a worker wait"
        if share < WAITS:
            self.why = f"rounds: {seen}"
            return None
        if facts < FEW:
            self.chosen, because = "dws", "few facts a round"
        elif self.condenses:
            self.chosen, because = "ssp:3", "work on stale values is done again, so that staleness is bounded"
        else:
            self.chosen, because = "async", "no work is done twice, whatever is stale"
        self.why = f"{self.chosen}: {seen}; {because}"
        return self.chosen
