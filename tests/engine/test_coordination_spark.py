"""Workers that coordinate as the barrier tasks of a Spark job: each has its share, and all modes the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import emberlog
from emberlog.cli import app
from emberlog.kernels.owners import owner_expression, owners
from workers.programs import ACYCLIC, PROGRAMS, answers, graph
from workers.test_iterations import BELIEF, BELIEF_ONCE, RANK, RELU, by_statements, sources

BY_TASKS = ("linear", "non-linear", "same generation", "mutual", "components", "all pairs", "count", "paths", "cost")
MODES = ("bsp", "ssp:3:2", "async", "dws", "aap", "adaptive", "auto")
RUNS = [(program, mode) for program in BY_TASKS for mode in MODES]
# Each mode and each program once; the others are slow tests.
FEW = {(program, MODES[number % len(MODES)]) for number, program in enumerate(BY_TASKS)}


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[emberlog.Engine]:
    with emberlog.Engine(spark, workers=2, run_dir=tmp_path) as engine:
        yield engine


def close(found: set[Any], right: set[Any]) -> bool:
    """The same rows, but for the rounding of floats."""
    if found == right:
        return True
    rounded = [
        sorted(tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in s) for s in (found, right)
    ]
    return rounded[0] == rounded[1]


@pytest.mark.parametrize(
    ("name", "mode"), [pytest.param(*run, marks=() if run in FEW else pytest.mark.slow) for run in RUNS]
)
def test_every_mode_gives_the_same_answer(engine: emberlog.Engine, name: str, mode: str) -> None:
    arcs = graph(Random(f"{name}/{mode}"), acyclic=name in ACYCLIC, nodes=30)
    text = {**PROGRAMS, **ACYCLIC}[name]
    engine.register("arc", arcs)
    result = engine.run(text, coordination=mode)
    right = answers(text, arcs)
    assert all(close(set(result[relation].rows()), right[relation]) for relation in right)
    ran = next(stratum for stratum in result.stats.strata if stratum.coordination is not None)
    assert ran.placement == "spark (tasks)" and ran.coordination is not None
    assert [lane.rank for lane in ran.coordination.lanes] == [0, 1] and ran.coordination.mode == mode
    assert ran.events == []


@pytest.mark.parametrize(("program", "mode"), [(RANK, "async"), (BELIEF, "bsp"), (RELU, "bsp")])
def test_iterations_are_shared_out_among_tasks(engine: emberlog.Engine, program: str, mode: str) -> None:
    for name, rows in sources(1).items():
        if f"{name}(" in program:
            engine.register(name, rows)
    result = engine.run(program, coordination=mode)
    right, alone = by_statements(program, 1)
    (name,) = result
    assert {row[:-1]: row[-1] for row in result[name].rows()} == pytest.approx(right, abs=2e-3)
    stats = result.stats[-1]
    assert stats.coordination is not None and stats.residual is not None and stats.residual < 1e-3
    assert stats.stopped.partition(" = ")[0] == alone.stopped.partition(" = ")[0]


def test_an_iteration_whose_start_vanishes_is_left_to_statements(engine: emberlog.Engine) -> None:
    for name in ("I", "H", "edge"):
        engine.register(name, sources(1)[name])
    result = engine.run(BELIEF_ONCE, coordination="async")
    assert {row[:-1]: row[-1] for row in result["B"].rows()} == pytest.approx(
        by_statements(BELIEF_ONCE, 1)[0], abs=1e-9
    )
    assert "nothing contributes to a group of the start" in [event.why for event in result.stats[-1].events]


def test_loops_are_compiled_in_tasks(engine: emberlog.Engine) -> None:
    """Ids count from the least number: owners are those that Spark's shuffle has found for the numbers themselves."""
    engine.register("arc", [(i * 3 - 70, (i * 7 + 1) % 60 * 3 - 70, i % 5 + 1) for i in range(60)])
    text = PROGRAMS["all pairs"]
    result = engine.run(text, coordination="ssp:2", storage="loops")
    assert set(result["p"].rows()) == set(engine.run(text, placement="local")["p"].rows())
    assert result.stats[-1].how.startswith("2 workers by compiled loops, ssp:2")


def test_values_of_all_types_and_far_apart(engine: emberlog.Engine, tmp_path: Path) -> None:
    """Texts by a dictionary, numbers as they are: also negative ones, and such that no range holds them."""
    numbers = [0, -5, 7, 2**62, -(2**61), 12, 2**40 + 1]
    engine.register("name", [(f"n{i}", f"n{i * 3 % 11}") for i in range(11)])
    engine.register("far", [(numbers[i], numbers[(i * 2 + 1) % 7]) for i in range(7)])
    engine.register("near", [(i - 20, (i * 5) % 17 - 20) for i in range(17)])
    text = "".join(f"{p}(X, Y) <- {s}(X, Y). {p}(X, Y) <- {p}(X, Z), {p}(Z, Y)." for p, s in
                   (("a", "name"), ("b", "far"), ("c", "near")))  # fmt: skip
    text += 'd(X) <- a(X, "n3"). e(X, Y) <- b(X, Y), X < 0.'
    found, right = engine.run(text, coordination="async"), engine.run(text, placement="local")
    for relation in "abcde":
        assert set(found[relation].rows()) == set(right[relation].rows())
    found["b"].write(tmp_path / "b.parquet")


