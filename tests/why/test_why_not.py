"""Why rows do not hold, against the reference: so many literals can be satisfied, and with the next one none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
import naive
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.why.tree import Node, walk
from naive.values import Row

Rows = dict[str, set[Row]]
SOME = settings(max_examples=12, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=1000, suppress_health_check=list(HealthCheck))


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", warnings="ignore") as made:
        yield made


def attempts(answer: Any) -> list[Node]:
    return [node for _, node in walk(answer.root) if node.kind == "attempt"]


def satisfied(rule: nodes.Rule, row: Row, count: int, rows: Rows) -> bool:
    """True if the first literals of a body have a binding in which the head is the row."""
    (head,) = rule.heads
    assert isinstance(rule.body, nodes.And)
    equations = [
        nodes.Comparison("=", term, nodes.Constant(value))  # type: ignore[arg-type]
        for term, value in zip(head.arguments, row, strict=True)
    ]
    body = nodes.And((*equations, *rule.body.parts[:count]))
    program = nodes.Program((nodes.Rule((nodes.Atom("hit", (nodes.Constant(1),)),), body),))
    return bool(naive.evaluate(program, rows)["hit"])


def check(answer: Any, row: Row, rows: Rows) -> None:
    for attempt in attempts(answer):
        (rule,) = parse(Source("<rule>", attempt.rule)).items
        assert isinstance(rule, nodes.Rule)
        kinds = [child.kind for child in attempt.children]
        reached = kinds.count("holds")
        assert kinds == ["holds"] * reached + ["fails"]
        assert satisfied(rule, row, reached, rows)
        assert not satisfied(rule, row, reached + 1, rows)


NODES = st.integers(0, 4)
PAIRS = st.lists(st.tuples(NODES, NODES), max_size=7, unique=True)
BODIES = st.lists(
    st.sampled_from(["e(X, Z)", "f(Z, Y)", "e(Y, X)", "!f(X, Y)", "X < Y", "f(X, X)", "p(Y, Z)", "!e(Y, _)", "Z > 2"]),
    min_size=1,
    max_size=4,
    unique=True,
)


def ask(bodies: list[list[str]], e: list[Row], f: list[Row], asked: Row) -> bool:
    """Checks the answer for a program of rules `q(X, Y)`; False if the row holds."""
    program = (
        "p(X, Y) <- e(X, Y). p(X, Y) <- p(X, Z), e(Z, Y). .decl e(x: number, y: number) .decl f(x: number, y: number)"
    )
    # Each variable stands in some positive atom.
    program += "".join(f" q(X, Y) <- {', '.join(body)}, e(X, _), f(_, Y), e(Z, _)." for body in bodies)
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        engine.register("e", e or _empty())
        engine.register("f", f or _empty())
        result = engine.run(program)
        rows: Rows = {"e": set(e), "f": set(f), **{name: set(result[name].rows()) for name in ("p", "q")}}
        if asked in rows["q"]:
            return False
        check(result.why_not("q", asked), asked, rows)
        return True


def _empty() -> Any:
    import pyarrow as pa

    return pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.int64())})


@SOME
@given(st.lists(BODIES, min_size=1, max_size=2), PAIRS, PAIRS, st.tuples(NODES, NODES))
def test_as_many_literals_hold_as_the_reference_says(
    bodies: list[list[str]], e: list[Row], f: list[Row], asked: Row
) -> None:
    ask(bodies, e, f, asked)


@pytest.mark.slow
@LOTS
@given(st.lists(BODIES, min_size=1, max_size=3), PAIRS, PAIRS, st.tuples(NODES, NODES))
def test_as_many_literals_hold_in_many_programs(
    bodies: list[list[str]], e: list[Row], f: list[Row], asked: Row
) -> None:
    ask(bodies, e, f, asked)


def test_a_missing_base_row_is_named_with_the_nearest_ones(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2), (2, 3), (7, 9)])
    result = engine.run("tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y).")
    assert str(result.why_not("tc", (1, 9))) == (
        "tc(1, 9) does not hold    2 rules could give it, and none does\n"
        "├─ tc(X, Y) :- arc(X, Y).    (<program>:1)  0 of 1 literal can be satisfied\n"
        "│  └─ ✗ arc(1, 9)    the base relation `arc` has no such row\n"
        "│     ├─ arc(1, 2)    the nearest: another value of `c1`\n"
        "│     └─ arc(7, 9)    the nearest: another value of `c0`\n"
        "└─ tc(X, Y) :- tc(X, Z), arc(Z, Y).    (<program>:1)  1 of 2 literals can be satisfied\n"
        "   ├─ ✓ tc(1, 2)\n"
        "   └─ ✗ arc(2, 9)    the base relation `arc` has no such row, for this and 1 other binding\n"
        "      ├─ arc(2, 3)    the nearest: another value of `c1`\n"
        "      └─ arc(7, 9)    the nearest: another value of `c0`"
    )
    missing = result.why_not("arc", (1, 3))
    assert missing.root.note == "`arc` is a base relation without such a row"
    assert [node.values for node in missing.root.children] == [(1, 2), (2, 3)]


def test_another_value_of_the_group_is_told(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2, 7), (1, 3, 2), (3, 2, 3)])
    result = engine.run("d(Y, min<D>) <- Y = 1, D = 0. d(Y, min<D>) <- d(X, C), arc(X, Y, W), D = C + W.")
    assert [node.values for node in result.why_not("d", (2, 7)).root.children] == [(2, 5)]
    (start, step) = attempts(result.why_not("d", (9, 1)))
    assert [child.text for child in start.children] == ["9 = 1"]
    assert step.children[-1].text.startswith("arc(")


def test_what_is_in_the_way_of_a_negation_is_shown(engine: emberlog.Engine) -> None:
    engine.register("e", [(1,), (2,)])
    result = engine.run(
        'p(X) <- e(X), !no(X, _). no(1, "a"). no(1, "b"). q(X) <- e(X), X > 1, c = count : { e(_) }, c > 5.'
    )
    (attempt,) = attempts(result.why_not("p", (1,)))
    failing = attempt.children[-1]
    assert failing.text == "!no(1, _)"
    assert [node.values for node in failing.children] == [(1, "a"), (1, "b")]
    (attempt,) = attempts(result.why_not("q", (2,)))
    assert [child.kind for child in attempt.children] == ["holds", "holds", "holds", "fails"]
    assert attempt.children[-1].text == "2 > 5"
