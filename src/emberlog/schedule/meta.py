"""The meta scheduler of Section V: a heuristic and LevelBased independently of each other, inside a budget of
memory."""

from __future__ import annotations

from collections.abc import Iterable

from emberlog.schedule.finders import Queued
from emberlog.schedule.graph import Graph
from emberlog.schedule.level import Level
from emberlog.schedule.logicblox import LogicBlox


class Meta:
    """Two schedulers, the LogicBlox one and LevelBased; the first is stopped when it reaches half of the budget.

    Theorem 10 gives each side half of the processors and lets both run every task. The simulator does so with the two
    schedulers (`heuristic`, `level`). As a scheduler of its own, Meta hands out a node once: tasks are pure, so what
    one side ran is published for both, and a side that asks for a published node has it at once."""

    def __init__(self, budget: int) -> None:
        self.share = budget // 2
        self.heuristic = Queued(LogicBlox())
        self.level = Queued(Level())
        self._sides: tuple[Queued, ...] = ()
        self._active: set[int] = set()
        self._published: dict[int, list[int]] = {}
        self._running: dict[int, list[Queued]] = {}

    def admits(self, graph: Graph) -> bool:
        """True if the heuristic's precomputation stays below its half of the budget. No more than that is ever made."""
        return graph.intervals_within(self.share - 1) is not None

    def is_over(self) -> bool:
        """True if the heuristic has reached its half of the budget."""
        return self.heuristic.memory >= self.share

    def start(self, graph: Graph, active: Iterable[int]) -> None:
        """Begins a change that activates these nodes at first."""
        nodes = list(active)
        self._sides = (self.heuristic, self.level) if self.admits(graph) else (self.level,)
        for side in self._sides:
            side.start(graph, nodes)
        self._active = set(nodes)
        self._published.clear()
        self._running.clear()
        self._drop()

    def ready(self) -> int | None:
        """A node that may run now, for the side whose turn it is."""
        for side in self._sides:
            node = self._next(side)
            if node is not None:
                self._sides = (*(other for other in self._sides if other is not side), side)
                return node
        return None

    def finish(self, node: int, activated: Iterable[int]) -> None:
        """The node is done for all sides; these successors got a change from it."""
        changed = list(activated)
        self._active.update(changed)
        self._published[node] = changed
        for side in self._running.pop(node):
            side.finish(node, changed)
        self._drop()

    def done(self) -> bool:
        """True if every active node is published."""
        return len(self._published) == len(self._active)

    @property
    def operations(self) -> int:
        """The steps of both sides."""
        return sum(side.operations for side in self._sides)

    @property
    def memory(self) -> int:
        """The numbers that both sides keep."""
        return sum(side.memory for side in self._sides)

    def _next(self, side: Queued) -> int | None:
        """The next node that this side is the first to ask for. What is published it has at once."""
        while (node := side.ready()) is not None:
            if node in self._published:
                side.finish(node, self._published[node])
            elif node in self._running:
                self._running[node].append(side)
            else:
                self._running[node] = [side]
                return node
        return None

    def _drop(self) -> None:
        """Stops the heuristic if it is over its half."""
        if self.heuristic in self._sides and self.is_over():
            self._sides = (self.level,)
