"""The graph of tasks: nodes 0..n-1, edges from what is read to who reads it, and the level of each node.

A graph never changes. `Graph.of` makes one, `Graph.extended` makes another one of it after a change of rules: levels,
and interval lists if there are any, are computed again only for the nodes that the change reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emberlog.diagnostics import DataError

if TYPE_CHECKING:
    from emberlog.schedule.intervals import Intervals

Ints: TypeAlias = NDArray[np.int64]
Edges: TypeAlias = Iterable[tuple[int, int]] | Ints


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Lists of neighbours, one after the other: those of `node` are `targets[offsets[node]:offsets[node + 1]]`."""

    offsets: Ints
    targets: Ints

    @staticmethod
    def of(size: int, heads: Ints, targets: Ints) -> Adjacency:
        """The neighbours of each of `size` nodes, in the order of their numbers."""
        order = np.lexsort((targets, heads))
        offsets = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(heads, minlength=size), out=offsets[1:])
        return Adjacency(offsets, targets[order])

    def __getitem__(self, node: int) -> Ints:
        return self.targets[self.offsets[node] : self.offsets[node + 1]]

    def counts(self) -> Ints:
        """The number of neighbours of each node."""
        return np.diff(self.offsets)

    def gather(self, nodes: Ints) -> tuple[Ints, Ints]:
        """All neighbours of `nodes`, each with the position in `nodes` of the one that it belongs to."""
        owners, places = spread(self.offsets[nodes], self.offsets[nodes + 1] - self.offsets[nodes])
        return owners, self.targets[places]


