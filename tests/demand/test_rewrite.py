"""The rules that the pass writes, and why it leaves some predicates whole."""

from __future__ import annotations

import pytest

import emberlog
from demand.examples import DISTANCES, LEFT, RIGHT, SAME
from emberlog.analysis.program import CheckedProgram
from emberlog.demand.transform import Demanded
from emberlog.rules.text import rule_text
from planned import compiled


def demanded(text: str) -> Demanded:
    found = compiled(text).demanded
    assert found is not None
    return found


def rules(text: str) -> list[str]:
    """The rules of what is asked for, without those of goals."""
    return sorted(rule_text(rule) for rule in demanded(text).rules if not rule.predicate.startswith("goal/"))


def notes(text: str) -> tuple[str, ...]:
    return demanded(text).notes


def test_a_column_that_is_handed_on_needs_no_demand_of_its_own() -> None:
    assert rules(LEFT + "?- tc(1,Y).") == [
        "tc/bf(X, Y) :- demand/tc/bf(X), arc(X, Y).",
        "tc/bf(X, Y) :- tc/bf(X, Z), arc(Z, Y).",
    ]
    assert set(demanded(LEFT + "?- tc(1,Y).\n?- tc(7,Y).").program.facts["demand/tc/bf"]) == {(1,), (7,)}


@pytest.mark.parametrize(
    ("text", "goal", "step", "answer"),
    [
        (RIGHT, "tc(1,Y)", "from/tc/bf/tc(asked/0, X), arc(X, Z)", "tc/bf(asked/0, Y)"),
        (LEFT, "tc(X,1)", "from/tc/fb/tc(asked/1, Y), arc(Z, Y)", "tc/fb(X, asked/1)"),
    ],
)
def test_a_column_that_comes_back_is_left_to_the_exit_rules(text: str, goal: str, step: str, answer: str) -> None:
    found = rules(f"{text} ?- {goal}.")
    assert any(rule.endswith(f" :- {step}.") for rule in found)
    assert [rule for rule in found if rule.startswith("tc/")] == [f"{answer} :- {step.split(', arc')[0]}, arc(X, Y)."]


def test_what_stands_before_an_atom_says_what_is_asked_of_it() -> None:
    assert rules(SAME + "?- sg(1,Y).") == [
        "demand/sg/bf(A) :- demand/sg/bf(X), arc(A, X).",
        "sg/bf(X, Y) :- demand/sg/bf(X), arc(A, X), sg/bf(A, B), arc(B, Y).",
        "sg/bf(X, Y) :- demand/sg/bf(X), arc(P, X), arc(P, Y), X != Y.",
    ]


def test_relations_and_constants_are_lists_of_what_is_asked() -> None:
    assert "demand/tc/bf(X) :- wanted(X)." in rules(LEFT + "?- tc(X,Y), wanted(X).")
    asked = demanded(LEFT + "?- tc(X,Y), (X = 1; X = 2).").program.facts["demand/tc/bf"]
    assert set(asked) == {(1,), (2,)}


def test_a_constant_in_a_rule_asks_like_a_goal() -> None:
    text = LEFT + "q(Y) <- arc(5,X), tc(X,Y). .output q"
    assert "demand/tc/bf(X) :- arc(5, X)." in rules(text)
    assert rules(LEFT + "q(Y) <- arc(X,_), tc(X,Y). .output q") == []


def test_groups_restrict_an_aggregate_and_its_values_do_not() -> None:
    restricted = demanded(DISTANCES + "?- d(1,Y,D).").program
    assert [(v.predicate, v.status) for v in restricted.verdicts] == [("d/bff", "proved")]
    assert rules(DISTANCES + "?- d(X,Y,7).") == []


def shape(program: CheckedProgram, name: str) -> str:
    return next(part.shape for part in program.components if name in part.predicates)


