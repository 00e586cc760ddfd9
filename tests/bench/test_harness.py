"""The harness on tiny data: contestants agree, wrong answers and failures show, tables and plots are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks import cold, data, kernels, report, variants
from benchmarks.harness import Contestant, Task, compete, limit, ours, peak_memory, rival, rivals_of
from benchmarks.limits.common import Limit
from benchmarks.programs import PROGRAMS, TABLE, Case
from typer.testing import CliRunner

from emberlog.cli import bench as command
from emberlog.diagnostics import UsageError

# networkit and matplotlib belong to the extra `bench`.
pytest.importorskip("matplotlib")

TINY = {"arc": "rmat64", "warc": "rmat64", "assbl": "bom60", "address": "heap200"}


def task_of(program: str, folder: Path) -> Task:
    found = PROGRAMS[program]
    return Task(found, TINY[found.reads[0]], folder)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_contestants_agree(program: str, folder: Path) -> None:
    task = task_of(program, folder)
    names = [name for name in rivals_of(program, ("duck", "scipy_graphs"))]
    contestants = [limit(name) for name in (task.program.limit, *task.program.faster)]
    contestants += [ours(1, "sql"), *(rival(name) for name in names)]
    scores = compete(task, contestants, runs=1)
    assert {name: score.error for name, score in scores.items() if score.error} == {}
    assert all(score.right for score in list(scores.values())[1:])
    assert all(len(score.runs) == 1 and score.seconds is not None for score in scores.values())
    assert scores["ours 1"].wall is not None


@pytest.mark.parametrize("program", ["reach", "cc_undirected", "sssp", "pagerank"])
def test_networkit_agrees(program: str, folder: Path) -> None:
    pytest.importorskip("networkit")
    task = task_of(program, folder)
    assert compete(task, [limit(task.program.limit), rival("kit")], runs=1)["kit"].right


def wrong(change: Callable[[Limit], Limit]) -> Contestant:
    return Contestant("wrong", lambda task: change(task.program.evaluate(task.program.limit)(task.inputs)))


@pytest.mark.parametrize(
    "change",
    [
        lambda right: Limit(right.facts + 1, None, 0.0, 1.0, right.answer),
        lambda right: Limit(right.facts, None, 0.0, 1.0, lambda: tuple(column + 1 for column in right.answer())),
    ],
)
@pytest.mark.parametrize("program", ["cc", "pagerank"])
def test_wrong_answers_show(change: Callable[[Limit], Limit], program: str, folder: Path, tmp_path: Path) -> None:
    task = task_of(program, folder)
    scores = compete(task, [limit(task.program.limit), wrong(change)], runs=1)
    assert scores["wrong"].right is False
    line = report.Line(Case(program, task.data, task.data, 1.5), task.data, scores)
    assert "another answer than the limit" in report.as_markdown([line])


def test_a_failure_does_not_end_the_others(folder: Path) -> None:
    def fail(task: Task) -> Limit:
        raise UsageError("no such evaluator")

    task = task_of("tc", folder)
    scores = compete(task, [limit("tc"), Contestant("broken", fail), limit("tc:rows")], runs=2)
    assert "no such evaluator" in scores["broken"].error
    assert scores["limit tc:rows"].right and len(scores["limit tc:rows"].runs) == 2


def test_table_is_written(folder: Path, tmp_path: Path) -> None:
    said: list[str] = []
    written = kernels.table([(TABLE[0], "gnp100")], tmp_path, 1, folder, "sql", True, False, said.append)
    assert {path.name for path in written} == {"kernels.md", "kernels.json", "kernels.png", "kernels.svg"}
    assert all(path.stat().st_size for path in written)
    [line] = json.loads((tmp_path / "kernels.json").read_text())
    assert line["program"] == "tc" and line["ratio"] > 0 and line["peak_bytes"] > 2**20
    assert (tmp_path / "kernels.md").read_text().count("\n| tc | gnp100 |") == 1
    assert "tc on gnp100: ours 1" in said


def test_peak_memory_is_that_of_the_child(folder: Path) -> None:
    held = np.ones(2**27, np.uint8)  # what this process holds does not count
    found = peak_memory(task_of("tc", folder), 1, "sql")
    assert found is not None and 2**24 < found < 2**31 and held[0]


def test_slope_is_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "QUICK_SLOPES", {("tc", "grid"): ("grid3", "grid6")})
    written = kernels.slope(tmp_path, 1, folder, "sql", True, lambda text: None)
    figures = json.loads(written[0].read_text())
    assert {len(points) for points in figures["series"].values()} == {2}
    assert all(path.exists() for path in written)


def test_first_answers(tmp_path: Path) -> None:
    [path] = cold.run(tmp_path, "sql", lambda text: None, nodes=12)
    figures = json.loads(path.read_text())
    assert {name for name in figures if "start" in name} == {
        f"{n}, {s} start" for n in ("small", "thirty", "thirty compiled") for s in ("first", "second")
    }
    assert len(figures["thirty, first start"]["counts"]) == len(cold.SHAPES) * cold.COPIES
    assert figures["small, first start"]["counts"] == figures["small, second start"]["counts"]


def test_data_is_made_once_and_shuffled(tmp_path: Path) -> None:
    paths = data.files("rmat200", tmp_path)
    assert set(paths) == {"arc", "warc", "node"}
    before = paths["arc"].stat().st_mtime_ns
    assert data.files("rmat200", tmp_path)["arc"].stat().st_mtime_ns == before
    table = pq.read_table(paths["arc"])
    assert table.num_rows == 2000
    assert table["x"].to_pylist() != sorted(table["x"].to_pylist())
    assert [path.name for path in (tmp_path / data.VERSION).iterdir()] == ["rmat200"]


@pytest.mark.parametrize(
    ("name", "expected"), [("rmat1M", ("rmat", 1_000_000)), ("gnp10K", ("gnp", 10_000)), ("grid150", ("grid", 150))]
)
def test_names_of_data(name: str, expected: tuple[str, int]) -> None:
    assert data.parsed(name) == expected


def test_shuffled_data_are_the_same_graph(tmp_path: Path) -> None:
    graphs: list[nx.DiGraph[int]] = []
    for name in ("dag200", "dag200-shuffled"):
        x, y = data.columns(data.files(name, tmp_path), ("arc",))["arc"]
        graphs.append(nx.DiGraph(list(zip(x.tolist(), y.tolist(), strict=True))))
    degrees = [sorted((graph.in_degree(node), graph.out_degree(node)) for node in graph) for graph in graphs]
    assert degrees[0] == degrees[1]
    assert set(graphs[0].edges) != set(graphs[1].edges)
    assert nx.dag_longest_path_length(graphs[0]) == nx.dag_longest_path_length(graphs[1])


@pytest.mark.parametrize("name", ["rmat", "oops10", "rmat1G", ""])
def test_unknown_data_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="unknown data"):
        data.parsed(name)


def test_cases() -> None:
    assert len(kernels.cases(None, None, False)) == len(TABLE)
    assert [data for _, data in kernels.cases("sg", None, True)] == ["gnp1K", "grid30", "grid30-shuffled"]
    assert kernels.cases("tc", "rmat1K", False)[0][1] == "rmat1K"
    for program, dataset in (("tcc", None), (None, "rmat7")):
        with pytest.raises(UsageError):
            kernels.cases(program, dataset, False)


def test_command(folder: Path, tmp_path: Path) -> None:
    options = ["--program", "reach", "--data", "rmat64", "--evaluator", "sql", "--runs", "1", "--no-rivals"]
    done = CliRunner().invoke(
        command.commands,
        ["kernels", *options, "--out", str(tmp_path), "--data-dir", str(folder)],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    assert "| reach | rmat64 |" in done.output


def test_the_command_says_where_benchmarks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "__file__", "/nowhere/lib/python/emberlog/cli/bench.py")
    with pytest.raises(UsageError, match="not of the installed package"):
        command.from_checkout("kernels")
    with pytest.raises(UsageError, match="one run each"):
        command.kernels(slope=True, cold=True)


def test_variants_are_compared(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"as planned": {"evaluator": "sql"}, "again": {"evaluator": "sql"}, "no such": {"evaluator": "guess"}}
    monkeypatch.setattr(variants, "LINES", (("tc", "gnp2K", "rmat64", ways),))
    table, figures = variants.run(tmp_path, 1, folder, True, 1, lambda text: None)
    text = table.read_text(encoding="utf-8")
    assert text.count("| right |") == 2 and "UsageError" in text
    assert json.loads(figures.read_text(encoding="utf-8"))["tc on rmat64"]["again"] > 0
