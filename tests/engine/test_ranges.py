"""`range`: exact at the ends of 64 bits, the same floats everywhere, and an error for what is no range or too long."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from engine.places import Place
from naive.values import Unsigned, steps

FIRST, LAST = -(2**63), 2**63 - 1
NUMBERS = [
    (LAST - 7, LAST, 1),
    (2**53 + 1, 2**53 + 3, 1),
    (LAST, LAST - 3, -1),
    (FIRST + 3, FIRST, -1),
    (FIRST, LAST, 2**62),
    (LAST, FIRST, -(2**62)),
    (FIRST, LAST, LAST),
    (-5, 5, 3),
    (5, -5, -3),
    (0, 6, 3),
    (6, 0, -3),
    (5, 5, 1),
    (5, 1, 1),
    (1, 5, -1),
    (LAST, FIRST, 1),
    (FIRST, LAST, -1),
    (LAST, LAST, FIRST),
    (0, LAST, LAST),
]
UNSIGNED = [(2**64 - 3, 2**64 - 1, 1), (0, 2**64 - 1, 2**63), (2**64 - 1, 2**64 - 3, 1), (5, 9, 2)]
FLOATS = [
    (0.0, 1.0, 0.25),
    (1.0, 0.0, -0.3),
    (0.0, 1.0, 1 / 49),
    (0.0, 0.3, 0.1),
    (0.0, 0.7, 0.1),
    (0.0, -1.0, 1.0),
    (-1.0, 1.0, 1.0),
    (2.0**53, 2.0**53 + 4, 1.0),
    (0.0, 5e-324, 1.0),
]


@pytest.mark.parametrize("cases", [NUMBERS, UNSIGNED, FLOATS], ids=["numbers", "unsigned", "floats"])
def test_every_value_before_the_end_and_no_other(place: Place, cases: list[tuple[Any, ...]]) -> None:
    kind = {NUMBERS[0]: "number", UNSIGNED[0]: "unsigned", FLOATS[0]: "float"}[cases[0]]
    text = f".decl a(i: number, b: {kind}, e: {kind}, s: {kind})\np(I, X) <- a(I, B, E, S), X = range(B, E, S)."
    rows = [(number, *case) for number, case in enumerate(cases)]
    made = Unsigned if kind == "unsigned" else lambda value: value
    expected = {(number, value) for number, *case in rows for value in steps(*map(made, case))}
    found = place.run(text, {"a": rows})["p"].rows()
    assert sorted(found) == sorted(expected)
    assert len(found) == len(expected)


def test_ranges_of_constants_and_without_a_step(place: Place) -> None:
    text = """
    p(X) <- X = range(9223372036854775800, 9223372036854775807).
    q(X) <- X = range(9007199254740993, 9007199254740995).
    r(X) <- X = range(3, 0).
    s(to_string(X)) <- X = range(0, 2.5).
    t(X) <- X = range(18446744073709551613u, 18446744073709551615u).
    """
    result = place.run(text)
    assert sorted(result["p"].rows()) == [(value,) for value in range(2**63 - 8, 2**63 - 1)]
    assert sorted(result["q"].rows()) == [(2**53 + 1,), (2**53 + 2,)]
    assert sorted(result["r"].rows()) == [(1,), (2,), (3,)]
    assert sorted(result["s"].rows()) == [("0.0",), ("1.0",), ("2.0",)]
    assert sorted(result["t"].rows()) == [(2**64 - 3,), (2**64 - 2,)]


INF, NAN = float("inf"), float("nan")
BAD: list[tuple[Any, ...]] = [
    (0, LAST, 1),
    (FIRST, LAST, 1),
    (LAST, FIRST, -1),
    (0, 100_000_001, 1),
    (0, 5, 0),
    (0.0, INF, 1.0),
    (0.0, 1.0, NAN),
    (NAN, 1.0, 1.0),
    (0.0, 1.0, INF),
    (-INF, 1.0, 1.0),
    (0.0, 1.0, 1e-300),
    (0.0, 1.0, 0.0),
]


@pytest.mark.parametrize("bounds", BAD)
def test_no_range_is_an_error_of_the_rule(local: Place, bounds: tuple[Any, ...]) -> None:
    _no_range(local, bounds)


def test_no_range_is_an_error_on_spark(on_spark: Place) -> None:
    for bounds in ((FIRST, LAST, 1), (0.0, 1.0, NAN)):
        _no_range(on_spark, bounds)


def _no_range(place: Place, bounds: tuple[Any, ...]) -> None:
    sources: dict[str, Any] = {"a": [(*bounds, 1)]}
    with pytest.raises(emberlog.DataError, match=r"no value for B = .*a range has step 0, a bound that is not finite"):
        place.run("p(X) <- a(B, E, S, _), X = range(B, E, S).", sources)["p"].rows()
    # Only for bindings that satisfy the rest of the body.
    for text in (
        "p(X) <- a(B, E, S, N), X = range(B, E, S), N > 1.",
        "p(X) <- X = range(B, E, S), N > 1, a(B, E, S, N).",
        "p(X) <- a(B, E, S, N), X = range(B, E, S), !a(_, _, _, N).",
    ):
        assert place.run(text, sources)["p"].rows() == []
