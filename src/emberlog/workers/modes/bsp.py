"""`bsp`: rounds with a barrier (DCDatalog's Global, Algorithm 1; SSP with S = 0 and T = 1).

Every worker makes one local iteration with what it has, sends what follows, and waits until all that was sent in the
round has been merged everywhere. `termination` tells when that is.
"""

from __future__ import annotations

from typing import ClassVar

from emberlog.workers.modes.base import Coordination


class BSP(Coordination):
    name: ClassVar[str] = "bsp"
    stepped: ClassVar[bool] = True
