"""What a change is, what it gives back, and that it is whole or not at all."""

from __future__ import annotations

import gc
import math
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import mock

import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import emberlog
from emberlog.maintain.tasks import Task
from maintain.sequences import Step, each_row, open_view, rows_of, sequences
from maintain.templates import maintained_templates
from strategies.cases import ERRORS, Case, difference

CLOSURE = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). out(X,count(Y)) <- tc(X,Y)."
SOME = settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", [(1, 2), (2, 3), (3, 1)])
        yield engine


# --- how rows come ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [(3, 4), (4, 5)],
        [[3, 4], [4, 5]],
        pa.table({"a": pa.array([3, 4], pa.int32()), "b": [4, 5]}),
        pandas.DataFrame({"a": [3, 4], "b": [4, 5]}),
        polars.DataFrame({"a": [3, 4], "b": [4, 5]}),
    ],
    ids=["tuples", "lists", "arrow", "pandas", "polars"],
)
def test_rows_come_in_many_forms(engine: emberlog.Engine, rows: Any) -> None:
    view = engine.maintain(CLOSURE)
    assert view.apply(insert={"arc": rows})["arc"].inserted == {(3, 4), (4, 5)}
    assert view.apply(delete={"arc": rows})["arc"].deleted == {(3, 4), (4, 5)}


@pytest.mark.parametrize(
    "changes",
    [
        [(1, 2, -1), (7, 8, 1)],
        pa.table({"x": [1, 7], "y": [2, 8], "_sign": [-1, 1]}),
        pandas.DataFrame({"x": [1, 7], "y": [2, 8], "_change_type": ["update_preimage", "update_postimage"]}),
        polars.DataFrame({"x": [1, 7], "y": [2, 8], "_change_type": ["delete", "insert"], "_commit_version": [3, 3]}),
    ],
    ids=["signs last", "a column of signs", "updates", "change data"],
)
def test_rows_may_say_what_they_are(engine: emberlog.Engine, changes: Any) -> None:
    change = engine.maintain(CLOSURE).apply(changes={"arc": changes})
    assert change["arc"].inserted == {(7, 8)} and change["arc"].deleted == {(1, 2)}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"insert": {"arc": [("a", 2)]}}, emberlog.DataError),
        ({"insert": {"arc": [(1, 2, 3)]}}, emberlog.DataError),
        ({"insert": {"arc": [(None, 2)]}}, emberlog.DataError),
        ({"insert": {"tc": [(1, 2)]}}, emberlog.UsageError),
        ({"insert": {"ark": [(1, 2)]}}, emberlog.UsageError),
        ({"insert": [(1, 2)]}, emberlog.UsageError),
        ({"changes": {"arc": [(1, 2, 0)]}}, emberlog.DataError),
        ({"changes": {"arc": pa.table({"x": [1], "y": [2]})}}, emberlog.DataError),
    ],
)
def test_what_is_no_change_is_refused(engine: emberlog.Engine, given: Any, error: type[Exception]) -> None:
    view = engine.maintain(CLOSURE)
    with pytest.raises(error):
        view.apply(**given)
    assert not view.apply()


def test_what_is_there_and_what_is_not_are_no_change(engine: emberlog.Engine) -> None:
    view = engine.maintain(CLOSURE)
    change = view.apply(insert={"arc": [(1, 2), (1, 2)]}, delete={"arc": [(8, 9)]})
    assert not change and change.stats.run == 0


def test_a_row_that_is_deleted_and_inserted_stays(engine: emberlog.Engine) -> None:
    assert not engine.maintain(CLOSURE).apply(insert={"arc": [(1, 2)]}, delete={"arc": [(1, 2)]})


def test_a_relation_without_a_source_starts_empty() -> None:
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain(CLOSURE)
        assert not view["tc"]
        assert view.apply(insert={"arc": [(1, 2)]})["tc"].inserted == {(1, 2)}


def test_nan_is_one_row_that_matches_nothing() -> None:
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain(".decl v(x: float)\np(X) <- v(X). q(X) <- v(X), p(X). m(max(X)) <- v(X).")
        change = view.apply(insert={"v": [(math.nan,), (-0.0,), (float("nan"),)]})
        assert len(change["p"].inserted) == 2 and change["q"].inserted == {(0.0,)} == change["m"].inserted
        assert len(view.apply(delete={"v": [(float("nan"),)]})["p"].deleted) == 1


# --- what comes back -------------------------------------------------------------------------------------------------


