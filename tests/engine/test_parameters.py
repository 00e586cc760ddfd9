"""Parameters: they have the types of their Python values, and a list is a relation of one column."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pandas as pd
import pytest

import emberlog
import naive
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place

DAY, LATER = date(2024, 1, 1), date(2024, 2, 1)
NOON = datetime(2024, 1, 1, 12, 0, 0, 5)
ROWS: list[tuple[Any, ...]] = [
    (1, "a", DAY, NOON, Decimal("1.50"), True, 2.5),
    (2, "b", LATER, datetime(2024, 2, 1), Decimal("22.25"), False, float("inf")),
]


class Level(IntEnum):
    LOW = 1


# A program, its parameters, and the rows of `p`.
PROGRAMS: list[tuple[str, dict[str, Any], list[tuple[Any, ...]]]] = [
    ("p(I) <- s(I,_,$A,_,_,_,_).", {"A": DAY}, [(1,)]),
    ("p(I) <- s(I,_,X,_,_,_,_), X > $A.", {"A": DAY}, [(2,)]),
    ("p($A).", {"A": DAY}, [(DAY,)]),
    ("p(I, $A) <- s(I,_,_,_,_,_,_).", {"A": DAY}, [(1, DAY), (2, DAY)]),
    ("p(I) <- s(I,_,_,$A,_,_,_).", {"A": NOON}, [(1,)]),
    ("p(I) <- s(I,_,_,X,_,_,_), X <= $A.", {"A": NOON}, [(1,)]),
    ("p($A).", {"A": NOON}, [(NOON,)]),
    ("p(I) <- s(I,_,_,_,$A,_,_).", {"A": Decimal("1.5")}, [(1,)]),
    ("p(I) <- s(I,_,_,_,X,_,_), X > $A.", {"A": Decimal("1.505")}, [(2,)]),
    ("p($A).", {"A": Decimal("-0.05")}, [(Decimal("-0.05"),)]),
    ("p($A).", {"A": Decimal("1E+3")}, [(Decimal(1000),)]),
    ("p(I) <- s(I,_,_,_,_,$A,_).", {"A": False}, [(2,)]),
    ("p($A).", {"A": True}, [(True,)]),
    ("p(I) <- s(I,_,_,_,_,_,$A).", {"A": float("inf")}, [(2,)]),
    ("p(I) <- s(I,_,_,_,_,_,_), I = $A.", {"A": np.int64(1)}, [(1,)]),
    ("p(I) <- s(I,_,_,_,_,_,_), I = $A.", {"A": Level.LOW}, [(1,)]),
    ("p(I) <- s(I,_,_,_,_,$A,_).", {"A": np.bool_(True)}, [(1,)]),
    ("p(I) <- s(I,_,_,_,_,_,_), $A(I).", {"A": [1, 3]}, [(1,)]),
    ("p(I) <- s(I,_,_,_,_,_,_), !$A(I).", {"A": [1, 3]}, [(2,)]),
    ("p(I) <- s(I,X,_,_,_,_,_), $A(X).", {"A": ["b", "c"]}, [(2,)]),
    ("p(I) <- s(I,X,_,_,_,_,_), $A(X).", {"A": []}, []),
    ("p(I) <- s(I,X,_,_,_,_,_), !$A(X).", {"A": []}, [(1,), (2,)]),
    ("p(I) <- s(I,_,X,_,_,_,_), $A(X).", {"A": [LATER]}, [(2,)]),
    ("p(I) <- s(I,_,_,X,_,_,_), $A(X).", {"A": [NOON]}, [(1,)]),
    ("p(I) <- s(I,_,_,_,X,_,_), $A(X).", {"A": [Decimal("1.5"), Decimal(7)]}, [(1,)]),
    ("p(I) <- s(I,_,_,_,_,X,_), $A(X).", {"A": [True]}, [(1,)]),
    ("p(X) <- $A(X).", {"A": [1.5, 2]}, [(1.5,), (2.0,)]),
    ("p(N) <- N = count : { $A(_) }.", {"A": ["x", "y", "x"]}, [(2,)]),
    ("p(X) <- $A(X); $B(X).", {"A": [1], "B": [2]}, [(1,), (2,)]),
]


@pytest.mark.spark_sample(4)
@pytest.mark.parametrize(("text", "params", "rows"), PROGRAMS, ids=[f"{text} {params}" for text, params, _ in PROGRAMS])
def test_rows(text: str, params: dict[str, Any], rows: list[tuple[Any, ...]], place: Place) -> None:
    found = place.run(text, {"s": ROWS}, params)["p"].rows()
    assert sorted(found) == rows
    assert [tuple(map(type, row)) for row in found] == [tuple(map(type, row)) for row in rows]
    assert sorted(naive.evaluate(parse(Source("test.dl", text)), {"s": ROWS}, params)["p"]) == rows


@pytest.mark.parametrize("evaluator", ["auto", "sql", "kernel"])
def test_a_decimal_with_more_digits_than_the_column_has(evaluator: str, local: Place) -> None:
    engine = local.engine({"arc": [(Decimal(1), Decimal(2)), (Decimal(2), Decimal(3))]})
    text = "r(Y) <- arc(_, Y), Y < $MOST. r(Y) <- r(X), arc(X, Y), X != $NOT, Y < $MOST."
    given = {"MOST": Decimal("2.501"), "NOT": Decimal("1.0001")}
    assert engine.run(text, given, evaluator=evaluator)["r"].rows() == [(Decimal(2),)]


@pytest.mark.parametrize("evaluator", ["auto", "sql", "kernel"])
@pytest.mark.parametrize("values", [(1, 2, 3), ("a", "b", "c"), (DAY, LATER, date(2024, 3, 1)), "decimals", "moments"])
def test_recursion_from_a_parameter_of_any_type(values: Any, evaluator: str, local: Place) -> None:
    if values == "decimals":
        values = (Decimal("1.5"), Decimal("2.25"), Decimal("30"))
    elif values == "moments":
        values = (NOON, NOON + timedelta(hours=1), NOON + timedelta(days=2))
    a, b, c = values
    engine = local.engine({"arc": [(a, b), (b, c), (c, b)]})
    text = "r(Y) <- arc($FROM, Y). r(Y) <- r(X), arc(X, Y), X != $NOT. t(Y) <- $ALL(Y). t(Y) <- t(X), arc(X, Y)."
    result = engine.run(text, {"FROM": a, "NOT": c, "ALL": [b]}, evaluator=evaluator)
    assert (sorted(result["r"].rows()), sorted(result["t"].rows())) == ([(b,), (c,)], [(b,), (c,)])


def test_a_list_is_no_result_of_its_own(local: Place) -> None:
    result = local.run("p(X) <- $A(X).", None, {"A": [1]})
    assert list(result) == ["p"]
    (answer,) = local.run("?- $A(2).", None, {"A": [1, 2]}).goals
    assert answer.rows() == [(2,)]


def test_a_query_keeps_the_lists_of_the_last_run(local: Place) -> None:
    engine = local.engine()
    engine.run("p(X) <- $A(X).", {"A": [1, 2]})
    assert engine.query("p(2)").rows() == [(2,)]
    assert engine.query("p(X)", params={"A": [7]}).rows() == [(7,)]


def test_a_moment_with_a_time_zone_is_its_wall_time_in_utc(local: Place) -> None:
    east = NOON.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))
    assert local.run("p($A).", None, {"A": east})["p"].rows() == [(NOON,)]
    assert local.run("p($A).", None, {"A": pd.Timestamp("2024-01-01")})["p"].rows() == [(datetime(2024, 1, 1),)]


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED = [
    (None, "the parameter `A` is of type NoneType: None"),
    ({1}, "the parameter `A` is of type set"),
    ({1: 2}, "the parameter `A` is of type dict"),
    ((1, 2), "the parameter `A` is of type tuple"),
    (b"x", "the parameter `A` is of type bytes"),
    (object(), "the parameter `A` is of type object"),
    (timedelta(1), "the parameter `A` is of type timedelta"),
    (np.array([1, 2]), "the parameter `A` is of type ndarray"),
    (np.datetime64("2024-01-01"), "the parameter `A` is of type datetime64"),
    (pd.NaT, "the parameter `A` is of type NaTType"),
    (pd.Timestamp("2024-01-01 00:00:00.000000001"), "the parameter `A` is of type Timestamp"),
    (float("nan"), "the parameter `A` is NaN"),
    (2**64, "the parameter `A` does not fit in 64 bits"),
    (10**5000, "the parameter `A` does not fit in 64 bits: a very large int"),
    (-(2**63) - 1, "the parameter `A` does not fit in 64 bits"),
    (Decimal("NaN"), "the parameter `A` is no decimal number"),
    (Decimal("1E+40"), "the parameter `A` is no decimal number"),
    (Decimal("1E-40"), "the parameter `A` is no decimal number"),
    ("\ud800", "the parameter `A` is not valid Unicode"),
    ([1, "a"], "value 2 of the list `A` is a symbol, and the values before it are numbers"),
    ([DAY, NOON], "value 2 of the list `A` is a timestamp, and the values before it are dates"),
    ([1, None], "value 2 of the list `A` is of type NoneType"),
    ([[1]], "value 1 of the list `A` is of type list"),
    ([(1, 2)], "value 1 of the list `A` is of type tuple"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_value_that_no_parameter_has_is_named(value: Any, message: str, local: Place) -> None:
    engine, text = local.engine(), "p(X) <- X = $A."
    for call in (engine.run, engine.check, engine.explain):
        with pytest.raises(emberlog.UsageError) as raised:
            call(text, {"A": value})
        assert message in raised.value.message
    with pytest.raises(emberlog.UsageError):
        engine.query("p(X)", text, {"A": value})


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("p(X) <- X = $A.", {"A": [1]}, "the parameter `$A` is a list, not one value"),
        ("p(X) <- $A(X).", {"A": 1}, "the parameter `$A` is one value, not a list"),
        ("p(X) <- $A(X).", {}, "the parameter `$A` has no value"),
        ("p(X) <- $A(X, _).", {"A": [1]}, "`$A` has 1 argument, not 2"),
        ('p(X) <- $A(X), X = "a".', {"A": [1]}, "type conflict"),
        ("p(X) <- s(X,_,$A,_,_,_,_).", {"A": 5}, "type conflict: number where date is wanted"),
        ("p(X) <- s(X,_,$A,_,_,_,_).", {"A": NOON}, "is not a date"),
        ("p(X) <- s(X,$A,_,_,_,_,_).", {"A": DAY}, "type conflict: date where symbol is wanted"),
        ("p(X) <- s(X,_,_,_,$A,_,_).", {"A": Decimal("1.505")}, "1.505 does not fit the type decimal(4,2)"),
        ("p(X) <- s(X,_,_,_,_,_,$A).", {"A": Decimal("1.5")}, "type conflict: decimal(2,1) where float is wanted"),
    ],
)
def test_a_parameter_in_the_wrong_place(text: str, params: dict[str, Any], message: str, local: Place) -> None:
    with pytest.raises(emberlog.ProgramError) as raised:
        local.run(text, {"s": ROWS}, params)
    assert message in str(raised.value)
