"""Limits on rounds, rows and time: reaching one is an error, whatever runs the program, and never a shorter answer."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

import emberlog
from emberlog import Limits
from emberlog.sql import fixpoint
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
CHAIN = [(i, i + 1) for i in range(8)]  # 36 pairs, 9 rounds
PAIRS = "p(X,Y) <- arc(X,_), arc(Y,_)."
# A statement that would take a quarter of an hour or more, and has one row. Spark's tasks end between two rows of A.
LONG = "p(count(_)) <- n(A), n(B), n(C), A + B + C = 7."
MANY = [(i,) for i in range(10_000)]


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        (TC, {"rounds": 3}, "the limit of 3 rounds while computing tc"),
        (TC, Limits(rounds=8), "the limit of 8 rounds"),
        (TC, {"rows": 35}, "the limit of 35 rows while computing tc"),
        (PAIRS, {"rows": 63}, "the limit of 63 rows while computing p"),
        ("q(X) <- arc(X,_). p(X,Y) <- q(X), q(Y).", {"rows": 71}, "the limit of 71 rows"),
    ],
)
def test_reached(text: str, limits: Any, message: str, local: Place) -> None:
    engine = local.engine({"arc": CHAIN})
    with pytest.raises(emberlog.LimitError, match=message) as raised:
        engine.run(text, limits=limits)
    assert raised.value.exit_code == 3
    assert "raise limits" in (raised.value.fix or "")
    assert "goal" not in (raised.value.fix or "")  # a goal selects among rows that are computed anyway


def test_reached_on_spark(on_spark: Place) -> None:
    engine = on_spark.engine({"arc": CHAIN})
    for text, limits in ((TC, {"rounds": 1}), (TC, {"rows": 14}), (PAIRS, {"rows": 63})):
        with pytest.raises(emberlog.LimitError, match="stopped at the limit of"):
            engine.run(text, placement="spark", limits=limits)
    # What is not recursive is computed at once then: nobody is to read what is over the limit.
    (stats,) = engine.run(PAIRS, placement="spark", limits={"rows": 64}).stats
    assert stats.facts == 64


@pytest.mark.parametrize(("text", "rows"), [(TC, 36), (PAIRS, 64), ("q(X) <- arc(X,_). p(X,Y) <- q(X), q(Y).", 72)])
def test_not_reached(text: str, rows: int, local: Place) -> None:
    result = local.engine({"arc": CHAIN}).run(text, limits={"rounds": 9, "rows": rows, "seconds": 100})
    assert sum(len(result[name]) for name in result) == rows


def test_limits_of_the_engine_and_of_a_run(local: Place) -> None:
    engine = local.engine({"arc": CHAIN}, limits=Limits(rounds=3))
    with pytest.raises(emberlog.LimitError):
        engine.run(TC)
    assert len(engine.run(TC, limits={})["tc"]) == 36
    with pytest.raises(emberlog.LimitError):
        engine.query("tc(1, Y)").rows()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"round": 3}, "did you mean `rounds`"),
        ({"memory": 3}, "limits are rounds, rows, seconds"),
        ({"rounds": 0}, "must be positive"),
        ({"seconds": -1.0}, "must be positive"),
        ({"seconds": float("nan")}, "must be positive"),
    ],
)
def test_limits_that_make_no_sense(limits: dict[str, float], message: str, local: Place) -> None:
    with pytest.raises(emberlog.UsageError, match=message):
        local.engine(limits=limits)


def test_a_time_limit_interrupts_one_statement(place: Place) -> None:
    engine = place.engine({"n": MANY})
    if place.placement == "spark":
        engine.run("p(count(_)) <- n(_).", placement="spark")  # so that the limit is not spent on warming up
    started = monotonic()
    with pytest.raises(emberlog.LimitError, match="stopped at the limit of 1 second while computing"):
        engine.run(LONG, placement=place.placement, limits={"seconds": 1})
    assert monotonic() - started < 30  # most of which only a busy machine takes
    assert engine.run("p(count(_)) <- n(_).", placement=place.placement)["p"].rows() == [(10_000,)]


def test_a_time_limit_ends_rounds_without_end(local: Place) -> None:
    engine = local.engine()
    engine.run("n(0). n(X+1) <- n(X), X < 9.")  # so that the limit is not spent on loading modules
    with pytest.raises(emberlog.LimitError, match="seconds while computing n"):
        engine.run("n(0). n(X+1) <- n(X).", limits={"seconds": 1.5, "rounds": 1_000_000_000})


def test_rounds_that_a_condition_bounds_have_no_limit(local: Place) -> None:
    """Loops make a round of one fact in less than a microsecond; the default limit is 20,000 rounds."""
    result = local.run("n(0). m(X+1) <- n(X), X < 100000. n(X) <- m(X).")
    assert (result["n"].count(), result.stats[-1].rounds) == (100_001, 100_002)


def test_rounds_that_no_condition_bounds_end_at_the_default(local: Place) -> None:
    with pytest.raises(emberlog.LimitError, match="stopped after 20,000 rounds while computing n"):
        local.run("n(0). n(X+1) <- n(X), X != 100000.")


def test_values_that_grow_for_ever_end_without_a_limit(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixpoint, "default_rounds", lambda facts: 10 * facts)  # so that it is quick
    with pytest.raises(
        emberlog.LimitError, match=r"they seem to grow for ever; a cycle in the data: p\(\d, _\) -> p\(\d, _\)"
    ):
        local.run("p(X,sum<C>) <- X = 1, C = 1. p(Y,sum<C>) <- p(X,C), arc(X,Y).", {"arc": [(1, 2), (2, 1)]})
