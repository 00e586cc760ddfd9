"""Workers inside Spark: inputs come whole, results are read back, failures are told and leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emberlog.diagnostics import ExecutionError, LimitError
from emberlog.kernels.cluster import probe
from emberlog.kernels.cluster.inputs import By, Files, Frame, Input, Placement, Source, Table
from emberlog.kernels.cluster.job import Setup, Transfer, run_workers
from emberlog.kernels.cluster.manifest import load, read_parts
from emberlog.kernels.cluster.parts import Kinds
from emberlog.kernels.cluster.probe import Cluster, Unavailable, check_slots
from kernels.cluster import workers

PAIR: Kinds = ("int64", "int64")


@pytest.fixture(autouse=True)
def shipped() -> Iterator[None]:
    """The tests' workers travel as they are: the tasks do not have the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(workers)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(workers)  # type: ignore[no-untyped-call]


def arcs(seed: int, nodes: int, many: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in random.integers(0, nodes, (many, 2))]


def table(rows: list[tuple[Any, ...]], kinds: Kinds = PAIR) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], pa.type_for_alias(kind)) for i, kind in enumerate(kinds)]
    return pa.table(columns, [f"c{i}" for i in range(len(kinds))])


def left(run_dir: Path) -> list[str]:
    return sorted(str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file())


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize("transfer", ["files", "shuffle"])
@pytest.mark.parametrize("size", [1, 2])
def test_reach(spark: Any, tmp_path: Path, transfer: Transfer, size: int) -> None:
    edges = arcs(7, 300, 1200)
    inputs = {
        "arc": Input(Frame(spark.createDataFrame(table(edges))), PAIR, By((0,))),
        "start": Input(Table(table([(1,)], ("int64",))), ("int64",), By((0,))),
    }
    outputs: dict[str, Kinds] = {"reach": PAIR}
    finished = run_workers(spark, inputs, workers.reach, size, tmp_path / "run", outputs, Setup(transfer))
    expected = nx.single_source_shortest_path_length(nx.DiGraph(edges), 1)
    rows = {(row.c0, row.c1) for row in finished.frame(spark, "reach").collect()}
    assert rows == set(expected.items())
    assert finished.rows("reach") == len(expected)
    assert sum(json.loads(report.summary)["known"] for report in finished.reports) == len(expected)
    assert [report.rank for report in finished.reports] == list(range(size))
    assert (sum(report.bytes_sent for report in finished.reports) > 0) == (size > 1)
    # Readers may do what they like with the result: it is no barrier job any more.
    frame = finished.frame(spark, "reach")
    assert frame.union(frame).coalesce(1).limit(3).count() == 3


@pytest.mark.parametrize("transfer", ["files", "shuffle"])
def test_inputs_of_all_kinds_and_placements(spark: Any, tmp_path: Path, transfer: Transfer) -> None:
    """Large integers next to nulls of other relations, floats, several arities, negative keys, nothing at all."""
    wide: Kinds = ("int64", "float64", "int64")
    rows: list[tuple[Any, ...]] = [(2**62 + 1, 0.1, -(2**62)), (-3, float("inf"), 0), (4, -0.5, 2**53 + 1)]
    pq.write_table(table([(5, 6), (7, 8), (-9, 1)]), tmp_path / "pairs.parquet")
    sources: dict[str, tuple[Source, Kinds, Placement]] = {
        "wide": (Frame(spark.createDataFrame(table(rows, wide))), wide, "each"),
        "first": (Table(table(rows, wide)), wide, "first"),
        "pairs": (Files((tmp_path / "pairs.parquet",)), PAIR, By((0,))),
        "none": (Frame(spark.createDataFrame(table([]))), PAIR, By((1,))),
        "empty": (Frame(spark.createDataFrame(table([])).where("c0 > 0")), PAIR, "each"),
    }
    inputs = {name: Input(*given) for name, given in sources.items()}
    outputs = {name: given.kinds for name, given in inputs.items()}
    finished = run_workers(spark, inputs, workers.echo, 2, tmp_path / "run", outputs, Setup(transfer))
    assert [json.loads(report.summary) for report in finished.reports] == [
        {"wide": 3, "first": 3, "pairs": 1, "none": 0, "empty": 0},
        {"wide": 3, "first": 0, "pairs": 2, "none": 0, "empty": 0},
    ]
    for name in outputs:
        read = finished.frame(spark, name)
        assert read.dtypes == [(f"c{i}", {"int64": "bigint"}.get(k, "double")) for i, k in enumerate(outputs[name])]
        found = sorted(tuple(row) for row in read.collect())
        copies = 2 if name == "wide" else 1
        given = rows if name in ("wide", "first") else [(5, 6), (7, 8), (-9, 1)] if name == "pairs" else []
        assert found == sorted(given * copies)


