"""Inference, conversions, and conflicts."""

from __future__ import annotations

import pytest

from analysis.checking import checked, codes, component, mistakes, rule, rules, types
from emberlog.syntax.nodes import Constant

S = "n(number)\nf(float)\nu(unsigned)\ns(symbol)\nb(bool)\nd(date)\nt(timestamp)\nnf(number, float)"


# --- inference -------------------------------------------------------------------------------------------------------


def test_types_flow_from_sources_through_rules() -> None:
    program = checked("p(X, Y) <- nf(X, Y).\nq(Y, X) <- p(X, Y).\nr(X) <- q(X, _), r2(X).\nr2(X) <- f(X).", S)
    assert types(program, "q") == ["float", "number"]
    assert types(program, "r") == ["float"]


def test_types_flow_round_recursion() -> None:
    program = checked("p(X, 0) <- n(X).\np(X, D) <- p(X, C), nf(X, W), D = C + W.", S)
    assert types(program, "p") == ["number", "float"]
    assert rules(program, "p") == ["p(X, 0.0) <- n(X)", "p(X, D) <- p(X, C), nf(X, W), D := C + W"]


def test_a_literal_that_meets_nothing_is_a_number() -> None:
    program = checked("p(1).\nq(X) <- p(X).\nr(X) <- X = 5.")
    assert types(program, "q") == ["number"]
    assert types(program, "r") == ["number"]


@pytest.mark.parametrize("head", ["W", "min(3, W)", "W + 1"])
def test_a_number_that_is_compared_with_a_float_stays_one(head: str) -> None:
    program = checked(f"p({head}) <- f(G), W = range(0, 3), G >= W.", S)
    assert types(program, "p") == ["number"]


def test_a_number_that_is_only_compared_with_a_float_is_a_number() -> None:
    """As floats the ends of the range are the same."""
    program = checked("p(X) <- n(X), W = range(9223372036854775804, 9223372036854775807), W != 0.0.", S)
    assert component(program, "p").rules[0].types["W"].kind == "number"


def test_a_column_that_nothing_determines_is_a_number() -> None:
    assert types(checked("p(X) <- p(X)."), "p") == ["number"]


def test_facts_and_rules_share_a_column() -> None:
    program = checked("p(1).\np(2.5).\np(X) <- n(X).", S)
    assert types(program, "p") == ["float"]
    assert program.facts["p"] == ((1.0,), (2.5,))
    assert rules(program, "p") == ["p(to_float(X)) <- n(X)"]


AGGREGATES = [
    ("count", "f", "number"), ("countd", "s", "number"), ("sum", "n", "number"), ("sum", "f", "float"),
    ("sum", "u", "unsigned"), ("avg", "n", "float"), ("min", "s", "symbol"), ("max", "d", "date"), ("min", "b", "bool"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "source", "type"), AGGREGATES)
def test_types_of_aggregates(function: str, source: str, type: str) -> None:
    assert types(checked(f"p({function}(X)) <- {source}(X).", S), "p") == [type]


@pytest.mark.parametrize(("function", "source", "type"), [row for row in AGGREGATES if row[0] != "countd"])
def test_types_of_body_aggregates(function: str, source: str, type: str) -> None:
    target = "" if function == "count" else "X "
    assert types(checked(f"p(A) <- A = {function} {target}: {{ {source}(X) }}.", S), "p") == [type]


def test_the_sum_of_decimals_is_as_wide_as_can_be() -> None:
    program = checked(".decl price(p: decimal(10,2))\n.input price\nt(sum(P), min(P), avg(P)) <- price(P).")
    assert types(program, "t") == ["decimal(38,2)", "decimal(10,2)", "decimal(14,6)"]
    assert rules(program, "t") == ["t(sum(P), min(P), avg(P)) <- price(P)"]


def test_dates_and_decimals_pass_through() -> None:
    program = checked(".decl price(p: decimal(10,2), d: date)\n.input price\nq(D, P) <- price(P, D).")
    assert types(program, "q") == ["date", "decimal(10,2)"]


def test_unknown_types_are_no_conflicts_where_sources_are_not_needed() -> None:
    program = checked('p(X) <- a(X, "x"), a(1.5, X), X + 1 > 2.', require_sources=False)
    assert types(program, "p") == ["number"]


# --- conversions -----------------------------------------------------------------------------------------------------


