"""NetworKit: graph algorithms in C++. Its own way to build a graph counts as build."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.limits.common import Columns, Inputs, Limit, Watch
from benchmarks.programs import SOURCE
from benchmarks.rivals import THREADS
from benchmarks.rivals.scipy_graphs import labelled

PROGRAMS = ("reach", "cc_undirected", "sssp", "pagerank")


def evaluate(program: str, inputs: Inputs) -> Limit:
    nk: Any = import_module("networkit")

    nk.setNumberOfThreads(THREADS)
    x, y, *rest = inputs["warc"] if "warc" in inputs else inputs["arc"]
    watch = Watch()
    n = int(max(x.max(), y.max())) + 1
    edges = (rest[0].astype(np.float64), (x, y)) if rest else (x, y)
    graph = nk.GraphFromCoo(edges, n=n, weighted=bool(rest), directed=program != "cc_undirected")
    build = watch.lap()
    run = _algorithm(program, graph, nk)
    run.run()
    seconds = watch.lap()
    found = _answer(program, run, x, y)
    return Limit(len(found[0]), None, build, seconds, lambda: found)


def _algorithm(program: str, graph: Any, nk: Any) -> Any:
    match program:
        case "reach":
            return nk.distance.BFS(graph, SOURCE, storePaths=False)
        case "cc_undirected":
            return nk.components.ParallelConnectedComponents(graph)
        case "sssp":
            return nk.distance.Dijkstra(graph, SOURCE, storePaths=False)
        case _:
            ranks = nk.centrality.PageRank(graph, damp=0.85, tol=1e-4)
            ranks.norm = nk.centrality.Norm.L1_NORM
            return ranks


def _answer(program: str, run: Any, x: np.ndarray, y: np.ndarray) -> Columns:
    match program:
        case "cc_undirected":
            return labelled(np.asarray(run.getPartition().getVector()), x, y)
        case "pagerank":
            return np.arange(len(run.scores())), _unscaled(np.asarray(run.scores()), x)
        case _:
            distance = np.asarray(run.getDistances())
            near = np.flatnonzero(distance < 1e300)
            return (near,) if program == "reach" else (near, distance[near].astype(np.int64))


def _unscaled(ranks: np.ndarray, x: np.ndarray) -> np.ndarray:
    """NetworKit scales ranks to a sum of 1; without that, what nodes without a way out hold is lost in each round."""
    kept = np.zeros(len(ranks), np.bool_)
    kept[x] = True
    scaled: np.ndarray = ranks * (0.15 / (1 - 0.85 * ranks[kept].sum()))
    return scaled
