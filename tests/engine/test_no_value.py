"""Rules that have no value for some facts: the same error wherever they run, and only for facts that the rule takes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import emberlog
from engine.places import Place


def test_a_negative_number_has_whole_powers_only(place: Place) -> None:
    bases = {"q": [(-2.0, 3.0), (-2.0, -1.0), (-2.0, 1e300), (4.0, 0.5), (0.0, 0.5)]}
    result = place.run("p(Y) <- q(X,N), Y = X ^ N.", bases)
    assert sorted(result["p"].rows()) == [(-8.0,), (-0.5,), (0.0,), (2.0,), (float("inf"),)]
    for text in ("p(Y) <- q(X), Y = X ^ 0.5.", "p(Y) <- q(X), Y = pow(X, 0.5)."):
        with pytest.raises(emberlog.DataError, match=r"no value for X = -9.0: a power has no value") as raised:
            place.run(text, {"q": [(4.0,), (-9.0,)]})["p"].rows()
        assert raised.value.span is not None
    assert place.run("p(Y) <- q(X), X >= 0, Y = X ^ 0.5.", {"q": [(4.0,), (-9.0,)]})["p"].rows() == [(2.0,)]


def test_patterns_from_facts_that_are_none(place: Place) -> None:
    sources = {"name": [("Ann",), ("Bob",)], "wanted": [("A.*",), ("(B",)]}
    for goal in ("match(P, T)", "!match(P, T)"):
        with pytest.raises(emberlog.DataError, match="is not a regular expression: ") as raised:
            place.run(f"n(T) <- name(T).\np(T) <- n(T), wanted(P), {goal}.", sources)["p"].rows()
        assert raised.value.span is not None
        assert raised.value.span.line == 2


LEAST, MOST = -(2**63), 2**63 - 1
# A rule, the row that it has no value for, and the cause.
FAILURES = [
    ("p(Z) <- q(X, Y), Z = X / Y.", (LEAST, -1), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = X / Y.", (1, 0), "a divisor is zero"),
    ("p(X) <- q(X, Y), X / Y > 0.", (LEAST, -1), "an integer does not fit in 64 bits"),
    ("p(X / Y) <- q(X, Y).", (LEAST, -1), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), D = Y + 1, Z = X / D.", (LEAST, -2), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = X / (Y - 1).", (5, LEAST), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = X / (Y - 1).", (5, 1), "a divisor is zero"),
    ("p(Z) <- q(X, Y), Z = X % Y.", (LEAST, 0), "a divisor is zero"),
    ("p(Z) <- q(X, Y), Z = X ^ Y.", (2, 63), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = X ^ Y.", (2, -1), "a power has no value (an integer has no negative powers)"),
    ("p(Z) <- q(X, Y), Z = abs(X) + Y / Y.", (LEAST, 1), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = -X, Y != 0.", (LEAST, 1), "an integer does not fit in 64 bits"),
    ("p(Z) <- q(X, Y), Z = to_unsigned(X) / to_unsigned(Y).", (-1, 1), "a conversion fails (the number does not fit"),
    ("p(Z) <- q(X, Y), Z = X / to_number(Y).", (1, "x"), "a conversion fails ('x' is not a number)"),
    ("p(Z) <- q(X, Y), Z = X / to_number(Y).", (1, "0"), "a divisor is zero"),
    ("p(Z) <- q(X, Y), Z = X + to_number(Y).", (1, str(2**63)), "a conversion fails (the number does not fit"),
    ("p(Z) <- q(X, Y), Z = X / to_float(Y).", (1, "one"), "a conversion fails ('one' is not a float)"),
    ("p(Z) <- q(X, Y), Z = X ^ Y.", (-2.0, 0.5), "a power has no value (a negative number has whole powers only)"),
    ("p(Z) <- q(X, Y), Z = sqrt(X) / Y.", (4.0, 0.0), "a divisor is zero"),
    ("p(Z) <- q(X, Y), Z = sqrt(X) / Y.", (-4.0, 1.0), "a logarithm or root has no value"),
    (".decl p(z: int8)\np(Z) <- q(X, Y), Z = X / Y.", (300, 1), "a value does not fit in its column"),
]


@pytest.mark.spark_sample(4)
@pytest.mark.parametrize(("text", "row", "cause"), FAILURES, ids=[f"{text} {row}" for text, row, _ in FAILURES])
def test_the_cause_that_fits_the_values_is_told(text: str, row: tuple[Any, ...], cause: str, place: Place) -> None:
    with pytest.raises(emberlog.DataError) as raised:
        place.run(text, {"q": [row]})["p"].rows()
    assert raised.value.message.partition(": ")[2].startswith(cause)


# --- decimals --------------------------------------------------------------------------------------------------------

NINES, LOW = Decimal("9" * 38), Decimal("-" + "9" * 38)


def decimals(*values: Decimal, scale: int = 0) -> pa.Table:
    return pa.table({"i": range(len(values)), "x": pa.array(values, pa.decimal128(38, scale))})


@pytest.mark.spark_sample(4)
@pytest.mark.parametrize(
    "text",
    [
        "p(sum(X)) <- b(_, X).",
        "p(I, sum(X)) <- b(_, X), b(I, _).",
        "p(A) <- A = sum X : { b(_, X) }.",
        "p(I) <- b(I, X), to_number(X) > 0.",
        "p(N) <- b(_, X), N = to_unsigned(X).",
        "p(X) <- b(_, X). p(X) <- f(_, X).",
        "p(I) <- b(I, X), f(_, Y), X > Y.",
        "p(Y, sum(X)) <- b(Y, X). p(Y, sum(X)) <- p(_, X), b(Y, _).",
        ".decl p(x: decimal(38, 2))\np(X) <- b(_, X).",
    ],
)
def test_a_decimal_with_too_many_digits_is_an_error_of_the_data(text: str, place: Place) -> None:
    sources = {"b": decimals(NINES, NINES), "f": decimals(Decimal("0.5"), scale=30)}
    with pytest.raises(emberlog.DataError):
        place.run(text, sources)["p"].rows()


def test_sums_of_decimals_that_fit(place: Place) -> None:
    text = "p(sum(X)) <- b(_, X). n(A) <- A = sum X : { b(_, X), X > 1000 }. m(A) <- A = sum X : { b(_, X) }, b(0, _)."
    values = [Decimal("-99999999.25"), Decimal("99999998.75"), Decimal("0.125")]
    result = place.run(text, {"b": decimals(*values, scale=30)})
    assert (result["p"].rows(), result["m"].rows()) == ([(Decimal("-0.375"),)], [(Decimal("-0.375"),)])
    assert result["n"].rows() == [(Decimal("99999998.75"),)]
    assert place.run(text, {"b": decimals(NINES, LOW)})["p"].rows() == [(Decimal(0),)]
    assert place.run("n(A) <- A = sum X : { b(_, X), X > 1000 }.", {"b": decimals(Decimal(5))})["n"].rows() == [(0,)]


def test_a_decimal_becomes_an_integer_by_dropping_its_fraction(place: Place) -> None:
    values = [Decimal("1.50"), Decimal("-1.50"), Decimal("2.99"), Decimal("-0.75")]
    result = place.run("p(I, N) <- b(I, X), N = to_number(X).", {"b": decimals(*values, scale=2)})
    assert sorted(result["p"].rows()) == [(0, 1), (1, -1), (2, 2), (3, 0)]
    result = place.run("p(I, N) <- b(I, X), X > -1, N = to_unsigned(X).", {"b": decimals(*values, scale=2)})
    assert sorted(result["p"].rows()) == [(0, 1), (2, 2), (3, 0)]
    ends = [Decimal(LEAST), Decimal(MOST)]
    assert sorted(place.run("p(N) <- b(_, X), N = to_number(X).", {"b": decimals(*ends)})["p"].rows()) == [
        (LEAST,),
        (MOST,),
    ]


@pytest.mark.parametrize(
    "exits",
    [
        "p(Y) <- e(X), Y = 10 / X.",
        "p(X) <- e(X), Y = 10 / X.",
        "q(Y) <- e(X), Y = 10 / X. p(Y) <- q(Y).",
    ],
)
def test_rows_that_feed_recursion(place: Place, exits: str) -> None:
    """On Spark the workers' job reads them: it fails, and the rule is to blame."""
    with pytest.raises(emberlog.DataError, match="no value for X = 0: a divisor is zero") as raised:
        place.run(f"{exits}\np(Y) <- p(X), f(X, Y).", {"e": [(0,), (1,)], "f": [(1, 2), (2, 3)]})["p"].rows()
    assert raised.value.span is not None


def test_decimals_that_feed_recursion(place: Place) -> None:
    with pytest.raises(emberlog.DataError):
        place.run("t(sum<X>) <- b(_, X). p(X) <- t(X). p(X) <- p(X), b(_, X).", {"b": decimals(NINES, NINES)})[
            "p"
        ].rows()
