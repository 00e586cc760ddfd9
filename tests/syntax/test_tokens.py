"""Text to tokens."""

from __future__ import annotations

import pytest

from emberlog.diagnostics import ProgramError
from emberlog.source import Source
from emberlog.syntax.tokens import tokenize


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(Source("test", text))[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(X)", ["name", "(", "name", ")"]),
        ("a :- b ← c <- d", ["name", "<-", "name", "<-", "name", "<-", "name"]),
        ("= != <> ~= < <= > >= ≥ ≤ ≠", ["=", "!=", "!=", "!=", "<", "<=", ">", ">=", ">=", "<=", "!="]),
        ("Y! = Z", ["name", "!=", "name"]),
        ("! ~ ¬", ["!", "!", "!"]),
        ("2 · 3 × 4", ["number", "*", "number", "*", "number"]),
        ("X=1.", ["name", "=", "number", "."]),
        ("X=1.5.", ["name", "=", "number", "."]),
        ("1e-3 0xfF 0b10 5u", ["number"] * 4),
        ("r1.1.tc", ["name", ".", "number", ".", "name"]),
        ('"a b" \'c\' "\\""', ["string"] * 3),
        ("$ID ?x _ _a é变量", ["parameter", "name", "name", "name", "name"]),
        ("?- p", ["?-", "name"]),
        ("A <: B | C", ["name", "<:", "name", "|", "name"]),
    ],
)
def test_kinds(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a // b\nc",
        "a /* b\n\n ** */ c",
        "% b\na c",
        "a\n \t% b % d\nc",
        '# 1 "file"\na c',
        "a\n#line 3\nc",
        "\ufeffa c",
        "\ufeff% b\na c",
        "#!/usr/bin/env emberlog\na\r\nc",
    ],
)
def test_comments_and_blanks_leave_no_token(text: str) -> None:
    assert kinds(text) == ["name", "name"]


def test_percent_inside_a_line_is_the_remainder() -> None:
    assert kinds("X = a % b") == ["name", "=", "name", "%", "name"]
    assert kinds("X = a /* \n */ % b") == ["name", "=", "name", "%", "name"]


def test_whole_facts_are_one_token_only_where_a_clause_starts() -> None:
    assert kinds('e(1, "x"). e( -2 ,3.5 ) .') == ["fact", "fact"]
    assert kinds("p :- e(1).") == ["name", "<-", "name", "(", "number", ")", "."]
    assert kinds("e(1u).") == ["name", "(", "number", ")", "."]


def test_a_token_knows_its_place() -> None:
    source = Source("test", "p(X)  :-\n q.")
    tokens = tokenize(source)
    assert [source.text[token.start : token.end] for token in tokens] == [token.text for token in tokens]
    assert tokens[-1].kind == "end" and tokens[-1].start == len(source.text)


def test_all_bad_characters_are_told_at_once() -> None:
    with pytest.raises(ProgramError) as caught:
        tokenize(Source("test", 'a @ b\n"open\n/* open'))
    assert [diagnostic.code for diagnostic in caught.value.diagnostics()] == ["E0104", "E0103", "E0103"]