@pytest.mark.parametrize("twice", [False, True])
def test_contributors_must_be_unique(engine: emberlog.Engine, twice: bool) -> None:
    """Whether they are is checked where rows meet that are the same in what must be unique; if not, SQL takes over."""
    text = "c(X, Y) <- o(X, Y, S), S > 50. t(X, Y, sum<(Z, S)>) <- c(X, Z), o(Z, Y, S). c(X, Y) <- t(X, Y, S), S > 50."
    owned = [(x, (x * 3 + y) % 12, 20 + 13 * y) for x in range(12) for y in range(1, 4)]
    engine.register("o", owned + [(5, 4, 1)] * twice)
    found, right = engine.run(text, coordination="bsp"), engine.run(text, placement="local")
    assert set(found["t"].rows()) == set(right["t"].rows()) and set(found["c"].rows()) == set(right["c"].rows())
    (stratum,) = (stratum for stratum in found.stats.strata if "t" in stratum.predicates)
    assert (stratum.coordination is None) == twice
    assert [event.why for event in stratum.events] == ["a contributor has several values in `o`"] * twice


def test_results_are_counted_and_written_where_they_are(engine: emberlog.Engine, tmp_path: Path) -> None:
    engine.register("arc", [(i, (i + 1) % 300) for i in range(300)])
    tc = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y). n(count<X>) <- tc(X, _)."
    result = engine.run(tc, coordination="ssp:2")
    assert result["n"].rows() == [(90_000,)] and result["tc"].count() == 90_000
    result["tc"].write(tmp_path / "tc.parquet")
    assert len(list((tmp_path / "tc.parquet").glob("*.parquet"))) == 2


def test_a_note_where_workers_do_not_share_it_out_and_an_error_where_nothing_is(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2), (2, 3)])
    text = 's(X) <- arc(_, X). s(Y) <- s(X), arc(X, Y), cat("a", "b") = "ab".'
    tc = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y)."
    events = [event for stratum in engine.run(tc + text, coordination="bsp").stats.strata for event in stratum.events]
    assert [event.what for event in events] == ["no workers that coordinate"]
    with pytest.raises(emberlog.UsageError, match="coordination has no effect"):
        engine.run(text, coordination="bsp")
    with pytest.raises(emberlog.UsageError, match="a simulated clock is of one process"):
        engine.run(tc, coordination="bsp", simulate="")
    ran = engine.run(tc, coordination="bsp", simulate="", placement="local").stats[0]
    assert ran.placement == "driver (columns)"


def test_limits_hold_in_tasks_and_a_failed_run_leaves_nothing(
    engine: emberlog.Engine, spark: Any, tmp_path: Path
) -> None:
    with pytest.raises(emberlog.LimitError):
        engine.run("n(0). n(Y) <- n(X), Y = X + 1.", coordination="async", limits={"rows": 500})
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []


def test_the_plan_is_explained(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2), (2, 3)])
    text = str(engine.explain("tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y).", coordination="bsp"))
    assert "workers that share it out, bsp" in text
    assert "tc@0: a copy of tc by (0)" in text


def test_owners_are_the_same_in_spark_and_here(spark: Any) -> None:
    random = np.random.default_rng(1)
    ends = [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32)]
    one = np.concatenate([random.integers(-(2**63), 2**63 - 1, 500), np.arange(-50, 50), ends])
    other = random.permutation(one)
    frame = spark.createDataFrame([(int(a), int(b)) for a, b in zip(one, other, strict=True)], "a bigint, b bigint")
    for size in (1, 2, 7, 1000):
        for columns, names in (([one], ["a"]), ([one, other], ["a", "b"]), ([], [])):
            found = [row[0] for row in frame.select(owner_expression(names, size)).collect()]
            assert found == owners(columns, len(one), size).tolist()


def test_the_command_line_takes_it(spark: Any, tmp_path: Path) -> None:
    program = tmp_path / "tc.dl"
    program.write_text("arc(1, 2). arc(2, 3). tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y).\n.printsize tc\n")
    done = CliRunner().invoke(app, ["run", str(program), "--coordination", "dws", "--workers", "2", "--stats"])
    assert done.exit_code == 0, done.output
    assert "tc\t3" in done.output and "tc: dws on 2 workers" in done.output
