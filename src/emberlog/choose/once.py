"""Which strata without recursion loops evaluate: those over very many rows that loops computed, by a pivot.

Statements are good at groups that are few. What they are slow at, and need memory for, is to make a set of very many
rows, and to join such: there loops are compiled in less time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from emberlog.analysis.program import Absent, Match
from emberlog.choose.strata import Choice, keeping
from emberlog.components.once import lower_once
from emberlog.components.program import KernelProgram
from emberlog.plan.strata import ProgramPlan, Stratum
from emberlog.thresholds import LOOPED_ROWS


def refine_once(
    choice: Choice, stratum: Stratum, plan: ProgramPlan, encoded: Mapping[str, int], rows: frozenset[str]
) -> Choice:
    """The choice for a stratum that is computed once. `encoded` has the numbers of rows of relations that loops
    computed; these `rows` are asked for."""
    setting = choice.setting
    driver = max((name for name in encoded if name in stratum.reads), key=lambda name: encoded[name], default=None)
    if driver is None or encoded[driver] < LOOPED_ROWS or setting.evaluator == "sql" or not setting.wishes.continues:
        return choice
    if not _joins_or_collects(stratum, plan):
        return choice
    program = lower_once(stratum, plan, driver)
    if not isinstance(program, KernelProgram):
        return replace(choice, why=f"loops do not take it: {program.reason}")
    why = f"{driver} has {encoded[driver]:,} rows"
    return keeping(replace(choice, evaluator="loops", why=why, program=program, driver=driver), stratum, plan, rows)


def _joins_or_collects(stratum: Stratum, plan: ProgramPlan) -> bool:
    """True if it makes a set, or if a rule reads more than one relation."""
    rules = [rule for name in stratum.names for rule in plan.rules_of.get(name, ())]
    joins = any(sum(isinstance(literal, Match | Absent) for literal in rule.body) > 1 for rule in rules)
    return joins or not any(plan.signatures[name].aggregates for name in stratum.names)
