"""Random programs: the reference evaluator, DuckDB, what the planner chooses and Spark give the same answers.

The local executor sees many programs; Spark, where a program takes a second, sees some. The slow tests draw more, and
`test_campaign` as many as one wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from agreement import LIMITS, assert_both_agree, locally, rows_by
from emberlog.analysis.columns import unread_columns
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import Value
from naive.values import Row
from strategies import (
    Case,
    aggregate_programs,
    arithmetic_programs,
    assert_agrees,
    broken_programs,
    expected,
    programs,
    recursive_programs,
    wide_programs,
)
from strategies.cases import tables

ANY = st.one_of(programs(), recursive_programs(), aggregate_programs(), arithmetic_programs())
WIDE = settings(max_examples=30, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=70, suppress_health_check=list(HealthCheck))
SOME = settings(max_examples=5, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=3000, suppress_health_check=list(HealthCheck))


def on_duckdb(case: Case) -> Mapping[str, Iterable[Row]]:
    return locally(case, evaluator="sql")


@MANY
@given(ANY)
def test_duckdb_agrees(case: Case) -> None:
    assert_agrees(case, on_duckdb)


@MANY
@given(st.one_of(recursive_programs(), aggregate_programs()))
def test_what_the_planner_chooses_agrees(case: Case) -> None:
    assert_agrees(case, locally)


def with_gaps(case: Case) -> Mapping[str, Iterable[Row]]:
    """With nulls in every column that the program does not use."""
    unread = unread_columns(parse(Source("<program>", case.program)))
    with emberlog.Engine(executor="local", workers=1) as engine:
        for name, table in tables(case).items():
            for position in unread.get(name, ()):
                table = table.set_column(position, f"c{position}", pa.nulls(table.num_rows))
            engine.register(name, table)
        result = engine.run(case.program, cast("Mapping[str, Value]", case.params), limits=LIMITS)
        return {name: result[name].rows() for name in case.derived}


@MANY
@given(ANY)
def test_columns_that_are_not_used_do_not_matter(case: Case) -> None:
    assert_agrees(case, with_gaps)


@WIDE
@given(wide_programs())
def test_wide_programs_agree(case: Case) -> None:
    assert_both_agree(case)


@WIDE
@given(broken_programs())
def test_programs_without_a_meaning_are_refused(case: Case) -> None:
    assert expected(case) is emberlog.ProgramError
    assert_both_agree(case)


@pytest.mark.slow
@LOTS
@given(ANY)
def test_duckdb_agrees_on_thousands(case: Case) -> None:
    assert_agrees(case, on_duckdb)


def test_spark_agrees(spark: Any) -> None:
    agree_on_spark(spark, SOME)


@pytest.mark.slow
def test_spark_agrees_on_hundreds(spark: Any) -> None:
    agree_on_spark(spark, settings(SOME, max_examples=200))


def agree_on_spark(spark: Any, how_many: settings) -> None:
    def on_spark(case: Case) -> Mapping[str, Iterable[Row]]:
        with emberlog.Engine(spark) as engine:
            return rows_by(engine, case, placement="spark")

    @how_many
    @given(ANY)
    def agrees(case: Case) -> None:
        assert_agrees(case, on_spark)

    agrees()
