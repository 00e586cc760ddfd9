"""Answers of goals: nothing is evaluated before they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

import emberlog
from emberlog.stats import Stats

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
ARC = [(i, i + 1) for i in range(5)]


@pytest.fixture
def engine() -> emberlog.Engine:
    made = emberlog.Engine(executor="local", workers=1)
    made.register("arc", ARC)
    return made


def test_nothing_runs_before_an_answer_is_read(engine: emberlog.Engine) -> None:
    told: list[object] = []
    answer = engine.query("tc(3, Y)", TC, progress=told.append)
    assert answer.columns == ["X", "Y"] and repr(answer).startswith("<Relation tc(") and not told
    assert answer.count() == 2 and told
    seen = len(told)
    assert sorted(answer.rows()) == [(3, 4), (3, 5)] and len(told) == seen


def test_every_way_to_read_evaluates(engine: emberlog.Engine, tmp_path: Path) -> None:
    def answer() -> emberlog.Answer:
        return engine.query("tc(3, Y)", TC)

    assert answer().head(1) == [(3, 4)] and len(answer()) == 2 and answer()
    assert answer().to_arrow().num_rows == 2 and sorted(answer()) == [(3, 4), (3, 5)]
    for ending in ("csv", "parquet"):
        answer().write(tmp_path / f"rows.{ending}")
    assert (tmp_path / "rows.csv").read_text().count("3") and (tmp_path / "rows.parquet").exists()


def test_mistakes_are_told_by_the_call(engine: emberlog.Engine) -> None:
    with pytest.raises(emberlog.ProgramError):
        engine.query("tc(3, Y, Z)", TC)
    with pytest.raises(emberlog.ProgramError):
        engine.query("tc(3, Y), missing(Y)", TC)


def test_limits_hold_when_an_answer_is_read(engine: emberlog.Engine) -> None:
    answer = engine.query("tc(X, Y)", TC, limits={"rows": 3})
    for _ in range(2):
        with pytest.raises(emberlog.LimitError):
            answer.rows()


def test_an_answer_reads_the_sources_of_its_call(engine: emberlog.Engine) -> None:
    answer = engine.query("tc(3, Y)", TC)
    engine.register("arc", [(3, 9)])
    assert sorted(answer.rows()) == [(3, 4), (3, 5)]
    assert engine.query("tc(3, Y)").rows() == [(3, 9)]


def test_an_answer_of_a_closed_engine(engine: emberlog.Engine) -> None:
    answer = engine.query("tc(3, Y)", TC)
    engine.close()
    with pytest.raises(emberlog.UsageError, match="the engine is closed"):
        answer.rows()


def test_stats_tell_what_was_asked_and_what_was_derived(engine: emberlog.Engine) -> None:
    answer = engine.query("tc(X, 2)", TC)
    assert isinstance(answer.stats, Stats)
    assert (answer.stats.demanded, answer.stats.derived) == (3, 4)  # 2, 1, 0; then (1, 2) and (0, 2), twice


def test_a_goal_gives_whole_rows_for_which_its_conditions_hold(engine: emberlog.Engine) -> None:
    engine.register("wanted", [(3, "x"), (4, "y")])
    assert sorted(engine.query("tc(X, Y), wanted(X, _)", TC).rows()) == [(3, 4), (3, 5), (4, 5)]
    assert sorted(engine.query('tc(X, Y), wanted(X, "x"), Y > 4', TC).rows()) == [(3, 5)]
    assert sorted(engine.query("tc(X, Y), !wanted(X, _), Y = X + 1", TC).rows()) == [(0, 1), (1, 2), (2, 3)]
    (answer,) = engine.run(f"{TC} ?- tc(X, Y), (X = 3; X = 4).").goals
    assert sorted(answer.rows()) == [(3, 4), (3, 5), (4, 5)]


def test_errors_of_rows_that_nobody_asks_for_are_not_made(engine: emberlog.Engine) -> None:
    text = "p(X, Z) <- arc(X, Y), arc(Y, _), Z = 10 / X."
    with pytest.raises(emberlog.DataError):
        engine.query("p(X, Z)", text).rows()
    assert engine.query("p(2, Z)", text).rows() == [(2, 5)]


def test_a_run_with_goals_evaluates_no_more_than_they_ask_for(engine: emberlog.Engine) -> None:
    result = engine.run(f"{TC} ?- tc(3, Y).", limits={"rows": 10})
    assert len(result.goals[0]) == 2 and "tc" not in result
