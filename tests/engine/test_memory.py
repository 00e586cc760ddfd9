"""What a run may keep in memory: where the number comes from, who keeps to it, and what is said where it is little."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog import memory
from emberlog.components.lower import lower
from emberlog.components.program import KernelProgram
from emberlog.diagnostics import sized
from emberlog.kernels.choices import Choices
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.memory import Memory
from emberlog.kernels.worker import KernelWorker
from emberlog.memory import Budget, bytes_of, free_memory
from emberlog.plan.logical import Distinct, Join, Project, Scan
from emberlog.plan.origins import Heavy, large_first, pieces
from emberlog.stats import Limits
from emberlog.syntax.nodes import Variable
from emberlog.types import NUMBER
from planned import planned

GB = 10**9
CHECKOUT = Path(__file__).parents[2]

# --- the machine and its groups --------------------------------------------------------------------------------------


def machine(root: Path, available: int, files: dict[str, str]) -> Path:
    """A file system as the kernel shows it."""
    files = {"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable: {available // 1024} kB\n", **files}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


UNIFIED = {
    "proc/self/cgroup": "0::/outer/inner\n",
    "proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n",
}
OLD = {
    "proc/self/cgroup": "5:cpu:/x\n4:memory:/outer/inner\n0::/\n",
    "proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
}


def group(folder: str, limit: str, usage: int, cache: int = 0, name: str = "memory.max") -> dict[str, str]:
    v2 = name != "memory.limit_in_bytes"
    inactive = "inactive_file" if v2 else "total_inactive_file"
    return {
        f"{folder}/{name}": f"{limit}\n",
        f"{folder}/{'memory.current' if v2 else 'memory.usage_in_bytes'}": f"{usage}\n",
        f"{folder}/memory.stat": f"anon 5\n{inactive} {cache}\n",
    }


V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 8 * GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", "max", GB)}, 8 * GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", f"{3 * GB}", GB)}, 2 * GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", f"{3 * GB}", 2 * GB, cache=GB)}, 2 * GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", f"{2 * GB}", GB, name="memory.high")}, GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", "max", 0), **group(f"{V2}/outer", f"{4 * GB}", GB)}, 3 * GB),
        ({**OLD, **group(f"{V1}/outer/inner", f"{3 * GB}", GB, name="memory.limit_in_bytes")}, 2 * GB),
        (
            {
                **OLD,
                **group(f"{V1}/outer", f"{3 * GB}", 2 * GB, GB, "memory.limit_in_bytes"),
                f"{V1}/outer/inner/tasks": "",
            },
            2 * GB,
        ),
        ({**OLD, **group(f"{V1}/outer/inner", f"{2**63 - 4096}", GB, name="memory.limit_in_bytes")}, 8 * GB),
        # In a container the path is that of the host, and the mounted folder is the group itself.
        ({**UNIFIED, **group(V2, f"{3 * GB}", GB)}, 2 * GB),
        ({**UNIFIED, **group(f"{V2}/outer/inner", f"{GB}", 2 * GB)}, 0),
    ],
)
def test_what_is_free_is_what_machine_and_groups_have(tmp_path: Path, files: dict[str, str], free: int) -> None:
    found = free_memory(machine(tmp_path, 8 * GB, files))
    assert abs(found - free) <= 1024


def test_without_a_budget_a_run_gets_a_share_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 10 * GB)
    assert Budget.of(None).total == 7 * GB
    assert Budget.of(None, shares=2, reserved=2 * GB).total == int(0.7 * 8 * GB) // 2
    assert Budget.of("4GB", shares=4, reserved=2 * GB).total == GB
    with emberlog.Engine(executor="local") as engine:
        result = engine.run("p(1). q(X) <- p(X).")
        assert result._run.executor.budget.total == 7 * GB


def test_duckdb_gets_what_others_leave(tmp_path: Path) -> None:
    """Its limit is set also where the user sets none, and goes down while others hold memory."""
    from emberlog.sql.duck import DuckEngine

    engine = DuckEngine(tmp_path, budget=Budget.of("1GB"))
    try:
        limit = "SELECT current_setting('memory_limit')"
        assert bytes_of(str(engine._run(limit)[0][0])) == pytest.approx(0.65 * GB, rel=0.02)
        held = np.ones(80_000_000, np.int64)
        engine.take_what_is_left()
        assert bytes_of(str(engine._run(limit)[0][0])) < 0.65 * (GB - held.nbytes + memory.IDLE)
    finally:
        engine.close()


# --- kernels ---------------------------------------------------------------------------------------------------------


def test_finished_rows_go_to_disk_when_half_of_the_budget_is_used(tmp_path: Path) -> None:
    kept = Memory(10 * GB, tmp_path)
    kept.meter = Budget(200_000_000, memory.anonymous())
    assert not isinstance(kept.keep(np.ones(10)), np.memmap)
    held = np.ones(20_000_000, np.int64)
    assert isinstance(kept.keep(np.ones(10)), np.memmap), sized(held.nbytes)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(emberlog.ExecutionError) as caught:
        Memory(1, tmp_path).keep(np.ones(10))
    assert "80 bytes of rows had no room in memory" in caught.value.message
    assert caught.value.message.endswith("the disk is full") and "run_dir=" in (caught.value.fix or "")


@pytest.mark.apart
@pytest.mark.parametrize(("neighbours", "spills"), [(1, False), (8, True)])
def test_a_worker_has_its_share_of_the_machine(neighbours: int, spills: bool, tmp_path: Path) -> None:
    """Eight tasks of a machine have an eighth of its budget each; what has no room goes to files of the task, and is
    written as if it had been in memory."""
    declared = ".decl cfg(s: number, t: number) .decl moved(p: number, s: number)\n"
    _, _, plan = planned(declared + FLOW)
    program = lower(next(stratum for stratum in plan.strata if stratum.evaluation == "delta"), plan)
    assert isinstance(program, KernelProgram)
    output = Output(tmp_path, tmp_path, {"uninit": ("int64", "int64")}, neighbours)
    worker = KernelWorker(program, Choices(storage="loops"), Limits(), False, None, memory=8_000_000)
    chain = np.arange(20_000)
    inputs = {"static/cfg": [chain, chain + 1], "exit/uninit": [np.arange(100), np.zeros(100, np.int64)]}
    told = json.loads(worker(0, 1, inputs, None, output))
    assert told["counts"] == {"uninit": 100 * 20_001}
    assert ("of rows on disk" in told["how"]) == spills
    assert [part.rows for part in output.finish()] == [100 * 20_001]
    assert not (tmp_path / "spill").exists()


# --- plans -----------------------------------------------------------------------------------------------------------


def scan(relation: str, *names: str) -> Scan:
    return Scan(relation, names, (NUMBER,) * len(names))


def test_pieces_are_by_copies_of_the_largest_relation() -> None:
    join = Join(scan("uninit", "P", "S"), scan("cfg", "S", "T"))
    plan = Distinct(Project(join, (("#0", Variable("P")), ("#1", Variable("T")))))
    heavy = {"uninit": Heavy(3 * 10**8, (300, 10**6))}
    found = pieces(plan, heavy, {"cfg": 1_140_000}.__getitem__)
    assert (found.rows, found.width, found.by, found.sets) == (3 * 10**8, 2, (0,), True)
    few = Distinct(Project(join, (("#0", Variable("P")),)))
    assert pieces(few, heavy, {"cfg": 1_140_000}.__getitem__).rows == 300


def test_small_inputs_of_a_join_become_tables() -> None:
    big, small, other = scan("big", "X", "Y"), scan("a", "X"), scan("b", "Y")
    heavy = {"big": Heavy(10**8, (10**8, 10**8), streamed=True)}
    found = large_first(Join(Join(other, small), big), heavy)
    assert found == Project(Join(Join(big, other), small), (("Y", Variable("Y")), ("X", Variable("X"))))
    assert large_first(Join(small, other), heavy) == Join(small, other)


# --- runs ------------------------------------------------------------------------------------------------------------

FLOW = """
uninit(P, S) <- moved(P, S).
uninit(P, T) <- uninit(P, S), cfg(S, T).
"""
ERRORS = ("move_error(P, T) <- uninit(P, S), cfg(S, T).", "move_error(P, T) <- cfg(S, T), uninit(P, S).")
OUTPUT = ".output move_error\n"


def flow(engine: emberlog.Engine, paths: int, points: int) -> None:
    engine.register("moved", [(path, path % 7) for path in range(paths)])
    chain = np.arange(points, dtype=np.int64)
    starts, ends = [chain, chain[::5]], [chain + 1, chain[::5] + 2]
    engine.register("cfg", pa.table({"s": np.concatenate(starts), "t": np.concatenate(ends)}))


def expected(paths: int, points: int) -> int:
    return sum(points + 1 - path % 7 for path in range(paths))


@pytest.mark.apart
@pytest.mark.parametrize("rule", ERRORS)
def test_a_join_over_a_large_result_goes_through_in_pieces(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows as all at once, whatever the order of the body; only the small side becomes a table."""
    from emberlog.sql import duck

    statements: list[str] = []
    run = duck.DuckEngine._run

    def note(self: Any, sql: str, statement: Any = None) -> Any:
        statements.append(sql)
        return run(self, sql, statement)

    monkeypatch.setattr(duck.DuckEngine, "_run", note)
    monkeypatch.setattr(duck, "ROW", 10_000)  # as if rows were large
    with emberlog.Engine(executor="local", workers=2, memory="200MB") as engine:
        flow(engine, 40, 40_000)
        result = engine.run(FLOW + rule + OUTPUT, evaluator="kernel", strata="sql")
        found = result["move_error"].to_arrow()
        assert found.num_rows == result["move_error"].count() == expected(40, 40_000) - 40
        assert found.group_by(found.column_names).aggregate([]).num_rows == found.num_rows
    inserted = [sql for sql in statements if sql.startswith("INSERT INTO large.")]
    assert len(inserted) > 10 and all("hash(c0)" in sql for sql in inserted)
    assert any("disabled_optimizers = 'join_order" in sql for sql in statements)


