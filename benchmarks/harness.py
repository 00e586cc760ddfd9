"""Runs contestants against each other: in one process, on the same data, in turn, medians of several runs.

A contestant is a name and a function from a `Task` to a `Limit`. All get columns in memory; `ours` goes through the
public interface only, and tells from `result.stats` what the evaluation took, indexes included. `from_files` is the way
from Parquet files to a number of rows. Every answer is compared with that of the limit.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.limits.common import Columns, Inputs, Limit
from benchmarks.programs import Program
from emberlog.diagnostics import EmberlogError

RIVALS = ("duck", "scipy_graphs", "kit", "graphx", "frames")
SPARK_RIVALS = ("graphx", "frames")

ENOUGH = 60.0
"""A contestant that has run so many seconds is not run again: its median is over fewer runs."""

COMPARED = 5_000_000
"""Answers with more rows are compared by their number of rows alone."""


@dataclass(frozen=True)
class Task:
    """A program on data."""

    program: Program
    data: str
    folder: Path | None = None

    @cached_property
    def files(self) -> dict[str, Path]:
        found = data.files(self.data, self.folder)
        return {name: found[name] for name in self.program.reads}

    @cached_property
    def inputs(self) -> Inputs:
        return data.columns(self.files, self.program.reads)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The same columns, as one registers them."""
        return {name: pa.table([*c], names=[f"c{i}" for i in range(len(c))]) for name, c in self.inputs.items()}


@dataclass(frozen=True)
class Contestant:
    """`heavy` ones get no run that is not counted."""

    name: str
    run: Callable[[Task], Limit]
    heavy: bool = False


@dataclass
class Score:
    """What a contestant took, over all its runs, and whether its answer was right (None: it was not compared)."""

    name: str
    runs: list[Limit] = field(default_factory=list)
    right: bool | None = None
    error: str = ""

    def of(self, figure: Callable[[Limit], float | None]) -> float | None:
        """The median of a figure over the runs."""
        values = [value for run in self.runs if (value := figure(run)) is not None]
        return median(values) if values else None

    @property
    def build(self) -> float | None:
        return self.of(lambda run: run.build)

    @property
    def seconds(self) -> float | None:
        return self.of(lambda run: run.seconds)

    @property
    def total(self) -> float | None:
        """Building and evaluation."""
        return self.of(lambda run: run.total)

    @property
    def wall(self) -> float | None:
        return self.of(lambda run: run.wall)

    @property
    def derivations(self) -> int | None:
        return self.runs[-1].derivations if self.runs else None

    @property
    def facts(self) -> int | None:
        return self.runs[-1].facts if self.runs else None


# --- contestants -----------------------------------------------------------------------------------------------------


def limit(variant: str) -> Contestant:
    """A hand-written loop, by the name that programs know it by."""
    return Contestant(f"limit {variant}", lambda task: task.program.evaluate(variant)(task.inputs))


def rival(name: str) -> Contestant:
    def run(task: Task) -> Limit:
        found: Limit = import_module(f"benchmarks.rivals.{name}").evaluate(task.program.name, task.inputs)
        return found

    return Contestant(name, run, heavy=name not in ("scipy_graphs", "kit"))


def rivals_of(program: str, names: tuple[str, ...] = RIVALS) -> list[str]:
    """Those of the rivals that can do a program."""
    return [name for name in names if program in import_module(f"benchmarks.rivals.{name}").PROGRAMS]


def ours(workers: int, evaluator: str = "kernel", name: str = "", **options: object) -> Contestant:
    """Emberlog on this machine, without Spark."""
    return Contestant(name or f"ours {workers}", lambda task: _ours(task, task.tables, workers, evaluator, options))


def from_files(workers: int, evaluator: str = "kernel") -> Contestant:
    """The same from files to the number of rows."""
    return Contestant("from files", lambda task: _ours(task, task.files, workers, evaluator, {}))


def _ours(
    task: Task, given: Mapping[str, object], workers: int, evaluator: str, options: Mapping[str, object]
) -> Limit:
    import emberlog

    start = perf_counter()
    engine = emberlog.Engine(executor="local", workers=workers)
    for name, source in given.items():
        engine.register(name, source)
    result = engine.run(task.program.text, dict(task.program.params), evaluator=evaluator, **options)  # type: ignore[arg-type]
    relation = result[task.program.result]
    facts = relation.count()
    wall = perf_counter() - start
    recursive = [entry for entry in result.stats if entry.evaluator == "kernel" or entry.rounds > 0]
    made = [entry.derivations for entry in recursive if entry.derivations is not None]

    def answer() -> Columns:
        return tuple(column.to_numpy() for column in relation.to_arrow().columns)

    # Handing rows to the kernels is part of what they take.
    handed = [step for step in result.stats.steps if step.name in ("fetch", "encode", "compile")]
    seconds = sum(entry.seconds for entry in recursive) + sum(step.seconds for step in handed)
    rounds = max((entry.rounds for entry in recursive), default=0)
    return Limit(facts, sum(made) if made else None, 0.0, seconds, answer, rounds, wall)


