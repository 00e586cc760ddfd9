"""Long bodies and many rules: no depth is too deep, and time grows with the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import pytest

import emberlog
import naive
from emberlog.analysis.check import check
from emberlog.plan.compiler import plan_program
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place

EDGES = [(1, 1), (1, 2), (2, 3)]


def path(length: int, prefix: str = "X") -> str:
    return ", ".join(f"e({prefix}{i},{prefix}{i + 1})" for i in range(length))


def body_of_atoms(size: int) -> str:
    return f"p(X0,X{size}) :- {path(size)}."


def body_of_negations(size: int) -> str:
    return "p(X) :- e(X,_), " + ", ".join(f"!e(X,{i + 3})" for i in range(size)) + "."


def body_of_assignments(size: int) -> str:
    chain = ", ".join(f"X{i + 1} = X{i} + 1" for i in range(size))
    return f"p(X0,X{size}) :- e(X0,_), {chain}."


def body_of_both(size: int) -> str:
    chain = ", ".join(f"e(X{i},Z{i}), X{i + 1} = Z{i} * 1" for i in range(size))
    return f"p(X0,X{size}) :- {chain}."


def body_of_alternatives(size: int) -> str:
    return "p(X) :- " + "; ".join(f"e(X,{i})" for i in range(size)) + "."


def body_of_a_sum(size: int) -> str:
    return f"p(sum(_X0)) :- {path(size, '_X')}."


def body_of_a_count(size: int) -> str:
    return f"p(C) :- C = count : {{ {path(size, '_X')} }}."


def body_of_counts(size: int) -> str:
    """Each aggregate is evaluated for what those before it let through."""
    return "p(X) :- e(X,_), " + ", ".join(f"C{i} = count : {{ e(X,Y{i}) }}, C{i} >= 1" for i in range(size)) + "."


def deep_term(size: int) -> str:
    return f"p(Y) :- e(X,_), Y = X{' + 1' * size}."


def deep_condition(size: int) -> str:
    return f"p(X) :- e(X,_), X{' + 1' * size} > {size + 1}."


def nested_calls(size: int) -> str:
    """Calls whose SQL has its argument more than once."""
    return f"p(Y) :- e(X,_), Y = {'abs(' * size}X{')' * size}."


def recursive_body(size: int) -> str:
    return f"p(X,Y) :- e(X,Y). p(X0,X{size}) :- p(X0,X1), {path(size).removeprefix('e(X0,X1), ')}."


# On these edges a walk of n steps is n turns at 1, or it ends 1 to 2, or 1 to 2 to 3.
WALKS = {(1, 1), (1, 2), (1, 3)}
LONG = [
    (body_of_atoms, 200, WALKS),
    (body_of_negations, 200, {(1,)}),
    (body_of_assignments, 500, {(1, 501), (2, 502)}),
    (body_of_both, 100, WALKS),
    (body_of_alternatives, 200, {(1,), (2,)}),
    (body_of_a_sum, 200, {(3,)}),
    (body_of_a_count, 200, {(3,)}),
    (body_of_counts, 24, {(1,), (2,)}),
    (deep_term, 140, {(141,), (142,)}),
    (deep_condition, 140, {(2,)}),
    (nested_calls, 60, {(1,), (2,)}),
    (recursive_body, 200, {*EDGES, (1, 3)}),
]
IDS = [written.__name__ for written, _, _ in LONG]


@pytest.mark.parametrize(("written", "size", "rows"), LONG, ids=IDS)
@pytest.mark.parametrize("evaluator", ["auto", "sql"])
def test_long_bodies(
    written: Callable[[int], str], size: int, rows: set[tuple[int, ...]], evaluator: str, local: Place
) -> None:
    assert set(local.engine({"e": EDGES}).run(written(size), evaluator=evaluator)["p"].rows()) == rows


@pytest.mark.parametrize(("written", "size", "rows"), LONG, ids=IDS)
def test_bodies_that_are_long_for_one_statement_agree_with_the_reference(
    written: Callable[[int], str], size: int, rows: set[tuple[int, ...]], local: Place
) -> None:
    text = written(min(size, 70))
    expected = naive.evaluate(parse(Source("<test>", text)), {"e": EDGES}, {})["p"]
    assert set(local.engine({"e": EDGES}).run(text, evaluator="sql")["p"].rows()) == set(expected)


def test_no_body_needs_pythons_stack(local: Place) -> None:
    """A caller may be deep already: what is left of the stack is no matter of the body's length."""
    limit = sys.getrecursionlimit()
    engine = local.engine({"e": EDGES})
    engine.run(body_of_atoms(2))  # everything is imported

    def deeper(levels: int) -> set[tuple[int, ...]]:
        return deeper(levels - 1) if levels else set(engine.run(body_of_atoms(200))["p"].rows())

    assert deeper(limit // 2) == WALKS


@pytest.mark.spark
def test_long_bodies_on_spark(on_spark: Place) -> None:
    for written, size, rows in (
        (body_of_atoms, 40, WALKS),
        (body_of_negations, 40, {(1,)}),
        (body_of_assignments, 60, {(1, 61), (2, 62)}),
        (body_of_alternatives, 60, {(1,), (2,)}),
        (deep_term, 100, {(101,), (102,)}),
    ):
        assert set(on_spark.run(written(size), {"e": EDGES})["p"].rows()) == rows


def planning_seconds(text: str) -> float:
    begin = process_time()
    program = parse(Source("<test>", text))
    plan_program(check(program, {}, require_sources=False))
    return process_time() - begin


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (lambda size: "".join(f"p{i}(X,Y) :- e(X,Z), e(Z,Y), X > {i}.\n" for i in range(size)), 500),
        (lambda size: "".join(f"p(X,Y) :- e(X,Z), e(Z,Y), X > {i}.\n" for i in range(size)), 500),
        (lambda size: "".join(f"p{(i + 1) % size}(X,Y) :- p{i}(X,Z), e(Z,Y).\n" for i in range(size)), 500),
        (lambda size: "p(X,Y) :- e(X,Y).\n" * size, 1000),
        (body_of_atoms, 50),
        (body_of_negations, 50),
        (body_of_both, 50),
    ],
    ids=["predicates", "one predicate", "one component", "copies", "atoms", "negations", "both"],
)
def test_four_times_the_text_takes_a_few_times_the_time(written: Callable[[int], str], size: int) -> None:
    planning_seconds(written(10))
    small = min(planning_seconds(written(size)) for _ in range(3))
    assert planning_seconds(written(4 * size)) < 12 * small + 0.1


