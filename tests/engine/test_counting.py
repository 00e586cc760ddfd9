"""Totals whose type is not that of what they total: `countd` of any value, decimals, narrow columns."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

import emberlog
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place
from naive import evaluate

RECURSIVE = "p(X) <- v(X). q(Y, countd<T>) <- p(X), w(Y,X,T). p(X) <- q(X,N), N >= 2."
VALUES: dict[str, tuple[Any, Any, Any]] = {
    "text that reads as one number": ("1", "01", "2"),
    "text": ("a", "b", "c"),
    "numbers": (1, 2, 3),
    "floats": (1.5, 2.5, 0.0),
    "dates": (date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)),
    "timestamps": (datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13), datetime(2024, 1, 3)),
    "decimals": (Decimal("1.10"), Decimal("1.20"), Decimal("2.00")),
}


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_of_every_type_are_counted_in_recursion(place: Place, values: tuple[Any, Any, Any]) -> None:
    one, other, third = values
    rows = [(2, 1, one), (2, 1, other), (3, 2, one), (3, 2, third), (4, 3, one)]
    result = place.run(RECURSIVE, {"v": [(1,)], "w": rows})
    assert sorted(result["p"].rows()) == [(1,), (2,), (3,)]
    assert sorted(result["q"].rows()) == [(2, 2), (3, 2), (4, 1)]


def test_booleans_are_counted_in_recursion(place: Place) -> None:
    result = place.run(RECURSIVE, {"v": [(1,)], "w": [(2, 1, True), (2, 1, False), (3, 2, True)]})
    assert sorted(result["q"].rows()) == [(2, 2), (3, 1)]


def test_values_from_below_are_counted_with_those_of_the_recursion(place: Place) -> None:
    text = f"{RECURSIVE} q(Y, countd<T>) <- e(Y,T)."
    result = place.run(text, {"v": [(1,)], "w": [(2, 1, "1"), (3, 2, "1"), (4, 2, "2")], "e": [(2, "01"), (4, "2")]})
    assert sorted(result["q"].rows()) == [(2, 2), (3, 1), (4, 1)]


ADDED = (
    "q(Y, countd<T>) <- w(Y,X,T). q(Y,N) <- z(Y,N).",
    "q(Y, countd<T>) <- w(Y,X,T). q(2,5). q(9,1).",
    "p(X) <- v(X). q(Y, countd<T>) <- p(X), w(Y,X,T). q(Y,N) <- z(Y,N). p(X) <- q(X,N), N >= 2.",
    "p(X) <- v(X). q(Y, countd<T>) <- p(X), w(Y,X,T). q(Y,N) <- p(Y), z(Y,N). p(X) <- q(X,N), N >= 2.",
    "q(Y, countd<T>, sum<X>, avg<X>, max<X>) <- w(Y,X,T). q(Y,N,N,0.5,N) <- z(Y,N).",
    "q(Y, countd<T>, count<X>) <- w(Y,X,T). q(Y,N,count<N>) <- z(Y,N).",
    "q(Y,N) <- z(Y,N). q(Y, countd<T>) <- w(Y,X,T), X > 100.",
)


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize("text", ADDED)
def test_rows_that_bring_counts_add_to_what_is_counted(place: Place, text: str) -> None:
    facts: dict[str, list[Any]] = {
        "v": [(1,)],
        "w": [(2, 1, "a"), (2, 1, "b"), (3, 2, "a"), (3, 2, "c")],
        "z": [(2, 5), (9, 1)],
    }
    expected = evaluate(parse(Source("program", text)), {name: set(rows) for name, rows in facts.items()})
    found = place.run(text, facts)
    assert sorted(found["q"].rows()) == sorted(expected["q"])


def test_a_number_counts_as_a_float_where_floats_are_counted(place: Place) -> None:
    sources = {"a": [(1, 2), (1, 3)], "b": [(1, 2.0), (1, 2.5)]}
    assert place.run("q(X, countd<Y>) <- a(X,Y). q(X, countd<Y>) <- b(X,Y).", sources)["q"].rows() == [(1, 3)]


def test_one_countd_counts_values_of_one_type(local: Place) -> None:
    sources = {"a": [(1, 2)], "b": [(1, "2")]}
    with pytest.raises(emberlog.ProgramError, match="the `countd` of `q` counts symbol and number"):
        local.run("q(X, countd<Y>) <- a(X,Y). q(X, countd<Y>) <- b(X,Y).", sources)
    with pytest.raises(emberlog.ProgramError, match="counts in one `countd` column and gives a count to another"):
        local.run("q(countd<X>, countd<Y>) <- a(X,Y). q(countd<X>, 1) <- a(X,Y).", sources)


# --- totals of other types than what they are totals of ---------------------------------------------------------------

SMALL_DIGITS, MANY_DIGITS = [(3, Decimal("7.5"))], [(1, Decimal("1.2345")), (2, Decimal("2.5000"))]


def test_decimals_of_several_rules_keep_all_their_digits(place: Place) -> None:
    sources = {"a": MANY_DIGITS, "b": SMALL_DIGITS}
    once = place.run("q(K, sum<X>) <- b(K,X). q(K, sum<X>) <- a(K,X).", sources)
    assert sorted(once["q"].rows()) == [(1, Decimal("1.2345")), (2, Decimal("2.5")), (3, Decimal("7.5"))]
    inside = place.run("t(K, sum<W>) <- b(K,W). t(K, sum<W>) <- t(J,_), a(K,W), K < J.", sources)
    assert sorted(inside["t"].rows()) == [(1, Decimal("2.469")), (2, Decimal("2.5")), (3, Decimal("7.5"))]


def test_a_decimal_that_a_declared_column_cannot_hold_is_a_type_conflict(local: Place) -> None:
    for rule in ("q(K,X) <- a(K,X).", "q(K, sum<X>) <- a(K,X).", "q(K, max<X>) <- a(K,X)."):
        with pytest.raises(emberlog.ProgramError, match=r"decimal\(5,4\) where decimal\(10,2\) is wanted"):
            local.run(f".decl q(k: number, x: decimal(10,2))\n{rule}", {"a": MANY_DIGITS})
    wide = local.run(".decl q(k: number, x: decimal(12,5))\nq(K,X) <- a(K,X).", {"a": MANY_DIGITS})
    assert sorted(wide["q"].rows()) == MANY_DIGITS


NARROW = (
    ("int8", "t(K, sum<W>) <- b(K,W).", [(1, 100), (1, 27)], [(1, 127)]),
    ("int8", "t(K, sum<W>) <- b(K,W).", [(1, 100), (1, 28)], None),
    ("int8", "t(K, count<W>) <- b(K,W).", [(1, number) for number in range(128)], None),
    ("int8", "t(K, countd<W>) <- b(K,W).", [(1, number) for number in range(128)], None),
    ("int8", "t(K, sum<W>) <- b(K,W). t(K, sum<W>) <- t(J,_), b(K,W), K > J.", [(1, 100), (2, 64)], None),
    ("float32", "t(K, sum<W>) <- b(K,W).", [(1, 0.1), (1, 0.2)], [(1, 0.30000001192092896)]),
    ("float32", "t(K, avg<W>) <- b(K,W).", [(1, 0.1), (1, 0.2)], [(1, 0.15000000596046448)]),
)


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize(("type", "rules", "rows", "expected"), NARROW)
def test_a_total_is_checked_where_it_enters_a_narrow_column(
    place: Place, type: str, rules: str, rows: list[tuple[Any, ...]], expected: list[tuple[Any, ...]] | None
) -> None:
    text = (
        f".decl b(k: number, w: {'float' if type == 'float32' else 'number'})\n.decl t(k: number, w: {type})\n{rules}"
    )
    if expected is None:
        with pytest.raises(emberlog.DataError, match="has a total that does not fit its column"):
            place.run(text, {"b": rows})["t"].rows()
    else:
        assert place.run(text, {"b": rows})["t"].rows() == expected
