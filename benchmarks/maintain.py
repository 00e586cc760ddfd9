"""`emberlog bench maintain`: one edge comes or goes, and components, distances or reachable nodes follow.

Against hand-written loops (`limits.upkeep`) and NetworKit's dynamic algorithms, on the same edges: all are deleted, one
after another, then inserted again. Times of the loops are means of a whole sequence; what Python and NetworKit take is
measured call by call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import emberlog
from benchmarks.limits.common import Column
from benchmarks.report import machine
from emberlog.generate.graphs import rmat
from emberlog.maintain.native.facts import NativeFacts

Say = Callable[[str], None]
CHANGES = 2000
CALLS = 500  # of `view.apply`, and of NetworKit's `update`
SIZES, QUICK = (100_000, 1_000_000), (10_000,)
TEXTS = {
    "sssp": "d(Y, min(D)) <- Y = 0, D = 0. d(Y, min(D)) <- d(X, C), arc(X, Y, W), D = C + W.",
    "cc": "c(X, min(X)) <- arc(X, _). c(Y, min(V)) <- c(X, V), arc(X, Y).",
    "reach": "r(Y) <- Y = 0. r(Y) <- r(X), arc(X, Y).",
}


@dataclass(frozen=True)
class Figure:
    """Microseconds a change: the mean of the hand-written loop, that of ours, and of those changes that looked at a
    fact, with how many these are and the most facts that one looked at; `apply_each`; median and 99th percentile of
    `apply`; mean and 99th percentile of NetworKit's `update`."""

    program: str
    nodes: int
    edges: int
    kind: str
    limit: float
    loops: float
    hits: int
    hit_mean: float
    most_facts: int
    each: float
    apply: float
    apply_p99: float
    kit: float | None
    kit_p99: float | None


def graph_of(program: str, nodes: int) -> tuple[Column, Column, Column]:
    """The edges of a graph, each once, with weights: those of components in both directions, with weight 0."""
    x, y, w = (column.to_numpy() for column in rmat(nodes, seed=1)["warc"].columns)
    if program != "cc":
        return x, y, (w if program == "sssp" else np.zeros_like(w))
    keys = np.random.default_rng(1).permutation(np.unique(np.concatenate([x * nodes + y, y * nodes + x])))
    return keys // nodes, keys % nodes, np.zeros_like(keys)


def run(target: Path, programs: Sequence[str], sizes: Sequence[int], say: Say) -> list[Path]:
    figures = [figure for nodes in sizes for program in programs for figure in measure(program, nodes, say)]
    table = target / "maintain.md"
    table.write_text(f"{machine()}\n\n{_markdown(figures)}\n")
    numbers = target / "maintain.json"
    numbers.write_text(json.dumps([asdict(figure) for figure in figures], indent=1))
    return [table, numbers]


def measure(program: str, nodes: int, say: Say) -> list[Figure]:
    x, y, w = graph_of(program, nodes)
    picked = np.random.default_rng(2).choice(len(x), CHANGES, replace=False)
    edges = np.stack([x[picked], y[picked], w[picked]], axis=1)
    limit = _limit(program, (x, y, w), edges)
    kit = _kit(program, (x, y, w), edges)
    width = 3 if program == "sssp" else 2
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", pa.table([pa.array(column) for column in (x, y, w)[:width]], names=list("xyw")[:width]))
        begun = perf_counter()
        view = engine.maintain(TEXTS[program])
        say(f"{program} over {len(x):,} edges: {perf_counter() - begun:.1f} s to begin")
        figures = []
        for kind, sign in (("delete", -1), ("insert", 1)):
            ours = _ours(view, edges[:, :width], kind, sign)
            figures.append(Figure(program, nodes, len(x), kind, limit[kind], *ours, *kit[kind]))
            say(f"  {kind}: by hand {limit[kind]:.2f} us, ours {ours[0]:.2f} us, apply {ours[5]:.0f} us")
    return figures


