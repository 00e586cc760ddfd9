"""`true`, `false`, `True` and `False` are booleans where a boolean stands, and variables elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
import naive
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place

FACTS: dict[str, list[tuple[Any, ...]]] = {
    "person": [(1, "Ann", True), (2, "Bob", False), (3, "Eve", True)],
    "n": [(1, 5), (2, 6), (3, 3)],
}
PROGRAMS = [
    ("p(I) <- person(I, _, True).", {(1,), (3,)}),
    ("p(I) <- person(I, _, true).", {(1,), (3,)}),
    ("p(I) <- person(I, _, False).", {(2,)}),
    ("p(I) <- person(I, _, X), X = False.", {(2,)}),
    ("p(I) <- person(I, _, X), True != X.", {(2,)}),
    ("p(I) <- person(I, _, X), !(X = True).", {(2,)}),
    ("p(I) <- person(I, _, _), !person(I, _, True).", {(2,)}),
    ("p(C) <- C = count : { person(_, _, True) }.", {(2,)}),
    ("p(I, True) <- person(I, _, False).", {(2, True)}),
    ("p(X) <- q(X, True). q(1, True). q(2, False).", {(1,)}),
    ("p(X) <- q(X, True). q(X, False) <- person(X, _, True). q(X, True) <- person(X, _, False).", {(2,)}),
    ("p(True) <- person(_, _, True).", {(True,)}),
    ("p(X) <- X = True.", {(True,)}),
    ("p(I) <- n(I, True).", {(1,), (2,), (3,)}),
    ("p(I) <- n(I, true).", {(1,), (2,), (3,)}),
    ("p(I, True) <- n(I, True).", {(1, 5), (2, 6), (3, 3)}),
    ("p(True) <- n(True, True).", {(3,)}),
    ("p(True) <- n(True, X), X > True.", {(1,), (2,)}),
]


@pytest.mark.spark_sample(4)
@pytest.mark.parametrize(("text", "rows"), PROGRAMS, ids=[text for text, _ in PROGRAMS])
def test_rows(text: str, rows: set[tuple[Any, ...]], place: Place) -> None:
    assert naive.evaluate(parse(Source("test.dl", text)), FACTS)["p"] == rows
    assert set(place.engine(FACTS).run(text, placement=place.placement)["p"].rows()) == rows


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("person(X, Y, True)", [FACTS["person"][0], FACTS["person"][2]]),
        ("person(X, _, false)", [FACTS["person"][1]]),
        ("n(X, True)", FACTS["n"]),
        ("n(True, True)", [(3, 3)]),
    ],
)
def test_goals(goal: str, rows: list[tuple[Any, ...]], local: Place) -> None:
    engine = local.engine(FACTS)
    assert sorted(engine.query(goal, "q(1).", warnings="error").rows()) == rows
    (answer,) = engine.run(f"?- {goal}.", warnings="error").goals
    assert sorted(answer.rows()) == rows


@pytest.mark.parametrize("word", ["True", "False", "true", "false"])
def test_a_word_that_matches_anything_is_warned_of(word: str, local: Place) -> None:
    with pytest.warns(emberlog.EmberlogWarning, match=f"the variable `{word}` stands once"):
        local.engine(FACTS).run(f"p(I) <- n(I, {word}).")
    local.engine(FACTS).run(f"p(I) <- person(I, _, {word}).", warnings="error")


@pytest.mark.parametrize(
    "text",
    [
        "p(I) <- n(I, X), X = True.",
        "p(I) <- n(I, _), !n(I, True).",
        "p(I) <- n(I, X), X > True + 1.",
        ".decl p(x: number)\np(True).",
        ".decl p(x: number)\np(True) <- n(_, _).",
        "p(I) <- n(I, True), person(I, _, True).",
    ],
)
def test_where_neither_a_boolean_nor_a_variable_can_stand_is_an_error(text: str, local: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match="bool"):
        local.engine(FACTS).run(text)


def test_in_bigdatalogs_dialect_a_lower_case_word_is_a_text_elsewhere(local: Place) -> None:
    engine = local.engine({"s": [("true", True), ("x", False)]})
    text = "database({s(A: string, B: bool)}). p(B) <- s(true, B). q(A) <- s(A, false)."
    result = engine.run(text, warnings="error")
    assert (result["p"].rows(), result["q"].rows()) == ([(True,)], [("x",)])