def test_copies_of_a_rule(local: Place) -> None:
    many = local.engine({"e": EDGES}).run("p(X,Y) :- e(X,Z), e(Z,Y).\n" * 5_000)
    assert set(many["p"].rows()) == WALKS
    (stats,) = many.stats
    assert stats.facts == 3


@pytest.mark.parametrize("aggregate", ["sum", "count", "min", "max", "countd", "avg"])
def test_copies_of_a_rule_contribute_where_contributions_are_counted(aggregate: str, local: Place) -> None:
    text = f"p(X,{aggregate}(Y)) :- e(X,Y).\n" * 3
    expected = naive.evaluate(parse(Source("<test>", text)), {"e": EDGES}, {})["p"]
    assert set(local.engine({"e": EDGES}).run(text)["p"].rows()) == set(expected)


def test_copies_of_a_plain_rule_contribute_to_a_sum(local: Place) -> None:
    text = "p(X,sum(Y)) :- e(X,Y). p(X,Y) :- e(X,Y). p(X,Y) :- e(X,Y)."
    expected = naive.evaluate(parse(Source("<test>", text)), {"e": EDGES}, {})["p"]
    assert set(local.engine({"e": EDGES}).run(text)["p"].rows()) == set(expected)


def test_a_loop_nest_that_is_too_deep_to_compile_is_not_compiled(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.choose.strata.SMALL_ROWS", -1)  # so that SQL is not done with it before
    engine: emberlog.Engine = local.engine({"e": EDGES})
    (stats,) = engine.run(recursive_body(30), storage="loops").stats
    assert stats.evaluator == "sql" and "loops" in stats.because


def test_the_text_of_a_plan_grows_with_the_program() -> None:
    """A deep plan is not indented for ever."""
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        engine.register("e", EDGES)
        short, long = (len(str(engine.explain(body_of_atoms(size)))) for size in (200, 800))
    assert long < 5 * short


def test_a_large_component_by_statements() -> None:
    """A round evaluates the relations that something new leads to, not all of them."""
    size = 150
    circle = "\n".join(f"p{i}(X) :- p{(i - 1) % size}(X)." for i in range(size))
    with emberlog.Engine(executor="local", limits={"seconds": 60}) as engine:
        engine.register("e", EDGES)
        result = engine.run(f"p0(X) :- e(X,_).\n{circle}", evaluator="sql")
        assert all(sorted(result[f"p{i}"].rows()) == [(1,), (2,)] for i in range(size))
