"""What is said of text that is no program. `messages.txt` has a text and the message for each kind of mistake."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from emberlog.diagnostics import Diagnostic, ProgramError
from emberlog.source import Source
from emberlog.syntax.parser import parse, parse_goal


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ProgramError) as caught:
        parse(Source("test.dl", dedent(text)))
    return caught.value.diagnostics()


def golden_messages() -> dict[str, str]:
    """Program texts with mistakes, and what is shown for each."""
    golden = (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8")
    blocks = (block.partition("\n-----\n") for block in golden.split("=====\n")[1:])
    return {text: message.rstrip("\n") for text, _, message in blocks}


MESSAGES = golden_messages()


@pytest.mark.parametrize("text", MESSAGES)
def test_message(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse(Source("test.dl", text))
    assert str(caught.value) == MESSAGES[text]


def test_all_mistakes_of_a_run_are_told_in_order() -> None:
    found = mistakes(
        """\
        p(x) :- q(x), x == 1.
        p(x) :- q(x y).
        q(1)
        q(2).
        .declare r(x: number)
        .decl s(x number)
        p("open).
        p(x) :- q(x,
                  , x),
            x > 3.
        q(3).
        p(1 & 2).
        p(99999999999999999999, 0b3).
        q(4
        """
    )
    assert [(diagnostic.code, diagnostic.span and diagnostic.span.line) for diagnostic in found] == [
        ("E0108", 1),
        ("E0101", 2),
        ("E0102", 4),
        ("E0109", 5),
        ("E0101", 6),
        ("E0103", 7),
        ("E0101", 9),
        ("E0104", 12),
        ("E0105", 13),
        ("E0105", 13),
        ("E0102", 15),
    ]


def test_a_component_is_one_mistake() -> None:
    found = mistakes(".comp A<T> : B {\n  p(1).\n  .decl q(x: T)\n}\n.functor f(x: number): number\np(x) :- x ! 1.")
    assert [diagnostic.message for diagnostic in found] == [
        "`.comp` is not supported",
        "`.functor` is not supported",
        "found `!`, expected a comparison (= != < <= > >=)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "p(x) :- x = " + "(" * 1000 + "1" + ")" * 1000 + ".",
        "p(x) :- " + "(" * 1000 + "q(x)" + ")" * 1000 + ".",
        "p(x) :- " + "!" * 1000 + "q(x).",
        "p(x) :- x = " + "-" * 1000 + "y.",
        "p(x) :- x = " + "2 ^ " * 1000 + "2.",
        "p(x) :- x = " + "1 + " * 1000 + "1.",
        "p(x) :- x = " + "f(" * 1000 + "1" + ")" * 1000 + ".",
        "p(x) :- x = " + "count : { x = " * 1000 + "1" + "}" * 1000 + ".",
        "p(" + "f(" * 1000 + "1" + ")" * 1000 + ").",
        "?- p(" + "1 - " * 1000 + "1).",
        "p(topk(" + "1 + " * 1000 + "1, x)) :- q(x).",
    ],
    ids=lambda text: text[:20],
)
def test_deep_nesting_is_refused(text: str) -> None:
    (diagnostic,) = mistakes(text)
    assert diagnostic.code == "E0107"


@pytest.mark.parametrize(
    "text",
    [
        "p(x) :- x = " + "(" * 60 + "1" + ")" * 60 + ".",
        "p(x) :- x = " + "1 + " * 140 + "1.",
        "p(x) :- " + "q(x), " * 5000 + "r(x).",
        "p(x) :- " + "q(x); " * 5000 + "r(x).",
        "p(" + "1, " * 5000 + "x).",
    ],
    ids=lambda text: text[:20],
)
def test_long_and_fairly_deep_texts_are_read(text: str) -> None:
    assert len(parse(Source("test", text)).items) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found the end of the text, expected the name of a relation"),
        ("p(1", "found the end of the text, expected `,` or `)`"),
        ("p(1) q(1)", "found `q`, expected the end of the goal"),
        ("p(X), ", "found the end of the text, expected a goal (a relation, a comparison or a negation)"),
        ("p(1). q(1).", "found `q(1).`, expected the end of the goal"),
        ("p('a", "this string has no end"),
        ("p(" + "1 + " * 1000 + "1)", "this clause is nested too deeply"),
        ("3", "found the number `3`, expected the name of a relation"),
    ],
)
def test_goals(text: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_goal(text)
    assert [diagnostic.message for diagnostic in caught.value.diagnostics()] == [message]