def test_demand_may_join_a_recursion_of_sets() -> None:
    text = "p(X,Y) <- e(X,Y). p(X,Y) <- p(X,Z), f(Z,W), p(W,Y). ?- p(1,Y)."
    assert "demand/p/bf(W) :- demand/p/bf(X), p/bf(X, Z), f(Z, W)." in rules(text)
    assert shape(demanded(text).program, "p/bf") == "mutual"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LEFT + "t(X,Z) <- f(X,Z), !tc(Z,X). u(X,Y) <- t(X,Z), tc(Z,Y). ?- u(1,Y).", "would make negation recursive"),
        (LEFT + "t(X,min<Z>) <- tc(X,Z). u(X,Y) <- t(X,Z), tc(Z,Y). ?- u(1,Y).", "would make an aggregate recursive"),
        (LEFT + ".output tc\n?- tc(1,Y).", "all of it is asked for"),
        (LEFT + "u(X) <- tc(_,X). .output u\n?- tc(1,Y).", "`u` reads all of it"),
        (".decl tc(x:number,y:number) no_magic\n" + LEFT + "?- tc(1,Y).", "the program says so"),
        ('.pragma "magic-transform-exclude" "tc"\n' + LEFT + "?- tc(1,Y).", "the program says so"),
        ("k(X,topk(2,Y)) <- arc(X,Y). ?- k(1,Y).", "topk keeps the best rows of all"),
        (LEFT + "?- tc(X,Y), arc(X,5).", ""),
        (LEFT + "?- tc(X,Y), arc(X,_).", "most of it is asked for: `arc` is what it is computed from"),
    ],
)
def test_why_a_predicate_is_evaluated_whole(text: str, reason: str) -> None:
    found = notes(text)
    assert (reason in " ".join(found)) if reason else not found


def test_a_list_with_most_of_the_rows_is_no_list() -> None:
    import emberlog

    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(i, i + 1) for i in range(10)])
        engine.register("wanted", [(i,) for i in range(9)])
        assert "`wanted` has 9 rows" in str(engine.explain(LEFT + "?- tc(X,Y), wanted(X)."))
        magic = ".decl tc(x: number, y: number) magic\n"
        assert "demand/tc/bf(X) :- wanted(X)." in str(engine.explain(magic + LEFT + "?- tc(X,Y), wanted(X)."))


def test_the_program_may_ask_for_more_rewriting() -> None:
    text = LEFT + "q(X,Y) <- wanted(X), tc(X,Y). .output q"
    assert rules(text) == []
    assert "demand/tc/bf(X) :- wanted(X)." in rules(f'.pragma "magic-transform" "*"\n{text}')


def test_values_are_computed_of_what_relations_bound_only() -> None:
    """`demand/q/b(cat(X, "a")) :- demand/q/b(X).` would ask for ever."""
    assert rules('q("b"). q(X) :- w(X), q(cat(X, "a")). ?- q("b").') == [
        'demand/q/b(cat(X, "a")) :- demand/q/b(X), w(X).',
        "q/b(#0) :- demand/q/b(#0), q/facts(#0).",
        'q/b(X) :- demand/q/b(X), w(X), q/b(cat(X, "a")).',
    ]


@pytest.mark.parametrize(
    ("step", "bounding"),
    [
        ('w(X), Z = cat(X, "a"), q(Z)', "w(X)"),
        ('w(X), Z = X, q(cat(Z, "a"))', "w(X)"),
        ('v(X, Z), q(cat(Z, "a"))', "v(X, Z)"),
        ('v(Z, X), q(cat(X, "a"))', "v(Z, X)"),
    ],
)
def test_what_bounds_a_value_restricts_its_demand(step: str, bounding: str) -> None:
    asked = [rule for rule in rules(f'q("b"). q(X) :- {step}. ?- q("b").') if rule.startswith("demand/q/b(")]
    assert asked
    assert all(bounding in rule for rule in asked)


def test_an_empty_answer_is_no_empty_recursion() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("w", [("b",)])
        result = engine.run('q("a"). q(X) :- w(X), q(cat(X, "a")). ?- q("b").')
        assert result.goals[0].rows() == []
        assert not result.warnings
