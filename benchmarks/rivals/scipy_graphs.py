"""SciPy: sparse matrices and `csgraph`, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.limits.common import Columns, Inputs, Limit, Watch
from benchmarks.programs import SOURCE

PROGRAMS = ("reach", "cc_undirected", "sssp", "pagerank")


def evaluate(program: str, inputs: Inputs) -> Limit:
    from scipy.sparse import csr_array

    x, y, *rest = inputs["warc"] if "warc" in inputs else inputs["arc"]
    watch = Watch()
    n = int(max(x.max(), y.max())) + 1
    weights = rest[0].astype(np.float64) if rest else np.ones(len(x))
    matrix = csr_array((weights, (x, y)), shape=(n, n))
    build = watch.lap()
    found, rounds = _solve(program, matrix, n)
    seconds = watch.lap()
    if program == "cc_undirected":
        found = labelled(found[0], x, y)
    return Limit(len(found[0]), None, build, seconds, lambda: found, rounds)


def _solve(program: str, matrix: Any, n: int) -> tuple[Columns, int | None]:
    from scipy.sparse import csgraph

    match program:
        case "reach":
            order = csgraph.breadth_first_order(matrix, SOURCE, return_predecessors=False)
            return (order.astype(np.int64),), None
        case "cc_undirected":
            _, label = csgraph.connected_components(matrix, directed=False)
            return (label,), None
        case "sssp":
            dijkstra: Any = csgraph.dijkstra  # its types know no single index
            distance = dijkstra(matrix, indices=SOURCE)
            near = np.flatnonzero(np.isfinite(distance))
            return (near, distance[near].astype(np.int64)), None
        case _:
            return _pagerank(matrix, n)


def _pagerank(matrix: Any, n: int) -> tuple[Columns, int]:
    degree = np.diff(matrix.indptr)
    part = np.divide(0.85, degree, out=np.zeros(n), where=degree > 0)
    into = matrix.T.tocsr()
    rank, change, rounds = np.full(n, 1 / n), 1.0, 0
    while change >= 1e-4:
        rounds += 1
        following = into @ (rank * part) + 0.15 / n
        change = float(np.abs(following - rank).sum())
        rank = following
    return (np.arange(n), rank), rounds


def labelled(component: np.ndarray, x: np.ndarray, y: np.ndarray) -> Columns:
    """Components by their smallest node, for every node that has an edge."""
    smallest = np.full(int(component.max()) + 1, len(component))
    np.minimum.at(smallest, component, np.arange(len(component)))
    used = np.zeros(len(component), np.bool_)
    used[x] = used[y] = True
    nodes = np.flatnonzero(used)
    return nodes, smallest[component[nodes]]
