"""Predicates, declarations, sources, parameters."""

from __future__ import annotations

import pytest

from analysis.checking import checked, codes, mistakes, names, rules, types
from emberlog.analysis.check import check
from emberlog.analysis.names import mentioned
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import NUMBER, Column

SPELLINGS = [
    ("number", "number"), ("int", "number"), ("integer", "number"), ("long", "number"), ("int64", "number"),
    ("int8", "int8"), ("int16", "int16"), ("int32", "int32"),
    ("unsigned", "unsigned"), ("uint64", "unsigned"), ("uint8", "uint8"), ("uint16", "uint16"), ("uint32", "uint32"),
    ("float", "float"), ("float64", "float"), ("double", "float"), ("real", "float"), ("float32", "float32"),
    ("symbol", "symbol"), ("string", "symbol"), ("varchar", "symbol"), ("text", "symbol"),
    ("bool", "bool"), ("boolean", "bool"), ("date", "date"), ("datetime", "timestamp"), ("timestamp", "timestamp"),
    ("Integer", "number"), ("String", "symbol"), ("Double", "float"),
]  # fmt: skip


@pytest.mark.parametrize(("spelled", "type"), SPELLINGS)
def test_types_have_many_spellings(spelled: str, type: str) -> None:
    program = checked(f".decl p(x: {spelled})\n.input p\nq(X) <- p(X).")
    assert types(program, "p") == [type]


def test_subtypes_and_unions_are_what_they_are_made_of() -> None:
    program = checked(
        ".type id <: number\n.type city = name | string\n.type name <: symbol\n"
        ".decl p(x: id, y: city)\n.input p\nq(X, Y) <- p(X, Y)."
    )
    assert types(program, "q") == ["number", "symbol"]


def test_columns_are_named_by_declaration_then_source_then_head() -> None:
    program = checked(
        ".decl d(left: number, right: number)\nd(X, Y) <- arc(X, Y).\n"
        "h(X, Y) <- arc(X, Y).\ntwice(X, X) <- arc(X, _).\ntotal(X, sum(W)) <- arc(X, W).\nfact(1, 2).\n"
        "made(X + 1) <- arc(X, _).",
        "arc(from: number, to: number)",
    )
    assert names(program, "d") == ["left", "right"]
    assert names(program, "arc") == ["from", "to"]
    assert names(program, "h") == ["X", "Y"]
    assert names(program, "twice") == ["c0", "c1"]
    assert names(program, "total") == ["X", "W"]
    assert names(program, "fact") == ["c0", "c1"]
    assert names(program, "made") == ["c0"]


def test_a_source_and_rules_of_one_predicate_add_up() -> None:
    program = checked("arc(X, Y) <- arc(Y, X).", "arc(number, number)")
    assert program.signatures["arc"].external
    assert rules(program, "arc") == ["arc(X, Y) <- arc(Y, X)"]


def test_an_input_is_external() -> None:
    program = checked(".decl e(x: number)\n.input e\np(X) <- e(X).")
    assert program.signatures["e"].external
    assert not program.signatures["p"].external


def test_a_declared_relation_without_rows_is_empty_with_a_warning() -> None:
    program = checked(".decl e(x: number)\n.decl unused(x: number)\np(X) <- e(X).")
    (warning,) = program.warnings
    assert warning.summary == "test.dl:1:1: `e` has no rules, facts or source: it is empty"


def test_sources_are_not_needed_where_nothing_runs() -> None:
    program = checked("tc(X, Y) <- link(X, Y).", require_sources=False)
    assert not program.signatures["link"].external


def test_a_source_may_leave_its_columns_to_the_declaration() -> None:
    text = ".decl e(x: number)\np(X) <- e(X)."
    program = check(parse(Source("test.dl", text)), {"e": None})
    assert types(program, "p") == ["number"]
    assert program.signatures["e"].external


def test_a_registered_relation_may_be_asked_for_alone() -> None:
    program = checked(".output arc\n?- node(X).", "arc(number, number)\nnode(number)")
    assert set(program.signatures) == {"arc", "node"}


def test_names_are_case_sensitive() -> None:
    program = checked("w(x, X) <- q(x), Q(X).", "q(number)\nQ(symbol)")
    assert types(program, "w") == ["number", "symbol"]


def test_parameters_become_constants() -> None:
    text = "p(Y) <- arc($FROM, Y), Y < $TO, Y != $TO + 1.\n?- p($FROM)."
    program = checked(text, "arc(number, number)", {"FROM": 3, "TO": 9})
    assert rules(program, "p") == ["p(Y) <- arc(3, Y), Y < 9, Y != 9 + 1"]


def test_a_parameter_is_missed_once_for_each_place() -> None:
    found = mistakes("p(Y) <- arc($FROM, Y), Y < $TO.", "arc(number, number)", {"TOO": 1})
    assert [d.message for d in found] == ["the parameter `$FROM` has no value", "the parameter `$TO` has no value"]
    assert found[1].help == "did you mean `$TOO`? given: $TOO"


def test_one_unknown_predicate_is_told_once() -> None:
    assert codes("p(X) <- acr(X, _).\nq(X) <- acr(X, Y), acr(Y, X).", "arc(number, number)") == ["E0201"]


def test_a_wrong_arity_leaves_other_rules_to_be_checked() -> None:
    found = codes("p(X) <- arc(X).\nq(X) <- arc(X, Y), X < Y.", "arc(number, symbol)")
    assert found == ["E0202", "E0501"]


def test_mentioned_names_every_relation() -> None:
    text = ".decl d(x: number)\n.output o\n?- g(1).\nh(X) <- b(X), !n(X), Y = count : { a(_) }, Y > 0."
    assert mentioned(parse(Source("test.dl", text))) == {"d", "o", "g", "h", "b", "n", "a"}


def test_facts_are_values_of_their_columns_types() -> None:
    program = checked(
        ".decl f(x: float, y: unsigned, z: date, s: symbol)\n"
        'f(1, 2, "2024-02-29", "").\nf(-1, 2, "2024-02-29", "").\nn(1). n(2). n(1).'
    )
    assert program.facts["f"] == ((1.0, 2, "2024-02-29", ""), (-1.0, 2, "2024-02-29", ""))
    assert [type(value) for value in program.facts["f"][0]] == [float, int, str, str]
    assert program.facts["n"] == ((1,), (2,))


def test_a_fact_that_is_computed_is_a_rule_without_a_body() -> None:
    assert rules(checked("p(1 + 2, -3)."), "p") == ["p(1 + 2, -3)"]


def test_goals_have_constants_of_their_columns_types() -> None:
    (goal,) = checked("?- p(1, X, _).", "p(float, number, number)").goals
    assert repr(goal.atom.arguments[0]) == "Constant(value=1.0, kind='')"


def test_sources_that_nothing_mentions_are_left_out() -> None:
    column = Column("n", NUMBER)
    program = check(parse(Source("test.dl", "p(X) <- a(X).")), {"a": (column,), "unused": (column,)})
    assert set(program.signatures) == {"p", "a"}
