"""Random aggregates in recursion: what is proved is evaluated rightly by deltas, what is refuted really differs.

Each program is evaluated by DuckDB, by deltas and naively. In a process that compiles nothing (EMBERLOG_JIT=off, as
`test_interpreted` has it) the kernels evaluate it too: to compile a loop for each program would take hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings

import emberlog
import naive
from emberlog.analysis.check import check_aggregates
from emberlog.analysis.program import Verdict
from emberlog.analysis.proofs.replay import settle
from emberlog.data.load import fact_table
from emberlog.diagnostics import DataError, ProgramError, UsageError
from emberlog.kernels.cache import COMPILES
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.types import Value
from naive.values import Row
from proofs.programs import PLAIN, VALUES, Drawn, drawn, iterations
from strategies.cases import difference

SOME = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
LOTS = settings(SOME, max_examples=2000)


@SOME
@given(drawn())
def test_verdicts_are_right(case: Drawn) -> None:
    judge(case)


@pytest.mark.slow
@LOTS
@given(drawn())
def test_verdicts_are_right_on_thousands(case: Drawn) -> None:
    judge(case)


@SOME
@given(iterations())
def test_iterations_agree(case: Drawn) -> None:
    judge(case)


@pytest.mark.slow
@LOTS
@given(iterations())
def test_iterations_agree_on_thousands(case: Drawn) -> None:
    judge(case)


def judge(case: Drawn) -> None:
    try:
        verdicts = check_aggregates(parse(Source("case.dl", case.text)), case.catalog).verdicts
    except ProgramError:
        return  # a number that does not fit, or the like
    for verdict in verdicts:
        if verdict.status == "refuted" and not case.iterated:
            assert_differs(case, verdict, {other.predicate: other.aggregate for other in verdicts})
    if verdicts and (case.iterated or all(verdict.holds for verdict in verdicts)):
        assert_same(case, verdicts)


# --- refuted ---------------------------------------------------------------------------------------------------------


def assert_differs(case: Drawn, verdict: Verdict, aggregates: Mapping[str, str]) -> None:
    """The reference evaluator applies the rules once: to the facts, and to the facts aggregated."""
    last: dict[str, list[Row]] = {name: [] for name in (*VALUES, *aggregates, "on")}
    for name, row in verdict.facts:
        last[name].append(row)
    first = {
        name: cast("list[Row]", settle(cast("list[tuple[Value, ...]]", rows), 1, aggregates[name]))
        if name in aggregates
        else rows
        for name, rows in last.items()
    }
    program = once(parse(Source("case.dl", case.text)))
    derived = [case.evaluated(program, facts) for facts in (first, last)]
    new = [name for name in derived[0] if name.endswith("_next")]
    assert any(derived[0][name] != derived[1][name] for name in new), f"{case}\n{verdict}"


def once(program: nodes.Program) -> nodes.Program:
    """The program whose rules derive `p_next` from `p`: one application of its rules."""
    rules = [item for item in program.items if isinstance(item, nodes.Rule)]
    changed = [
        rule
        if rule.heads[0].predicate in PLAIN
        else replace(rule, heads=(replace(rule.heads[0], predicate=f"{rule.heads[0].predicate}_next"),))
        for rule in rules
    ]
    return replace(program, items=tuple(changed))


# --- proved ----------------------------------------------------------------------------------------------------------


def assert_same(case: Drawn, verdicts: Sequence[Verdict]) -> None:
    """Every way gives the reference's rows; data that break an assumption are refused with the row."""
    broken = [
        row
        for verdict in verdicts
        for need in verdict.obligations
        for row in case.facts[need.relation]
        if not meets(row[need.position], need.bound.operator, need.bound.value)
    ]
    try:
        expected = case.evaluated(parse(Source("case.dl", case.text)), case.facts)
    except naive.EvaluationError:
        with pytest.raises(DataError):
            run(case, "sql", False)
        return
    if broken:
        with pytest.raises(DataError, match="breaks"):
            run(case, "sql", False)
        return
    for evaluator, naively in WAYS:
        try:
            actual = run(case, evaluator, naively)
        except UsageError as error:
            assert "the kernels cannot evaluate" in error.message
            continue
        for name in case.derived:
            told = difference(actual[name], expected[name])
            assert not told, f"{name} by {evaluator}{', naively' if naively else ''}: {told}\n{case}"


WAYS = [("sql", False), ("sql", True), *([] if COMPILES else [("kernel", False), ("kernel", True)])]


def meets(value: Value | object, operator: str, bound: float) -> bool:
    assert isinstance(value, int | float)
    return {">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound, "!=": value != bound}[
        operator
    ]


def run(case: Drawn, evaluator: str, naively: bool) -> dict[str, list[Row]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        for name, rows in case.facts.items():
            engine.register(name, fact_table(case.catalog[name], cast("list[tuple[Value, ...]]", rows)))
        result = engine.run(case.text, evaluator=evaluator, naive=naively)
        return {name: list(result[name].rows()) for name in case.derived}