def spread(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The numbers `starts[i] .. starts[i] + counts[i] - 1` for each i, one after the other, each with its i."""
    owners = np.repeat(np.arange(starts.size), counts)
    before = np.cumsum(counts) - counts
    return owners, np.arange(owners.size) + (starts - before)[owners]


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed graph without cycles. The level of a node is the length of the longest path to it (Section II-B)."""

    size: int
    successors: Adjacency
    predecessors: Adjacency
    levels: Ints

    @staticmethod
    def of(size: int, edges: Edges) -> Graph:
        """The graph of these nodes and edges; an edge that is given twice counts once.

        Raises `DataError` for a cycle or a number that is no node."""
        return _graph(size, edge_rows(edges), np.arange(size), np.zeros(size, np.int64))

    def extended(self, nodes: int = 0, edges: Edges = (), without: Edges = ()) -> Graph:
        """This graph with more nodes at its end, more edges, and without some.

        Only what the change reaches gets new levels and interval lists: the new nodes, the heads of changed edges and
        whatever descends from them."""
        size, more, fewer = self.size + nodes, edge_rows(edges), edge_rows(without)
        kept = self.edges()
        kept = kept[~is_in(edge_keys(kept, size), distinct(edge_keys(fewer, size)))]
        heads = np.concatenate((np.arange(self.size, size), more[:, 1], fewer[:, 1]))
        levels = np.concatenate((self.levels, np.zeros(nodes, np.int64)))
        graph = _graph(size, np.concatenate((kept, more)), heads, levels)
        if "intervals" in vars(self):
            from emberlog.schedule.intervals import extend

            vars(graph)["intervals"] = extend(self.intervals, graph, graph.descendants(heads))
        return graph

    @property
    def depth(self) -> int:
        """The number of levels."""
        return int(self.levels.max()) + 1 if self.size else 0

    def edges(self) -> Ints:
        """All edges, as rows of two numbers, in order."""
        return np.column_stack((np.repeat(np.arange(self.size), self.successors.counts()), self.successors.targets))

    def descendants(self, nodes: Ints) -> Ints:
        """`nodes` and all that can be reached from them, in order."""
        return reach(self.successors, self.size, nodes)

    def ancestors(self, nodes: Ints) -> Ints:
        """`nodes` and all from which they can be reached, in order."""
        return reach(self.predecessors, self.size, nodes)

    @cached_property
    def intervals(self) -> Intervals:
        """The ancestors of each node, as interval lists; computed when they are first asked for."""
        found = self.intervals_within(None)
        assert found is not None, "without a limit there are always lists"
        return found

    def intervals_within(self, limit: int | None) -> Intervals | None:
        """The interval lists, or None if they are more than `limit` numbers. No more than those are ever in memory."""
        from emberlog.schedule.intervals import build

        found = vars(self).get("intervals")
        if found is None and (found := build(self, limit)) is not None:
            vars(self)["intervals"] = found
        return found if found is not None and (limit is None or found.memory <= limit) else None


def _graph(size: int, pairs: Ints, changed: Ints, levels: Ints) -> Graph:
    """The graph of these edges. `levels` are right but for what `changed` nodes reach."""
    if size < 0:
        raise DataError(f"a graph cannot have {size} nodes")
    for named in (pairs, changed):
        wrong = named[(named < 0) | (named >= size)]
        if wrong.size:
            raise DataError(f"{wrong.flat[0]} is no node of a graph of {size:,} nodes", fix="nodes count from 0")
    keys = distinct(edge_keys(pairs, size))
    tails, heads = np.divmod(keys, max(size, 1))
    successors, predecessors = Adjacency.of(size, tails, heads), Adjacency.of(size, heads, tails)
    affected = reach(successors, size, changed)
    return Graph(size, successors, predecessors, _levels(successors, predecessors, affected, levels))


def _levels(successors: Adjacency, predecessors: Adjacency, affected: Ints, known: Ints) -> Ints:
    """Levels of all nodes: those of `affected` ones anew, from sources down, those of others as they are known."""
    levels, inside = known.copy(), np.zeros(known.size, np.bool_)
    inside[affected] = True
    owners, parents = predecessors.gather(affected)
    waits = np.zeros(known.size, np.int64)
    waits[affected] = np.bincount(owners[inside[parents]], minlength=affected.size)
    front, placed = affected[waits[affected] == 0], 0
    while front.size:
        placed += front.size
        owners, parents = predecessors.gather(front)
        above = np.zeros(front.size, np.int64)
        np.maximum.at(above, owners, levels[parents] + 1)
        levels[front] = above
        children, told = np.unique(successors.gather(front)[1], return_counts=True)
        waits[children] -= told
        front = children[waits[children] == 0]
    if placed < affected.size:
        raise DataError(_cycle(predecessors, waits > 0), fix="what a task reads must not depend on what it writes")
    return levels


def _cycle(predecessors: Adjacency, stuck: NDArray[np.bool_]) -> str:
    """A message that names a cycle. Each stuck node has a stuck predecessor, so a walk upwards meets itself."""
    node, path, seen = int(np.flatnonzero(stuck)[0]), list[int](), dict[int, int]()
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        parents = predecessors[node]
        node = int(parents[stuck[parents]][0])
    cycle = [*path[seen[node] :], node][::-1]
    shown = [*cycle[:8], "..."] if len(cycle) > 9 else cycle
    return f"the edges go round in a cycle: {' -> '.join(map(str, shown))}"


def reach(neighbours: Adjacency, size: int, nodes: Ints) -> Ints:
    """`nodes` and all that can be reached from them along these neighbours, in order."""
    reached = np.zeros(size, np.bool_)
    reached[nodes] = True
    front = np.flatnonzero(reached)
    while front.size:
        front = distinct(neighbours.gather(front)[1])
        front = front[~reached[front]]
        reached[front] = True
    return np.flatnonzero(reached)


def distinct(values: Ints) -> Ints:
    """The different values, in order. NumPy's own `unique` hashes, which takes ten times as long here."""
    ordered = np.sort(values)
    first = np.ones(ordered.size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def is_in(values: Ints, ordered: Ints) -> NDArray[np.bool_]:
    """True for each value that is one of the ordered ones."""
    if not ordered.size:
        return np.zeros(values.size, np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return np.asarray(ordered[places] == values)


def edge_rows(edges: Edges) -> Ints:
    """Edges as rows of two numbers."""
    rows: Sequence[tuple[int, int]] | Ints = edges if isinstance(edges, np.ndarray) else list(edges)
    return np.asarray(rows, np.int64).reshape(-1, 2)


def edge_keys(pairs: Ints, size: int) -> Ints:
    """Each row as one number; different for different edges of a graph of this size."""
    return pairs[:, 0] * max(size, 1) + pairs[:, 1]
