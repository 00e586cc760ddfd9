"""One ready queue, and those who fill it.

A *finder* is one way to tell which active nodes are ready: no active, unfinished node is their ancestor in the whole
graph ("Scheduling, read closely": active queue). Once ready, a node stays so, because only an unfinished ancestor
could activate another ancestor. So what a finder has found can wait in a queue, and several finders can fill the same
one: each tells the others what it took. LevelBased, LogicBlox and signals are one finder each; look-ahead and Hybrid
are two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from emberlog.diagnostics import InternalError
from emberlog.schedule.graph import Graph


class Finder(Protocol):
    """A way to find ready nodes. `operations` are the steps it took since `start`, `memory` the numbers it keeps."""

    operations: int
    memory: int

    def start(self, graph: Graph) -> None:
        """Forgets what was before. No node is active yet."""

    def activate(self, nodes: Sequence[int]) -> None:
        """These nodes, none of which was active before, are to run."""

    def look(self) -> list[int]:
        """Nodes that are ready and were found by nobody yet."""

    def take(self, nodes: Sequence[int]) -> None:
        """Another finder found these nodes; do not find them again."""

    def finish(self, node: int) -> None:
        """The node is done. What it activates was told before."""


class Queued:
    """A scheduler: finders that fill one ready queue, asked in turn whenever it is empty.

    Each node is handed out once, whoever finds it. Not safe for several threads: a driver with threads holds a lock."""

    def __init__(self, *finders: Finder) -> None:
        self._finders = finders
        self._queue: deque[int] = deque()
        self._active: set[int] = set()
        self._running: set[int] = set()
        self._waiting = 0
        self._handed = 0

    def start(self, graph: Graph, active: Iterable[int]) -> None:
        """Begins a change that activates these nodes at first."""
        self._queue.clear()
        self._active.clear()
        self._running.clear()
        self._waiting = self._handed = 0
        for finder in self._finders:
            finder.start(graph)
        self._activate(active)

    def ready(self) -> int | None:
        """A node that may run now; None if none is known before a running one is finished."""
        if not self._queue:
            self._fill()
        if not self._queue:
            return None
        node = self._queue.popleft()
        self._running.add(node)
        self._waiting -= 1
        self._handed += 1
        return node

    def finish(self, node: int, activated: Iterable[int]) -> None:
        """The node is done, and these successors got a change from it."""
        if node not in self._running:
            raise InternalError(f"node {node} is finished and was not running")
        self._running.remove(node)
        self._activate(activated)
        for finder in self._finders:
            finder.finish(node)

    def done(self) -> bool:
        """True if no node is active and unfinished."""
        return not self._waiting and not self._running

    @property
    def operations(self) -> int:
        """Steps taken since `start`: those of the finders, and one for each node that was handed out.

        That several changes reach one node costs no step: whoever writes to it marks it, and it is told once."""
        return self._handed + sum(finder.operations for finder in self._finders)

    @property
    def memory(self) -> int:
        """Numbers kept: those of the finders, precomputation included, and one for each active node."""
        return len(self._active) + sum(finder.memory for finder in self._finders)

    def _activate(self, nodes: Iterable[int]) -> None:
        fresh = [node for node in dict.fromkeys(nodes) if node not in self._active]
        if fresh:
            self._active.update(fresh)
            self._waiting += len(fresh)
            for finder in self._finders:
                finder.activate(fresh)

    def _fill(self) -> None:
        for finder in self._finders:
            found = finder.look()
            if found:
                for other in self._finders:
                    if other is not finder:
                        other.take(found)
                self._queue.extend(found)
                return
