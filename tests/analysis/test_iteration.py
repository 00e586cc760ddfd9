"""The iteration index."""

from __future__ import annotations

import pytest

from analysis.checking import checked, codes, component, mistakes, names, rules, types
from emberlog.syntax.printer import show

S = "node(number)\nedge(number, number)\nextra(number, float)"
PAGERANK = """
degree(X, count(Y)) :- edge(X, Y).
rank(0, X, r) :- node(X), r = 0.
rank(i+1, Y, sum[r]) :- node(Y), r = 0.15;
                     :- rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d;
                     {sum[delta r] < 0.0001}.
"""
WALK = "walk(0, X, 1.0) :- node(X).\nwalk(i+1, Y, sum[r]) :- walk(i, X, r), edge(X, Y).\n"


def test_the_index_is_gone_from_the_rules_and_the_result() -> None:
    program = checked(PAGERANK, S)
    part = component(program, "rank")
    assert (part.indexed, part.keeps_states, part.evaluation) == (True, False, "accumulate")
    assert rules(program, "rank") == [
        "rank(X, r) <- node(X), r := 0.0",
        "rank(Y, sum(r)) <- node(Y), r := 0.15",
        "rank(Y, sum(r)) <- rank(X, q), edge(X, Y), degree(X, d), r := 0.85 * q / to_float(d)",
    ]
    assert [rule.start for rule in part.rules] == [True, False, False]
    assert types(program, "rank") == ["number", "float"]
    assert names(program, "rank") == ["X", "r"]
    assert program.signatures["rank"].aggregates == {1: "sum"}


def test_the_termination_clause_belongs_to_the_component() -> None:
    until = component(checked(PAGERANK, S), "rank").until
    assert until is not None
    assert show(until) == "{sum[delta r] < 0.0001}"


def test_its_bound_may_be_a_parameter() -> None:
    text = PAGERANK.replace("0.0001", "$EPS")
    until = component(checked(text, S, {"EPS": 1}), "rank").until
    assert until is not None
    assert show(until.bound) == "1.0"


def test_readers_outside_lose_the_index_when_none_uses_it() -> None:
    text = "low(X) :- walk(_, X, r), r < 1.\nhigh(X) :- walk(t, X, r), r > 1.\nno(X) :- node(X), !walk(_, X, _).\n"
    program = checked(WALK + text + "many(N) :- N = count : { walk(_, _, _) }.\nresult(X, r) :- walk(X, r).", S)
    assert not component(program, "walk").keeps_states
    assert rules(program, "low") == ["low(X) <- walk(X, r), r < 1.0"]
    assert rules(program, "high") == ["high(X) <- walk(X, r), r > 1.0"]
    assert rules(program, "no") == ["no(X) <- node(X), !walk(X, _)"]
    assert rules(program, "many") == ["many(N) <- N := count {walk(_2, _3)}"]
    assert rules(program, "result") == ["result(X, r) <- walk(X, r)"]


@pytest.mark.parametrize(
    "reader", ["at(t, X) :- walk(t, X, _).", "third(X) :- walk(3, X, _).", "late(X) :- walk(t, X, _), t > 3."]
)
def test_all_states_are_kept_when_a_rule_reads_the_index(reader: str) -> None:
    program = checked(WALK + reader, S)
    part = component(program, "walk")
    assert part.keeps_states
    assert rules(program, "walk")[1] == "walk(Y, sum(r)) <- walk(X, r), edge(X, Y)"
    assert types(program, "walk") == ["number", "number", "float"]
    assert program.signatures["walk"].aggregates == {2: "sum"}


def test_a_declaration_has_the_index() -> None:
    text = ".decl walk(t: number, node: number, weight: float32)\n"
    assert names(checked(text + WALK, S), "walk") == ["node", "weight"]
    assert names(checked(text + WALK + "at(t) :- walk(t, _, _).", S), "walk") == ["t", "node", "weight"]


def test_facts_are_starts() -> None:
    program = checked("walk(0, 1, 2).\nwalk(i+1, Y, sum[r]) :- walk(i, X, r), edge(X, Y), r > 0.5.", S)
    assert [rule.start for rule in component(program, "walk").rules] == [False, True]
    assert "walk" not in program.facts


def test_goals_ask_for_the_result() -> None:
    (goal,) = checked(WALK + "?- walk(1, R).", S).goals
    assert len(goal.atom.arguments) == 2
    assert codes(WALK + "?- walk(T, 1, R).", S) == ["E0202"]
    assert len(checked(WALK + "at(t) :- walk(t, _, _).\n?- walk(T, 1, R).", S).goals) == 1


def test_mutual_iterations() -> None:
    text = (
        "a(0, X, 1.0) :- node(X).\na(i+1, Y, sum[r]) :- b(i, X, r), edge(X, Y).\n"
        "b(j+1, Y, sum[r]) :- a(j, X, r), edge(X, Y)."
    )
    part = component(checked(text, S), "a")
    assert part.indexed
    assert set(part.predicates) == {"a", "b"}


ORDINARY = [
    "p(0, X) :- node(X).\np(i+1, Y) :- p(i, X), edge(X, Y).",  # neither aggregate nor termination clause
    "p(0, X, 1) :- node(X).\np(i+1, Y, min[d]) :- p(i, X, d), edge(X, Y), i < 9.",  # the index is a value
    "p(X, 0) :- node(X).\np(Y, min[d]) :- p(X, i), edge(X, Y), d = i + 1.",  # not the first argument
    "p(0, X, 1) :- node(X).\np(t, Y, min[d]) :- p(i, X, d), edge(X, Y), t = i + 1.",  # not written as i+1
]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_iteration(text: str) -> None:
    part = component(checked(text, S), "p")
    assert not part.indexed
    assert part.evaluation == "delta"


WRONG = [
    "walk(7, X, 1.0) :- node(X).",
    "walk(i, X, r) :- walk(i, Y, r), edge(Y, X).",
    "walk(i+1, X, sum[r]) :- walk(i, X, r), walk(j, X, _).",
    "walk(i+1, X, sum[r]) :- extra(i, r), node(X).",
    "walk(3, 1, 2.0).",
]


@pytest.mark.parametrize("text", WRONG)
def test_rules_that_do_not_agree(text: str) -> None:
    assert set(codes(WALK + text, S)) == {"E0305"}


def test_an_iteration_takes_no_rows_from_a_source() -> None:
    assert codes(WALK, S + "\nwalk(number, number, float)") == ["E0305"]


def test_the_result_cannot_be_read_without_the_index_where_states_are_kept() -> None:
    assert codes(WALK + "at(t) :- walk(t, _, _).\nall(X) :- walk(X, _).", S) == ["E0202"]


def test_a_plain_recursion_may_have_a_termination_clause() -> None:
    text = "p(X, sum<r>) :- extra(X, r).\np(Y, sum<s>) :- p(X, r), edge(X, Y), s = 0.5 * r; {max[delta r] <= 0.1}."
    program = checked(text, S)
    part = component(program, "p")
    assert part.until is None and part.evaluation == "delta"
    (warning,) = program.warnings
    assert "termination clause of `p` has no effect" in warning.message


ENDS = [
    ("{sum[delta nobody] < 0.1}", "names `nobody`"),
    ("{min[delta r] < 0.1}", "bounds the change"),
    ("{sum[delta r] > 0.1}", "bounds the change"),
]


@pytest.mark.parametrize(("clause", "message"), ENDS)
def test_wrong_termination_clauses(clause: str, message: str) -> None:
    (found,) = mistakes(WALK.replace("edge(X, Y).", f"edge(X, Y); {clause}."), S)
    assert message in found.message
