"""The kernels inside Spark: Parquet in, Parquet out; against `local`, GraphX and a loop of DataFrames, in one run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.harness import Task, ours
from benchmarks.programs import PROGRAMS
from benchmarks.rivals import frames, graphx


def run(out: Path, folder: Path | None, evaluator: str, quick: bool, say: Callable[[str], None]) -> list[Path]:
    """Writes `spark.json`; first and second runs, so that JVM and Python workers are cold and warm."""
    figures: dict[str, Any] = {}
    closure = Task(PROGRAMS["tc"], "gnp1K" if quick else "gnp10K", folder)
    components = Task(PROGRAMS["cc_undirected"], "rmat10K" if quick else "rmat1M", folder)
    figures["tc local, evaluation"] = min(ours(2, evaluator).run(closure).seconds for _ in range(3))
    spark = graphx.session()
    for name, task, keep in (("tc rows", closure, True), ("tc count", closure, False), ("cc", components, True)):
        for time in ("first", "second"):
            figures[f"{name}, {time}"] = seconds = _ours(spark, task, evaluator, keep)
            say(f"{name}, {time} run: {seconds:.2f} s")
    for name, rival in (("GraphX", graphx), ("DataFrame loop", frames)):
        taken = rival.evaluate("cc_undirected", components.inputs)
        figures[f"cc {name}"] = taken.total
        say(f"cc, {name}: {taken.build:.2f} s to read, {taken.seconds:.2f} s")
    figures["tc rows / local"] = figures["tc rows, second"] / figures["tc local, evaluation"]
    figures["tc count / local"] = figures["tc count, second"] / figures["tc local, evaluation"]
    figures["cc GraphX / ours"] = figures["cc GraphX"] / figures["cc, second"]
    figures["cc DataFrame loop / ours"] = figures["cc DataFrame loop"] / figures["cc, second"]
    for name in ("tc rows / local", "tc count / local", "cc GraphX / ours", "cc DataFrame loop / ours"):
        say(f"{name}: {figures[name]:.2f}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "spark.json"
    path.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return [path]


def _ours(spark: Any, task: Task, evaluator: str, keep: bool) -> float:
    """Seconds from Parquet files to Parquet files, or to a number of rows."""
    import emberlog

    with tempfile.TemporaryDirectory() as scratch, emberlog.Engine(spark, executor="spark", workers=2) as engine:
        start = perf_counter()
        for name, path in task.files.items():
            engine.register(name, path)
        result = engine.run(task.program.text, dict(task.program.params), evaluator, placement="spark")  # type: ignore[arg-type]
        relation = result[task.program.result]
        if keep:
            relation.write(Path(scratch) / "answer.parquet")
        else:
            relation.count()
        return perf_counter() - start
