"""The order of literals, and what aggregates take from outside."""

from __future__ import annotations

import pytest

from analysis.checking import codes, mistakes, rule

S = "p(number, number)\nq(number)\nr(number)\ns(symbol, number)"


def test_the_written_order_is_kept() -> None:
    assert rule("h(X, Y) <- p(X, Z), Z > 1, p(Z, Y), !q(Y).", S) == "h(X, Y) <- p(X, Z), Z > 1, p(Z, Y), !q(Y)"


def test_conditions_wait_for_their_variables() -> None:
    assert rule("h(X) <- X < Y, !p(X, Y), q(X), r(Y).", S) == "h(X) <- q(X), r(Y), X < Y, !p(X, Y)"


def test_equations_bind_either_side_in_any_order() -> None:
    assert rule("h(X) <- X = 1.") == "h(X) <- X := 1"
    assert rule("h(Z) <- Z = Y, Y = X + 1, q(X).", S) == "h(Z) <- q(X), Z := X + 1"
    assert rule("h(Y) <- q(X), X + 1 = Y.", S) == "h(Y) <- q(X), Y := X + 1"
    assert rule("h(X) <- q(X), X = 2.", S) == "h(X) <- q(X), X = 2"
    assert rule("h(X) <- X = Y, q(X), r(Y).", S) == "h(X) <- q(X), Y := X, r(Y)"


def test_computed_arguments_wait_for_another_atom() -> None:
    assert rule("h(X) <- p(X + 1, Y), q(X).", S) == "h(X) <- q(X), p(X + 1, Y)"


def test_computed_arguments_of_their_own_atom_are_compared() -> None:
    assert rule("h(X) <- p(X, X + 1).", S) == "h(X) <- p(X, _1), _1 = X + 1"


def test_a_bound_variable_is_compared_with_an_aggregate_or_a_range() -> None:
    assert rule("h(X) <- q(X), X = count : { r(_) }.", S) == "h(X) <- q(X), _2 := count {r(_1)}, X = _2"
    assert rule("h(X) <- q(X), X = range(0, 3).", S) == "h(X) <- q(X), _1 := 0..3, X = _1"


def test_shared_variables_are_injected() -> None:
    found = rule("h(X, C) <- C = count : { p(X, Z) }, q(X).", S)
    assert found == "h(X, C) <- q(X), C := count [X|]{p(X, Z)}"


def test_a_variable_of_one_aggregate_is_its_own() -> None:
    found = rule("h(A, B) <- A = count : { p(Z, _) }, B = sum Z : { q(Z) }.", S)
    assert found == "h(A, B) <- A := count {p(Z, _1)}, B := sum Z_1 {q(Z_1)}"


def test_names_inside_of_nested_aggregates_are_told_apart() -> None:
    found = rule("h(A) <- A = count : { p(X, Y), 1 = count : { q(Z) }, 2 = count : { r(Z) } }, Y = 3.", S)
    assert found == (
        "h(A) <- Y := 3, A := count [Y|]{p(X, Y), _1 := count {q(Z)}, 1 = _1, _2 := count {r(Z_1)}, 2 = _2}"
    )


def test_an_extremum_gives_its_witnesses() -> None:
    found = rule("h(M, W) <- M = max Z : { s(W, Z) }.", S)
    assert found == "h(M, W) <- M := max Z [|W]{s(W, Z)}"


def test_a_witness_may_be_used_by_what_follows() -> None:
    found = rule("h(M, V) <- M = min Z : { p(W, Z) }, p(V, W + 1).", S)
    assert found == "h(M, V) <- M := min Z [|W]{p(W, Z)}, _1 := W + 1, p(V, _1)"


def test_what_the_rest_binds_is_no_witness() -> None:
    found = rule("h(M, W) <- M = max Z : { s(W, Z) }, t(W).", S + "\nt(symbol)")
    assert found == "h(M, W) <- t(W), M := max Z [W|]{s(W, Z)}"


@pytest.mark.parametrize(
    "body",
    [
        'A = min X : { s(X, _) }, B = max X : { s(X, _) }, X != "a"',
        'B = max X : { s(X, _) }, X != "a", A = min X : { s(X, _) }',
        'A = min Z : { s(X, Z) }, B = max Z : { s(X, Z), Z > 1 }, X != "a"',
    ],
)
def test_a_witness_of_two_extrema_is_a_mistake(body: str) -> None:
    (found,) = mistakes(f"h(A, B) <- {body}.", S)
    assert found.code == "E0406"
    assert found.message == "the variable `X` could take its value from several aggregates"


def test_a_witness_may_be_used_inside_of_another_extremum() -> None:
    found = rule("h(A, I, B) <- A = max Z : { s(I, Z) }, B = max Y : { s(J, Y), J != I }.", S)
    assert found == "h(A, I, B) <- A := max Z [|I]{s(I, Z)}, B := max Y [I|]{s(J, Y), J != I}"


def test_only_extrema_have_witnesses() -> None:
    assert codes("h(M, W) <- M = sum Z : { s(W, Z) }.", S) == ["E0405"]


def test_the_value_of_an_aggregate_must_be_bound_inside() -> None:
    (found,) = mistakes("h(M) <- M = sum Y : { q(X), Y > X }.", S)
    assert found.message == "the variable `Y` occurs only in a comparison"


def test_every_unbound_variable_of_a_rule_is_told() -> None:
    found = mistakes("h(A, B) <- q(X), B > X, !p(C, _), q(D * 2).", S)
    assert [d.code for d in found] == ["E0401", "E0403", "E0402", "E0404"]


def test_what_depends_on_an_unbound_variable_is_not_told() -> None:
    (found,) = mistakes("h(Z) <- q(X), Y = W + X, Z = Y * 2, Z < 7.", S)
    assert found.message == "the variable `W` occurs only in a comparison"


def test_an_unbound_variable_inside_of_an_aggregate() -> None:
    assert codes("h(C) <- C = count : { q(X), !p(X, Y) }.", S) == ["E0402"]


def test_a_result_that_its_own_body_needs() -> None:
    assert codes("h(X) <- X = count : { p(X, _) }.", S) == ["E0405"]


def test_a_sort_key_must_be_in_the_head_and_bound() -> None:
    assert codes("h(X) <- q(X), sort((Y, asc)), limit(1).", S) == ["E0217"]
    assert codes("h(X, Y) <- q(X), sort((Y, asc)), limit(1).", S) == ["E0401"]
