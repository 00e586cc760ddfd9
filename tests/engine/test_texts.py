"""Functions of texts: the same on every engine, with letters beyond ASCII too."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import emberlog
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place
from naive import evaluate
from naive.values import FUNCTIONS

TEXTS = [
    "", " ", "a", "abc", "Straße", "STRASSE", "ß", "ẞ", "İ", "ı", "I", "ŉ", "e\u0301", "É", "\u0301", "ΑΣ", "ΑΣΑ", "Σ.",
    "\u0345Σ", "ﬁ", "ǆ", "😀", "a,b", ",", ",,", "a,,b,", " \t a b\r\n\f\v", "\u00a0x\u2003", "k=1;key=22", "ab12cd345",
]  # fmt: skip
PARTS = ["", "a", ",", "ß", "\u0301", "😀", ",,", "ab"]

PROGRAM = """
.decl t(s: symbol)
.decl u(s: symbol)
.decl n(i: number)
cases(S, L, U, T) <- t(S), L = lower(S), U = upper(S), T = trim(S).
replaced(S, A, B, R) <- t(S), u(A), u(B), R = replace(S, A, B).
part(S, A, I, P) <- t(S), u(A), n(I), P = split(S, A, I).
starts(S, A) <- t(S), u(A), starts_with(S, A).
ends(S, A) <- t(S), u(A), ends_with(S, A).
inner(S, A) <- t(S), u(A), !starts_with(S, A), !ends_with(S, A), contains(A, S).
padded(S, I, A, P) <- t(S), n(I), u(A), P = lpad(S, I, A).
found(S, A, B, C, D) <- t(S), A = regexp_extract(S, "([a-z]+)=([0-9]+)", 2), B = regexp_extract(S, "[0-9]+?", 0),
    C = regexp_extract(S, "^(a|ab)(.*)", 1), D = regexp_extract(S, "(?:a|b|12)*(c)?", 1).
joined(S, A, J) <- t(S), u(A), J = concat_ws(A, S, "x", S).
"""
NUMBERS = [-(2**63), -1, 0, 1, 2, 3, 5, 7]


def test_functions_of_texts_are_those_of_the_reference(place: Place) -> None:
    sources: dict[str, list[tuple[Any, ...]]] = {
        "t": [(s,) for s in TEXTS],
        "u": [(s,) for s in PARTS],
        "n": [(i,) for i in NUMBERS],
    }
    right = evaluate(parse(Source("texts.dl", PROGRAM)), sources)
    found = place.run(PROGRAM, sources)
    for name in ("cases", "replaced", "part", "starts", "ends", "inner", "padded", "found", "joined"):
        assert set(found[name].rows()) == right[name], name


def test_case_is_that_of_unicode(place: Place) -> None:
    """All letters that are older than the versions of Unicode that Python, Java and ICU differ in."""
    letters = [chr(code) for code in range(1, sys.maxunicode) if chr(code).lower() != chr(code).upper()]
    old = [(s,) for s in letters if not (is_new(s.lower()) or is_new(s.upper()))]
    assert len(old) > 2600
    found = place.run("p(S, L, U) <- t(S), L = lower(S), U = upper(S).", {"t": old})["p"].rows()
    assert [row for row in found if row[1:] != (row[0].lower(), row[0].upper())] == []
    assert len(found) == len(old)


def is_new(text: str) -> bool:
    """True for letters that came with Unicode 14 or later."""
    last, latin = ord(text[-1]), "\u2c2f\u2c5f\ua7c0\ua7c1\ua7d0\ua7d1\ua7d6\ua7d7\ua7d8\ua7d9"
    return text in latin or 0x10570 <= last <= 0x105BC


def test_a_long_text_is_searched(place: Place) -> None:
    """Java's engine would take stack for each repetition."""
    text = "ab" * 20_000 + "=c"
    found = place.run('p(R) <- t(S), R = regexp_extract(S, "(?:ab|a)*=(c)", 1).', {"t": [(text,)]})["p"].rows()
    assert found == [(FUNCTIONS["regexp_extract"](text, "(?:ab|a)*=(c)", 1),)] == [("c",)]


def test_a_text_that_would_be_too_long_is_an_error(place: Place) -> None:
    program = 'p(R) <- t(N), R = lpad("a", N, "b"), N != 7.'
    assert place.run(program, {"t": [(3,), (7,)]})["p"].rows() == [("bba",)]
    with pytest.raises(emberlog.DataError, match="more than 1000000 characters"):
        place.run(program, {"t": [(1_000_001,)]})["p"].rows()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ('"(a*)*", 0', "a part that may be empty is repeated"),
        ('"(a)+", 1', "the group is inside of a repetition"),
        ('"(a)", 2', "it has no group 2"),
        ('"(a", 0', "a `\\(` has no `\\)`"),
        ("S, 0", "takes a pattern and a group that are constants"),
        ('"a", -1', "takes a pattern and a group that are constants"),
    ],
)
def test_what_engines_would_find_differently_is_refused(pattern: str, why: str, local: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match=why):
        local.run(f"p(R) <- t(S), R = regexp_extract(S, {pattern}).", {"t": [("a",)]})
