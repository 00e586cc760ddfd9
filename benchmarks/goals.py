"""Questions about one node of a large lineage graph: a goal against the program that one would write for it by hand.

The graph is layered: each node leads to one or two of the next layer. The questions have a few to some hundred answers.
`cold` is the first question to a new engine, `warm` the next ones to the same. Seconds are those of the processors, of
this process and those that it started: other work on the machine does not count there. Both programs are run in turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import emberlog
from benchmarks.placement import warm_session

CLOSURES = {
    "left-linear": "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y).",
    "right-linear": "tc(X, Y) <- arc(X, Y). tc(X, Y) <- arc(X, Z), tc(Z, Y).",
    "doubling": "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y).",
}
FORWARD = "reach(Y) <- arc($NODE, Y). reach(Y) <- reach(X), arc(X, Y)."
BACKWARD = "reach(X) <- arc(X, $NODE). reach(X) <- reach(Y), arc(X, Y)."
EDGES, QUICK = 1_000_000, 20_000
LAYERS = 10
BOUNDS = (3, 500)  # answers
REPEATED = 5  # questions to a warm engine


def lineage(edges: int, seed: int = 0) -> pa.Table:
    """A layered graph of about so many edges."""
    draw = np.random.default_rng(seed)
    width = int(edges / (LAYERS - 1) / 1.3)
    layers = []
    for layer in range(LAYERS - 1):
        begin = layer * width
        first = np.arange(width)
        second = draw.choice(width, int(0.3 * width), replace=False)
        sources = np.concatenate([first, second]) + begin
        layers.append((sources, draw.integers(0, width, len(sources)) + begin + width))
    x, y = (np.concatenate([layer[side] for layer in layers]) for side in (0, 1))
    return pa.table({"x": x, "y": y}).group_by(["x", "y"]).aggregate([])


def reached(table: pa.Table, node: int, backward: bool) -> int:
    """How many nodes a node leads to, or that lead to it."""
    x, y = (table.column(name).to_numpy() for name in (("y", "x") if backward else ("x", "y")))
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    seen, front = set[int](), {node}
    while front:
        low, high = (np.searchsorted(x, list(front), side) for side in ("left", "right"))
        found = {int(value) for one, other in zip(low, high, strict=True) for value in y[one:other]}
        front = found - seen
        seen |= front
    return len(seen)


def asked_node(table: pa.Table, backward: bool) -> int:
    """A node whose question has some answers."""
    last = int(table.column("y").to_numpy().max())
    for number in range(0, last, 97):
        candidate = last - number if backward else number
        if BOUNDS[0] <= reached(table, candidate, backward) <= BOUNDS[1]:
            return candidate
    raise AssertionError("the graph has no such node")


def cpu_seconds() -> float:
    """What this process and those that it started, Java's among them, have used of the processors."""
    ticks, waiting, total = os.sysconf("SC_CLK_TCK"), _children(os.getpid()), 0
    while waiting:
        pid = waiting.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        total += sum(map(int, fields[11:15]))
        waiting += _children(pid)
    return process_time() + total / ticks


def _children(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            found += [int(child) for child in path.read_text(encoding="utf-8").split()]
    return found


def run(out: Path, executors: Sequence[str], quick: bool, runs: int, say: Callable[[str], None]) -> list[Path]:
    """The table of all closures and directions, on the executors."""
    table = lineage(QUICK if quick else EDGES)
    lines = [
        f"{table.num_rows:,} edges; medians of {runs} runs; seconds of the processors",
        "",
        "| executor | closure | asked by | rows | goal cold | by hand cold | ratio | goal warm | by hand warm | ratio|",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for executor in executors:
        session = warm_session() if executor == "spark" else None
        try:
            source = table if session is None else session.createDataFrame(table).cache()
            for line in _lines(executor, session, source, table, runs):
                lines.append(line)
                say(line)
        finally:
            if session is not None:
                session.stop()
    out.mkdir(parents=True, exist_ok=True)
    path = out / "goals.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _lines(executor: str, session: Any, source: Any, table: pa.Table, runs: int) -> Iterable[str]:
    for backward in (False, True):
        node = asked_node(table, backward)
        rows = reached(table, node, backward)
        goal = f"tc(X, {node})" if backward else f"tc({node}, Y)"
        hand = (BACKWARD if backward else FORWARD).replace("$NODE", str(node))
        for closure, text in CLOSURES.items():
            taken: dict[str, list[tuple[float, float]]] = {"goal": [], "hand": []}
            for _ in range(runs + 1):  # the first one compiles loops, and is not counted
                for who, question, program in (("goal", goal, text), ("hand", "reach(N)", hand)):
                    taken[who].append(_taken(executor, session, source, question, program, rows))
            figures = [median(one[spot] for one in taken[who][1:]) for spot in (0, 1) for who in ("goal", "hand")]
            cells = [f"{value:.2f}" for value in figures]
            cells.insert(2, f"{figures[0] / max(figures[1], 0.01):.2f}")
            cells.append(f"{figures[2] / max(figures[3], 0.01):.2f}")
            side = "second" if backward else "first"
            yield f"| {executor} | {closure} | {side} | {rows} | {' | '.join(cells)} |"


def _taken(executor: str, session: Any, source: Any, goal: str, program: str, rows: int) -> tuple[float, float]:
    """The seconds of the first question to an engine, and of those after it."""
    seconds = []
    with emberlog.Engine(session, executor, warnings="ignore") as engine:
        engine.register("arc", source)
        for _ in range(1 + REPEATED):
            before = cpu_seconds()
            found = len(engine.query(goal, program).rows())
            seconds.append(cpu_seconds() - before)
            assert found == rows, f"{goal}: {found} rows, not {rows}"
    return seconds[0], mean(seconds[1:])
