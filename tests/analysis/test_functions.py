"""Types of elaborated terms, and which of them can fail."""

from __future__ import annotations

import pytest

from emberlog.analysis.functions import FUNCTIONS, fallible, type_of
from emberlog.syntax.nodes import Aggregate, Call, Constant, Term, Variable
from emberlog.types import BOOL, FLOAT, NUMBER, SYMBOL, UNSIGNED, Type

TYPES = {"n": NUMBER, "u": UNSIGNED, "f": FLOAT, "s": SYMBOL, "b": BOOL}


def call(function: str, *names: str) -> Call:
    return Call(function, tuple(Variable(name) for name in names))


@pytest.mark.parametrize(
    ("term", "type"),
    [
        (Variable("n"), NUMBER),
        (Constant(1), NUMBER),
        (Constant(1, "unsigned"), UNSIGNED),
        (Constant(1.0), FLOAT),
        (Constant(True), BOOL),
        (Constant("a"), SYMBOL),
        (Constant("2024-01-01", "date"), Type("date")),
        (call("+", "u", "u"), UNSIGNED),
        (call("/", "f", "f"), FLOAT),
        (call("strlen", "s"), NUMBER),
        (call("contains", "s", "s"), BOOL),
        (call("to_float", "n"), FLOAT),
        (call("land", "b", "b"), BOOL),
        (call("int8", "n"), Type("number", 8)),
        (Aggregate("avg", (Variable("n"),)), FLOAT),
        (Aggregate("sum", (Variable("s"), Variable("n"))), NUMBER),
    ],
)
def test_type_of(term: Term, type: Type) -> None:
    assert type_of(term, TYPES) == type


@pytest.mark.parametrize(
    "term",
    [
        call("+", "n", "n"), call("-", "u", "u"), call("*", "n", "n"), call("neg", "n"), call("abs", "n"),
        call("^", "n", "n"), call("/", "n", "n"), call("/", "f", "f"), call("%", "f", "f"), call("to_number", "s"),
        call("to_number", "f"), call("to_number", "u"), call("to_unsigned", "n"), call("to_float", "s"),
        call("log", "f"), call("sqrt", "f"), call("int8", "n"), call("uint32", "u"),
        Call("min", (Constant(1), call("+", "n", "n"))), Aggregate("sum", (call("+", "n", "n"),)),
    ],
)  # fmt: skip
def test_what_can_fail(term: Term) -> None:
    assert fallible(term, TYPES)


@pytest.mark.parametrize(
    "term",
    [
        Variable("n"), Constant(1), call("+", "f", "f"), call("neg", "f"), call("abs", "f"), call("*", "f", "f"),
        call("min", "n", "n"), call("max", "s", "s"), call("relu", "n"), call("clip", "n", "n", "n"), call("exp", "f"),
        call("tanh", "f"), call("cat", "s", "s"), call("strlen", "s"), call("substr", "s", "n", "n"), call("ord", "s"),
        call("to_string", "n"), call("to_float", "n"), call("to_number", "n"), call("to_unsigned", "u"),
        call("band", "n", "n"), call("bshl", "n", "n"), call("lnot", "n"), call("contains", "s", "s"),
        call("float32", "f"), Aggregate("sum", (Variable("n"),)),
    ],
)  # fmt: skip
def test_what_cannot_fail(term: Term) -> None:
    assert not fallible(term, TYPES)


def test_arities_in_words() -> None:
    assert FUNCTIONS["abs"].arity == "1 argument"
    assert FUNCTIONS["cat"].arity == "at least 2 arguments"
    assert FUNCTIONS["range"].arity == "2 or 3 arguments"
