"""The kernels inside Spark: Parquet in, Parquet out; against `local`, GraphX and a loop of DataFrames, in one run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import emberlog
from benchmarks.harness import Task, ours
from benchmarks.programs import PROGRAMS
from benchmarks.rivals import frames, graphx

COUNTING = ".output n\nn(count<X>) <- tc(X, Y).\n"


def run(
    out: Path, folder: Path | None, evaluator: str, quick: bool, runs: int, say: Callable[[str], None]
) -> list[Path]:
    """Writes `spark.json`: first runs, in which Python workers are cold, and the median of those after them.

    Rivals run once.
    """
    figures: dict[str, Any] = {}
    closure = Task(PROGRAMS["tc"], "gnp1K" if quick else "gnp10K", folder)
    counted = Task(replace(closure.program, text=closure.program.text + COUNTING, result="n"), closure.data, folder)
    components = Task(PROGRAMS["cc_undirected"], "rmat10K" if quick else "rmat1M", folder)
    for name, task in (("tc", closure), ("tc count", counted), ("cc", components)):
        local = ours(2, evaluator)
        figures[f"{name}, local evaluation"] = seconds = min(local.run(task).seconds for _ in range(3))
        say(f"{name}, local: {seconds:.2f} s evaluation")
    taken = [_written(emberlog.Engine(executor="local", workers=2), closure, evaluator) for _ in range(2)]
    figures["tc rows, local"] = taken[-1]
    say(f"tc, local: {taken[-1]:.2f} s from files to files")
    spark = graphx.session()
    for name, task, keep in (("tc rows", closure, True), ("tc count", counted, False), ("cc", components, True)):
        taken = [_ours(spark, task, evaluator, keep, say) for _ in range(max(runs, 2))]
        figures[f"{name}, first"], figures[f"{name}, second"] = taken[0], median(taken[1:])
        say(f"{name}, first run: {taken[0]:.2f} s, after that: {median(taken[1:]):.2f} s")
    for name, rival in (("GraphX", graphx), ("DataFrame loop", frames)):
        found = rival.evaluate("cc_undirected", components.inputs)
        figures[f"cc {name}"] = found.total
        say(f"cc, {name}: {found.build:.2f} s to read, {found.seconds:.2f} s")
    ratios = {
        "tc rows / local": figures["tc rows, second"] / figures["tc, local evaluation"],
        "tc rows / local, to files": figures["tc rows, second"] / figures["tc rows, local"],
        "tc count / local": figures["tc count, second"] / figures["tc, local evaluation"],
        "cc GraphX / ours": figures["cc GraphX"] / figures["cc, second"],
        "cc DataFrame loop / ours": figures["cc DataFrame loop"] / figures["cc, second"],
    }
    for name, ratio in ratios.items():
        say(f"{name}: {ratio:.2f}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "spark.json"
    path.write_text(json.dumps(figures | ratios, indent=2), encoding="utf-8")
    return [path]


def _written(engine: Any, task: Task, evaluator: str) -> float:
    """Seconds from Parquet files to Parquet files, without Spark."""
    with tempfile.TemporaryDirectory() as scratch, engine:
        start = perf_counter()
        for name, path in task.files.items():
            engine.register(name, path)
        result = engine.run(task.program.text, dict(task.program.params), evaluator)
        result[task.program.result].write(Path(scratch) / "answer.parquet")
        return perf_counter() - start


def _ours(spark: Any, task: Task, evaluator: str, keep: bool, say: Callable[[str], None]) -> float:
    """Seconds from Parquet files to Parquet files, or to the rows of a small answer."""
    with tempfile.TemporaryDirectory() as scratch, emberlog.Engine(spark, executor="spark", workers=2) as engine:
        start = perf_counter()
        for name, path in task.files.items():
            engine.register(name, path)
        result = engine.run(task.program.text, dict(task.program.params), evaluator, placement="spark")  # type: ignore[arg-type]
        ran = perf_counter()
        relation = result[task.program.result]
        if keep:
            relation.write(Path(scratch) / "answer.parquet")
        else:
            relation.rows()
        done = perf_counter()
        kernels = next(entry for entry in result.stats if entry.rounds)
        say(
            f"  {ran - start:.2f} s to run ({kernels.seconds:.2f} s kernels: {kernels.how}), {done - ran:.2f} s to read"
        )
        return done - start