def test_what_does_not_fit_at_once_is_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows beforehand how many rows a join has: DuckDB runs out of memory, and does it again in pieces."""
    from emberlog.sql import duck

    made = duck.DuckEngine._make
    tried: list[str] = []

    def fail(self: Any, name: str, query: str, statement: Any, *, large: bool) -> int:
        if "JOIN" in query.upper():
            tried.append(query)
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 256.0 MiB")
        return made(self, name, query, statement, large=large)

    monkeypatch.setattr(duck.DuckEngine, "_make", fail)
    with emberlog.Engine(executor="local") as engine:
        engine.register("a", [(x, x % 10) for x in range(100)])
        result = engine.run("p(X, Y) <- a(X, Z), a(Y, Z), X != Y.", evaluator="sql")
        assert len(result["p"]) == 900 and len(set(result["p"].rows())) == 900
    assert len(tried) == 1


def test_a_missing_value_is_told_by_one_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlog.plan import origins
    from emberlog.sql import evaluate

    monkeypatch.setattr(evaluate, "pieces", lambda plan, heavy, count: origins.Pieces(10**9, 2, (1,)))
    with emberlog.Engine(executor="local", memory="1GB") as engine:
        engine.register("a", [(x, x % 3) for x in range(50_001)])
        assert len(engine.run("p(X, Y) <- a(X, Z), Z > 0, Y = X / Z.", evaluator="sql")["p"]) > 0
        with pytest.raises(emberlog.DataError, match="divi"):
            engine.run("p(X, Y) <- a(X, Z), Y = X / Z.", evaluator="sql")


@pytest.mark.apart
def test_too_little_memory_for_duckdb_is_a_limit_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlog.sql import duck

    tried: list[int] = []

    def fail(self: Any, name: str, statement: Any, most: Any, pieces: int, by: Any) -> int:
        tried.append(pieces)
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 256.0 MiB (1/2 used)")

    monkeypatch.setattr(duck.DuckEngine, "_in_pieces", fail)
    monkeypatch.setattr(duck, "ROW", 10**9)
    with emberlog.Engine(executor="local", memory="400MB", workers=2) as engine:
        flow(engine, 40, 40_000)
        with pytest.raises(emberlog.LimitError) as caught:
            engine.run(FLOW + ERRORS[0], evaluator="kernel", strata="sql")
    assert "DuckDB needs 256.0 MiB more than" in caught.value.message and "400.0 MB" in caught.value.message
    assert "allow more with memory=" in (caught.value.fix or "")
    assert caught.value.exit_code == 3 and tried == [duck.MOST_PIECES]


@pytest.mark.parametrize(
    "text",
    [
        "IO Error: Could not write file: No space left on device",
        "Out of Memory Error: failed to offload data block of size 256.0 KiB (1.0 GiB/1.0 GiB used). "
        "This limit was set by the 'max_temp_directory_size' setting.",
    ],
)
def test_a_disk_that_is_full_is_no_limit_of_memory(text: str, tmp_path: Path) -> None:
    from emberlog.sql.duck import DuckEngine

    engine = DuckEngine(tmp_path, budget=Budget.of("1GB"))
    kind = duckdb.IOException if text.startswith("IO") else duckdb.OutOfMemoryException
    found = engine.shortage(kind(text))
    engine.close()
    assert isinstance(found, emberlog.ExecutionError)
    assert "the disk is full" in found.message and "run_dir=" in (found.fix or "")


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("Total size of serialized results (1100.0 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)",
         "more than Spark hands to its driver", "write(path)"),
        ("An error occurred\njava.lang.OutOfMemoryError: Java heap space",
         "heap of Spark's Java process", "spark.driver.memory"),
    ],
)  # fmt: skip
def test_spark_runs_short_of_its_own_memory(text: str, said: str, fix: str) -> None:
    from emberlog.sql.spark import SparkEngine

    found = SparkEngine.shortage(object.__new__(SparkEngine), RuntimeError(text))
    assert isinstance(found, emberlog.LimitError)
    assert said in found.message and fix in (found.fix or "")
    assert SparkEngine.shortage(object.__new__(SparkEngine), RuntimeError("something else")) is None


# --- results ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> Any:
    """A result of 12 million rows where 100 MB may be used."""
    with emberlog.Engine(executor="local", memory="100MB", workers=2, run_dir=tmp_path) as engine:
        flow(engine, 300, 40_000)
        yield engine.run(FLOW + ".output uninit\n", evaluator="kernel")["uninit"]


@pytest.mark.apart
@pytest.mark.parametrize("way", ["rows", "to_arrow", "to_pandas", "to_polars"])
def test_rows_that_have_no_room_are_refused(large: emberlog.Relation, way: str) -> None:
    with pytest.raises(emberlog.LimitError) as caught:
        getattr(large, way)()
    assert f"`uninit` ({expected(300, 40_000):,} rows) as" in caught.value.message
    assert "100.0 MB" in caught.value.message
    for other in ("write(path)", "to_spark()", "head(n)"):
        assert other in (caught.value.fix or "")


@pytest.mark.apart
def test_what_needs_no_room_for_all_rows_works(large: emberlog.Relation, tmp_path: Path) -> None:
    assert large.count() == expected(300, 40_000)
    assert large.head(2) == [(0, 0), (0, 1)]
    assert sum(1 for _ in zip(large, range(100_000), strict=False)) == 100_000
    large.write(tmp_path / "uninit.parquet")
    assert pq.read_metadata(tmp_path / "uninit.parquet").num_rows == large.count()
    large.write(tmp_path / "uninit.arrow")
    with pa.ipc.open_file(pa.memory_map(str(tmp_path / "uninit.arrow"))) as file:
        assert sum(file.get_batch(i).num_rows for i in range(file.num_record_batches)) == large.count()


@pytest.mark.parametrize(("ending", "lines"), [("csv", 1), ("tsv", 0)])
def test_text_is_written_piece_by_piece(
    ending: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emberlog.executors import base

    files = []
    for most in (10**9, 10):
        monkeypatch.setattr(base, "SORTED_ROWS", most)
        with emberlog.Engine(executor="local") as engine:
            engine.register("a", [(x, f"n{x}") for x in range(1000)])
            path = tmp_path / f"{most}.{ending}"
            engine.run("p(X, Y) <- a(X, Y), X > 10.")["p"].write(path)
            files.append(path.read_text().splitlines())
    assert len(files[0]) == 989 + lines and sorted(files[0]) == sorted(files[1])


def test_text_that_would_not_read_back_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlog.executors import base

    monkeypatch.setattr(base, "SORTED_ROWS", 1)
    with emberlog.Engine(executor="local") as engine:
        engine.register("a", [(1, "x"), (2, "a\tb")])
        with pytest.raises(emberlog.DataError, match="delimiter"):
            engine.run("p(X, Y) <- a(X, Y).")["p"].write(tmp_path / "p.tsv")
    assert list(tmp_path.iterdir()) == []


# --- the whole process -----------------------------------------------------------------------------------------------


def measured(executor: str, budget: str, rows: int, ask: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    sys.path.insert(0, str(CHECKOUT))
    try:
        from benchmarks.memory import Case, measure

        peak = measure(Case(executor, budget, rows, ask), folder)
    finally:
        sys.path.remove(str(CHECKOUT))
    return peak, json.loads(peak.told.splitlines()[-1])


ABOVE = 330_000_000  # PSS of a process without data, and what measuring misses


@pytest.mark.apart
def test_a_run_keeps_to_its_budget(tmp_path: Path) -> None:
    """Three times the budget: twenty times a second somebody looks at all memory of the process."""
    peak, told = measured("local", "120MB", 22_000_000, "write", tmp_path)
    assert peak.code == 0 and told["rows"] > 21_000_000, peak
    assert peak.python < ABOVE + bytes_of("120MB"), peak


@pytest.mark.slow  # that it is refused, and that a run keeps to its budget, is tested in every run
def test_a_result_that_is_refused_takes_no_memory(tmp_path: Path) -> None:
    peak, told = measured("local", "120MB", 22_000_000, "arrow", tmp_path)
    assert peak.code == 3 and told["error"].startswith("LimitError: `move_error`"), peak
    assert peak.python < ABOVE + bytes_of("120MB"), peak


@pytest.mark.slow  # two minutes; budgets of single processes are kept in every run
@pytest.mark.spark
def test_workers_on_spark_share_the_budget(tmp_path: Path) -> None:
    """The Java process is Spark's, and not counted."""
    peak, told = measured("spark", "120MB", 22_000_000, "write", tmp_path)
    assert peak.code == 0 and told["rows"] > 21_000_000, peak
    assert peak.python < 3 * ABOVE + bytes_of("120MB"), peak


def test_stats_tell_the_budget() -> None:
    with emberlog.Engine(executor="local", memory="3GB") as engine:
        told = engine.run("p(1). q(X) <- p(X).").stats.memory
    assert told == "memory: the 3.0 GB that the run may keep in memory (memory=)"
