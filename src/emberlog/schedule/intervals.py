"""Ancestors of all nodes as interval lists, as the LogicBlox scheduler keeps them (Agrawal, Borgida, Jagadish 1989).

Nodes are numbered by a depth-first search that goes from sinks up to sources, a node after its ancestors. So the
ancestors that the search met below a node are one interval, and each edge that the search did not follow adds at most
the intervals of its tail. Lists are compressed: intervals that touch or overlap are one. At worst they take O(V^2)
numbers (Section II-C).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emberlog.schedule.graph import Graph, Ints, spread


@dataclass(frozen=True, eq=False)
class Intervals:
    """The proper ancestors of `node`: those numbered in [lows[i], highs[i]], i from offsets[node] to offsets[node +
    1]."""

    numbers: Ints
    offsets: Ints
    lows: Ints
    highs: Ints

    @property
    def memory(self) -> int:
        """How many numbers this is."""
        return self.numbers.size + self.offsets.size + self.lows.size + self.highs.size

    def is_ancestor(self, node: int, of: int) -> bool:
        """True if a path leads from `node` to `of`."""
        number, places = self.numbers[node], slice(self.offsets[of], self.offsets[of + 1])
        return bool(np.any((self.lows[places] <= number) & (number <= self.highs[places])))


def build(graph: Graph, limit: int | None = None) -> Intervals | None:
    """The interval lists of a graph; None as soon as they would be more than `limit` numbers."""
    fixed = 2 * graph.size + 1
    if limit is not None and fixed > limit:
        return None
    none = np.zeros(0, np.int64)
    empty = Intervals(number(graph), np.zeros(graph.size + 1, np.int64), none, none)
    return _lists(empty, graph, np.arange(graph.size), None if limit is None else (limit - fixed) // 2)


def extend(known: Intervals, graph: Graph, affected: Ints) -> Intervals:
    """Lists for `graph`, of which `known` has an earlier version; only the ancestors of `affected` nodes differ.

    New nodes are numbered after the others: any numbering is right, a depth-first one is short."""
    fresh = np.arange(known.numbers.size, graph.size)
    offsets = np.concatenate((known.offsets, np.full(fresh.size, known.offsets[-1])))
    numbers = np.concatenate((known.numbers, fresh))
    lists = _lists(Intervals(numbers, offsets, known.lows, known.highs), graph, affected, None)
    assert lists is not None, "without a limit there are always lists"
    return lists


def number(graph: Graph) -> Ints:
    """Numbers of nodes: the postorder of a depth-first search from sinks up."""
    numbers = np.full(graph.size, -1, np.int64)
    given, offsets, targets = 0, graph.predecessors.offsets.tolist(), graph.predecessors.targets.tolist()
    entered = bytearray(graph.size)
    for sink in np.flatnonzero(graph.successors.counts() == 0).tolist():
        entered[sink] = 1
        path, places = [sink], [offsets[sink]]
        while path:
            node, place = path[-1], places[-1]
            if place == offsets[node + 1]:
                numbers[node] = given
                given += 1
                path.pop()
                places.pop()
                continue
            places[-1] += 1
            parent = targets[place]
            if not entered[parent]:
                entered[parent] = 1
                path.append(parent)
                places.append(offsets[parent])
    return numbers


def _lists(known: Intervals, graph: Graph, affected: Ints, most: int | None) -> Intervals | None:
    """`known` with the lists of `affected` nodes computed anew, level by level; None if they are more than `most`."""
    starts, counts = known.offsets[:-1].copy(), np.diff(known.offsets)
    counts[affected] = 0
    lows, highs = _Column(known.lows), _Column(known.highs)
    held = int(counts.sum())
    for nodes in _by_level(graph, affected):
        owners, parents = graph.predecessors.gather(nodes)
        which, places = spread(starts[parents], counts[parents])
        own = known.numbers[parents]  # an ancestor of their children, as their own ancestors are
        owner, low, high = _compress(
            np.concatenate((owners[which], owners)),
            np.concatenate((lows.values[places], own)),
            np.concatenate((highs.values[places], own)),
            graph.size,
        )
        counts[nodes] = np.bincount(owner, minlength=nodes.size)
        starts[nodes] = lows.used + np.cumsum(counts[nodes]) - counts[nodes]
        lows.append(low)
        highs.append(high)
        held += low.size
        if most is not None and held > most:
            return None
    _, places = spread(starts, counts)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Intervals(known.numbers, offsets, lows.values[places], highs.values[places])


def _by_level(graph: Graph, nodes: Ints) -> list[Ints]:
    """The nodes in groups of equal levels, the lowest first."""
    order = nodes[np.argsort(graph.levels[nodes], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(graph.levels[order])) + 1)


def _compress(owners: Ints, lows: Ints, highs: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """The intervals of each owner, sorted, those that touch or overlap as one."""
    base = owners * (size + 2)  # two apart, so that intervals of different owners never touch
    order = np.argsort(base + lows, kind="stable")
    base, lows, highs = base[order], lows[order], highs[order]
    ends = np.maximum.accumulate(base + highs)
    first = np.ones(lows.size, np.bool_)
    first[1:] = (base + lows)[1:] > ends[:-1] + 1
    last = np.concatenate((first[1:], np.ones(min(lows.size, 1), np.bool_)))
    return owners[order][first], lows[first], (ends - base)[last]


class _Column:
    """Numbers that are appended to; what is there is copied only when the room doubles."""

    def __init__(self, values: Ints) -> None:
        self.values, self.used = values, values.size

    def append(self, more: Ints) -> None:
        needed = self.used + more.size
        if needed > self.values.size:
            grown = np.empty(max(needed, 2 * self.values.size), np.int64)
            grown[: self.used] = self.values[: self.used]
            self.values = grown
        self.values[self.used : needed] = more
        self.used = needed
