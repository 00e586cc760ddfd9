"""What a run says of itself: rows that add up to what the clock says; where and how strata were really evaluated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pytest

import emberlog
from emberlog.clock import OTHER, Clock, Step, Stopwatch
from emberlog.executors import spark as spark_executor
from emberlog.stats import StratumStats
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
CHAIN = [(i, i + 1) for i in range(60)]
WORDS = [(f"n{i}", f"n{i + 1}") for i in range(60)]
# A relation for kernels alone, and one that reads what they made.
LONGER = "link(X,Y) <- arc(X,Y), X != 7. " + TC.replace("arc", "link") + " n(X, count<Y>) <- tc(X,Y).\n.output n"
RANK = """r(0, X, V) <- arc(X,_), V = 1.0.
r(I+1, Y, sum<V>) <- r(I, X, W), arc(X, Y), V = 0.5 * W; {sum[delta V] < 0.001}."""


def check_sum(result: emberlog.Result, wall: float) -> None:
    """The rows come to what the clock says, and few seconds of it are nobody's."""
    room = max(0.05, 0.12 * wall)
    assert abs(result.stats.seconds - wall) < room
    assert sum(row.seconds for row in result.stats.rows) == pytest.approx(result.stats.seconds)
    assert sum(step.seconds for step in result.stats.steps if step.name == OTHER) < room
    assert all(row.seconds >= 0 for row in result.stats.rows)


def timed(run: Callable[[], emberlog.Result]) -> tuple[emberlog.Result, float]:
    started = monotonic()
    result = run()
    return result, monotonic() - started


PROGRAMS = [
    pytest.param(TC, CHAIN, {}, id="interpreted"),
    pytest.param(TC, CHAIN, {"evaluator": "sql"}, id="sql"),
    pytest.param(TC, WORDS, {"evaluator": "kernel", "storage": "loops"}, id="loops"),
    pytest.param(LONGER, CHAIN, {}, id="direct"),
    pytest.param(RANK, CHAIN, {"evaluator": "sql"}, id="iteration"),
    pytest.param("p(X,Y) <- arc(X,_), arc(_,Y). q(X, sum<Y>) <- p(X,Y).", CHAIN, {}, id="no recursion"),
]


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize(("text", "arc", "options"), PROGRAMS)
def test_rows_add_up_to_the_clock(text: str, arc: list[Any], options: dict[str, Any], place: Place) -> None:
    engine = place.engine({"arc": arc})
    check_sum(*timed(lambda: engine.run(text, placement=place.placement, **options)))


def test_loading_many_rows_is_a_row_of_its_own(local: Place, tmp_path: Path) -> None:
    path = tmp_path / "arc.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i + 1}\n" for i in range(300_000)))
    engine = local.engine({"arc": path})
    result, wall = timed(lambda: engine.run("p(X) <- arc(X,Y), X < 10."))
    check_sum(result, wall)
    steps = {str(step): step.seconds for step in result.stats.steps}
    assert steps["load arc"] > 0.01


def test_writing_and_reading_afterwards_are_rows_too(place: Place, tmp_path: Path) -> None:
    result = place.run(TC, {"arc": [(i, i + 1) for i in range(300)]})
    before = result.stats.seconds
    started = monotonic()
    result["tc"].write(tmp_path / "tc.csv")
    result["tc"].write(tmp_path / "tc.parquet")
    rows = result["tc"].rows()
    assert (len(rows), len(result["tc"])) == (45150, 45150)
    spent = monotonic() - started
    steps = {str(step): step.seconds for step in result.stats.steps}
    assert steps["write tc"] > 0 and steps["fetch tc"] > 0
    assert abs(result.stats.seconds - before - spent) < max(0.05, 0.15 * spent)


def test_outputs_and_persisted_relations_are_rows_too(tmp_path: Path) -> None:
    (tmp_path / "arc.facts").write_text("".join(f"{x}\t{y}\n" for x, y in CHAIN))
    (tmp_path / "tc.dl").write_text(f".decl arc(x: number, y: number)\n.input arc\n{TC}\n.output tc\n")
    with emberlog.Engine(executor="local") as engine:
        result, wall = timed(lambda: engine.run_file(tmp_path / "tc.dl", tmp_path, tmp_path / "out"))
        check_sum(result, wall)
        assert "write tc" in {str(step) for step in result.stats.steps}
        kept, wall = timed(lambda: engine.run_file(tmp_path / "tc.dl", tmp_path, persist=tmp_path / "kept"))
        check_sum(kept, wall)
        assert "write tc" in {str(step) for step in kept.stats.steps}


