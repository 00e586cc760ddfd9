"""Runs that make far more rows than they have memory for, and what they take while somebody looks on.

The program is a part of a borrow checker: from where a path was moved out of, it is uninitialized at every point of the
control flow that follows (`uninit`, by kernels: few hundred paths times a long chain of points with branches), and a
use of it there is an error (`move_error`, a join over all that). Both have nearly paths times points rows, from small
inputs. Each run is a process of its own with a budget (`memory=`); twenty times a second the proportional set size
(PSS) of it and all its children is read from /proc. PSS counts pages that are shared in parts, and pages of mapped
files too, though the system can take those back at any time: they are told apart. Spark's Java process is Spark's:
its heap is no part of the budget, and has a column of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pyarrow as pa

from emberlog.diagnostics import EmberlogError, sized

PROGRAM = """
uninit(P, S) <- moved(P, S).
uninit(P, T) <- uninit(P, S), cfg(S, T).
move_error(P, T) <- uninit(P, S), cfg(S, T).
.output move_error
"""
PATHS = 300
ROW = 16  # bytes: two numbers
BRANCH = 7  # every so many points have a second way on
EVERY = 0.05  # seconds between two looks
MOST = 12 * 10**9  # bytes: a run that takes more is ended, for the sake of whoever else uses the machine


def flow(paths: int, points: int, seed: int = 0) -> dict[str, pa.Table]:
    """A chain of points with branches, and where paths are moved out of: somewhere near its beginning."""
    draw = np.random.default_rng(seed)
    chain = np.arange(points - 1, dtype=np.int64)
    forks = np.arange(0, max(points - 2 * BRANCH, 1), BRANCH, dtype=np.int64)
    ends = np.minimum(forks + draw.integers(2, 2 * BRANCH, len(forks)), points - 1)
    return {
        "cfg": pa.table({"s": np.concatenate([chain, forks]), "t": np.concatenate([chain + 1, ends])}),
        "moved": pa.table({"p": np.arange(paths, dtype=np.int64), "s": draw.integers(0, max(points // 100, 1), paths)}),
    }


@dataclass(frozen=True)
class Case:
    """A run: where, with how much memory, and about how many rows it makes."""

    executor: str
    memory: str | None
    rows: int
    ask: str = "write"  # what is done with the result: write, arrow, rows, count


@dataclass
class Peak:
    """The most that a process and its children took at once, in bytes."""

    python: int = 0  # PSS of all but Java
    mapped: int = 0  # the part of it that files stand behind, at that moment
    java: int = 0
    seconds: float = 0.0
    code: int = 0
    told: str = ""

    @property
    def ended(self) -> str:
        """How a run ended, in a few words."""
        if self.code == 0:
            return "well"
        return f"killed by signal {-self.code}" if self.code < 0 else f"{self.told.strip()} (exit code {self.code})"


def cases(executors: Sequence[str], quick: bool) -> list[Case]:
    """Budgets, and results of three to ten times as much."""
    if quick:
        return [Case(executor, "200MB", 40_000_000) for executor in executors]
    sizes = [("1GB", 3.2), ("2GB", 3.2), ("4GB", 3.2), ("1GB", 10.0)]
    return [
        Case(executor, memory, int(float(memory[:-2]) * 10**9 * times / ROW))
        for executor in executors
        for memory, times in sizes
    ]


# --- the process that is watched -------------------------------------------------------------------------------------


def child(case: Case, folder: Path) -> int:
    """Runs a case in this process, and prints what came of it."""
    import emberlog

    started = monotonic()
    try:
        with emberlog.Engine(executor=case.executor, memory=case.memory, run_dir=folder) as engine:
            for name, table in flow(PATHS, max(case.rows // PATHS, 100)).items():
                engine.register(name, table)
            placement = "spark" if case.executor == "spark" else "auto"
            result = engine.run(PROGRAM, placement=placement)
            found = result["move_error"]
            if case.ask == "write":
                found.write(folder / "move_error.parquet")
            elif case.ask == "arrow":
                found.to_arrow()
            elif case.ask == "rows":
                found.rows()
            print(json.dumps({"rows": found.count(), "seconds": monotonic() - started}))
    except EmberlogError as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error.message}"}))
        return error.exit_code
    return 0


# --- looking on ------------------------------------------------------------------------------------------------------


def watched(command: Sequence[str], most: int = MOST, environment: Mapping[str, str] | None = None) -> Peak:
    """Runs a command to its end and looks at what it takes; over `most` bytes it is ended."""
    started, peak = monotonic(), Peak()
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(command, stdout=out, env=environment) as running:
            while running.poll() is None:
                _look(running.pid, peak)
                if peak.python + peak.java > most:
                    _end(running.pid)
                sleep(EVERY)
        out.seek(0)
        peak.told = out.read()
    peak.seconds, peak.code = monotonic() - started, running.returncode
    return peak


def _look(pid: int, peak: Peak) -> None:
    python, mapped, java = 0, 0, 0
    for one in family(pid):
        figures = _rollup(one)
        if _name(one) == "java":
            java += figures.get("Pss", 0)
        else:
            python += figures.get("Pss", 0)
            mapped += figures.get("Pss_File", 0) + figures.get("Pss_Shmem", 0)
    if python > peak.python:
        peak.python, peak.mapped = python, mapped
    peak.java = max(peak.java, java)


def family(pid: int) -> list[int]:
    """A process and all that it, or they, started."""
    children: dict[int, list[int]] = {}
    for one, parent in _processes():
        children.setdefault(parent, []).append(one)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _processes() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            text = _read(entry / "stat")
            if text:
                yield int(entry.name), int(text.rpartition(")")[2].split()[1])


def _rollup(pid: int) -> dict[str, int]:
    rows = (line.split() for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines()[1:])
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}


def _name(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/comm")).strip()


def _read(path: Path) -> str:
    """What a file of /proc says; nothing when its process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _end(pid: int) -> None:
    for one in reversed(family(pid)):
        try:
            os.kill(one, 9)
        except ProcessLookupError:
            continue


