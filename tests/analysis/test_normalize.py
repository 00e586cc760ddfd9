"""One head, one conjunction."""

from __future__ import annotations

from analysis.checking import checked, component, rule, rules

Q = "q(number, number)\nr(number, number)\ns(number)"


def test_several_heads_and_alternatives_are_several_rules() -> None:
    program = checked("a(X), b(X) <- s(X) ; q(X, _).", Q)
    assert rules(program, "a") == ["a(X) <- s(X)", "a(X) <- q(X, _1)"]
    assert rules(program, "b") == ["b(X) <- s(X)", "b(X) <- q(X, _1)"]


def test_alternatives_multiply_out() -> None:
    program = checked("p(X) <- (s(X) ; q(X, _)), (X > 1 ; X < 5).", Q)
    assert rules(program, "p") == [
        "p(X) <- s(X), X > 1",
        "p(X) <- s(X), X < 5",
        "p(X) <- q(X, _1), X > 1",
        "p(X) <- q(X, _1), X < 5",
    ]


def test_negation_is_pushed_into_conditions() -> None:
    program = checked("p(X) <- s(X), !(X < 2 ; X = 5).\nt(X) <- s(X), !(X < 2, X != 0).\nu(X) <- s(X), !!q(X, _).", Q)
    assert rules(program, "p") == ["p(X) <- s(X), X >= 2, X != 5"]
    assert rules(program, "t") == ["t(X) <- s(X), X >= 2", "t(X) <- s(X), X = 0"]
    assert rules(program, "u") == ["u(X) <- s(X), q(X, _1)"]


def test_a_negated_conjunction_has_no_solution() -> None:
    expected = "p(X) <- s(X), _1 := count [X|]{q(X, Y), r(Y, Z)}, _1 = 0"
    assert rule("p(X) <- s(X), !(q(X, Y), r(Y, Z)).", Q) == expected


def test_negated_atoms_keep_their_anonymous_variables() -> None:
    assert rule("p(X) <- s(X), !q(X, _).", Q) == "p(X) <- s(X), !q(X, _)"


def test_a_negated_test_is_compared_with_false() -> None:
    found = rule('p(X) <- t(X), !contains("a", X), match("b.*", X).', "t(symbol)")
    assert found == 'p(X) <- t(X), contains("a", X) = false, match("b.*", X)'


def test_true_vanishes_and_false_stays_as_a_condition() -> None:
    program = checked("p(X) <- s(X), true.\nn(X) <- s(X), false.\nm(X) <- s(X), !false.", Q)
    assert rules(program, "p") == ["p(X) <- s(X)"]
    assert rules(program, "n") == ["n(X) <- s(X), true = false"]
    assert rules(program, "m") == ["m(X) <- s(X)"]


def test_ranges_and_aggregates_inside_of_terms_get_variables() -> None:
    assert rule("p(range(1, 4)).") == "p(_1) <- _1 := 1..4"
    assert rule("p(X) <- X = range(0, 3).") == "p(X) <- X := 0..3"
    assert rule("p(2 * count : { s(_) }).", Q) == "p(2 * _1) <- _1 := count {s(_2)}"


def test_aggregates_inside_of_aggregates() -> None:
    found = rule("p(X, C) <- s(X), C = count : { q(X, Z), 3 < sum Y : { r(Z, Y) } }.", Q)
    assert found == "p(X, C) <- s(X), C := count [X|]{q(X, Z), _1 := sum Y [Z|]{r(Z, Y)}, 3 < _1}"


def test_an_aggregate_over_alternatives_has_several_bodies() -> None:
    assert rule("p(C) <- C = count : { s(X) ; q(X, _) }.", Q) == "p(C) <- C := count {s(X) ; q(X, _1)}"


def test_a_count_of_nothing_in_particular_counts_ones() -> None:
    assert rule("n(count(_)) <- s(X).", Q) == "n(count(1)) <- s(X)"


def test_sort_and_limit_belong_to_the_rule() -> None:
    (only,) = component(checked("top(X, S) <- q(X, S), sort((S, desc), (X, asc)), limit(3).", Q), "top").rules
    assert (only.order, only.limit) == ((("S", True), ("X", False)), 3)


def test_fresh_names_avoid_written_ones() -> None:
    assert rule("p(_1, X) <- q(_1, _), q(X, _).", Q) == "p(_1, X) <- q(_1, _2), q(X, _3)"


def test_pow_is_an_operator() -> None:
    assert rule("p(Y) <- s(X), Y = pow(X, 2).", Q) == "p(Y) <- s(X), Y := X ^ 2"


def test_constants_of_the_bigdatalog_dialect() -> None:
    text = "database({ship(Name: string, Sent: datetime)}).\np(a, N) <- ship(N, D), D >= '1994-01-01', N ~= b."
    program = checked(text, "ship(symbol, timestamp)")
    assert rules(program, "p") == ['p("a", N) <- ship(N, D), D >= "1994-01-01T00:00:00", N != "b"']