@pytest.mark.spark
def test_starting_a_session_is_a_row_of_its_own() -> None:
    code = f"""
import emberlog, time
with emberlog.Engine(executor="spark", workers=1) as engine:
    engine.register("arc", {CHAIN!r})
    started = time.monotonic()
    stats = engine.run({TC!r}).stats
    wall = time.monotonic() - started
    steps = {{str(step): step.seconds for step in stats.steps}}
    assert steps["start Spark"] > 0.5 * wall, stats
    assert abs(stats.seconds - wall) < 0.12 * wall, (stats, wall)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# --- what stats look like ------------------------------------------------------------------------------------------


def test_stats_are_a_sequence_of_strata_and_print_as_a_table(local: Place) -> None:
    stats = local.run(LONGER, {"arc": CHAIN}).stats
    assert [entry.predicates for entry in stats] == [("link",), ("tc",), ("n",)]
    assert (len(stats), stats[-1].predicates, [entry.predicates for entry in stats[:1]]) == (3, ("n",), [("link",)])
    assert all(isinstance(row, StratumStats | Step) for row in stats.rows)
    head, *lines = str(stats).split("\n")
    assert head.split() == ["row", "evaluator", "where", "why", "rounds", "facts", "seconds", "stopped"]
    assert [line.split()[0] for line in lines if not line.startswith("[")] == ["link", "tc", "n", "total"]
    assert "3 strata" in repr(stats)


WHERE = [
    (LONGER, {}, {"link": ("arrow", "columns"), "tc": ("kernel", "columns"), "n": ("sql", "duckdb")}),
    (TC, {"evaluator": "kernel", "storage": "loops"}, {"tc": ("kernel", "compiled loops")}),
    (TC, {"evaluator": "kernel", "storage": "rows"}, {"tc": ("kernel", "compiled loops")}),
    (TC, {"evaluator": "sql"}, {"tc": ("sql", "duckdb")}),
]


@pytest.mark.parametrize(("text", "options", "expected"), WHERE, ids=["direct", "loops", "rows", "sql"])
def test_placement_is_what_really_evaluated_a_stratum(
    text: str, options: dict[str, Any], expected: dict[str, tuple[str, str]], local: Place
) -> None:
    stats = local.engine({"arc": CHAIN}).run(text, **options).stats
    assert {entry.predicates[0]: (entry.evaluator, entry.placement) for entry in stats} == expected


def test_explain_promises_what_stats_then_say(local: Place) -> None:
    """A relation that only kernels read may be computed over columns; one that is asked for is not."""
    engine = local.engine({"arc": CHAIN})
    for text in (LONGER, f"{LONGER}\n.output link", f"{LONGER}\n.printsize link"):
        promised = {report.stratum.names: report.evaluator for report in engine.explain(text).strata}
        told = {entry.predicates: entry.evaluator for entry in engine.run(text).stats}
        assert ("over columns" in promised["link",]) == (told["link",] == "arrow") == (text == LONGER)
        assert promised["tc",].startswith("kernel") and told["tc",] == "kernel"
        assert promised["n",] == told["n",] == "sql"


@pytest.mark.spark
@pytest.mark.parametrize(("text", "options", "expected"), WHERE, ids=["direct", "loops", "rows", "sql"])
def test_placement_in_the_driver_is_what_really_evaluated_a_stratum(
    text: str, options: dict[str, Any], expected: dict[str, tuple[str, str]], spark: Any
) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("arc", CHAIN)
        stats = engine.run(text, **options).stats
        told = {entry.predicates[0]: (entry.evaluator, entry.placement) for entry in stats}
    assert told == {name: (evaluator, f"driver ({place})") for name, (evaluator, place) in expected.items()}


def test_why_on_spark_tells_sources_from_what_spark_computed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 20)
    with emberlog.Engine(spark) as engine:
        engine.register("arc", pa.table({"x": [x for x, _ in CHAIN], "y": [y for _, y in CHAIN]}))
        stats = engine.run("p(X) <- arc(X,_), X < 3. q(X) <- p(X), X > 1.").stats
    assert {entry.predicates[0]: entry.why for entry in stats} == {
        "p": "arc has 60 rows",
        "q": "p was computed on Spark",
    }


def test_what_spark_only_defined_says_so(on_spark: Place) -> None:
    """Its row has facts once a fixpoint, or a second reader, had it computed."""
    engine = on_spark.engine({"arc": CHAIN[4:10]})  # a round for each step of a path
    text = f"link(X,Y) <- arc(X,Y), X != 7. {TC.replace('arc', 'link')} n(count<X>) <- tc(X,_)."
    link, _, n = engine.run(text, placement="spark", evaluator="sql").stats
    assert (n.stopped, n.facts) == ("computed where it is read", None)
    assert (link.stopped, link.facts) == ("computed once", 5)
    assert link.seconds > 0


# --- the clock -----------------------------------------------------------------------------------------------------


def test_a_step_has_no_time_of_those_inside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(float(n) for n in range(100))
    monkeypatch.setattr("emberlog.clock.monotonic", lambda: next(now))
    clock, stratum = Clock(), StratumStats(("p",))
    with clock.step("outer"):
        with clock.time(stratum):
            with clock.step("inner", "a"):
                pass
            with clock.step("inner", "a"):
                pass
        clock.part("measured", "b", 0.5)
    rows = {str(row) if isinstance(row, Step) else "p": row.seconds for row in clock.rows}
    assert rows == {"outer": 2.5, "p": 3.0, "inner a": 2.0, "measured b": 0.5}


def test_the_time_of_a_thread_that_waits_is_counted_once() -> None:
    """The steps go on in the thread that is waited for: inside of those that the waiting one has begun."""
    clock = Clock()

    def work() -> None:
        with borrowed():
            sleep(0.1)
            with clock.step("inner"):
                sleep(0.2)

    started = monotonic()
    with clock.step("outer"):
        with clock.lent() as borrowed:
            thread = Thread(target=work)
            thread.start()
            thread.join()
        sleep(0.1)
    took = monotonic() - started
    outer, inner = (row.seconds for row in clock.rows)
    assert outer >= 0.2 and inner >= 0.2
    assert outer + inner <= took + 0.001


def test_a_stopwatch_counts_time_once_for_all_who_are_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter((1.0, 4.0))
    monkeypatch.setattr("emberlog.clock.monotonic", lambda: next(now))
    watch = Stopwatch()
    with watch, watch:
        pass
    assert watch.seconds == 3.0
