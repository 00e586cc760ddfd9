"""The small evaluator that confirms counter-examples, against the reference evaluator."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import naive
from emberlog.analysis.check import check
from emberlog.analysis.proofs.replay import Indexed, NoValue, apply, derive, settle
from emberlog.diagnostics import ProgramError
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import Value
from naive.values import Row
from proofs.programs import PLAIN, Drawn, drawn, typed
from proofs.test_property import once

states = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 5)), max_size=6, unique=True)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn(), states, states, st.booleans())
def test_one_application_of_the_rules(case: Drawn, p: list[Row], q: list[Row], indexed: bool) -> None:
    p, q = (values if not case.floats else [typed("base", row) for row in values] for values in (p, q))
    facts: dict[str, list[Row]] = {**case.facts, "p": p, "q": q, "on": [(x,) for x, _ in p[:2]]}
    program = parse(Source("case.dl", case.text))
    try:
        checked = check(program, case.catalog, naive=True)
    except ProgramError:
        assume(False)
    rules = [rule for component in checked.components for rule in component.rules]
    relations = {
        name: Indexed(rows) if indexed else rows
        for name, rows in cast("dict[str, list[tuple[Value, ...]]]", facts).items()
    }
    for name in PLAIN & set(case.derived):
        relations[name] = derive([rule for rule in rules if rule.predicate == name], relations, None)
    try:
        expected = case.evaluated(once(program), facts)
    except naive.EvaluationError:
        return  # the small evaluator leaves such bindings out
    for name in set(case.derived) - PLAIN:
        aggregates = checked.signatures[name].aggregates
        spot = next(iter(aggregates.items()), None)
        found = derive([rule for rule in rules if rule.predicate == name], relations, spot)
        assert set(found) == expected[f"{name}_next"]


def test_partial_results_are_put_together() -> None:
    rows: list[tuple[Value, ...]] = [(1, 5), (1, 2), (2, 7)]
    assert settle(rows, 1, "min") == [(1, 2), (2, 7)]
    assert settle(rows, 1, "count") == [(1, 7), (2, 7)]
    assert settle([(5, 1), (2, 1)], 0, "sum") == [(7, 1)]


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        ("/", (-7, 2), -3),
        ("%", (-7, 2), -1),
        ("/", (7.0, 2.0), 3.5),
        ("relu", (-1.5,), 0.0),
        ("clip", (7, 0, 5), 5),
        ("to_number", (-2.5,), -2),
        ("int8", (5,), 5),
        ("cat", ("a", "b"), "ab"),
    ],
)
def test_functions(function: str, arguments: tuple[Value, ...], value: Value) -> None:
    assert apply(function, arguments) == value


@pytest.mark.parametrize(("function", "arguments"), [("/", (1, 0)), ("log", (-1.0,)), ("ord", ("a",))])
def test_no_value(function: str, arguments: tuple[Value, ...]) -> None:
    with pytest.raises(NoValue):
        apply(function, arguments)
