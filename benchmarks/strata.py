"""Joins beside a recursion: by its loops, and by DuckDB from the rows that the same loops computed.

The programs are parts of a borrow checker (`benchmarks.memory` tells what they mean): `uninit` has nearly paths times
points rows, and a stratum above it joins all of them. Each run is a process of its own. Its seconds are those of the
second run in it, from registered tables to the number of rows of the stratum above: loops are compiled then. Its memory
is the most that the process had at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

import emberlog
from benchmarks.memory import flow

RECURSION = """
uninit(P, S) <- moved(P, S).
uninit(P, T) <- uninit(P, S), cfg(S, T)$KEPT.
"""
KEPT = {"plain": "", "assigned": ", !assigned(P, T)"}
ABOVE = {
    "errors": "above(P, T) <- uninit(P, S), cfg(S, T).",
    "at their ends": "above(P, S) <- uninit(P, S), cfg(S, T), !uninit(P, T).",
    "late": "above(P, T) <- uninit(P, S), cfg(S, T), S > P.",
}
LINES = [("plain", "errors"), ("assigned", "errors"), ("assigned", "at their ends"), ("plain", "late")]
PATHS, POINTS = 700, 150_000
QUICK = 20, 500


def sources(paths: int, points: int) -> dict[str, pa.Table]:
    draw = np.random.default_rng(1)
    given = pa.table(
        {"p": np.arange(paths).repeat(2).astype(np.int64), "s": draw.integers(points // 2, points, 2 * paths)}
    )
    return {**flow(paths, points), "assigned": given.group_by(["p", "s"]).aggregate([])}


def measure(kept: str, above: str, strata: str, paths: int, points: int) -> dict[str, Any]:
    """One run, in this process."""
    import resource

    text = f"{RECURSION.replace('$KEPT', KEPT[kept])}{ABOVE[above]}\nrows(count<P>) <- above(P, _).\n.output rows\n"
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        for name, table in sources(paths, points).items():
            engine.register(name, table)
        engine.run(text, strata=strata)
        started = monotonic()
        result = engine.run(text, strata=strata)
        found = result["rows"].rows()
        seconds = monotonic() - started
    below, over = result.stats[0], result.stats[1]
    return {
        "rows": found[0][0] if found else 0,
        "below": below.facts,
        "seconds": seconds,
        "how": over.how or over.evaluator,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    }


def _apart(*given: object) -> dict[str, Any]:
    """The same in a process of its own."""
    code = f"import json; from benchmarks.strata import measure; print(json.dumps(measure(*{given!r})))"
    checkout = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=checkout)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(out: Path, quick: bool, say: Callable[[str], None]) -> list[Path]:
    """The table of all programs."""
    paths, points = QUICK if quick else (PATHS, POINTS)
    lines = [
        f"{paths:,} paths, {points:,} points; the second run of a process",
        "",
        "| recursion | above | rows below | rows above | loops | DuckDB | ratio | loops, peak | DuckDB, peak | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kept, above in LINES:
        ours, theirs = (_apart(kept, above, strata, paths, points) for strata in ("auto", "sql"))
        assert ours["rows"] == theirs["rows"], f"{above}: {ours['rows']} rows by loops, {theirs['rows']} by DuckDB"
        cells = [
            f"{ours['below']:,}",
            f"{ours['rows']:,}",
            f"{ours['seconds']:.2f} s",
            f"{theirs['seconds']:.2f} s",
            f"{theirs['seconds'] / ours['seconds']:.1f}",
            f"{ours['peak'] >> 20:,} MB",
            f"{theirs['peak'] >> 20:,} MB",
            f"{theirs['peak'] / ours['peak']:.1f}",
        ]
        lines.append(f"| {kept} | {above} | {' | '.join(cells)} |")
        say(f"{lines[-1]} {ours['how']}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "strata.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]
