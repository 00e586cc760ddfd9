"""What the strategies draw is valid, and what compares rows tells them apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from naive.values import Row
from strategies import (
    Case,
    aggregate_programs,
    arithmetic_programs,
    assert_agrees,
    programs,
    recursive_programs,
    reference,
    same_rows,
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