def _limit(program: str, columns: tuple[Column, Column, Column], edges: Column) -> dict[str, float]:
    from benchmarks.limits.upkeep import Kept

    kept = Kept(*columns, labels=program == "cc")
    kept.delete(edges[:1])  # which compiles
    kept.insert(edges[:1])
    found = {}
    for kind, work in (("delete", kept.delete), ("insert", kept.insert)):
        begun = perf_counter()
        work(edges)
        found[kind] = (perf_counter() - begun) / len(edges) * 1e6
    return found


def _kit(program: str, columns: tuple[Column, Column, Column], edges: Column) -> dict[str, tuple[float | None, ...]]:
    if find_spec("networkit") is None:
        return {"delete": (None, None), "insert": (None, None)}
    from benchmarks.rivals.dynamic_kit import follow

    found = follow(program, columns, edges[:CALLS])
    return {kind: (float(np.mean(times)) * 1e6, _p99(times)) for kind, times in found.items()}


def _ours(
    view: emberlog.View, edges: Column, kind: str, sign: int
) -> tuple[float, int, float, int, float, float, float]:
    """What ours takes: each measurement undoes what it did, but for the last."""
    rows = [tuple(row) for row in edges.tolist()]
    other = {"delete": "insert", "insert": "delete"}[kind]
    facts = view._versions.now.state.tasks[0].method
    assert isinstance(facts, NativeFacts)
    loops, _ = _sequence(facts, edges, sign)
    view.apply_each({other: {"arc": [row]}} for row in rows)
    touched = np.array([_sequence(facts, edges[i : i + 1], sign)[1] for i in range(len(edges))])
    view.apply_each({other: {"arc": [row]}} for row in rows)
    hits = edges[touched > 0]
    hit_mean = _sequence(facts, hits, sign)[0] if len(hits) else 0.0
    view.apply_each({other: {"arc": [tuple(row)]}} for row in hits.tolist())
    calls = [_seconds(partial(view.apply, **{kind: {"arc": [row]}})) for row in rows[:CALLS]]
    view.apply_each({other: {"arc": [row]}} for row in rows[:CALLS])
    changes = [{kind: {"arc": [row]}} for row in rows]
    each = _seconds(lambda: view.apply_each(changes)) / len(rows) * 1e6
    return loops, len(hits), hit_mean, int(touched.max()), each, float(np.median(calls)) * 1e6, _p99(calls)


def _sequence(facts: NativeFacts, edges: Column, sign: int) -> tuple[float, int]:
    """Microseconds a change for a sequence inside of the loops, and how many facts were looked at."""
    words, marks = facts.room_for_edits(len(edges))
    words[:, : edges.shape[1]] = edges
    marks[:, 0], marks[:, 1], marks[:, 2] = np.arange(len(edges)), facts.number("arc"), sign
    seconds = _seconds(lambda: facts.run_each(words, marks))
    return seconds / len(edges) * 1e6, facts.touched


def _seconds(work: Callable[[], Any]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def _p99(seconds: Sequence[float]) -> float:
    return float(np.quantile(seconds, 0.99)) * 1e6


def _markdown(figures: Sequence[Figure]) -> str:
    head = (
        "| program | edges | change | loop by hand | ours | looked at facts | these | most facts | `apply_each` "
        "| `apply` | p99 | NetworKit | p99 |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    lines = [
        f"| {f.program} | {f.edges:,} | {f.kind} | {f.limit:.2f} | {f.loops:.2f} | {f.hits} of {CHANGES} "
        f"| {f.hit_mean:.1f} | {f.most_facts} | {f.each:.1f} | {f.apply:.0f} | {f.apply_p99:.0f} "
        f"| {_or_dash(f.kit)} | {_or_dash(f.kit_p99)} |"
        for f in figures
    ]
    return "\n".join([head, *lines])


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
