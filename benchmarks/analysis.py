"""`emberlog bench analysis`: the programs of `examples/program-analysis` on generated data, by the loops and by DuckDB.

Every program is also run with other numbers for the same things, at random, with texts in place of numbers, and, where
one thing may be joined with very many others, with such a hub. DuckDB evaluates the same strata by statements, round by
round, within a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import emberlog
from benchmarks.harness import root
from emberlog import generate
from emberlog.diagnostics import LimitError
from emberlog.generate import Tables

PATIENCE = 30  # seconds for DuckDB


@dataclass(frozen=True)
class Task:
    """A program, the data that it reads at two sizes, and the relation and column that can have a hub."""

    program: str
    data: str
    size: int
    quick: int
    hub: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        folder = "code" if self.program == "points_to" else "program-analysis"
        return (root() / "examples" / folder / f"{self.program}.dl").read_text(encoding="utf-8")


TASKS = (
    Task("points_to", "heap", 500_000, 2000),
    Task("fields", "objects", 300_000, 2000, ("alloc", "v")),
    Task("doop", "objects", 6000, 600),
    Task("cspa", "aliases", 40_000, 400, ("dereference", "p")),
    Task("csda", "flow", 40_000, 1000),
    Task("dyck", "brackets", 20_000, 600),
    Task("ontology", "ontology", 4000, 400),
    Task("crdt", "edits", 1_000_000, 2000, ("insert", "parent")),
    Task("polonius", "loans", 40_000, 1000),
    Task("symbols", "modules", 20_000, 300, ("imports", "other")),
)


# --- other forms of the same data ------------------------------------------------------------------------------------


def as_it_is(tables: Tables, task: Task) -> Tables:
    return tables


def shuffled(tables: Tables, task: Task) -> Tables:
    """Other numbers for all things, the same ones in all columns."""
    most = max(int(column.to_numpy().max()) for table in tables.values() for column in table.columns if len(column))
    labels = np.random.default_rng(2).permutation(most + 1)
    return {name: _changed(table, lambda values: labels[values]) for name, table in tables.items()}


def as_texts(tables: Tables, task: Task) -> Tables:
    return {
        name: _changed(table, lambda values: pa.array([f"thing-{v:07d}" for v in values]))
        for name, table in tables.items()
    }


def with_hub(tables: Tables, task: Task) -> Tables:
    """One thing in a tenth of the rows of a relation."""
    assert task.hub is not None
    name, column = task.hub
    table = tables[name]
    values = table[column].to_pylist()
    values[::10] = [values[0]] * len(values[::10])
    spot = table.column_names.index(column)
    changed = table.set_column(spot, column, pa.array(values, table.schema.field(column).type))
    return {**tables, name: changed.group_by(changed.column_names).aggregate([])}


def _changed(table: pa.Table, change: Callable[[np.ndarray[Any, Any]], Any]) -> pa.Table:
    return pa.table({name: change(table[name].to_numpy()) for name in table.column_names})


def forms(task: Task) -> Iterator[tuple[str, Callable[[Tables, Task], Tables]]]:
    """The forms of a program's data. Characters of a text have an order, which other numbers would change."""
    yield "as generated", as_it_is
    if task.data not in ("modules", "edits"):
        yield "shuffled", shuffled
        yield "texts", as_texts
    if task.hub is not None:
        yield "hub", with_hub


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    seconds: float
    sizes: Mapping[str, int]


def measured(text: str, tables: Tables, workers: int, runs: int, **options: Any) -> Outcome:
    """The median of some runs, after one that compiles; and what came of the last."""
    taken = []
    with emberlog.Engine(executor="local", workers=workers, warnings="ignore") as engine:
        for name, table in tables.items():
            engine.register(name, table)
        for _ in range(runs + 1):
            begin = perf_counter()
            result = engine.run(text, **options)
            sizes = {name: result[name].count() for name in outputs(text)}
            taken.append(perf_counter() - begin)
    return Outcome(median(taken[1:] or taken), sizes)


def outputs(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines() if line.startswith(".output")]


def by_duckdb(text: str, tables: Tables) -> Outcome | None:
    """The same by statements of DuckDB; None if they take too long."""
    try:
        return measured(text, tables, 2, 0, evaluator="sql", limits={"seconds": PATIENCE})
    except LimitError:
        return None


def run(out: Path, programs: list[str], quick: bool, runs: int, duck: bool, say: Callable[[str], None]) -> list[Path]:
    """The table of all programs and forms."""
    lines = [
        "| program | data | form | facts | one worker | two workers | DuckDB, two threads | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    say(lines[0])
    for task in TASKS:
        if task.program not in programs:
            continue
        size = task.quick if quick else task.size
        tables = generate.make(task.data, size)
        for form, change in forms(task):
            text = task.text.replace(": number", ": symbol") if form == "texts" else task.text
            lines.append(_line(task, size, form, text, change(tables, task), runs, duck))
            say(lines[-1])
    out.mkdir(parents=True, exist_ok=True)
    path = out / "analysis.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _line(task: Task, size: int, form: str, text: str, tables: Tables, runs: int, duck: bool) -> str:
    one, two = (measured(text, tables, workers, runs) for workers in (1, 2))
    assert one.sizes == two.sizes, f"{task.program}: {one.sizes} by one worker, {two.sizes} by two"
    other, ratio = "", ""
    if duck:
        found = by_duckdb(text, tables)
        assert found is None or found.sizes == one.sizes, f"{task.program}: DuckDB has {found and found.sizes}"
        seconds = PATIENCE if found is None else found.seconds
        other = f"{'> ' if found is None else ''}{seconds:.2f}"
        ratio = f"{'> ' if found is None else ''}{seconds / min(one.seconds, two.seconds):.0f}"
    facts = sum(one.sizes.values())
    cells = f"{task.data} {size:,} | {form} | {facts:,} | {one.seconds:.2f} | {two.seconds:.2f} | {other} | {ratio}"
    return f"| {task.program} | {cells} |"