# --- the table -------------------------------------------------------------------------------------------------------


def measure(case: Case, folder: Path | None = None) -> Peak:
    """Runs a case in a process of its own."""
    checkout = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}"}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "benchmarks.memory", json.dumps(asdict(case)), scratch]
        return watched(command, environment=environment)


def run(
    out: Path, executors: Sequence[str], quick: bool, folder: Path | None, say: Callable[[str], None]
) -> list[Path]:
    """The table of all cases; `folder` is where runs put their scratch files."""
    lines = [
        "| executor | budget | rows | result | times the budget | peak PSS | of it mapped files | above idle "
        "| Spark's Java | seconds | ended |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    idle: dict[str, Peak] = {}
    for case in cases(executors, quick):
        if case.executor not in idle:
            idle[case.executor] = measure(replace(case, rows=30_000), folder)
            say(f"{case.executor}, idle: {sized(idle[case.executor].python)}")
        peak = measure(case, folder)
        lines.append(_line(case, peak, idle[case.executor]))
        say(lines[-1])
    out.mkdir(parents=True, exist_ok=True)
    path = out / "memory.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _line(case: Case, peak: Peak, idle: Peak) -> str:
    from emberlog.memory import bytes_of

    told = json.loads(peak.told.splitlines()[-1]) if peak.told.strip() else {}
    rows = int(told.get("rows", case.rows))
    times = rows * ROW / bytes_of(case.memory or "1GB")
    cells = [
        case.executor, case.memory or "default", f"{rows:,}", sized(rows * ROW), f"{times:.1f}", sized(peak.python),
        sized(peak.mapped), sized(max(peak.python - idle.python, 0)), sized(peak.java) if peak.java else "",
        f"{peak.seconds:.0f}", peak.ended,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(child(Case(**json.loads(sys.argv[1])), Path(sys.argv[2])))