@pytest.mark.parametrize("transfer", ["files", "shuffle"])
def test_without_inputs(spark: Any, tmp_path: Path, transfer: Transfer) -> None:
    finished = run_workers(spark, {}, workers.count, 2, tmp_path / "run", {}, Setup(transfer))
    assert [json.loads(report.summary) for report in finished.reports] == [[0, 1]] * 2


def test_workers_talk_over_tcp(spark: Any, tmp_path: Path) -> None:
    finished = run_workers(spark, {}, workers.count, 2, tmp_path / "run", {}, Setup(transport="tcp"))
    assert [json.loads(report.summary) for report in finished.reports] == [[0, 1]] * 2


def test_a_directory_with_a_long_path(spark: Any, tmp_path: Path) -> None:
    finished = run_workers(spark, {}, workers.count, 2, tmp_path / ("x" * 100) / "run", {})
    assert [json.loads(report.summary) for report in finished.reports] == [[0, 1]] * 2


def test_what_a_run_leaves(spark: Any, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    inputs = {"pair": Input(Frame(spark.createDataFrame(table([(1, 2)]))), PAIR, "each")}
    run_workers(spark, inputs, workers.echo, 2, run_dir, {"pair": PAIR})
    assert left(run_dir) == ["manifest.json", "workers/worker-0/r0-0.parquet", "workers/worker-1/r0-0.parquet"]
    read = read_parts(spark, load(run_dir), "pair", verify=True)
    assert [tuple(row) for row in read.collect()] == [(1, 2)] * 2


def test_many_rows(spark: Any, tmp_path: Path) -> None:
    rows = 3_000_000
    finished = run_workers(spark, {}, workers.fills(rows), 2, tmp_path / "run", {"pair": PAIR})
    assert finished.rows("pair") == 2 * rows
    frame = finished.frame(spark, "pair")
    assert frame.selectExpr("count(*)", "sum(c0)", "sum(c1)").first()[:] == (2 * rows, rows, rows * (rows - 1))


# --- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transfer", ["files", "shuffle"])
def test_a_worker_that_fails(spark: Any, tmp_path: Path, transfer: Transfer) -> None:
    run_dir, started = tmp_path / "run", monotonic()
    with pytest.raises(ExecutionError, match="worker 1 of 2 failed: ValueError: seven is not a node"):
        run_workers(spark, {}, workers.breaks, 2, run_dir, {}, Setup(transfer))
    assert monotonic() - started < 20
    assert left(run_dir) == []


def test_an_error_of_ours_stays_one(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="more than 10 rows") as caught:
        run_workers(spark, {}, workers.exceeds, 2, tmp_path / "run", {})
    assert caught.value.fix == "raise the limit"


def test_a_worker_that_is_killed(spark: Any, tmp_path: Path) -> None:
    run_dir, started = tmp_path / "run", monotonic()
    with pytest.raises(ExecutionError, match="the process of a worker died"):
        run_workers(spark, {}, workers.dies, 2, run_dir, {"reach": PAIR})
    assert monotonic() - started < 20
    assert left(run_dir) == []
    assert spark.range(10).count() == 10
    again = run_workers(spark, {}, workers.count, 2, tmp_path / "again", {})
    assert len(again.reports) == 2


@pytest.mark.parametrize("transfer", ["files", "shuffle"])
def test_a_frame_that_cannot_be_read(spark: Any, tmp_path: Path, transfer: Transfer) -> None:
    broken = spark.range(3).selectExpr("id as c0", "cast(raise_error('no such luck') as bigint) as c1")
    inputs = {"pair": Input(Frame(broken), PAIR)}
    with pytest.raises(ExecutionError, match=r"the workers' job failed: .*no such luck"):
        run_workers(spark, inputs, workers.echo, 2, tmp_path / "run", {"pair": PAIR}, Setup(transfer))


@pytest.mark.parametrize("transfer", ["files", "shuffle"])
def test_nulls_are_told(spark: Any, tmp_path: Path, transfer: Transfer) -> None:
    frame = spark.sql("select * from values (1L, 2L), (3L, null) as t(c0, c1)")
    inputs = {"pair": Input(Frame(frame), PAIR)}
    with pytest.raises(ExecutionError, match="has nulls"):
        run_workers(spark, inputs, workers.echo, 2, tmp_path / "run", {"pair": PAIR}, Setup(transfer))


# --- what the cluster can do -------------------------------------------------------------------------------------


def test_more_workers_than_slots(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="3 workers need 3 slots at once, and the session has 2"):
        run_workers(spark, {}, workers.count, 3, tmp_path / "run", {})


class Settings:
    """A session that has nothing but settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = {name.replace("_", "."): value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"spark_master": "local"}, 1),
        ({"spark_master": "local[3]"}, 3),
        ({"spark_master": "local[*]"}, 8),
        ({"spark_master": "local[4,2]", "spark_task_cpus": "2"}, 2),
        ({"spark_master": "local-cluster[2, 3, 1024]"}, 6),
        ({"spark_master": "yarn", "spark_executor_instances": "5", "spark_executor_cores": "4"}, 20),
        ({"spark_master": "spark://host:7077"}, 2),
    ],
)
def test_slots(settings: dict[str, str], slots: int) -> None:
    assert probe._slots(Settings(**settings), [{"cores": 8}, {"cores": 8}]) == slots


def test_dynamic_allocation_is_refused() -> None:
    settings = {"spark_dynamicAllocation_enabled": "true"}
    check_slots(Settings(spark_master="local[2]", **settings), Cluster(2, True), 2)
    with pytest.raises(Unavailable, match="dynamically"):
        check_slots(Settings(spark_master="yarn", **settings), Cluster(2, True), 2)


def test_files_are_asked_for_where_none_are_shared(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.kernels.cluster.job.look_at", lambda *_: Cluster(2, False))
    with pytest.raises(ExecutionError, match="do not see"):
        run_workers(spark, {}, workers.count, 2, tmp_path / "run", {}, Setup("files"))
    finished = run_workers(spark, {}, workers.count, 2, tmp_path / "other", {})
    assert finished.manifest is None and len(finished.reports) == 2


def test_a_package_that_tasks_lack_is_sent_to_them(spark: Any, tmp_path: Path) -> None:
    package = tmp_path / "lent_to_tasks"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "answer.py").write_text("VALUE = 42")

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib

        for _ in batches:
            pass
        value = importlib.import_module("lent_to_tasks.answer").VALUE
        yield pa.RecordBatch.from_pydict({"value": pa.array([value])})

    probe.ship(spark, package)
    assert {row.value for row in spark.range(8).mapInArrow(ask, "value long").collect()} == {42}


def test_the_package_travels_as_a_zip(tmp_path: Path) -> None:
    import zipfile

    names = zipfile.ZipFile(probe.package_zip(tmp_path)).namelist()
    assert {"emberlog/__init__.py", "emberlog/kernels/cluster/task.py"} <= set(names)
