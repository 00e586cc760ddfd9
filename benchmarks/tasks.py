"""`emberlog bench coordination --spark`: workers that coordinate as the barrier tasks of a Spark job.

One table has what it costs two of them to talk (`links`), the other one runs of CC and SSSP beside a single task that
has everything, with the threads of its machine.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq

import emberlog
from benchmarks.coordination import TASKS, Task
from benchmarks.links import Talk, measure
from benchmarks.report import machine
from emberlog.generate.graphs import rmat

Say = Callable[[str], None]

PROGRAMS = {"cc": "arc", "sssp": "warc"}  # and the relation of the generated graph that each reads
NODES, QUICK_NODES = 200_000, 2_000
RUNS, QUICK_RUNS = 3, 1
WORKERS = 2


@dataclass(frozen=True)
class Figure:
    """The median of some runs, after one that is not counted."""

    program: str
    arcs: int
    way: str
    seconds: float  # from the call of `run` to the count of rows
    component: float  # of these, in the component itself
    facts: int
    bytes: int


def run(target: Path, modes: Sequence[str], quick: bool, say: Say) -> list[Path]:
    """Measures, and writes the tables."""
    talks = measure(quick)
    for talk in talks:
        say(f"{talk.transport}: {talk.megabytes:,.0f} MB/s one way, {talk.round * 1000:.2f} ms a round without facts")
    graph = rmat(QUICK_NODES if quick else NODES)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="emberlog-") as folder, emberlog.Engine(workers=WORKERS) as engine:
        for task in (task for task in TASKS if task.name in PROGRAMS):
            relation = PROGRAMS[task.name]
            path = Path(folder) / f"{relation}.parquet"
            pq.write_table(graph[relation], path)
            engine.register("arc", str(path))
            ways: list[dict[str, Any]] = [{"placement": "spark"}, *({"coordination": mode} for mode in modes)]
            for way in ways:
                figures.append(_figure(engine, task, graph[relation].num_rows, way, QUICK_RUNS if quick else RUNS))
                say(f"{figures[-1].program}, {figures[-1].way}: {figures[-1].seconds:.2f} s")
            assert len({figure.facts for figure in figures if figure.program == task.name}) == 1, "answers differ"
    table, data = target / "coordination-spark.md", target / "coordination-spark.json"
    table.write_text(_markdown(talks, figures), encoding="utf-8")
    told = {"links": [asdict(talk) for talk in talks], "runs": [asdict(figure) for figure in figures]}
    data.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return [table, data]


def _figure(engine: emberlog.Engine, task: Task, arcs: int, way: dict[str, Any], runs: int) -> Figure:
    walls, components = [], []
    for _ in range(runs + 1):
        begun = perf_counter()
        result = engine.run(task.text, **way)
        facts = sum(len(result[name]) for name in result)
        walls.append(perf_counter() - begun)
        stratum = result.stats.strata[-1]
        components.append(stratum.coordination.seconds if stratum.coordination else stratum.seconds)
    name = way.get("coordination", "one task")
    sent = stratum.bytes_exchanged or 0
    return Figure(task.name, arcs, name, median(walls[1:]), median(components[1:]), facts, sent)


def _markdown(talks: Sequence[Talk], figures: Sequence[Figure]) -> str:
    lines = [
        f"Two processes of {machine()}.",
        "",
        "| transport | facts one way | a round without facts |",
        "|---|---|---|",
    ]
    lines += [f"| {talk.transport} | {talk.megabytes:,.0f} MB/s | {talk.round * 1000:.2f} ms |" for talk in talks]
    lines += ["", f"RMAT on {WORKERS} workers; medians of {RUNS} runs after one.", ""]
    lines += ["| program | arcs | way | run | component | exchanged |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {one.program} | {one.arcs:,} | {one.way} | {one.seconds:.2f} s | {one.component:.2f} s "
        f"| {one.bytes / 1e6:.1f} MB |"
        for one in figures
    ]
    return "\n".join([*lines, ""])
