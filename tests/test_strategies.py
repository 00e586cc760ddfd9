"""What the strategies draw is valid, and what compares rows tells them apart."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import naive
from emberlog.source import Source
from emberlog.syntax.parser import parse
from naive.fixpoint import in_order
from naive.normal import Body as NormalBody
from naive.normal import Computed, Gather, Rule, normalize
from naive.values import Row, Value
from strategies import (
    Case,
    Outcome,
    aggregate_programs,
    arithmetic_programs,
    assert_agrees,
    expected,
    programs,
    recursive_programs,
    reference,
    same_rows,
    wide_programs,
)


@settings(max_examples=60)
@given(st.one_of(programs(), recursive_programs(), aggregate_programs()))
def test_drawn_programs_have_answers(case: Case) -> None:
    found = reference(case)
    assert set(case.derived) <= found.keys()
    assert_agrees(case, lambda _: found)


@settings(max_examples=60)
@given(arithmetic_programs())
def test_drawn_arithmetic_has_an_answer_or_an_error(case: Case) -> None:
    try:
        reference(case)
    except naive.EvaluationError as error:
        assert error.rule.rstrip() in case.program


@given(programs())
def test_facts_fit_their_columns(case: Case) -> None:
    kinds = {"number": int, "float": float, "symbol": str}
    assert case.facts.keys() == case.columns.keys()
    for name, rows in case.facts.items():
        assert len(set(rows)) == len(rows)
        assert all(
            type(value) is kinds[kind] for row in rows for value, kind in zip(row, case.columns[name], strict=True)
        )


# --- wide programs ---------------------------------------------------------------------------------------------------


@cache
def sample() -> list[Case]:
    """The same two hundred programs each time."""
    cases: list[Case] = []

    @seed(2)
    @settings(max_examples=200, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(wide_programs())
    def keep(case: Case) -> None:
        cases.append(case)

    keep()
    return cases


def rules(case: Case) -> tuple[Rule, ...]:
    return normalize(parse(Source("<case>", case.program)), {}).rules


def has_ring(case: Case) -> bool:
    return any(len(component) >= 3 for component in in_order(rules(case)))


def nests(body: NormalBody, depth: int) -> bool:
    inner = [alternative for literal in body if isinstance(literal, Gather) for alternative in literal.alternatives]
    return bool(inner) if depth == 1 else any(nests(alternative, depth - 1) for alternative in inner)


def in_recursion(case: Case, type: str) -> bool:
    """A column of this type is read beside a recursive predicate."""
    together = [set(part) for part in in_order(rules(case))]
    bodies = [rule.reads for rule in rules(case) if any(rule.head.predicate in p and rule.reads & p for p in together)]
    return any(type in case.columns.get(name, ()) for reads in bodies for name in reads)


def defines_twice(case: Case) -> bool:
    """A rule with two equations of one computed variable."""
    return any(
        len(re.findall(rf"[ ,]{name} = ", line)) > 1
        for line in case.program.splitlines()
        for name in set(re.findall(r"W[0-9]+", line))
    )


def keys(body: NormalBody) -> int:
    """How many arguments of the body's atoms are computed."""
    return sum(isinstance(literal, Computed) for literal in body)


@cache
def answers() -> list[Outcome]:
    return [expected(case) for case in sample()]


def holds_value(case: Case, value: Value) -> bool:
    return any(value in row for rows in case.facts.values() for row in rows)


