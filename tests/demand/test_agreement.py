"""Random programs and goals: the rows are those that the goal selects from the whole relation."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from agreement import LIMITS
from emberlog.types import Value
from strategies import aggregate_programs, programs, recursive_programs, wide_programs
from strategies.asked import Question, closures, questions
from strategies.cases import difference, tables

ANY = st.one_of(closures(), closures(), recursive_programs(), programs(), aggregate_programs(), wide_programs())
SOME = settings(max_examples=25, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=3000, suppress_health_check=list(HealthCheck))


def assert_answered(question: Question) -> None:
    """A goal gives the rows that it selects: of the reference, by statements and by what a run chooses."""
    case = question.case
    with emberlog.Engine(executor="local", workers=1, limits=LIMITS, warnings="ignore") as engine:
        for name, table in tables(case).items():
            engine.register(name, table)
        for evaluator in ("auto", "sql"):
            params = cast("dict[str, Value]", case.params)
            rows = engine.query(question.goal, case.program, params, evaluator=evaluator).rows()
            told = difference(rows, question.right)
            assert not told, f"?- {question.goal}. by {evaluator}: {told}\n{case!r}"


@SOME
@given(questions(ANY))
def test_goals_select_rows(question: Question) -> None:
    assert_answered(question)


@pytest.mark.slow
@LOTS
@given(questions(ANY))
def test_goals_select_rows_of_thousands(question: Question) -> None:
    assert_answered(question)
