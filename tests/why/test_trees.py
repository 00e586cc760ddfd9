"""Every tree is checked by the reference: it derives its row, it is well-founded, and it is the smallest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
import naive
from agreement import LIMITS
from emberlog.diagnostics import EmberlogError
from emberlog.result import Result
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from strategies import Case, aggregate_programs, programs, recursive_programs
from strategies.cases import tables
from trees import check, smallest_heights

SOME = settings(max_examples=15, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=1500, suppress_health_check=list(HealthCheck))
ANY = st.one_of(programs(), recursive_programs(), aggregate_programs())


def ran(engine: emberlog.Engine, case: Case) -> Result | None:
    """The result of a random program; None where it has none."""
    for name, table in tables(case).items():
        engine.register(name, table)
    try:
        return engine.run(case.program, dict(case.params), limits=LIMITS, warnings="ignore")
    except EmberlogError:
        return None


def rows_of(result: Result, name: str) -> list[Any]:
    return list(result[name].rows())


def facts_of_program(case: Case) -> dict[str, set[Any]]:
    """The rows that stand in the program, those of its base relations among them."""
    items = parse(Source("<case>", case.program)).items
    plain = tuple(item for item in items if not isinstance(item, nodes.Rule) or item.body is None)
    floats = {(name, i) for name, types in case.columns.items() for i, type in enumerate(types) if type == "float"}
    return naive.evaluate(nodes.Program(plain), case.facts, dict(case.params), floats=floats)


def explain_some(case: Case) -> int:
    """Checks trees of some rows of each relation; how many there were."""
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        result = ran(engine, case)
        if result is None:
            return 0
        final = {name: set(rows_of(result, name)) for name in result}
        final |= {name: set(map(tuple, rows)) for name, rows in case.facts.items()}
        base = facts_of_program(case)
        limits = "topk" in case.program or "limit" in case.program or "i+1" in case.program
        heights = None if limits else smallest_heights(case.program, base, final, case.params)
        number = 0
        for name in case.derived:
            for row in sorted(rows_of(result, name), key=repr)[:3]:
                if any(value != value for value in row):  # NaN equals nothing: no body gives it again
                    continue
                why = result.why(name, row, depth=100)
                check(why, base, final)
                if heights is not None:
                    assert why.smallest
                    assert why.height == heights[name, row], (name, row)
                number += 1
        return number


@SOME
@given(ANY)
def test_trees_of_random_programs_derive_their_rows(case: Case) -> None:
    explain_some(case)


@pytest.mark.slow
@LOTS
@given(ANY)
def test_trees_of_many_random_programs(case: Case) -> None:
    explain_some(case)
