"""`emberlog bench views`: what a change of a view takes, beside a run of the program over the changed relations.

- `levels`: 2,000 relations over 150 levels, each a mixture of two of lower levels, with a change of ten rows that share
  a value. Half of each relation comes from each of the two, by that value: so the change goes to some tasks only.
- a closure and same generation, by one row, and by a batch of 1,000 mixed changes.

After each sequence the view is compared with the run. A view with a folder is opened again, too.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import emberlog
from benchmarks import data
from benchmarks.programs import PROGRAMS
from benchmarks.report import machine

Say = Callable[[str], None]
Row = tuple[int, ...]
BASES, LEVELS, RELATIONS, ROWS = 3, 150, 2_000, 2_000
SINGLE, BATCH, BATCHES = 40, 1_000, 3


@dataclass(frozen=True)
class Task:
    """A program, its inputs, and the input that changes."""

    name: str
    text: str
    inputs: Mapping[str, pa.Table]
    changing: str


@dataclass(frozen=True)
class Measured:
    """Seconds: to begin, changes of one row, batches, a run of the program; changes of a view with a folder, and to
    open that again. `stats` is of the last change of one row."""

    task: Task
    begin: float
    single: list[float]
    batch: list[float]
    run: float
    stats: Any
    saved: list[float]
    opened: float


# --- what is measured ------------------------------------------------------------------------------------------------


def levels(relations: int, depth: int, rows: int, seed: int = 0) -> Task:
    """Relations over levels: `r(X,Y) <- p(X,Y), X % m < c.  r(X,Y) <- q(X,Y), X % m >= c.`"""
    draw = random.Random(seed)
    names = [[f"b{i}" for i in range(BASES)]]
    lines = []
    for number in range(relations):
        level = 1 + number * depth // relations
        if level == len(names):
            names.append([])
        below = names[level - 1]
        first, second = draw.choice(below), draw.choice(draw.choice(names[max(0, level - 10) : level]))
        m, shift = draw.choice((7, 11, 13, 17)), draw.randrange(1000)
        name = f"r{number}"
        lines.append(f"{name}(X, Y) <- {first}(X, Y), (X + {shift}) % {m} < {m // 2}.")
        lines.append(f"{name}(X, Y) <- {second}(X, Y), (X + {shift}) % {m} >= {m // 2}.")
        names[level].append(name)
    inputs = {
        base: pa.table({"x": np.arange(rows) // 10 + i, "y": np.arange(rows) * BASES + i})
        for i, base in enumerate(names[0])
    }
    return Task(f"{relations:,} relations over {depth} levels", "\n".join(lines), inputs, "b0")


def closure(tree: str, forward: int) -> Task:
    """TC over a tree with more edges from nodes to later ones."""
    table = _tables(tree)["arc"]
    last = int(max(column.to_numpy().max() for column in table.columns))
    draw = np.random.default_rng(0)
    x = draw.integers(0, last, forward)
    more = pa.table({"x": x, "y": np.minimum(x + draw.integers(1, 20, forward), last)})
    arcs = pa.concat_tables([table.rename_columns(["x", "y"]), more.cast(table.schema)]).group_by(["x", "y"])
    text = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
    return Task(f"tc on {tree} and {forward:,} edges", text, {"arc": arcs.aggregate([])}, "arc")


def known(program: str, name: str, changing: str) -> Task:
    """A program of the other benchmarks."""
    found = PROGRAMS[program]
    tables = _tables(name)
    return Task(f"{program} on {name}", found.text, {key: tables[key] for key in found.reads}, changing)


def _tables(name: str) -> dict[str, pa.Table]:
    return {relation: pq.read_table(path) for relation, path in data.files(name).items()}


def tasks(quick: bool) -> Iterator[Task]:
    yield levels(*((60, 12, 500) if quick else (RELATIONS, LEVELS, ROWS)))
    yield closure("tree5" if quick else "tree8", 300 if quick else 3_000)
    yield known("sg", "grid10" if quick else "grid30", "arc")


# --- how -------------------------------------------------------------------------------------------------------------


def run(out: Path, quick: bool, say: Say) -> list[Path]:
    """The table of all tasks."""
    found = []
    for task in tasks(quick):
        say(task.name)
        found.append(measure(task))
    path = out / "views.md"
    path.write_text(f"{machine()}; seconds\n\n{_table(found)}\n", encoding="utf-8")
    return [path]


def measure(task: Task) -> Measured:
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        for name, table in task.inputs.items():
            engine.register(name, table)
        begin, view = _timed(lambda: engine.maintain(task.text))
        changes = _changes(task, view)
        for change in changes[:2]:
            view.apply(**change)  # which compiles
        single = _applied(view, changes[2 : 2 + SINGLE])
        stats = view.stats
        batch = _applied(view, _batches(changes[2 + SINGLE :]))
        again = _again(task, view)
    with tempfile.TemporaryDirectory() as folder:
        saved, opened = _durable(task, Path(folder) / "view", changes[:SINGLE])
    return Measured(task, begin, single, batch, again, stats, saved, opened)


def _changes(task: Task, view: emberlog.View) -> list[dict[str, Any]]:
    """Changes that delete rows, or insert rows that are not there, in turn. Those of levels have ten rows with one
    value."""
    draw = random.Random(1)
    rows: list[Row] = sorted(view[task.changing].rows())
    if task.changing == "b0":
        blocks = [rows[at : at + 10] for at in range(0, len(rows) - 10, 10)]
        picked = [draw.choice(blocks) for _ in range(2 + SINGLE + BATCHES * 10)]
        return [{"delete": {task.changing: block}} for block in picked]
    gone = draw.sample(rows, min(len(rows) // 3, SINGLE + BATCHES * BATCH))
    ends = sorted({row[-1] for row in rows})
    come = [(*row[:-1], draw.choice(ends)) for row in gone]
    return [
        {kind: {task.changing: [row]}}
        for pair in zip(gone, come, strict=True)
        for kind, row in zip(("delete", "insert"), pair, strict=True)
    ]


def _batches(changes: Sequence[Mapping[str, Mapping[str, Sequence[Row]]]]) -> list[dict[str, Any]]:
    """Many changes as one: deletes and inserts."""
    each = max(len(changes) // BATCHES, 1)
    found = []
    for at in range(0, each * BATCHES, each):
        merged: dict[str, dict[str, list[Row]]] = {}
        for change in changes[at : at + min(each, BATCH)]:
            for kind, rows in change.items():
                for name, listed in rows.items():
                    merged.setdefault(kind, {}).setdefault(name, []).extend(listed)
        found.append(merged)
    return found


def _again(task: Task, view: emberlog.View) -> float:
    """The seconds of a run over the relations as they are now, whose rows must be those of the view."""
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        for name in task.inputs:
            engine.register(name, view[name].to_arrow())
        engine.run(task.text)  # which compiles
        seconds, result = _timed(lambda: engine.run(task.text))
        for name in list(result)[-5:]:
            assert result[name].count() == len(view[name]), f"{task.name}: {name} differs"
            if len(view[name]) < 1_000_000:
                assert set(result[name].rows()) == set(view[name].rows()), f"{task.name}: {name} differs"
    return seconds


def _durable(task: Task, path: Path, changes: Sequence[dict[str, Any]]) -> tuple[list[float], float]:
    """The seconds of changes with a folder, and those to open it again."""

    def opened(engine: emberlog.Engine) -> emberlog.View:
        return engine.maintain(task.text, path=path)

    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        for name, table in task.inputs.items():
            engine.register(name, table)
        view = opened(engine)
        taken = _applied(view, changes)
        view.save()
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        return taken, _timed(lambda: opened(engine))[0]


def _applied(view: emberlog.View, changes: Sequence[dict[str, Any]]) -> list[float]:
    """The seconds of each of some changes."""
    return [_timed(partial(view.apply, **change))[0] for change in changes]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = perf_counter()
    found = work()
    return perf_counter() - begun, found


def _table(found: Sequence[Measured]) -> str:
    lines = [
        "| | run | change, mean | worst | run / change | batch | run / batch | tasks run | scheduling "
        "| change with a folder | begin | open |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        change, batch, stats = mean(one.single), median(one.batch), one.stats
        share = stats.scheduling / max(stats.scheduling + stats.maintenance, 1e-9)
        reached = stats.active + stats.skipped
        lines.append(
            f"| {one.task.name} | {one.run:.3f} | {change:.5f} | {max(one.single):.5f} | {one.run / change:.0f} "
            f"| {batch:.4f} | {one.run / batch:.1f} | {stats.active} of {reached} | {share:.1%} "
            f"| {mean(one.saved):.5f} | {one.begin:.2f} | {one.opened:.2f} |"
        )
    return "\n".join(lines)
