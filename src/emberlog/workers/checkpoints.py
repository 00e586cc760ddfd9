"""Checkpoints of a run: at a moment when nothing is on its way, every worker writes its part down.

Under rounds that is the barrier. In other modes the coordinator halts all workers: they merge what comes, take up
nothing and send no facts, and tell their counts. Once all have halted, with as much consumed as sent, nothing is on its
way: what is held in buffers belongs to the parts. They are written, and a manifest is published when all are; then the
next epoch begins, in which clocks restart. So parts and mode are all that a run needs to go on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from emberlog.workers.messages import Saved
from emberlog.workers.part import Part


class Keeper(Protocol):
    """Where a worker writes its part."""

    @property
    def seconds(self) -> float:
        """How long a run goes on between two checkpoints."""

    @property
    def first(self) -> int:
        """The number of the first checkpoint that this run makes."""

    def save(self, checkpoint: int, part: Part) -> Saved:
        """Writes a part. What goes wrong with that is told in what comes back, and the run goes on."""

    def publish(self, checkpoint: int, mode: str, saved: Mapping[int, Saved]) -> None:
        """Makes a checkpoint of the parts that all workers have written, at once or not at all."""
