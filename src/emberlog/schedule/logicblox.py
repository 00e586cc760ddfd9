"""The LogicBlox scheduler of Section II-C: interval lists of ancestors, and a queue of active nodes that is scanned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from emberlog.schedule.graph import Graph

# Below so many comparisons the loops are interpreted: the compiler is not worth loading.
COMPILED = 20_000

# So many unfinished nodes are compared with an interval before the scan asks whether one lies in it.
BLOCK = 256


class LogicBlox:
    """Finds ready nodes by ancestor queries: each look scans the queue of active nodes against the interval lists.

    A node is ready if none of the unfinished ones lies in its list. A look costs up to n^2 queries, a query up to the
    length of the list: O(n^3) at worst over a change. The lists are precomputed, which no makespan contains."""

    operations = 0
    memory = 0

    def start(self, graph: Graph) -> None:
        self._lists = graph.intervals
        self.operations = 0
        self.memory = self._lists.memory
        self._queue: dict[int, None] = {}
        self._unfinished: dict[int, None] = {}
        self._stale = True

    def activate(self, nodes: Sequence[int]) -> None:
        new = dict.fromkeys(nodes)
        self._queue.update(new)
        self._unfinished.update(new)
        self.operations += len(nodes)
        self.memory += 2 * len(nodes)

    def look(self) -> list[int]:
        if not self._stale or not self._queue:
            return []
        self._stale = False
        found = self._scan()
        self._forget(found)
        return found

    def take(self, nodes: Sequence[int]) -> None:
        self._forget(nodes)
        self.operations += len(nodes)

    def finish(self, node: int) -> None:
        del self._unfinished[node]
        self.operations += 1
        self._stale = True

    def _forget(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            del self._queue[node]

    def _scan(self) -> list[int]:
        """The nodes of the queue that have no unfinished ancestor."""
        lists = self._lists
        queue = np.fromiter(self._queue, np.int64, len(self._queue))
        unfinished = lists.numbers[np.fromiter(self._unfinished, np.int64, len(self._unfinished))]
        begins, ends = lists.offsets[queue], lists.offsets[queue + 1]
        ready = np.zeros(queue.size, np.bool_)
        if int((ends - begins).sum()) * unfinished.size < COMPILED:
            steps = scan(unfinished.tolist(), begins.tolist(), ends.tolist(), lists.lows, lists.highs, ready)
        else:
            steps = _compiled()(unfinished, begins, ends, lists.lows, lists.highs, ready)
        self.operations += int(steps)
        found: list[int] = queue[ready].tolist()
        return found


def scan(unfinished: Any, begins: Any, ends: Any, lows: Any, highs: Any, ready: Any) -> int:
    """Marks as ready whose intervals, from `begins` to `ends`, hold none of the unfinished numbers.

    Returns the steps: one for each node, and one for each comparison of a number with an interval."""
    steps = 0
    for node in range(len(begins)):
        steps += 1
        free = True
        block = 0
        while free and block < len(unfinished):
            stop = min(block + BLOCK, len(unfinished))
            place = begins[node]
            while free and place < ends[node]:
                low, high = lows[place], highs[place]
                inside = False
                for other in range(block, stop):  # without a way out, so that it becomes vector instructions
                    inside |= (low <= unfinished[other]) & (unfinished[other] <= high)
                steps += stop - block
                free = not inside
                place += 1
            block = stop
        ready[node] = free
    return steps


@cache
def _compiled() -> Callable[..., int]:
    import numba

    compiled: Callable[..., int] = numba.njit(cache=True, nogil=True)(scan)
    return compiled