# --- running ---------------------------------------------------------------------------------------------------------


@contextmanager
def kept_memory() -> Iterator[None]:
    """What is freed stays with the process, for everybody who uses C's allocator: how soon the system hands out fresh
    pages, which some hosts take their time for, is then no part of what is measured."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        yield
        return
    trim_threshold, mmap_max = -1, -4  # as in malloc.h
    library.mallopt(trim_threshold, -1)
    library.mallopt(mmap_max, 0)
    try:
        yield
    finally:
        library.mallopt(trim_threshold, 1 << 17)
        library.mallopt(mmap_max, 1 << 16)
        library.malloc_trim(0)


def compete(
    task: Task, contestants: list[Contestant], runs: int = 5, say: Callable[[str], None] = lambda text: None
) -> dict[str, Score]:
    """Every contestant `runs` times, in turn. The first one is the measure: others must give its answer."""
    scores = {contestant.name: Score(contestant.name) for contestant in contestants}
    expected: Columns | None = None
    facts = 0
    for contestant in contestants:
        score = scores[contestant.name]
        say(f"{task.program.name} on {task.data}: {contestant.name}")
        # Nothing can be said without the measure: what goes wrong there is told at once.
        first = contestant.run(task) if expected is None else _attempt(contestant, task, score)
        if first is None:
            continue
        if contestant.heavy:
            _keep(score, first)
        if expected is None:
            expected, facts = _sorted(first), first.facts
        else:
            score.right = _agrees(contestant.name, task.program, expected, facts, first)
        del first  # its rows may be a gigabyte
    for _ in range(runs):
        for contestant in contestants:
            score = scores[contestant.name]
            used = sum(run.wall or run.total for run in score.runs)
            if not score.error and used < ENOUGH and len(score.runs) < runs:
                _keep(score, _attempt(contestant, task, score))
    return scores


def _keep(score: Score, run: Limit | None) -> None:
    """The figures of a run, without what holds its rows."""
    if run is not None:
        score.runs.append(
            Limit(run.facts, run.derivations, run.build, run.seconds, _gone, rounds=run.rounds, wall=run.wall)
        )


def _gone() -> Columns:
    raise AssertionError("the rows of this run were let go")


def _attempt(contestant: Contestant, task: Task, score: Score) -> Limit | None:
    """A run; what one contestant cannot do does not end the others."""
    try:
        return contestant.run(task)
    except (EmberlogError, ImportError, MemoryError) as error:
        score.error = f"{type(error).__name__}: {error}".splitlines()[0]
        return None


def _sorted(run: Limit) -> Columns:
    if run.facts > COMPARED:
        return ()
    columns = run.answer()
    order = np.lexsort(columns[::-1]) if columns else ()
    return tuple(column[order] for column in columns)


def _agrees(name: str, program: Program, expected: Columns, facts: int, run: Limit) -> bool | None:
    """Whether an answer is the expected one; None where it cannot be told."""
    if name in RIVALS and program.name in getattr(import_module(f"benchmarks.rivals.{name}"), "UNCHECKED", ()):
        return None
    if run.facts != facts:
        return False
    found = _sorted(run)
    pairs = list(zip(expected, found, strict=True))
    if program.tolerance is None:
        return all(bool((one == other).all()) for one, other in pairs)
    *keys, (one, other) = pairs
    return all(bool((a == b).all()) for a, b in keys) and float(np.abs(one - other).sum()) <= program.tolerance


# --- peak memory -----------------------------------------------------------------------------------------------------


def peak_memory(task: Task, workers: int = 1, evaluator: str = "kernel") -> int | None:
    """The most bytes that a fresh process held while it evaluated and counted."""
    code = f"""
import json
from pathlib import Path
from benchmarks.harness import Task, ours, peak
from benchmarks.programs import PROGRAMS
folder = {str(task.folder) if task.folder else None!r}
task = Task(PROGRAMS[{task.program.name!r}], {task.data!r}, Path(folder) if folder else None)
task.files
ours({workers}, {evaluator!r}).run(task)
print(json.dumps(peak()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root(), env=environment())
    return int(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else None


def peak() -> int:
    """The most bytes that this process has held."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):  # not Linux; there the figure below starts with what the parent held
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def root() -> Path:
    """The checkout."""
    return Path(__file__).parents[1]


def environment() -> dict[str, str]:
    """The environment of a process that can import what this one can."""
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root()), str(root() / "src")])}
