"""`ssp:S:T`: bounded staleness (SSP, Fig. 3, read as in "Coordination, read closely").

A worker makes up to T local iterations, which use its own new facts at once, and sends what follows as one condensed
message. r counts its local iterations; every message carries its sender's r. Before its next batch it waits while
r - r' > S for the last r' of any peer that is not finished. (Fig. 3's line 6 is printed inverted: the inner loop goes
on while s < T and the state changed.) A worker with nothing new sends its clock alone.

The s of DCDatalog 4.1 is another one: "at most s local iterations before stopping to wait for the current global
iteration". Its Fig. 8 is `ssp:5:1` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from emberlog.workers.modes.base import Coordination, Decision, Go, Hold, View


@dataclass
class SSP(Coordination):
    """`staleness` is S, `batch` is T."""

    staleness: int = 3
    batch: int = 1
    name: ClassVar[str] = "ssp"
    tells_clock: ClassVar[bool] = True
    positive: ClassVar[frozenset[str]] = frozenset({"batch"})

    def decide(self, view: View) -> Decision:
        if any(view.clock - clock > self.staleness for clock in view.clocks.values()):
            return Hold()
        return Go(self.batch)
