"""One edge comes or goes: shortest paths and components that follow, by hand-written loops with a witness a node.

    sssp(Y, min(D)) <- Y = $ID, D = 0.  sssp(Y, min(D)) <- sssp(X, C), warc(X, Y, W), D = C + W.
    cc(X, min(X)) <- arc(X, _).         cc(Y, min(V)) <- cc(X, V), arc(X, Y).

Both are one loop: a node has a value, the depth of its derivation and a witness, the node that the value came from (or
itself). An edge that goes matters if it is the witness. Then nodes are looked at in the order of depth: one that has
another edge of the same value from less deep stays, else it falls and those that it is the witness of are looked at.
What fell takes the best that is left, smallest values first. For components weights are 0 and every node offers itself
its own label. An edge that comes is one relaxation, and what follows.

Edges stand in blocks of their own for each node, forwards and backwards, with gaps to grow into.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from benchmarks.limits.common import Column, kernel

FAR = np.iinfo(np.int64).max
NOBODY = -1


@kernel
def blocks(keys, values, weights, n, gap):  # type: ignore[no-untyped-def]
    """The edges of each node in a block: `ends[start[k] : start[k] + length[k]]`, with weights beside them."""
    length = np.zeros(n, np.int64)
    for key in keys:
        length[key] += 1
    start = np.zeros(n + 1, np.int64)
    for k in range(n):
        start[k + 1] = start[k] + length[k] + gap
    ends, costs = np.zeros(start[n], np.int64), np.zeros(start[n], np.int64)
    length[:] = 0
    for e in range(len(keys)):
        at = start[keys[e]] + length[keys[e]]
        ends[at], costs[at] = values[e], weights[e]
        length[keys[e]] += 1
    return start, length, ends, costs


@kernel
def has_edge(out, back, x, y, w):  # type: ignore[no-untyped-def]
    """Looks through the shorter of the two blocks that would have the edge."""
    side, key, end = (out, x, y) if out[1][x] <= back[1][y] else (back, y, x)
    start, length, ends, costs = side
    for at in range(start[key], start[key] + length[key]):  # noqa: SIM110
        if ends[at] == end and costs[at] == w:
            return True
    return False


@kernel
def add_edge(side, x, y, w):  # type: ignore[no-untyped-def]
    start, length, ends, costs = side
    at = start[x] + length[x]
    ends[at], costs[at] = y, w
    length[x] += 1


@kernel
def remove_edge(side, x, y, w):  # type: ignore[no-untyped-def]
    """The last edge of the block takes the place of the one that goes."""
    start, length, ends, costs = side
    last = start[x] + length[x] - 1
    for at in range(start[x], last + 1):
        if ends[at] == y and costs[at] == w:
            ends[at], costs[at] = ends[last], costs[last]
            length[x] -= 1
            return


@kernel
def relax(heap, value, depth, witness, out):  # type: ignore[no-untyped-def]
    """Takes up nodes, smallest values and depths first, until nothing follows."""
    start, length, ends, costs = out
    while heap:
        v, d, x = heappop(heap)
        if v != value[x] or d != depth[x]:
            continue
        for at in range(start[x], start[x] + length[x]):
            y, new = ends[at], v + costs[at]
            if new < value[y] or (new == value[y] and d + 1 < depth[y]):
                value[y], depth[y], witness[y] = new, d + 1, x
                heappush(heap, (new, d + 1, y))


@kernel
def first_values(out, source, labels, n):  # type: ignore[no-untyped-def]
    """Values from a source or, with `labels`, from every node's own label."""
    value, depth = np.full(n, FAR), np.zeros(n, np.int64)
    witness = np.full(n, NOBODY)
    heap = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for x in range(n):
        if labels or x == source:
            value[x], witness[x] = x if labels else 0, x
            heappush(heap, (value[x], np.int64(0), np.int64(x)))
    relax(heap, value, depth, witness, out)
    return value, depth, witness


