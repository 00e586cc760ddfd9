"""Random programs: the reference evaluator, DuckDB, what the planner chooses and Spark give the same answers.

The local executor sees many programs; Spark, where a program takes a second, sees some. The slow tests draw more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.data.load import fact_table
from emberlog.types import Column, Type, Value
from naive.values import Row
from strategies import Case, aggregate_programs, arithmetic_programs, assert_agrees, programs, recursive_programs

ANY = st.one_of(programs(), recursive_programs(), aggregate_programs(), arithmetic_programs())
MANY = settings(max_examples=150, suppress_health_check=list(HealthCheck))
SOME = settings(max_examples=5, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=3000, suppress_health_check=list(HealthCheck))


def rows_of(engine: emberlog.Engine, case: Case, **how: Any) -> Mapping[str, Iterable[Row]]:
    for name, rows in case.facts.items():
        columns = tuple(Column(f"c{i}", Type(kind)) for i, kind in enumerate(case.columns[name]))  # type: ignore[arg-type]
        engine.register(name, fact_table(columns, cast("list[tuple[Value, ...]]", rows)) if columns else rows)
    result = engine.run(case.program, cast("Mapping[str, Value]", case.params), limits={"rounds": 1000}, **how)
    return {name: result[name].rows() for name in case.derived}


def on_duckdb(case: Case) -> Mapping[str, Iterable[Row]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        return rows_of(engine, case, evaluator="sql")


def locally(case: Case) -> Mapping[str, Iterable[Row]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        return rows_of(engine, case)


@MANY
@given(ANY)
def test_duckdb_agrees(case: Case) -> None:
    assert_agrees(case, on_duckdb)


@MANY
@given(st.one_of(recursive_programs(), aggregate_programs()))
def test_what_the_planner_chooses_agrees(case: Case) -> None:
    assert_agrees(case, locally)


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
            return rows_of(engine, case, placement="spark")

    @how_many
    @given(ANY)
    def agrees(case: Case) -> None:
        assert_agrees(case, on_spark)

    agrees()
