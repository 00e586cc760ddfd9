"""`emberlog bench kernels --variants`: the ways to evaluate that can be chosen, against what the planner chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import Score, Task, compete, limit, ours
from benchmarks.programs import PROGRAMS
from benchmarks.report import machine

SETS: dict[str, dict[str, Any]] = {
    "as planned": {},
    "packed hash sets": {"storage": "hash"},
    "pivots ignored": {"decompose": False},
    "facts exchanged each round": {"decompose": False, "exchange": True},
    "rounds as SQL": {"evaluator": "sql"},
}
VALUES: dict[str, dict[str, Any]] = {
    "as planned": {},
    "no order": {"ordered": False},
    "hashed groups": {"storage": "hash"},
    "facts exchanged each round": {"decompose": False, "exchange": True},
    "rounds as SQL": {"evaluator": "sql"},
}
LINES = (
    ("tc", "gnp2K", "gnp1K", SETS),
    ("tc", "grid75", "grid20", SETS),
    ("sg", "grid75", "grid20", SETS),
    ("cc", "rmat100K", "rmat1K", VALUES),
    ("sssp", "rmat100K", "rmat1K", VALUES),
    ("sssp", "road300", "road20", VALUES),
    ("apsp", "rmat512", "rmat64", VALUES),
)


def run(out: Path, runs: int, folder: Path | None, quick: bool, workers: int, say: Callable[[str], None]) -> list[Path]:
    """Writes `variants.md` and `variants.json`: seconds of each, and how many times those of the first."""
    scores: dict[str, dict[str, Score]] = {}
    for program, large, small, variants in LINES:
        task = Task(PROGRAMS[program], small if quick else large, folder)
        contestants = [limit(task.program.limit)]
        contestants += [
            ours(workers, options.get("evaluator", "kernel"), name, **_without(options, "evaluator"))
            for name, options in variants.items()
        ]
        scores[f"{program} on {task.data}"] = compete(task, contestants, runs, say)
    out.mkdir(parents=True, exist_ok=True)
    table, figures = out / "variants.md", out / "variants.json"
    table.write_text(_markdown(scores), encoding="utf-8")
    seconds = {line: {name: score.total for name, score in found.items()} for line, found in scores.items()}
    figures.write_text(json.dumps(seconds, indent=2), encoding="utf-8")
    return [table, figures]


def _without(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}


def _markdown(scores: Mapping[str, Mapping[str, Score]]) -> str:
    lines = ["| program | variant | seconds | times as planned | answer |", "| --- | --- | --- | --- | --- |"]
    for line, found in scores.items():
        first = found["as planned"].seconds
        for name, score in found.items():
            if name.startswith("limit"):
                continue
            seconds = "" if score.seconds is None else f"{score.seconds:.3f}"
            times = "" if score.seconds is None or not first else f"{score.seconds / first:.1f}"
            answer = score.error or {True: "right", False: "WRONG", None: ""}[score.right]
            lines.append(f"| {line} | {name} | {seconds} | {times} | {answer} |")
    return "\n".join([*lines, "", machine(), ""])
