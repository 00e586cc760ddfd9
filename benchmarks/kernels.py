"""`emberlog bench kernels`: which runs there are, and what each of them prints and writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import harness, report
from benchmarks.data import SHUFFLED
from benchmarks.harness import (
    SPARK_RIVALS,
    Task,
    compete,
    from_files,
    kept_memory,
    limit,
    ours,
    peak_memory,
    rival,
    rivals_of,
)
from benchmarks.programs import PROGRAMS, TABLE, Case
from emberlog.diagnostics import UsageError

Say = Callable[[str], None]

SLOW_RIVALS = {("tc", "gnp10K"), ("tc", "grid150"), ("tc", "dag40K"), ("sg", "gnp10K")}
"""Where DuckDB would take minutes and gigabytes: it is compared on `tc` of gnp5K and `sg` of grid150."""


TOO_MANY_PAIRS = {"gnp10K"}
"""Where enumerating pairs in place of or-ing rows would take 10,000 million derivations."""


def cases(program: str | None, data: str | None, quick: bool) -> list[tuple[Case, str]]:
    """The lines of the table that were asked for, with the data to use."""
    if program is not None and program not in PROGRAMS:
        raise UsageError(f"unknown program `{program}`", fix=f"one of: {', '.join(PROGRAMS)}")
    chosen = [case for case in TABLE if program in (None, case.program) and data in (None, case.data)]
    if not chosen and program is not None and data is not None:
        chosen = [Case(program, data, data, None)]  # not in the table, but somebody wants to know
    if not chosen:
        raise UsageError(f"no line of the table has data `{data}`", fix="give the program too: --program tc")
    used = {(case.program, case.quick if quick else case.data): case for case in reversed(chosen)}
    return [(case, data) for (_, data), case in reversed(used.items())]


def table(
    chosen: Sequence[tuple[Case, str]],
    out: Path,
    runs: int,
    folder: Path | None,
    evaluator: str,
    with_rivals: bool,
    spark: bool,
    say: Say,
) -> list[Path]:
    """The table: limits, ours with one and two workers and with packed hash sets, rivals."""
    lines = []
    for case, data in chosen:
        task = Task(PROGRAMS[case.program], data, folder)
        program = task.program
        contestants = [limit(name) for name in (program.limit, *program.faster)]
        contestants += [ours(1, evaluator), ours(2, evaluator), from_files(2, evaluator)]
        if case.program == "sg" and data not in TOO_MANY_PAIRS:
            contestants.append(ours(1, evaluator, "hashed", storage="hash"))
        if with_rivals and (case.program, data.removesuffix(SHUFFLED)) not in SLOW_RIVALS:
            names = rivals_of(case.program)
            contestants += [rival(name) for name in names if spark or name not in SPARK_RIVALS]
        scores = compete(task, contestants, runs, say)
        memory = peak_memory(task, 1, evaluator) if scores["ours 1"].runs else None
        lines.append(report.Line(case, data, scores, memory))
        report.write(lines, out)  # what is done is there, whatever comes later
    return report.write(lines, out)


# --- slope -----------------------------------------------------------------------------------------------------------

SLOPES = {
    ("tc", "grid"): ("grid40", "grid75", "grid150", "grid200"),
    ("tc", "gnp"): ("gnp2K", "gnp5K", "gnp10K", "gnp15K"),
    ("cc", "rmat"): ("rmat100K", "rmat200K", "rmat500K", "rmat1M", "rmat2M"),
    ("sssp", "rmat"): ("rmat100K", "rmat200K", "rmat500K", "rmat1M", "rmat2M"),
}
QUICK_SLOPES = {
    ("tc", "grid"): ("grid10", "grid20"),
    ("tc", "gnp"): ("gnp1K", "gnp2K"),
    ("cc", "rmat"): ("rmat1K", "rmat2K"),
    ("sssp", "rmat"): ("rmat1K", "rmat2K"),
}


def slope(out: Path, runs: int, folder: Path | None, evaluator: str, quick: bool, say: Say) -> list[Path]:
    """Time per derivation against size, of ours and of the limit, in memory that is there already; derivations are
    counted by the limit."""
    out.mkdir(parents=True, exist_ok=True)
    series: dict[str, list[tuple[float | None, float | None]]] = {}
    for (program, kind), sizes in (QUICK_SLOPES if quick else SLOPES).items():
        for data in sizes:
            task = Task(PROGRAMS[program], data, folder)
            with kept_memory():
                scores = compete(task, [limit(task.program.limit), ours(1, evaluator)], runs, say)
            made = next(iter(scores.values())).derivations
            for score in scores.values():
                label = f"{score.name.split()[0]}: {program} on {kind}"
                spent = score.total
                series.setdefault(label, []).append((made, spent / made * 1e9 if spent and made else None))
    figures = out / "slope.json"
    flat = {name: _spread(points) for name, points in series.items()}
    figures.write_text(json.dumps({"series": series, "largest / smallest": flat}, indent=2), encoding="utf-8")
    for name, times in flat.items():
        say(f"{name}: ns per derivation differ by a factor of {times:.2f}")
    return [figures, *report.plot(series, out / "slope", "derivations", "ns per derivation", joined=True)]


def _spread(points: Sequence[tuple[float | None, float | None]]) -> float:
    known = [value for _, value in points if value]
    return max(known) / min(known) if known else float("nan")


def default_out() -> Path:
    return harness.root() / "out" / "bench"
