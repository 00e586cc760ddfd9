"""`emberlog bench table6`: the closures and same generations of BigDatalog's Table 6, counted on this machine.

The graphs are made as the paper says: grids are the same, trees and random graphs have the same parameters and other
numbers. The paper's seconds are the best that its tables and its text give for a cluster of one master and 15 workers
with 8 cores each (SIGMOD 2016); some it shows in pictures only. Graphs are in memory before the clock starts, as
numbers in Arrow's columns, and loops are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import emberlog
from benchmarks.data import TREE_SEED
from benchmarks.programs import SG, TC
from emberlog import generate
from emberlog.generate import Tables

TOO_MANY = "some 10^13 pairs: the paper's cluster had no room on its disks either"
TEXTS = {"tc": TC, "sg": SG}


@dataclass(frozen=True)
class Graph:
    """A graph of the table; `quick` is one of its kind that is small. `tc` and `sg` are the paper's sizes, `seconds`
    its times for both; `unfit` says why one of them is left out."""

    name: str
    make: Callable[[], Tables]
    quick: Callable[[], Tables]
    tc: int
    sg: int | None
    seconds: tuple[float | None, float | None] = (None, None)
    unfit: str = ""


def _tree(height: int) -> Callable[[], Tables]:
    return lambda: generate.tree(height + 1, seed=TREE_SEED)  # its root is no level of its own


def _grid(n: int) -> Callable[[], Tables]:
    return lambda: generate.grid(n)


def _gnp(n: int, p: float = 0.001) -> Callable[[], Tables]:
    return lambda: generate.gnp(n, p)


GRAPHS = (
    Graph("Tree11", _tree(11), _tree(5), 805_001, 2_086_271_974, (None, 45)),
    Graph("Tree17", _tree(17), _tree(6), 237_977_708, None, (17, None), unfit=TOO_MANY),
    Graph("Grid150", _grid(150), _grid(12), 131_675_775, 2_295_050, (13, 61)),
    Graph("Grid250", _grid(250), _grid(15), 1_000_140_875, 10_541_750, (26, 53)),
    Graph("G5K", _gnp(5000), _gnp(500, 0.01), 24_606_562, 24_611_547),
    Graph("G10K", _gnp(10_000), _gnp(600, 0.01), 100_000_000, 100_000_000, (7, 130)),
    Graph("G10K-0.01", _gnp(10_000, 0.01), _gnp(400, 0.02), 100_000_000, 100_000_000, (22, None)),
    Graph("G10K-0.1", _gnp(10_000, 0.1), _gnp(300, 0.1), 100_000_000, 100_000_000),
    Graph("G20K", _gnp(20_000), _gnp(700, 0.01), 400_000_000, 400_000_000, (19, None)),
    Graph("G40K", _gnp(40_000), _gnp(800, 0.01), 1_600_000_000, 1_600_000_000),
    Graph("G80K", _gnp(80_000), _gnp(900, 0.01), 6_400_000_000, 6_400_000_000),
)


def counted(program: str, tables: Tables, workers: int) -> tuple[int, float]:
    """How many facts there are, and in how many seconds that was found out."""
    with emberlog.Engine(executor="local", workers=workers, warnings="ignore") as engine:
        engine.register("arc", tables["arc"])
        begin = perf_counter()
        result = engine.run(f".printsize {program}\n{TEXTS[program]}")
        count = result[program].count()
        return count, perf_counter() - begin


def warm(workers: int) -> None:
    """Compiles the loops, on graphs that take all ways."""
    for program in TEXTS:
        for make in (_grid(40), _gnp(1200, 0.01), _tree(7)):
            with emberlog.Engine(executor="local", workers=workers, warnings="ignore") as engine:
                engine.register("arc", make()["arc"])
                engine.run(f".printsize {program}\n{TEXTS[program]}", evaluator="kernel")


def run(
    out: Path, programs: Sequence[str], graphs: Sequence[str], quick: bool, workers: int, say: Callable[[str], None]
) -> list[Path]:
    """The table."""
    lines = [
        "| program | graph | edges | facts | the paper's facts | seconds | the paper's seconds, 120 cores |",
        "|---|---|---|---|---|---|---|",
    ]
    say(lines[0])
    warm(workers)
    for graph in GRAPHS:
        if graph.name not in graphs:
            continue
        tables = (graph.quick if quick else graph.make)()
        for program in programs:
            lines.append(_line(graph, program, tables, workers))
            say(lines[-1])
    out.mkdir(parents=True, exist_ok=True)
    path = out / "table6.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _line(graph: Graph, program: str, tables: Tables, workers: int) -> str:
    theirs, seconds = (graph.tc, graph.seconds[0]) if program == "tc" else (graph.sg, graph.seconds[1])
    told = "" if seconds is None else f"{seconds:g}"
    first = f"| {program} | {graph.name} | {tables['arc'].num_rows:,} |"
    if theirs is None:
        return f"{first} | | {graph.unfit} | {told} |"
    facts, taken = counted(program, tables, workers)
    return f"{first} {facts:,} | {theirs:,} | {taken:.2f} | {told} |"