def test_numbers_become_floats_where_they_meet_one() -> None:
    assert rule("p(Z) <- nf(X, Y), Z = X * Y.", S) == "p(Z) <- nf(X, Y), Z := to_float(X) * Y"
    assert rule("p(X) <- nf(X, Y), X + 1 < Y.", S) == "p(X) <- nf(X, Y), to_float(X + 1) < Y"
    assert rule("p(X) <- nf(X, Y), X = Y.", S) == "p(X) <- nf(X, Y), to_float(X) = Y"
    assert rule("p(X) <- nf(X, Y), Z = min(X, Y, 0), Z > 1.", S).endswith("Z := min(to_float(X), Y, 0.0), Z > 1.0")


def test_only_the_operation_that_needs_it_is_on_floats() -> None:
    assert rule("p(Z) <- nf(X, Y), Z = X / 2 + Y.", S) == "p(Z) <- nf(X, Y), Z := to_float(X / 2) + Y"


def test_division_of_literals_is_on_whole_numbers_even_for_a_float() -> None:
    text = ".decl p(x: float)\np(X) <- X = 7 / 2.\np(1 / 2)."
    assert rules(checked(text), "p") == ["p(X) <- X := to_float(7 / 2)", "p(to_float(1 / 2))"]


def test_a_number_enters_a_column_of_floats() -> None:
    text = ".decl p(x: float)\np(X) <- n(X).\np(X + 1) <- n(X).\np(sum(X)) <- n(X)."
    assert rules(checked(text, S), "p") == [
        "p(to_float(X)) <- n(X)", "p(to_float(X + 1)) <- n(X)", "p(sum(to_float(X))) <- n(X)",
    ]  # fmt: skip


def test_functions_of_floats_take_numbers() -> None:
    assert rule("p(Y) <- n(X), Y = sqrt(X) + exp(2).", S) == "p(Y) <- n(X), Y := sqrt(to_float(X)) + exp(2.0)"


def test_a_variable_that_an_atom_types_gets_converted_values() -> None:
    assert rule("p(Y) <- n(X), Y = X + 1, f(Y).", S) == "p(Y) <- n(X), Y := to_float(X + 1), f(Y)"


def test_literals_become_what_their_place_wants() -> None:
    assert rule("p(X) <- f(X), X > 1, X != -2.", S) == "p(X) <- f(X), X > 1.0, X != -2.0"
    assert rule("p(X) <- u(X), X > 1, X < 2 + 3.", S) == "p(X) <- u(X), X > 1u, X < 2u + 3u"
    assert rule("p(1) <- nf(_, 1).", S) == "p(1) <- nf(_1, 1.0)"


def test_variables_of_literals_become_what_their_places_want() -> None:
    program = checked(".decl p(x: unsigned)\np(X) <- X = 5.\np(Z) <- X = 5, u(Y), Z = X + Y.", S)
    assert rules(program, "p") == ["p(X) <- X := 5u", "p(Z) <- X := 5u, u(Y), Z := X + Y"]
    program = checked(".decl p(x: float)\np(X) <- X = 5.\np(X) <- n(X), X = 5.", S)
    assert rules(program, "p") == ["p(X) <- X := 5.0", "p(to_float(X)) <- n(X), X = 5"]


def test_texts_become_dates() -> None:
    program = checked('p(X) <- d(X), X > "2024-02-29".\nq(X) <- t(X), "2024-02-29 10:00" <= X.', S)
    (found,) = component(program, "p").rules
    assert rules(program, "p") == ['p(X) <- d(X), X > "2024-02-29"']
    assert rules(program, "q") == ['q(X) <- t(X), "2024-02-29T10:00:00" <= X']
    assert found.body[-1].condition.right == Constant("2024-02-29", kind="date")  # type: ignore[union-attr]


def test_decimals_are_compared_with_numbers_as_they_are_and_with_floats_as_floats() -> None:
    text = ".decl price(p: decimal(10,2))\n.input price\nq(P) <- price(P), P > 10, P < to_float(P) * 2."
    assert rule(text) == 'q(P) <- price(P), P > "10", to_float(P) < to_float(P) * 2.0'


