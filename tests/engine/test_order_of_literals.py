"""The goals of a rule in another order: the same rows, or the same kind of error, on every evaluator."""

from __future__ import annotations

from functools import partial
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement import locally
from strategies import Case, expected, small_programs, wide_programs
from strategies.cases import assert_same, outcome
from strategies.small import in_other_orders


def agrees_in_another_order(case: Case, random: Random) -> None:
    """The evaluators give for the goals in another order what the reference gives for them as they are written."""
    right = expected(case)
    for evaluator, other in zip(("sql", "auto"), in_other_orders(case, random, 2), strict=True):
        assert_same(other, outcome(other, partial(locally, evaluator=evaluator)), right, evaluator)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(small_programs(), st.randoms())
def test_single_rules(case: Case, random: Random) -> None:
    agrees_in_another_order(case, random)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(wide_programs(), st.randoms())
def test_whole_programs(case: Case, random: Random) -> None:
    agrees_in_another_order(case, random)
