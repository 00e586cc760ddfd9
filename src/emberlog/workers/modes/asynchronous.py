"""`async`: nobody waits for anybody. A worker takes up what there is and sends what follows after each iteration."""

from __future__ import annotations

from typing import ClassVar

from emberlog.workers.modes.base import Coordination


class Asynchronous(Coordination):
    name: ClassVar[str] = "async"
