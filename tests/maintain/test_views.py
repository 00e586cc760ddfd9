"""Maintained equals recomputed, after every change: random programs, data and changes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from maintain.sequences import Step, assert_maintained, sequences
from maintain.templates import maintained_templates
from strategies import (
    Case,
    aggregate_programs,
    arithmetic_programs,
    programs,
    recursive_programs,
    small_programs,
    wide_programs,
)

ANY = st.one_of(
    maintained_templates(),
    programs(),
    recursive_programs(),
    aggregate_programs(),
    arithmetic_programs(),
    small_programs(),
    wide_programs(),
)
FEW = settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
MANY = settings(FEW, max_examples=2000)


@FEW
@given(sequences(ANY))
def test_maintained_equals_recomputed(drawn: tuple[Case, list[Step]]) -> None:
    assert_maintained(*drawn)


@pytest.mark.slow
@MANY
@given(sequences(ANY))
def test_maintained_equals_recomputed_in_thousands(drawn: tuple[Case, list[Step]]) -> None:
    assert_maintained(*drawn)


def test_goals_of_a_view_may_have_conditions() -> None:
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain("tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y). p(X) <- n(X).")
        view.apply(insert={"arc": [(1, 2), (2, 3)], "n": [(2,)]})
        assert view.query("tc(X, Y), n(X)").rows() == [(2, 3)]