def test_differences_are_tables_too(engine: emberlog.Engine) -> None:
    change = engine.maintain(CLOSURE).apply(delete={"arc": [(3, 1)]}, insert={"arc": [(3, 4)]})
    assert change["tc"].deleted.to_arrow().column_names == ["X", "Y"]
    signs = change["tc"].to_arrow()["_change_type"].to_pylist()
    assert (signs.count("insert"), signs.count("delete")) == (len(change["tc"].inserted), len(change["tc"].deleted))
    with pytest.raises(emberlog.UsageError):
        change["ct"]


def test_relations_are_as_they_were_when_asked_for(engine: emberlog.Engine) -> None:
    view = engine.maintain(CLOSURE)
    before = view["tc"]
    view.apply(delete={"arc": [(1, 2)]})
    assert len(before) == 9 and len(before.rows()) == 9 and len(view["tc"]) == 3


def test_goals_are_asked_of_the_view(engine: emberlog.Engine) -> None:
    view = engine.maintain(CLOSURE)
    view.apply(delete={"arc": [(3, 1)]})
    assert sorted(view.query("tc(1, Y)").rows()) == [(1, 2), (1, 3)]
    assert view.query("tc(X, X)").rows() == []


def test_what_if_leaves_the_view_as_it_was(engine: emberlog.Engine) -> None:
    view = engine.maintain(CLOSURE)
    asked = view.what_if(delete={"arc": [(1, 2)]}, insert={"arc": [(2, 9)]})
    assert len(view["tc"]) == 9 and len(view["arc"]) == 3
    done = view.apply(delete={"arc": [(1, 2)]}, insert={"arc": [(2, 9)]})
    assert {name: (asked[name].inserted, asked[name].deleted) for name in asked} == {
        name: (done[name].inserted, done[name].deleted) for name in done
    }


def test_tasks_that_are_not_affected_are_skipped() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("e", [(1, 5), (2, 5)])
        view = engine.maintain("a(Y) <- e(_, Y). b(Y) <- a(Y). c(Y) <- b(Y). n(count(_)) <- e(_, _).")
        stats = view.apply(delete={"e": [(1, 5)]}).stats
        assert [task.names for task in stats.tasks] == [("a",), ("n",)] and stats.skipped == 2 and stats.levels == 3


@pytest.mark.parametrize("scheduler", ["level", "lookahead:2", "logicblox", "signal", "hybrid", "meta:1000"])
def test_every_scheduler_gives_the_same(engine: emberlog.Engine, scheduler: str) -> None:
    text = CLOSURE + "lone(X) <- node(X), !out(X, _). n(count(X)) <- lone(X). pair(X, Y) <- out(X, N), n(Y), N > Y."
    view, usual = engine.maintain(text, scheduler), engine.maintain(text)
    rnd = random.Random(3)
    for _ in range(20):
        rows = [(rnd.randrange(6), rnd.randrange(6)) for _ in range(3)]
        given: Any = {"insert": {"arc": rows, "node": [(rnd.randrange(6),)]}, "delete": {"arc": [rows[0][::-1]]}}
        one, other = view.apply(**given), usual.apply(**given)
        assert {name: (one[name].inserted, one[name].deleted) for name in one} == {
            name: (other[name].inserted, other[name].deleted) for name in other
        }
    with pytest.raises(emberlog.UsageError):
        engine.maintain(text, "levels")


def test_what_is_recomputed_is_told() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("s", [("a",), ("bb",)])
        view = engine.maintain('p(X) <- s(X), match("b+", X).')
        change = view.apply(insert={"s": [("b",)]})
        assert change["p"].inserted == {("b",)}
        assert "the function `match`" in change.stats.tasks[0].why and "recomputed" in view.explain()


# --- whole or not at all ---------------------------------------------------------------------------------------------


def test_an_error_leaves_the_view_as_it_was() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("n", [(1, 2**62)])
        view = engine.maintain("t(sum(Y)) <- n(_, Y). h(X, Z) <- n(X, _), Z = 10 / X. s(X) <- n(X, _).")
        for row in ((2, 2**62), (0, 5)):
            with pytest.raises(emberlog.DataError):
                view.apply(insert={"n": [row, (3, 1)]})
            assert view["n"].rows() == [(1, 2**62)] and view["s"].rows() == [(1,)]
        assert view.apply(insert={"n": [(2, 1)]})["t"].inserted == {(2**62 + 1,)}


