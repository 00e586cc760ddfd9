"""Rules come and go: the view is what a fresh evaluation of the changed program gives."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from maintain.sequences import Step, after, as_tables, assert_differences
from naive.values import Row
from strategies.cases import Case, difference, expected
from strategies.templates import graphs, weights

# Any of these rules make a program, and in some of these programs `p`, or `p` and `q`, are recursive.
POOL = (
    "p(X, Y) <- arc(X, Y, _).",
    "p(X, Y) <- p(X, Z), arc(Z, Y, _).",
    "p(X, Y) <- p(X, Z), p(Z, Y).",
    "p(X, X) <- arc(X, _, W), W > 3.",
    "p(X, Y) <- q(X), arc(Y, X, _).",
    "p(5, 6).",
    "q(X) <- p(X, Y), p(Y, X).",
    "q(X) <- arc(X, _, 2).",
    "n(X, count(Y)) <- p(X, Y).",
    "n(X, count(Y)) <- arc(X, Y, _).",
    "d(X, min(W)) <- arc(X, _, W).",
    "d(Y, min(V)) <- d(X, W), arc(X, Y, U), V = W + U.",
    "u(X) <- arc(X, _, _), !q(X).",
    "u(X) <- d(X, 1).",
    "z(S) <- S = sum W : { arc(_, _, W) }.",
)
Turn: TypeAlias = int | Step


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[Row], list[Turn]]:
    """A graph, and what is done: the number of a rule is one that comes, or goes if it is there."""
    rows = draw(graphs(weights))
    edge = st.tuples(st.integers(0, 6), st.integers(0, 6), weights)
    edges = st.lists(edge, max_size=2)
    change = st.builds(lambda gone, come: Step({"arc": [*gone]}, {"arc": [*come]}), edges, edges)
    rule = st.integers(0, len(POOL) - 1)
    return rows, [*draw(st.lists(rule, min_size=3, max_size=6)), *draw(st.lists(st.one_of(rule, change), max_size=8))]


def case_of(rules: list[str], rows: list[Row]) -> Case:
    heads = dict.fromkeys(rule.split("(")[0] for rule in rules)
    return Case("\n".join(rules), {"arc": rows}, {"arc": ("number",) * 3}, tuple(heads))


def assert_follows(rows: list[Row], done: list[Turn]) -> None:
    rules = ["p(X, Y) <- arc(X, Y, W), W > 1."]
    case = case_of(rules, rows)
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        engine.register("arc", as_tables(case, case.facts)["arc"])
        view = engine.maintain(case.program)
        for number, turn in enumerate(done):
            before = {name: view[name].rows() for name in case.derived}
            if isinstance(turn, Step):
                change = view.apply(insert=turn.insert, delete=turn.delete)
                case = after(case, turn)
            elif POOL[turn] in rules:
                rules.remove(POOL[turn])
                change = view.remove_rule(POOL[turn])
            else:
                rules.append(POOL[turn])
                change = view.add_rule(POOL[turn])
            case = case_of(rules, case.facts["arc"])
            right = expected(case)
            assert not isinstance(right, type)
            now = {name: view[name].rows() for name in case.derived}
            for name, found in now.items():
                told = difference(found, right[name])
                assert not told, f"{name} after turn {number} of {done}: {told}\n{case!r}\n{view.explain()}"
            assert_differences(change, {name: before.get(name, []) for name in now}, now, f"turn {number} of {done}")


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(turns())
def test_rules_come_and_go(drawn: tuple[list[Row], list[Turn]]) -> None:
    assert_follows(*drawn)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=list(HealthCheck), deadline=None)
@given(turns())
def test_rules_come_and_go_in_hundreds(drawn: tuple[list[Row], list[Turn]]) -> None:
    assert_follows(*drawn)


def test_only_what_depends_on_the_rule_is_computed() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(1, 2), (2, 3)])
        view = engine.maintain("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). back(X,Y) <- arc(Y,X).")
        change = view.add_rule("back(X, X) <- arc(X, _).")
        assert [task.names for task in change.stats.tasks] == [("back",)]
        assert change["back"].inserted == {(1, 1), (2, 2)}


def test_a_rule_that_makes_the_program_wrong_changes_nothing() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(1, 2)])
        view = engine.maintain("p(X) <- arc(X, _). q(X) <- arc(X, _), !p(X).")
        with pytest.raises(emberlog.ProgramError):
            view.add_rule("p(X) <- q(X).")
        with pytest.raises(emberlog.UsageError):
            view.remove_rule("p(X) <- arc(_, X).")
        assert view.apply(insert={"arc": [(5, 6)]})["p"].inserted == {(5,)}


def test_rows_of_an_input_stay_when_it_gets_rules() -> None:
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain(".decl base(x: number)\np(X) <- base(X).")
        view.apply(insert={"base": [(1,)]})
        assert view.add_rule("base(X) <- more(X).")["p"].inserted == set()
        assert view.apply(insert={"more": [(2,)], "base": [(3,)]})["p"].inserted == {(2,), (3,)}
        assert view.remove_rule("base(X) <- more(X).")["p"].deleted == {(2,)}
        assert set(view["p"].rows()) == {(1,), (3,)}


def test_an_input_that_no_rule_reads_for_a_while_keeps_its_rows() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("n", [(5,)])
        view = engine.maintain("p(X) <- n(X), X > 3.")
        view.apply(insert={"n": [(1,)]}, delete={"n": [(5,)]})
        view.remove_rule("p(X) <- n(X), X > 3.")
        view.apply(insert={"n": [(2,)]})
        assert view.add_rule("q(X) <- n(X).")["q"].inserted == {(1,), (2,)}
