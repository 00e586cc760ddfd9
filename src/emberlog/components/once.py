"""Strata without recursion as loops read them: rules above a table that holds the rows of one of their inputs.

The rows of that input, the driver, are divided by a pivot. Each rule starts from them. Other atoms of the driver are of
the same table if they have the same pivot; if not, only the first one is, and the others look rows up in an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from emberlog.analysis.program import CoreRule, Match
from emberlog.components.lower import lower
from emberlog.components.pivots import pivots
from emberlog.components.program import Ineligible, KernelProgram
from emberlog.plan.strata import ProgramPlan, RelationPlan, Stratum


def lower_once(stratum: Stratum, plan: ProgramPlan, driver: str) -> KernelProgram | Ineligible:
    """A stratum that is computed once, over the rows of `driver`; or why it is none for loops. The first table of the
    program has these rows, under the name of the driver or another one."""
    rules = [rule for name in stratum.names for rule in plan.rules_of.get(name, ())]
    if len(stratum.relations) > 1 or stratum.relations[0].checks:
        return Ineligible("it is several relations, or has checks")
    whole = _over_rows(stratum, plan, rules, driver)
    if isinstance(whole, KernelProgram) and any(pivots(whole).values()):
        return whole
    rows = f"{driver}/rows"
    named = replace(plan, signatures={**plan.signatures, rows: replace(plan.signatures[driver], name=rows)})
    one = _over_rows(stratum, named, [_renamed(rule, driver, rows) for rule in rules], rows)
    if isinstance(one, KernelProgram) and not any(pivots(one).values()):
        return Ineligible("no column of its rows is one of the rows that it starts from")
    return one


def _over_rows(stratum: Stratum, plan: ProgramPlan, rules: Sequence[CoreRule], rows: str) -> KernelProgram | Ineligible:
    given = Stratum((RelationPlan(plan.signatures[rows], "set", None),), "delta")
    return lower(given, replace(plan, rules={rule.id: rule for rule in rules}), (stratum,))


def _renamed(rule: CoreRule, driver: str, rows: str) -> CoreRule:
    """The rule whose first atom of the driver has another name."""
    atoms = (spot for spot, one in enumerate(rule.body) if isinstance(one, Match) and one.predicate == driver)
    first = next(atoms, None)
    return replace(
        rule,
        body=tuple(
            replace(one, predicate=rows) if spot == first and isinstance(one, Match) else one
            for spot, one in enumerate(rule.body)
        ),
    )