def test_sized_columns_check_what_enters() -> None:
    text = ".decl small(x: int8)\n.decl single(x: float32)\nsmall(X) <- n(X).\nsmall(X + 1) <- small(X).\nsmall(7).\n"
    program = checked(text + "single(X) <- f(X).\nsmall(min(X)) <- n(X).\nback(X) <- small(X).", S)
    assert rules(program, "small") == [
        "small(int8(X)) <- n(X)", "small(int8(X + 1)) <- small(X)", "small(min(int8(X))) <- n(X)",
    ]  # fmt: skip
    assert rules(program, "single") == ["single(float32(X)) <- f(X)"]
    assert types(program, "back") == ["number"]
    assert component(program, "back").rules[0].types == {"X": program.signatures["back"].columns[0].type}


def test_a_value_of_a_sized_column_enters_a_wider_one_unchecked() -> None:
    text = ".decl a(x: int8)\n.decl c(x: int16)\na(1).\nc(X) <- a(X).\na(X) <- c(X)."
    program = checked(text)
    assert rules(program, "c") == ["c(X) <- a(X)"]
    assert rules(program, "a") == ["a(int8(X)) <- c(X)"]


def test_a_declared_type_wins_over_a_narrower_source() -> None:
    program = checked(".decl n(x: float)\np(X) <- n(X).", S)
    assert types(program, "n") == ["float"]
    assert types(program, "p") == ["float"]


# --- conflicts -------------------------------------------------------------------------------------------------------

CONFLICTS = [
    "p(X) <- n(X), f(X).",
    "p(X) <- n(X), s(X).",
    "p(X) <- n(X), u(X).",
    "p(X) <- n(X), !s(X).",
    "p(X) <- n(X), X = C, C = count : { s(X) }.",
    "p(C) <- C = count : { s(_) }, f(C).",
    'p() <- n("a").',
    "p() <- n(1.5).",
    "p(X) <- n(X).\np(X) <- s(X).",
    "p(X) <- n(X), u(Y), X < Y.",
    "p(X) <- d(X), t(Y), X < Y.",
    "p(X) <- n(X), b(Y), X = Y.",
    "p(Z) <- n(X), s(Y), Z = min(X, Y).",
    ".decl p(x: number)\np(X) <- f(X).",
    ".decl p(x: float)\np(count(X)) <- f(X).",
    ".decl p(x: symbol)\np(X) <- n(X).",
    ".decl p(x: unsigned)\np(X) <- n(X).",
]


@pytest.mark.parametrize("text", CONFLICTS)
def test_conflicts(text: str) -> None:
    assert codes(text, S) == ["E0501"]


OPERANDS = [
    "p(Z) <- s(X), Z = X + 1.",
    "p(Z) <- b(X), Z = -X.",
    "p(Z) <- d(X), Z = abs(X).",
    "p(Z) <- f(X), Z = X band 1.",
    "p(Z) <- f(X), Z = lnot X.",
    'p(Z) <- n(X), Z = cat(X, "a").',
    "p(sum(X)) <- s(X).",
    "p(avg(X)) <- d(X).",
    'p(X) <- X = range("a", 3).',
    "p(A) <- A = sum X : { b(X) }.",
]


@pytest.mark.parametrize("text", OPERANDS)
def test_operands_that_have_no_such_operation(text: str) -> None:
    assert codes(text, S) == ["E0502"]


def test_a_conflict_labels_both_places() -> None:
    (found,) = mistakes("p(X) <- n(X), s(X).", S)
    assert [(label.span.start, label.text) for label in found.labels] == [(10, "number here"), (16, "symbol here")]


def test_each_variable_is_told_once() -> None:
    assert codes("p(X) <- n(X), s(X), f(X), s(X).", S) == ["E0501"]


@pytest.mark.parametrize("text", [".decl p(x: int8)\np(128).", ".decl p(x: uint8)\np(-1).", "p(X) <- u(X), X > -1."])
def test_numbers_that_do_not_fit(text: str) -> None:
    assert codes(text, S) == ["E0504"]


@pytest.mark.parametrize("text", ['p(X) <- d(X), X > "today".', 'p(X) <- t(X), X = "2024-13-01".'])
def test_texts_that_are_no_dates(text: str) -> None:
    assert codes(text, S) == ["E0503"]


def test_an_average_says_nothing_of_what_goes_in() -> None:
    """A whole number that is averaged stays one: `band` takes nothing else."""
    checked("g(X, avg(Y)) <- node(X), Y = range(0, 3), Z = Y band 1, Z < 2.\nnode(1).")