FEATURES: dict[str, Callable[[Case], bool]] = {
    "three columns": lambda case: any(len(types) == 3 for types in case.columns.values()),
    "five columns": lambda case: any(len(types) == 5 for types in case.columns.values()),
    "five derived columns": lambda case: any(len(rule.head.arguments) == 5 for rule in rules(case)),
    "three mutual predicates": has_ring,
    "an aggregate in an aggregate": lambda case: any(nests(rule.body, 2) for rule in rules(case)),
    "three aggregates deep": lambda case: any(nests(rule.body, 3) for rule in rules(case)),
    "countd in recursion": lambda case: "countd<" in case.program and in_recursion(case, "number"),
    "text in recursion": lambda case: in_recursion(case, "symbol"),
    "dates in recursion": lambda case: in_recursion(case, "date"),
    "truth values in recursion": lambda case: in_recursion(case, "bool"),
    "decimals in recursion": lambda case: in_recursion(case, "decimal(10,2)"),
    "floats in recursion": lambda case: in_recursion(case, "float"),
    "unsigned numbers in recursion": lambda case: in_recursion(case, "unsigned"),
    "2^53 + 1": lambda case: holds_value(case, 2**53 + 1),
    "2^53 - 1": lambda case: holds_value(case, 2**53 - 1),
    "2^63 - 1": lambda case: holds_value(case, 2**63 - 1),
    "2^64 - 1": lambda case: holds_value(case, 2**64 - 1),
    "a negation": lambda case: "not " in case.program or "!p" in case.program,
    "a range": lambda case: "range(" in case.program,
    "a pattern": lambda case: "match(" in case.program,
    "two equations of one variable": defines_twice,
    "a variable that equals another": lambda case: (
        re.search(r"[ ,]W[0-9]+ = [A-Za-z][0-9]*[,.]", case.program) is not None
    ),
    "a count of a term": lambda case: re.search(r"countd?<[^>]*[ (]", case.program) is not None,
    "two computed keys": lambda case: any(keys(rule.body) >= 2 for rule in rules(case)),
    "only some are asked for": lambda case: ".output" in case.program,
}


@pytest.mark.parametrize("feature", FEATURES)
def test_wide_programs_have(feature: str) -> None:
    assert sum(FEATURES[feature](case) for case in sample()) >= 3


# Where what has no value stands: the same rule without that use would be fine.
USES = {
    "compared": r"W[0-9]+ ([<>]|!=)",
    "matched": r"[ep][0-9]+\([^)]*W[0-9]",
    "negated": r"(!|not )[ep][0-9]+\([^)]*W[0-9]",
    "aggregated": r"count : \{ [ep][0-9]+\([^)]*W[0-9]",
    "computed with": r"(W[0-9]+) = [a-z]+\(W[0-9]+",
}


@pytest.mark.parametrize("use", USES)
def test_computed_values_are(use: str) -> None:
    assert sum(re.search(USES[use], line) is not None for case in sample() for line in case.program.splitlines()) >= 3


def test_wide_programs_have_rows_or_fail() -> None:
    found = [answer for answer in answers() if not isinstance(answer, type)]
    full = sum(bool(rows) for relations in found for name, rows in relations.items() if name.startswith("p"))
    assert full >= len(found)
    assert len(sample()) // 20 <= len(sample()) - len(found) <= len(sample()) // 2


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([(1, "a")], [(1, "a")], True),
        ([(1,), (2,)], [(2,), (1,)], True),
        ([(1,)], [(1.0,)], True),
        ([(True,)], [(1,)], False),
        ([("1",)], [(1,)], False),
        ([(0.1 + 0.2, 1)], [(0.3, 1)], True),
        ([(1.0,)], [(1.0 + 1e-8,)], False),
        ([(2**60,)], [(2**60 + 1,)], False),
        ([(math.nan, 1)], [(float("nan"), 1)], True),
        ([(0.0,)], [(-0.0,)], True),
        ([(1,), (1,)], [(1,)], False),
        ([()], [], False),
        ([()], [()], True),
        ([(1,)], [(1, 2)], False),
    ],
)
def test_same_rows(left: list[Row], right: list[Row], same: bool) -> None:
    assert same_rows(left, right) is same
    assert same_rows(right, left) is same


def test_an_answer_that_differs_is_shown() -> None:
    case = Case("p(x) :- e(x).", {"e": [(1,), (2,)]}, {"e": ("number",)}, ("p",))
    with pytest.raises(AssertionError, match=r"p: \+\(3,\) -\(2,\)"):
        assert_agrees(case, lambda _: {"p": [(1,), (3,)]})
