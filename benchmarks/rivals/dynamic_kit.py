"""NetworKit's dynamic algorithms: what it takes to follow one edge that comes or goes."""

from __future__ import annotations

from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.limits.common import Column
from benchmarks.rivals import THREADS

PROGRAMS = ("sssp", "cc", "reach")


def follow(program: str, columns: tuple[Column, ...], edges: Column) -> dict[str, list[float]]:
    """Seconds of `update` for each edge that is deleted, and then for each that is inserted again."""
    nk: Any = import_module("networkit")

    nk.setNumberOfThreads(THREADS)
    x, y, w = columns
    if program == "cc":  # there each edge has both directions
        x, y, w, edges = x[x < y], y[x < y], w[x < y], edges[edges[:, 0] < edges[:, 1]]
    weighted, directed = program == "sssp", program != "cc"
    graph = nk.GraphFromCoo(
        (w.astype(np.float64), (x, y)) if weighted else (x, y),
        n=int(max(x.max(), y.max())) + 1,
        weighted=weighted,
        directed=directed,
    )
    algorithm = _algorithm(program, graph, nk)
    algorithm.run()
    kinds, event = nk.dynamics.GraphEventType, nk.dynamics.GraphEvent
    gone, come = [], []
    for u, v, d in edges:
        graph.removeEdge(u, v)
        gone.append(_seconds(algorithm, event(kinds.EDGE_REMOVAL, u, v, d)))
    for u, v, d in edges:
        graph.addEdge(u, v, d if weighted else 1.0)
        come.append(_seconds(algorithm, event(kinds.EDGE_ADDITION, u, v, d)))
    return {"delete": gone, "insert": come}


def _seconds(algorithm: Any, event: Any) -> float:
    begun = perf_counter()
    algorithm.update(event)
    return perf_counter() - begun


def _algorithm(program: str, graph: Any, nk: Any) -> Any:
    match program:
        case "sssp":
            return nk.distance.DynDijkstra(graph, 0)
        case "cc":
            return nk.components.DynConnectedComponents(graph)
        case _:
            return nk.distance.DynBFS(graph, 0)
