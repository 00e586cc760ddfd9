"""Where a stratum of the spark executor runs, and why; and what happens when it grows out of its place."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from emberlog.choose import placement
from emberlog.executors import spark as spark_executor
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
ARC = [(1, 2), (2, 3), (3, 4)]
CLOSURE = [(x, y) for x in range(1, 5) for y in range(x + 1, 5)]


def where(result: emberlog.Result) -> list[tuple[str, str]]:
    return [(entry.placement, entry.why) for entry in result.stats]


def test_stats_tell_where_and_why(spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("arc", ARC)
        for placement, told in (
            ("auto", ("driver (duckdb)", "its inputs have 3 rows")),
            ("local", ("driver (duckdb)", "placement was forced")),
            ("spark", ("spark", "placement was forced")),
        ):
            result = engine.run(TC, evaluator="sql", placement=placement)
            assert where(result) == [told]
            assert sorted(result["tc"].rows()) == CLOSURE
            (stats,) = result.stats
            assert (stats.predicates, stats.evaluator, stats.rounds, stats.facts) == (("tc",), "sql", 4, 6)
            assert (stats.deltas, stats.stopped) == ([3, 2, 1, 0], "fixpoint")


def test_recursion_on_spark_is_for_the_kernels(spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("arc", ARC)
        result = engine.run(TC, placement="spark")
        assert where(result) == [("spark (tasks)", "placement was forced")]
        assert (result.stats[0].evaluator, sorted(result["tc"].rows())) == ("kernel", CLOSURE)


# A program, its answers, and in which of its strata the driver has too little room for more than 5 rows.
OUTGROWN = [
    ("p(X,Y) <- arc(X,_), arc(Y,_).", {"p": [(x, y) for x in range(1, 4) for y in range(1, 4)]}, [True]),
    (f"{TC} n(count(X)) <- tc(X,_). m(max(X)) <- arc(X,_).", {"n": [(6,)], "m": [(3,)], "tc": CLOSURE}, [1, 1, 0]),
    (
        "d(X,Y,min<C>) <- arc(X,Y), C = 1. d(X,Y,min<C>) <- d(X,Z,B), arc(Z,Y), C = B + 1.",
        {"d": [(x, y, y - x) for x, y in CLOSURE]},
        [True],
    ),
]


@pytest.mark.parametrize(("text", "rows", "moved"), OUTGROWN, ids=["once", "strata", "minimum"])
def test_a_result_that_outgrows_the_driver_moves_to_spark(
    text: str, rows: dict[str, Any], moved: list[bool], on_spark: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_RESULT", 5)
    result = on_spark.engine({"arc": ARC}).run(text)
    assert {name: sorted(result[name].rows()) for name in result} == rows
    told = {entry.predicates[0]: (entry.placement, entry.why) for entry in result.stats}
    assert [told[name][0].startswith("spark") for name in ("tc", "n", "m", "p", "d") if name in told] == [
        bool(m) for m in moved
    ]
    first = next(told[name] for name in ("tc", "p", "d") if name in told)
    assert first[0].startswith("spark")
    assert first[1] == "more than 5 rows: moved from the driver to Spark"


def test_what_outgrows_the_driver_is_still_held_to_limits(on_spark: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_RESULT", 5)
    engine = on_spark.engine({"arc": ARC})
    with pytest.raises(emberlog.LimitError, match="limit of 4 rows"):
        engine.run(TC, limits={"rows": 4})
    assert len(engine.run(TC, limits={"rows": 6})["tc"]) == 6
    assert where(engine.run(TC, placement="local")) == [("driver (columns)", "placement was forced")]


def test_strata_that_are_not_recursive_cost_no_job(on_spark: Place, spark: Any) -> None:
    """They are plans until somebody reads them, so an error in one comes then, and only to who reads it."""
    result = on_spark.run("p(Y) <- arc(X,_), Y = 1 / (X - 1). q(X) <- arc(X,_).", {"arc": ARC})
    assert [entry.facts for entry in result.stats] == [None, None]
    assert sorted(result["q"].rows()) == [(1,), (2,), (3,)]
    for read in (len, emberlog.Relation.rows, emberlog.Relation.to_pandas):
        with pytest.raises(emberlog.DataError, match="a divisor is zero"):
            read(result["p"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"placement": "driver"}, "placement 'driver' is not known"),
        ({"evaluator": "vectors"}, "evaluator 'vectors' is not known"),
        ({"placement": "spark"}, "the local executor places nothing on Spark"),
    ],
)
def test_names_that_make_no_sense(options: dict[str, Any], message: str, local: Place) -> None:
    with pytest.raises(emberlog.UsageError, match=message):
        local.engine({"arc": ARC}).run(TC, **options)


def test_executors_that_make_no_sense() -> None:
    with pytest.raises(emberlog.UsageError, match="executor 'flink' is not known") as raised:
        emberlog.Engine(executor="flink")
    assert raised.value.fix == "executor is one of spark, local"


RING = [(i, (i + 1) % 500) for i in range(500)]


@pytest.mark.parametrize("rooms", ["plenty", "none"])
def test_a_recursion_over_a_large_table_of_spark(spark: Any, monkeypatch: pytest.MonkeyPatch, rooms: str) -> None:
    """Its inputs, a view among them, are fetched where that takes less than a job."""
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 20)
    if rooms == "none":
        monkeypatch.setattr(placement, "FETCHED_COPIES", 10**9)
    with emberlog.Engine(spark) as engine:
        engine.register("arc", spark.createDataFrame(RING, "x long, y long"))
        result = engine.run("link(X,Y) <- arc(X,Y), X != 250. r(1). r(Y) <- r(X), link(X,Y).")
        assert sorted(result["r"].rows()) == [(i,) for i in range(1, 251)]
        (told,) = (entry for entry in result.stats if entry.predicates == ("r",))
    if rooms == "plenty":
        assert told.placement.startswith("driver")
        assert told.why.startswith("to fetch its inputs of 500 rows takes about 0.0 s")
    else:
        assert told.placement.startswith("spark")
        assert "for which the driver has no room" in told.why


def test_sums_over_what_was_fetched_count_each_row_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 2)
    with emberlog.Engine(spark) as engine:
        engine.register("part", spark.createDataFrame([(1, 2), (1, 2), (1, 3), (2, 4), (3, 4)], "x long, y long"))
        text = "n(1, 1). n(Y, sum<(X, N)>) <- n(X, N), part(X, Y)."
        assert sorted(engine.run(text)["n"].rows()) == [(1, 1), (2, 1), (3, 1), (4, 2)]
