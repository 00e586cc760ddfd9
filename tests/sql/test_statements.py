"""Recursive rules as statements: each folder of `cases/rules` has a program and the SQL of its rounds, for both
engines. What rounds read of a relation is in the names of tables: `tc`, `tc_recent`, `tc_stable`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberlog.plan.logical import Guard, Version
from emberlog.plan.strata import ProgramPlan, plans
from emberlog.sql.compile import compile_plan
from emberlog.sql.dialect import Dialect
from emberlog.sql.duck_dialect import DuckDB
from emberlog.sql.spark_dialect import Spark
from planned import planned

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "cases" / "rules").glob("*/program.dl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_statements_are_as_written(case: Path) -> None:
    _, _, plan = planned((case / "program.dl").read_text(encoding="utf-8"))
    text = "\n".join([*_statements(plan, DuckDB()), *_statements(plan, Spark()), ""])
    expected = case / "statements.sql"
    if os.environ.get("UPDATE_CASES"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def _statements(plan: ProgramPlan, dialect: Dialect) -> Iterator[str]:
    def table(relation: str, version: Version) -> str:
        return relation if version == "all" else f"{relation}_{version}"

    guards: list[Guard] = []
    for stratum in plan.strata:
        if stratum.evaluation != "once":
            for relation in stratum.relations:
                yield f"-- {relation.name}, {dialect.name}"
                yield from (compile_plan(step, dialect, table, guards).sql + ";" for step in plans(relation))
