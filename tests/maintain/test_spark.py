"""Views on the spark executor: kept in the driver where there is room, else as Parquet and queries of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import emberlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
    .decl arc(x: number, y: number where y >= 0)
    .decl on()
    tc(X, Y) <- arc(X, Y).
    tc(X, Y) <- tc(X, Z), arc(Z, Y).
    out(X, count(Y)) <- tc(X, Y).
    far(X) <- out(X, N), N > 2, on().
    apart(X) <- arc(_, X), !arc(X, _).
"""
PLAIN = """
    .decl on()
    out(X, count(Y)) <- arc(X, Y).
    far(X) <- out(X, N), N > 1, on().
"""
ARCS = [(1, 2), (2, 3), (3, 1), (3, 4)]


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[emberlog.Engine]:
    with emberlog.Engine(spark) as engine:
        yield engine


def contents(view: emberlog.View) -> dict[str, set[Any]]:
    return {name: set(view[name].rows()) for name in view}


def fresh(arcs: Any, *, on: bool = False, text: str) -> dict[str, set[Any]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", arcs)
        view = engine.maintain(text)
        view.apply(insert={"on": [()] * on})
        return contents(view)


def test_a_small_view_is_kept_in_the_driver_and_reads_tables_of_spark(
    engine: emberlog.Engine, spark: SparkSession
) -> None:
    spark.createDataFrame(ARCS, "x long, y long").createOrReplaceTempView("arcs_of_view")
    try:
        view = engine.maintain('.input arc(IO=table, name="arcs_of_view")' + PROGRAM)
        frame = spark.createDataFrame([(4, 5, "insert"), (3, 1, "delete")], "x long, y long, _change_type string")
        change = view.apply(changes={"arc": frame})
        assert change["arc"].inserted == {(4, 5)}
        assert contents(view) == fresh([(1, 2), (2, 3), (3, 4), (4, 5)], text=PROGRAM)
        assert set(map(tuple, change["tc"].inserted.to_spark().collect())) == change["tc"].inserted
        assert view["tc"].to_spark().count() == len(view["tc"])
        assert "maintained" in view.explain() and "recomputed" not in view.explain()
    finally:
        spark.catalog.dropTempView("arcs_of_view")


@pytest.mark.parametrize("text", [PLAIN, pytest.param(PROGRAM, marks=pytest.mark.slow)], ids=["plain", "recursive"])
def test_a_view_on_spark_gives_the_same_differences(engine: emberlog.Engine, spark: SparkSession, text: str) -> None:
    engine.register("arc", spark.createDataFrame([*ARCS, ARCS[0]], "x long, y long"))
    view = engine.maintain(text, placement="spark")
    before, now = fresh(ARCS, text=text), fresh([(1, 2), (2, 3), (3, 4), (4, 5)], text=text)
    assert contents(view) == before
    assert "recomputed: placement=spark" in view.explain()
    held = view["out"]
    change = view.apply(insert={"arc": [(4, 5)]}, delete={"arc": [(3, 1), (9, 9)]})
    assert contents(view) == now
    for name in now:
        assert change[name].inserted == now[name] - before[name]
        assert change[name].deleted == before[name] - now[name]
    assert set(held.rows()) == before["out"]  # what somebody holds stays
    assert set(map(tuple, view["out"].to_spark().collect())) == now["out"]
    change = view.apply(insert={"on": [()]})
    right = fresh([(1, 2), (2, 3), (3, 4), (4, 5)], on=True, text=text)
    assert contents(view) == right and change["far"].inserted == right["far"]
    assert change.stats.active == 1  # what does not read it did not run


def test_a_change_on_spark_that_fails_or_is_only_asked_for_leaves_the_view(engine: emberlog.Engine) -> None:
    engine.register("arc", ARCS)
    view = engine.maintain("p(X) <- arc(X, Y), Y > 1. .decl arc(x: number, y: number where y >= 0)", placement="spark")
    before = contents(view)
    assert view.what_if(delete={"arc": ARCS})["p"].deleted == {(1,), (2,), (3,)}
    with pytest.raises(emberlog.DataError):
        view.apply(insert={"arc": [(7, -1)]})
    assert contents(view) == before
    view.add_rule("q(X) <- p(X), X > 2.")
    assert set(view["q"].rows()) == {(3,)}


def test_a_view_without_room_in_the_driver_goes_to_spark_and_says_so(spark: SparkSession) -> None:
    with emberlog.Engine(spark, memory="100kB") as engine:
        engine.register("arc", spark.range(3000).selectExpr("id as x", "id + 1 as y"))
        view = engine.maintain("p(X) <- arc(X, Y), Y > 2990.")
        assert "recomputed: its inputs would take about" in view.explain()
        assert view["p"].count() == 10


def test_a_view_on_spark_takes_no_path(engine: emberlog.Engine, tmp_path: Any) -> None:
    engine.register("arc", ARCS)
    with pytest.raises(emberlog.UsageError, match="kept in the driver"):
        engine.maintain(PROGRAM, placement="spark", path=tmp_path)
