"""LevelBased, and its look-ahead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from emberlog.schedule.graph import Graph


class Level:
    """Finds the active nodes of the lowest level that has unfinished ones: none is another's ancestor (Lemma 1).

    It is oblivious to how nodes of lower levels got done (Section III), so it works beside any other finder. O(n + L)
    steps for n active nodes and L levels, O(n) space, and one number a node from the precomputation (Theorem 2)."""

    operations = 0
    memory = 0

    def start(self, graph: Graph) -> None:
        self.graph = graph
        self.lowest = 0
        self.operations = 0
        self.memory = graph.size
        self._depth = graph.depth
        # By level: active nodes that nobody found yet, and how many are unfinished, found or not.
        self._waiting: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._unfinished: defaultdict[int, int] = defaultdict(int)

    def activate(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            level = int(self.graph.levels[node])
            self._waiting[level][node] = None
            self._unfinished[level] += 1
        self.operations += len(nodes)
        self.memory += len(nodes)

    def look(self) -> list[int]:
        self.operations += 1
        while self.lowest < self._depth and not self._unfinished.get(self.lowest):
            self.lowest += 1
            self.operations += 1
        return list(self._waiting.pop(self.lowest, ()))

    def take(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            del self._waiting[int(self.graph.levels[node])][node]
        self.operations += len(nodes)

    def finish(self, node: int) -> None:
        self._unfinished[int(self.graph.levels[node])] -= 1
        self.operations += 1


class LookAhead:
    """Finds nodes up to `depth` levels below the lowest one by a breadth-first search: LBL(k) of Section VI-B.

    The search goes down from all unfinished nodes; an active node that it does not reach is ready. There are no
    interval lists. Each search may visit all that lies in these levels: O(n^2) at worst, little where levels are
    narrow."""

    operations = 0
    memory = 0

    def __init__(self, level: Level, depth: int) -> None:
        self._level = level
        self._depth = depth

    def start(self, graph: Graph) -> None:
        self.operations = 0
        self.memory = 0  # the levels are kept by LevelBased, which goes first
        self._graph = graph
        self._waiting: dict[int, None] = {}
        self._unfinished: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._stale = True

    def activate(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._waiting[node] = None
            self._unfinished[int(self._graph.levels[node])][node] = None
        self.operations += len(nodes)
        self.memory += len(nodes)

    def look(self) -> list[int]:
        if not self._stale or not self._waiting:
            return []
        self._stale = False
        first = self._level.lowest
        window = [node for level in range(first, first + self._depth + 1) for node in self._unfinished.get(level, ())]
        below = self._descendants(window, first + self._depth)
        self.operations += len(window) + len(below)
        found = [node for node in window if node in self._waiting and node not in below]
        self._forget(found)
        return found

    def take(self, nodes: Sequence[int]) -> None:
        self._forget(nodes)
        self.operations += len(nodes)

    def finish(self, node: int) -> None:
        del self._unfinished[int(self._graph.levels[node])][node]
        self.operations += 1
        self._stale = True

    def _forget(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            del self._waiting[node]

    def _descendants(self, nodes: Sequence[int], last: int) -> set[int]:
        """What can be reached from these nodes down to level `last`, by a path of at least one edge."""
        levels, successors = self._graph.levels, self._graph.successors
        reached: set[int] = set()
        front, begun = list(nodes), set(nodes)
        while front:
            children = successors[front.pop()]
            self.operations += children.size
            for child in children[levels[children] <= last].tolist():
                reached.add(child)
                if child not in begun:
                    begun.add(child)
                    front.append(child)
        return reached
