"""Decimals of different types, and Spark with and without ANSI mode: the same rows, or an error, in every engine."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import emberlog
from engine.places import Place

ANSI = "spark.sql.ansi.enabled"


def decimals(*values: str, precision: int = 38, scale: int = 0) -> pa.Table:
    return pa.table({"x": pa.array(map(Decimal, values), pa.decimal128(precision, scale))})


def shown(result: emberlog.Result) -> list[tuple[str, ...]]:
    """The rows of `q` as text, without zeros at the end."""
    return sorted(tuple(f"{value.normalize():f}" for value in row) for row in result["q"].rows())


@pytest.fixture(params=["true", "false"])
def ansi(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    """Spark's ANSI mode, on and off."""
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, request.param)
    yield request.param
    spark.conf.set(ANSI, before)


# A type for both columns would have more than 38 digits: an engine that is left alone rounds 1.5 to 2.
MIXED = {
    "whole": decimals("2", "3"),
    "part": decimals("1.5", "3", scale=18),
    "few": decimals("2.5", precision=3, scale=1),
    "exact": decimals("1.125", precision=9, scale=6),
}
ANSWERS = [
    ("q(X) <- whole(X), part(X).", ["3"]),
    ("q(X) <- part(X), whole(X).", ["3"]),
    ("q(X) <- whole(X), X = Y, part(Y).", ["3"]),
    ("q(X) <- whole(X), !part(X).", ["2"]),
    ("q(X) <- part(X), !whole(X).", ["1.5"]),
    ("q(X) <- whole(X). q(X) <- part(X).", ["1.5", "2", "3"]),
    ("q(X) <- whole(X); part(X); few(X).", ["1.5", "2", "2.5", "3"]),
    ("q(Z) <- whole(X), part(Y), Z = min(X, Y).", ["1.5", "2", "3"]),
    ("q(Z) <- whole(X), part(Y), Z = max(Y, X).", ["2", "3"]),
    ("q(max(X)) <- part(X), X < 2. q(max(X)) <- whole(X), X < 3.", ["2"]),
    ("q(sum(X)) <- part(X). q(sum(X)) <- whole(X).", ["9.5"]),
    ("r(X) <- whole(X), part(X). q(X) <- r(X). q(X) <- part(X).", ["1.5", "3"]),
    ("q(X) <- whole(X). q(Y) <- q(X), part(Y).", ["1.5", "2", "3"]),
    ("q(X) <- part(X). q(Y) <- q(X), whole(Y).", ["1.5", "2", "3"]),
    ("q(X) <- whole(X). q(Y) <- q(X), part(Y), Y != 3.0.", ["1.5", "2", "3"]),
    ("q(X) <- few(X). q(Y) <- q(X), exact(Y).", ["1.125", "2.5"]),
    ("q(X) <- exact(X). q(Y) <- q(X), few(Y), Y != 1.1250.", ["1.125", "2.5"]),
    ("q(min(X)) <- whole(X). q(min(Y)) <- q(_), part(Y).", ["1.5"]),
]


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize(("text", "answer"), ANSWERS, ids=[text for text, _ in ANSWERS])
def test_decimals_of_different_types_are_not_rounded(place: Place, text: str, answer: list[str]) -> None:
    assert shown(place.run(text, MIXED)) == [(value,) for value in answer]


MISFITS = [
    "q(max(X)) <- large(X). q(max(X)) <- small(X).",
    "q(sum(X)) <- large(X). q(sum(X)) <- small(X).",
    "q(X) <- large(X). q(X) <- small(X).",
    "q(X) <- large(X), small(Z), X > Z.",
    "q(X) <- large(X), small(Z), X != Z.",
    "q(X) <- large(X), small(X).",
    "q(X) <- large(X), !small(X).",
    "q(Z) <- large(X), small(Y), Z = max(X, Y).",
    "q(X) <- large(X). q(Y) <- q(X), small(Y).",
    ".decl q(x: decimal(38, 18))\nq(X) <- large(X).",
]
LARGE = {"large": decimals("-10000000000000000000000000"), "small": decimals("1.5", scale=18)}
NO_ROOM = "-10000000000000000000000000 has too many digits for DECIMAL(38,18)"


@pytest.mark.parametrize("text", MISFITS)
def test_digits_that_have_no_room_are_an_error(local: Place, text: str) -> None:
    with pytest.raises(emberlog.DataError, match="does not fit"):
        local.run(text, LARGE)["q"].rows()


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize("text", MISFITS)
def test_digits_that_have_no_room_are_an_error_of_spark_too(on_spark: Place, ansi: str, text: str) -> None:
    with pytest.raises(emberlog.DataError) as raised:
        on_spark.run(text, LARGE)["q"].rows()
    assert NO_ROOM in raised.value.message


def test_a_missing_value_is_no_decimal_without_room(on_spark: Place, ansi: str) -> None:
    text = "q(Z) <- n(X), Z = sum Y : { large(Y), X > 0 }. q(Y) <- small(Y)."
    assert shown(on_spark.run(text, {**LARGE, "n": [(0,)]})) == [("0",), ("1.5",)]


def test_decimals_as_text(on_spark: Place, ansi: str) -> None:
    sources = {"d": decimals("0.0000001", "0", "-12.5", scale=18)}
    found = on_spark.run("q(S) <- d(X), S = to_string(X).", sources)["q"].rows()
    assert sorted(found) == [("-12.500000000000000000",), ("0.000000000000000000",), ("0.000000100000000000",)]


def test_the_users_setting_stays(on_spark: Place, ansi: str, spark: Any) -> None:
    on_spark.run("q(X) <- n(X).", {"n": [(1,)]})["q"].rows()
    assert spark.conf.get(ANSI) == ansi