@kernel
def insert(x, y, w, value, depth, witness, out, back):  # type: ignore[no-untyped-def]
    if has_edge(out, back, x, y, w):
        return
    add_edge(out, x, y, w)
    add_edge(back, y, x, w)
    if value[x] == FAR:
        return
    new = value[x] + w
    if new < value[y] or (new == value[y] and depth[x] + 1 < depth[y]):
        value[y], depth[y], witness[y] = new, depth[x] + 1, x
        heap = [(new, depth[y], y)]
        relax(heap, value, depth, witness, out)


@kernel
def retract(y, labels, value, depth, witness, out, back):  # type: ignore[no-untyped-def]
    """Lets fall what has no other witness; returns it."""
    start, length, ends, costs = back
    suspects, fallen = [(depth[y], y)], [y for _ in range(0)]
    while suspects:
        _, z = heappop(suspects)
        if value[z] == FAR:
            continue
        found = labels and value[z] == z
        if found:
            witness[z], depth[z] = z, 0
        for at in range(start[z], start[z] + length[z]):
            x = ends[at]
            if not found and value[x] != FAR and value[x] + costs[at] == value[z] and depth[x] < depth[z]:
                witness[z], depth[z], found = x, depth[x] + 1, True
        if not found:
            for at in range(out[0][z], out[0][z] + out[1][z]):
                child = out[2][at]
                if witness[child] == z and child != z:
                    heappush(suspects, (depth[child], child))
            value[z] = FAR
            fallen.append(z)
    return fallen


@kernel
def delete(x, y, w, labels, value, depth, witness, out, back):  # type: ignore[no-untyped-def]
    """Returns whether the edge was a witness."""
    remove_edge(out, x, y, w)
    remove_edge(back, y, x, w)
    if witness[y] != x or value[x] == FAR or value[x] + w != value[y] or x == y:
        return False
    start, length, ends, costs = back
    fallen = retract(y, labels, value, depth, witness, out, back)
    heap = [(value[y], depth[y], y) for _ in range(0)]
    for z in fallen:
        best, at_depth, by = FAR, np.int64(0), np.int64(NOBODY)
        if labels:
            best, by = z, z
        for at in range(start[z], start[z] + length[z]):
            p = ends[at]
            if value[p] == FAR:
                continue
            new = value[p] + costs[at]
            if new < best or (new == best and by != z and depth[p] + 1 < at_depth):
                best, at_depth, by = new, depth[p] + 1, p
        if best < FAR:
            value[z], depth[z], witness[z] = best, at_depth, by
            heappush(heap, (best, at_depth, z))
    relax(heap, value, depth, witness, out)
    return True


class Kept:
    """A graph and the values of its nodes, kept while edges come and go."""

    def __init__(self, x: Column, y: Column, w: Column, labels: bool, source: int = 0, gap: int = 16) -> None:
        n = int(max(x.max(), y.max())) + 1
        self._labels = labels
        self.out: Any = blocks(x, y, w, n, gap)
        self.back: Any = blocks(y, x, w, n, gap)
        self.value, self.depth, self.witness = first_values(self.out, source, labels, n)

    def insert(self, edges: Column) -> None:
        """Adds edges, one after another."""
        insert_each(edges, self.value, self.depth, self.witness, self.out, self.back)

    def delete(self, edges: Column) -> Column:
        """Removes edges, one after another; tells of each whether it was a witness."""
        hits: Column = delete_each(edges, self._labels, self.value, self.depth, self.witness, self.out, self.back)
        return hits


@kernel
def insert_each(edges, value, depth, witness, out, back):  # type: ignore[no-untyped-def]
    for i in range(len(edges)):
        insert(edges[i, 0], edges[i, 1], edges[i, 2], value, depth, witness, out, back)


@kernel
def delete_each(edges, labels, value, depth, witness, out, back):  # type: ignore[no-untyped-def]
    hits = np.zeros(len(edges), np.bool_)
    for i in range(len(edges)):
        x, y, w = edges[i, 0], edges[i, 1], edges[i, 2]
        hits[i] = delete(x, y, w, labels, value, depth, witness, out, back)
    return hits
