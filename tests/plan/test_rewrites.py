"""Each rewrite keeps what a program means, alone and after the ones before it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberlog.analysis.check import check
from emberlog.choose.strata import Setting, choose
from emberlog.compiled import Compiled
from emberlog.data.arrow import rows as rows_of
from emberlog.data.load import fact_table, without_dummy
from emberlog.data.sources import ArrowSource, Source
from emberlog.diagnostics import DataError
from emberlog.executors.base import Options
from emberlog.executors.local import LocalExecutor
from emberlog.plan.lower import lower
from emberlog.plan.rewrite import RULES
from emberlog.plan.strata import ProgramPlan
from emberlog.source import Source as Text
from emberlog.stats import Limits, Silent
from emberlog.syntax.parser import parse
from emberlog.types import Column, Type, Value
from strategies import Case, aggregate_programs, arithmetic_programs, programs, recursive_programs, same_rows

Rule = Callable[[ProgramPlan], ProgramPlan]
ANY = st.one_of(programs(), recursive_programs(), aggregate_programs(), arithmetic_programs())


def evaluate(case: Case, rules: Sequence[Rule]) -> dict[str, list[tuple[Any, ...]]] | str:
    """The rows of the derived predicates under a plan rewritten by these rules, or that a rule had no value."""
    columns = {
        name: tuple(Column(f"c{i}", Type(cast(Any, kind))) for i, kind in enumerate(kinds))
        for name, kinds in case.columns.items()
    }
    program = parse(Text("case", case.program))
    checked = check(program, columns, cast("dict[str, Value]", case.params))
    plan = lower(checked)
    for rule in rules:
        plan = rule(plan)
    sources: dict[str, Source] = {
        name: ArrowSource(fact_table(columns[name], cast("list[tuple[Value, ...]]", rows)))
        for name, rows in case.facts.items()
    }
    with tempfile.TemporaryDirectory() as scratch:
        options = Options(Limits(rounds=500), Silent(), workers=1)
        setting = Setting("local", wishes=options.wished, workers=1, asked=frozenset(case.derived))
        wanted = frozenset(case.derived)
        compiled = Compiled(program, checked, plan, choose(plan, setting), wanted=wanted)
        executor = LocalExecutor(compiled, options, Path(scratch))
        try:
            executor.run(sources)
            return {
                name: rows_of(table if checked.signatures[name].columns else without_dummy(table))
                for name in case.derived
                for table in [executor.fetch(name)]
            }
        except DataError:
            return "no value"
        finally:
            executor.close()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rewrite_keeps_the_meaning(rule: Rule) -> None:
    before = RULES[: RULES.index(rule)]

    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(ANY)
    def keeps(case: Case) -> None:
        plain = evaluate(case, ())
        for rules in ((rule,), (*before, rule)):
            found = evaluate(case, rules)
            if isinstance(plain, str) or isinstance(found, str):
                assert plain == found
                continue
            for name in case.derived:
                assert same_rows(found[name], plain[name]), (rule.__name__, name)

    keeps()
