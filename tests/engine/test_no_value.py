"""Rules that have no value for some facts: the same error wherever they run, and only for facts that the rule takes."""

from __future__ import annotations

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