def test_conditions_of_verdicts_are_checked_on_changed_rows() -> None:
    text = """cv(X,Y,sum(V)) <- cs(X,Y,_,V). cs(X,Y,X,V) <- own(X,Y,V). cs(X,Y,Z,V) <- control(X,Z), own(Z,Y,V).
              control(X,Y) <- cv(X,Y,S), S > 50."""
    with emberlog.Engine(executor="local") as engine:
        engine.register("own", [("a", "b", 60), ("a", "c", 30)])
        view = engine.maintain(text)
        assert view.apply(insert={"own": [("b", "c", 30)]})["control"].inserted == {("a", "c")}
        with pytest.raises(emberlog.DataError, match="relies on"):
            view.apply(insert={"own": [("b", "d", -1)]}, delete={"own": [("a", "b", 60)]})
        assert set(view["control"].rows()) == {("a", "b"), ("a", "c")}
        assert view.apply(delete={"own": [("a", "b", 60)]})["control"].deleted == {("a", "b"), ("a", "c")}


def test_limits_hold_for_changes(engine: emberlog.Engine) -> None:
    view = engine.maintain(CLOSURE, limits={"rows": 15})
    with pytest.raises(emberlog.LimitError):
        view.apply(insert={"arc": [(i, i + 1) for i in range(3, 9)]})
    assert len(view["tc"]) == 9 and len(view["arc"]) == 3


@settings(SOME, max_examples=8)
@given(sequences(maintained_templates(), 2))
def test_a_failure_anywhere_takes_everything_back(drawn: tuple[Case, list[Step]]) -> None:
    case, steps = drawn
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        try:
            view = open_view(engine, case)
        except ERRORS:
            return
        before = rows_of(view, case)
        for step in steps:
            for place in range(3):
                fail_at(view, step, place)
                for name, rows in before.items():
                    assert not difference(view[name].rows(), rows), name


def fail_at(view: emberlog.View, step: Step, place: int) -> None:
    """Applies a change that breaks after it ran some tasks, or at last."""
    ran = iter(range(place))
    real = Task.run

    def run(task: Task, first: bool = False) -> int:
        found = real(task, first)
        if next(ran, None) is None:
            raise emberlog.ExecutionError("broken")
        return found

    with mock.patch.object(Task, "run", run), suppress(emberlog.ExecutionError, *ERRORS):
        view.what_if(insert=step.insert, delete=step.delete)


# --- laws ------------------------------------------------------------------------------------------------------------


@SOME
@given(sequences(maintained_templates(), 2))
def test_one_change_is_its_rows_one_at_a_time(drawn: tuple[Case, list[Step]]) -> None:
    case, steps = drawn
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        try:
            one, other = open_view(engine, case), open_view(engine, case)
            for step in steps:
                one.apply(insert=step.insert, delete=step.delete)
                other.apply_each({"insert": row.insert, "delete": row.delete} for row in each_row(step))
        except ERRORS:
            return
        for name, rows in rows_of(one, case).items():
            assert not difference(rows, other[name].rows()), name


@SOME
@given(sequences(maintained_templates(), 1))
def test_insert_then_delete_gives_back_the_same(drawn: tuple[Case, list[Step]]) -> None:
    case, (step,) = drawn
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        try:
            view = open_view(engine, case)
            before = rows_of(view, case)
            change = view.apply(insert=step.insert)
        except ERRORS:
            return
        view.apply(delete={name: list(change[name].inserted) for name in step.insert})
        for name, rows in before.items():
            assert not difference(view[name].rows(), rows), name


def test_memory_is_bounded_by_what_is_there() -> None:
    rnd = random.Random(1)
    text = CLOSURE + "cc(X, min(X)) <- arc(X, _). cc(Y, min(V)) <- cc(X, V), arc(X, Y)."
    with emberlog.Engine(executor="local", workers=1) as engine:
        view = engine.maintain(text)

        def churn(times: int) -> None:
            for _ in range(times):
                rows = [(rnd.randrange(30), rnd.randrange(30)) for _ in range(2)]
                view.apply(insert={"arc": rows})
                view.apply(delete={"arc": rows})

        churn(100)
        gc.collect()
        tracemalloc.start()
        churn(300)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not view["arc"] and not view["tc"] and not view["cc"]
        assert grown < 200_000


def test_groups_hold_by_their_contributions() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("v", [(1, 5), (1, -5), (2, 0)])
        view = engine.maintain("t(X, sum(Y)) <- v(X, Y).")
        assert view.apply(delete={"v": [(2, 0)]})["t"].deleted == {(2, 0)}
        assert view.apply(delete={"v": [(1, 5)]})["t"].inserted == {(1, -5)}


def test_signed_rows_of_one_change_are_taken_in_their_order() -> None:
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain("p(X) <- n(X).")
        view.apply(changes={"n": [(7, 1), (7, -1), (8, -1), (8, 1)]})
        assert set(view["p"].rows()) == {(8,)}
