"""`emberlog bench mra`: what proofs save. The same programs by the same kernels: naively, by changes, best first.

The table has the form of Figure 10 of the PowerLog paper: for each program and graph what naive evaluation takes, and
how many times less the others do. Beside seconds it counts edges touched: the derivations that the loops made. The last
columns have what the planner chooses: sums that gather touch more edges than the best first, and are sooner done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Contestant, Score, Task, compete, ours
from benchmarks.programs import CC, PAGERANK, SOURCE, SSSP, Program
from benchmarks.report import machine

Say = Callable[[str], None]

KATZ = """
.output K
start(X, k) <- X = $ID, k = 10000.0.
K(i+1, Y, sum[k]) <- start(Y, k);
                  <- K(i, X, q), arc(X, Y), k = $BETA * q;
                  {sum[delta k] < 0.001}.
"""
ADSORPTION = """
.output L
degree(X, count(Y)) <- arc(X, Y).
inject(X, p) <- node(X), p = 0.25 + (X % 50) / 100.0.
carry(X, p) <- node(X), p = 0.75 + (X % 25) / 100.0.
L(0, X, l) <- node(X), l = 0.0.
L(i+1, Y, sum[l]) <- inject(Y, l);
                  <- L(i, X, q), arc(X, Y), degree(X, d), carry(X, p), l = 0.7 * q * p / d;
                  {sum[delta l] < 0.001}.
"""

DAMPING = 0.8
"""Katz: this part of the largest factor with which walks still die out."""

EPS = 1e-3


@dataclass(frozen=True)
class Compared:
    """A program, and how many times less work it is to take by changes, and with the best ones first (at least)."""

    program: Program
    changes: float
    first: float
    fitted: bool = False  # has a factor that depends on the graph


PROGRAMS = (
    Compared(Program("sssp", SSSP, "sssp", ("warc",), "", params={"ID": SOURCE}), 3.0, 3.0),
    Compared(Program("cc", CC, "cc", ("arc",), ""), 3.0, 3.0),
    Compared(
        Program("pagerank", PAGERANK, "rank", ("arc", "node"), "", tolerance=2e-4 * 0.85 / 0.15),
        1.5,
        1.8,
    ),
    Compared(
        Program("katz", KATZ, "K", ("arc",), "", params={"ID": SOURCE}, tolerance=2 * EPS * DAMPING / (1 - DAMPING)),
        1.5,
        1.8,
        fitted=True,
    ),
    Compared(
        Program("adsorption", ADSORPTION, "L", ("arc", "node"), "", tolerance=2 * EPS * 0.7 / 0.3),
        1.5,
        1.8,
    ),
)

WAYS: Mapping[str, Mapping[str, Any]] = {
    "naive": {"naive": True},
    "changes": {"ordered": False, "storage": "loops"},
    "best first": {"storage": "loops"},
    "as planned": {},
}

DATA, QUICK = ("rmat100K", "rmat1M"), ("rmat10K",)


@dataclass(frozen=True)
class Line:
    """What a program took on a graph, in each way."""

    compared: Compared
    data: str
    scores: dict[str, Score] = field(repr=False)

    def less(self, way: str, figure: Callable[[Score], float | None]) -> float | None:
        """How many times less than naive evaluation."""
        base, value = figure(self.scores["naive"]), figure(self.scores[way])
        return base / value if base and value else None


def run(out: Path, runs: int, folder: Path | None, data: Sequence[str], workers: int, say: Say) -> list[Path]:
    """Every program on every graph, in every way in turn; what is done is written at once."""
    lines: list[Line] = []
    written: list[Path] = []
    for name in data:
        for compared in PROGRAMS:
            program = compared.program
            if compared.fitted:
                program = replace(program, params={**program.params, "BETA": _beta(Task(program, name, folder))})
            task = Task(program, name, folder)
            ways = [Contestant(way, ours(workers, **options).run) for way, options in WAYS.items()]
            lines.append(Line(compared, name, compete(task, ways, runs, say)))
            written = write(lines, out)
    return written


def _beta(task: Task) -> float:
    """For Katz: a part of 1 / the spectral radius of the graph, found by walking on for a while."""
    x, y = task.inputs["arc"]
    nodes = int(max(x.max(), y.max())) + 1
    state = np.ones(nodes)
    for _ in range(30):
        state = state / np.linalg.norm(state)
        state = np.bincount(y, weights=state[x], minlength=nodes).astype(np.float64)
    return round(DAMPING / float(np.linalg.norm(state)), 6)


# --- what is written -------------------------------------------------------------------------------------------------

HEAD = (
    "program", "graph", "naive s", "edges touched", "changes: s", "edges touched", "less work", "faster",
    "best first: s", "edges touched", "less work", "faster", "as planned: s", "faster", "same answer",
)  # fmt: skip


def write(lines: Sequence[Line], out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    table, figures = out / "mra.md", out / "mra.json"
    table.write_text(as_markdown(lines), encoding="utf-8")
    figures.write_text(json.dumps([as_json(line) for line in lines], indent=2), encoding="utf-8")
    return [table, figures]


def as_markdown(lines: Sequence[Line]) -> str:
    rows = [HEAD, tuple("---" for _ in HEAD), *(_cells(line) for line in lines)]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in rows] + ["", machine(), ""])


def _cells(line: Line) -> tuple[str, ...]:
    wanted = {"changes": line.compared.changes, "best first": line.compared.first}
    cells = [line.compared.program.name, line.data, *_taken(line.scores["naive"])]
    for way, least in wanted.items():
        work, time = line.less(way, lambda score: score.derivations), line.less(way, lambda score: score.seconds)
        cells += [*_taken(line.scores[way]), _times(work) + f" (>= {least:g})", _times(time)]
    planned = line.scores["as planned"]
    cells += [_taken(planned)[0], _times(line.less("as planned", lambda score: score.seconds))]
    wrong = [way for way, score in line.scores.items() if score.right is False or score.error]
    return (*cells, "yes" if not wrong else f"no: {', '.join(wrong)}")


def _taken(score: Score) -> tuple[str, str]:
    seconds, edges = score.seconds, score.derivations
    return "" if seconds is None else f"{seconds:.3f}", "" if edges is None else f"{edges:,}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def as_json(line: Line) -> dict[str, Any]:
    return {
        "program": line.compared.program.name,
        "data": line.data,
        "least": {"changes": line.compared.changes, "best first": line.compared.first},
        "ways": {
            way: {
                "seconds": score.seconds,
                "edges": score.derivations,
                "rounds": score.runs[-1].rounds if score.runs else None,
                "less_work": line.less(way, lambda score: score.derivations),
                "faster": line.less(way, lambda score: score.seconds),
                "right": score.right,
                "error": score.error,
                "runs": [taken.seconds for taken in score.runs],
            }
            for way, score in line.scores.items()
        },
    }
