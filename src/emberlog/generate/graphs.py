"""Plain graphs: `arc(x, y)`, and `warc(x, y, d)` with a weight on each edge.

Nodes are numbered from 0. Edges are distinct and no edge is a self loop.
"""

from __future__ import annotations

import numpy as np

from emberlog.generate.draw import (
    CHUNK,
    Ints,
    Tables,
    chunked,
    distinct,
    ids,
    need,
    need_probability,
    need_size,
    table,
)

WEIGHTS = 100
"""Weights are whole numbers in [0, WEIGHTS)."""

LARGEST_TREE = 200_000_000  # nodes; a level more would take several times the memory


def tree(height: int, *, leaf: float = 0.4, seed: int = 0) -> Tables:
    """A tree of exactly this height (edges on the longest way down), nodes numbered level by level from the root 0.

    An inner node has 2 to 6 children. A node above the last level is a leaf with probability `leaf`; the default is
    what the published Tree11 shows (0 gives the full tree, which grows by 4 a level instead of 2.4). The first node of
    a level is never a leaf, so the tree does not die out, and neither is the root.

    Relations: `arc(x, y)` from parent to child, `parent(x, y)` from child to parent, and up to 200 `pair(x, y)`
    of nodes to ask questions about.
    """
    need_size("the height of a tree", height)
    need_probability("leaf", leaf)
    rng = np.random.default_rng(seed)
    level, nodes = ids(1), 1
    chunks: list[tuple[Ints, Ints]] = []
    for _ in range(height):
        inner = rng.random(len(level)) >= leaf
        inner[0] = True
        parents = level[inner]
        parents = np.repeat(parents, rng.integers(2, 7, len(parents)))
        level = nodes + ids(len(parents))
        nodes += len(level)
        need(nodes <= LARGEST_TREE, f"a tree of height {height} has more than {LARGEST_TREE:,} nodes")
        chunks.append((parents, level))
    x, y = np.divmod(distinct(lambda count: rng.integers(0, nodes**2, count), min(200, nodes), rng), nodes)
    return {
        "arc": chunked(("x", "y"), chunks),
        "parent": chunked(("x", "y"), [(child, parent) for parent, child in chunks]),
        "pair": table(x=x, y=y),
    }


def grid(n: int, *, seed: int = 0) -> Tables:
    """(n+1) x (n+1) nodes, each with an edge to the right and one down: 2n(n+1) edges. Only the weights are random."""
    need_size("the size of a grid", n)
    at = ids((n + 1) ** 2).reshape(n + 1, n + 1)
    x = np.concatenate([at[:, :-1].ravel(), at[:-1, :].ravel()])
    y = np.concatenate([at[:, 1:].ravel(), at[1:, :].ravel()])
    return _weighted(x, y, np.random.default_rng(seed))


def gnp(n: int, p: float = 0.001, *, seed: int = 0) -> Tables:
    """A directed Erdos-Renyi graph: each of the n(n-1) edges is there with probability p, independently.

    The edges are numbered in rows; the gaps between those that are there have a geometric distribution, so the work and
    the memory follow the number of edges, and no edge comes twice.
    """
    need_size("the number of nodes", n)
    need(n <= 10**8, f"the number of nodes must be at most {10**8}, not {n}")
    need_probability("p", p)
    rng = np.random.default_rng(seed)
    possible = n * (n - 1)
    chunks: list[tuple[Ints, Ints, Ints]] = []
    last = -1
    while p > 0 and last < possible - 1:
        expected = (possible - 1 - last) * p
        count = int(min(CHUNK, expected + 4 * expected**0.5 + 8))
        edges = last + np.cumsum(np.minimum(rng.geometric(p, count), possible))
        last = int(edges[-1])
        edges = edges[edges < possible]
        x, y = np.divmod(edges, max(n - 1, 1))
        y += y >= x  # a row has no place for the self loop
        chunks.append((x, y, rng.integers(0, WEIGHTS, len(x))))
    return {
        "arc": chunked(("x", "y"), [(x, y) for x, y, _ in chunks]),
        "warc": chunked(("x", "y", "d"), chunks),
    }


def rmat(n: int, *, a: float = 0.45, b: float = 0.25, c: float = 0.15, seed: int = 0) -> Tables:
    """A skewed graph of n nodes with 10n weighted edges: the recursive matrix model.

    An edge chooses a quarter of the adjacency matrix again and again, with probabilities a, b, c and the rest. What
    falls outside the n nodes, on the diagonal or on an edge already there is drawn again, so there are exactly 10n
    edges (all n(n-1) where that is less).
    """
    need_size("the number of nodes", n)
    need(min(a, b, c) > 0 and a + b + c < 1, f"a, b and c must be positive and add up to less than 1, not {a, b, c}")
    rng = np.random.default_rng(seed)
    levels = max(n - 1, 0).bit_length()

    def draw(count: int) -> Ints:
        x, y = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for _ in range(levels):
            at = rng.random(count, np.float32)
            x <<= 1
            y <<= 1
            x |= at >= a + b
            y |= ((at >= a) & (at < a + b)) | (at >= a + b + c)
        kept = (x < n) & (y < n) & (x != y)
        keys: Ints = x[kept] * n + y[kept]
        return keys

    keys = distinct(draw, min(10 * n, n * max(n - 1, 0)), rng)
    x, y = np.divmod(keys, max(n, 1))
    return _weighted(x, y, rng)


def dag(n: int, *, degree: int = 3, layers: int = 20, seed: int = 0) -> Tables:
    """A weighted graph without cycles: n nodes in at most `layers` layers, `degree` edges on average out of each node.

    An edge leads from a layer to the next, or (one in ten) over one layer. So the number of ways from one node to
    another stays near degree^layers and fits 64 bits at any n. `source(x)` has up to ten nodes of the first layer.
    """
    need_size("the number of nodes", n)
    need_size("degree", degree, 1)
    need_size("layers", layers, 1)
    rng = np.random.default_rng(seed)
    depth = min(layers, max(n, 1))
    starts = ids(depth + 1) * n // depth

    def draw(count: int) -> Ints:
        layer = rng.integers(0, depth, count)
        to = layer + 1 + (rng.random(count) < 0.1)
        layer, to = layer[to < depth], to[to < depth]
        x = starts[layer] + _below(starts[layer + 1] - starts[layer], rng)
        y = starts[to] + _below(starts[to + 1] - starts[to], rng)
        return x * n + y

    widths = np.diff(starts)
    possible = int((widths[:-1] * widths[1:]).sum())
    keys = distinct(draw, min(degree * n, possible), rng)
    x, y = np.divmod(keys, max(n, 1))
    first = int(starts[1])
    sources = np.sort(rng.permutation(first)[: min(10, first)])
    return {**_weighted(x, y, rng), "source": table(x=sources)}


def _below(bounds: Ints, rng: np.random.Generator) -> Ints:
    return rng.integers(0, bounds) if len(bounds) else bounds


def _weighted(x: Ints, y: Ints, rng: np.random.Generator) -> Tables:
    weights = rng.integers(0, WEIGHTS, len(x))
    return {"arc": table(x=x, y=y), "warc": table(x=x, y=y, d=weights)}
