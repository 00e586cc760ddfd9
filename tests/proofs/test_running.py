"""What proofs change in a run: assumptions are checked, aggregates move into recursions, PreM is checked on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import emberlog
from emberlog import DataError, LimitError, ProgramError

STRATIFIED = """
path(X, Y, D) <- arc(X, Y, D).
path(X, Y, D) <- path(X, Z, C), arc(Z, Y, W), D = {step}.
best(X, Y, {function}<D>) <- path(X, Y, D).
.output best
"""
CYCLE = [(1, 2, 3), (2, 1, 1), (2, 3, 5)]


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=1, limits={"rounds": 200}) as engine:
        engine.register("arc", CYCLE)
        yield engine


def stratified(function: str = "min", step: str = "C + W", more: str = "") -> str:
    return STRATIFIED.format(function=function, step=step) + more


# --- assumptions -----------------------------------------------------------------------------------------------------

PRODUCT = "p(Y, max<D>) <- Y = 1, D = 1.\np(Y, max<D>) <- p(X, C), arc(X, Y, W), X < Y, D = C * W."


def test_data_that_break_an_assumption_are_refused(engine: emberlog.Engine) -> None:
    assert sorted(engine.run(PRODUCT)["p"].rows()) == [(1, 1), (2, 3), (3, 15)]
    engine.register("arc", [(1, 2, -3)])
    with pytest.raises(DataError, match=r"`arc\(1, 2, -3\)` breaks W >= 0"):
        engine.run(PRODUCT)


def test_declared_domains_are_checked_when_data_are_loaded(engine: emberlog.Engine) -> None:
    declared = ".decl arc(x: number, y: number, w: number where 0 <= w <= 5)\n"
    (verdict,) = engine.check(declared + PRODUCT)
    assert (verdict.status, verdict.obligations) == ("proved", ())
    assert len(engine.run(declared + PRODUCT)["p"]) == 3
    for row in ((7, 8, -3), (7, 8, 6)):
        engine.register("arc", [(1, 2, 3), row])
        with pytest.raises(DataError, match=r"`arc\(7, 8, .*\)` breaks `w .*which is declared"):
            engine.run(declared + PRODUCT)


@pytest.mark.parametrize(
    ("condition", "type", "good", "bad"),
    [
        ("w > 0.5", "number", 1, 0),
        ("w < 0.5", "number", 0, 1),
        ("w != 0", "float", 1.5, 0.0),
        ("w != 0.5", "number", 0, None),
        ("-1.5 <= w", "float", -1.5, -1.6),
    ],
)
def test_domains_of_all_numbers(
    engine: emberlog.Engine, condition: str, type: str, good: float, bad: float | None
) -> None:
    text = f".decl q(w: {type} where {condition})\np(X) <- q(X)."
    engine.register("q", [(good,)])
    assert list(engine.run(text)["p"].rows()) == [(good,)]
    if bad is not None:
        engine.register("q", [(good,), (bad,)])
        with pytest.raises(DataError, match="which is declared"):
            engine.run(text)


def test_domains_of_unsigned_numbers(engine: emberlog.Engine) -> None:
    for condition, fits in (("w >= -1", True), ("w < 7", True), ("w <= -1", False), ("w > 6", False)):
        text = f".decl q(w: unsigned where {condition})\nq(5u).\np(X) <- q(X)."
        if fits:
            assert list(engine.run(text)["p"].rows()) == [(5,)]
        else:
            with pytest.raises(DataError, match="which is declared"):
                engine.run(text)


# --- an aggregate on top of a recursion ------------------------------------------------------------------------------


def test_an_aggregate_moves_into_the_recursion(engine: emberlog.Engine) -> None:
    assert sorted(engine.run(stratified())["best"].rows()) == [
        (1, 1, 4), (1, 2, 3), (1, 3, 8), (2, 1, 1), (2, 2, 4), (2, 3, 5),
    ]  # fmt: skip
    shown = str(engine.explain(stratified()))
    assert "rewritten: the min of `best` is taken inside: nothing else reads `path`, and PreM holds" in shown
    assert "min of path: proved" in shown


@pytest.mark.parametrize(
    "goals", ["from(X), path(X, Y, D)", "path(X, Y, D), from(X), !from(Y)", "path(X, Y, D), X < 2"]
)
def test_it_moves_below_other_goals(engine: emberlog.Engine, goals: str) -> None:
    text = stratified(more="from(1).\n").replace("<- path(X, Y, D).", f"<- {goals}.")
    assert sorted(engine.run(text)["best"].rows())[-2:] == [(1, 2, 3), (1, 3, 8)]


@pytest.mark.parametrize(
    "text",
    [
        stratified().replace("<- path(X, Y, D).", "<- path(X, Y, D), path(Y, X, _)."),  # for two reasons
        stratified().replace("<- path(X, Y, D).", "<- path(X, Y, D), !arc(X, Y, D)."),
        stratified(more=".output path"),  # it is asked for
        stratified(more="long(X, Y) <- path(X, Y, D), D > 6."),  # somebody else reads it
        stratified(more="?- path(1, Y, D)."),
        stratified("max"),  # right, but without end
        stratified(step="W - C"),  # PreM does not hold
        stratified("sum"),
        STRATIFIED.format(function="min", step="C + W").replace("<- path(X, Y, D).", "<- path(X, Y, D), D > 3."),
    ],
)
def test_it_stays_on_top_otherwise(engine: emberlog.Engine, text: str) -> None:
    if "max" not in text:
        assert "rewritten" not in str(engine.explain(text))
    with pytest.raises(LimitError):
        engine.run(text)


def test_without_cycles_both_forms_agree(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2, 3), (2, 3, 5), (1, 3, 9), (3, 4, -2), (2, 4, 1)])
    moved = engine.run(stratified())["best"].rows()
    kept = engine.run(stratified(more=".output path"))["best"].rows()
    assert sorted(moved) == sorted(kept)


# --- is_min and is_max -----------------------------------------------------------------------------------------------

EXIT = "path(X, Y, D) <- arc(X, Y, D).\n"


@pytest.mark.parametrize(
    "rule",
    [
        "path(X, Y, D) <- path(X, Z, C), arc(Z, Y, W), D = C + W, is_min((X, Y), D).",
        "path(X, Y, min(D)) <- path(X, Z, C), is_min((X, Z), C), arc(Z, Y, W), D = C + W.",
        "path(X, Y, D) <- path(X, Z, C), is_min((X, Z), C), arc(Z, Y, W), D = C + W.",
    ],
)
def test_is_min(engine: emberlog.Engine, rule: str) -> None:
    assert len(engine.run(EXIT + rule)["path"]) == 6
    (verdict,) = engine.check(EXIT + rule)
    assert (verdict.aggregate, verdict.status) == ("min", "proved")


@pytest.mark.parametrize(
    "goal", ["is_max((X), D)", "is_max((X, Y), C)", "is_max((X, Z), C)", "!is_min((X, Y), D)", "is_min((1), D)"]
)
def test_is_min_in_the_wrong_place(engine: emberlog.Engine, goal: str) -> None:
    with pytest.raises(ProgramError):
        engine.run(EXIT + f"path(X, Y, min<D>) <- path(X, Z, C), arc(Z, Y, W), D = C + W, {goal}.")


# --- PreM in every round ---------------------------------------------------------------------------------------------

FILTERED = "p(Y, min<D>) <- arc(1, Y, D).\np(Y, min<D>) <- p(X, C), arc(X, Y, W), C > 5, D = C + W."


def test_prem_is_checked_in_every_round(engine: emberlog.Engine) -> None:
    engine.run(stratified(), check_prem=True)
    engine.run("p(Y, min<D>) <- arc(1, Y, D).\np(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C + W.", check_prem=True)
    engine.register("arc", [(1, 2, 7), (1, 2, 3), (2, 3, 1)])
    with pytest.raises(DataError, match=r"PreM does not hold in round 1: for the group \(3\) of `p` .*nothing.* 8"):
        engine.run(FILTERED, naive=True, check_prem=True)


def test_prem_may_hold_for_the_data_at_hand(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2, 7), (2, 3, 1), (3, 4, 1)])
    result = engine.run(FILTERED, naive=True, check_prem=True)
    assert sorted(result["p"].rows()) == [(2, 7), (3, 8), (4, 9)]


def test_prem_with_given_rows_and_sums(engine: emberlog.Engine) -> None:
    engine.register("p", [(1, 10)])
    text = "p(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C + W.\nn(X, count<Y>) <- p(Y, _), arc(Y, X, _)."
    assert sorted(engine.run(text, check_prem=True)["p"].rows()) == [(1, 10), (2, 13), (3, 18)]


# --- on Spark --------------------------------------------------------------------------------------------------------


def test_on_spark(spark: Any) -> None:
    """Conditions are checked where the rows are, and a moved aggregate ends there too."""
    declared = ".decl arc(x: number, y: number, w: number where w >= 0)\n"
    with emberlog.Engine(spark, limits={"rounds": 200}) as engine:
        for placement in ("spark", "local"):
            engine.register("arc", CYCLE)
            result = engine.run(stratified(), placement=placement, check_prem=True)
            assert len(result["best"]) == 6
            engine.register("arc", [(1, 2, 3), (7, 8, -3)])
            with pytest.raises(DataError, match="which is declared"):
                engine.run(declared + PRODUCT, placement=placement)
            with pytest.raises(DataError, match=r"`arc\(7, 8, -3\)` breaks W >= 0"):
                engine.run(PRODUCT, placement=placement)
