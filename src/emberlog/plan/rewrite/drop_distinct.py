"""No distinct where the rows cannot repeat."""

from __future__ import annotations

from dataclasses import replace

from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Extend,
    Group,
    Guard,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Select,
    columns,
)
from emberlog.plan.strata import ProgramPlan, map_plans
from emberlog.syntax.nodes import Variable


def drop_distinct(program: ProgramPlan) -> ProgramPlan:
    """A relation made by one rule that keeps every column of relations that are sets is a set by itself.

    What comes from sources may hold duplicates, so only relations that strata computed count as sets.
    """
    sets: set[str] = set()
    strata = []
    for stratum in program.strata:
        if stratum.evaluation == "once":
            known = frozenset(sets)
            stratum = map_plans(stratum, lambda plan, known=known: _drop(plan, known))  # type: ignore[misc]
        sets.update(stratum.names)
        strata.append(stratum)
    return replace(program, strata=tuple(strata))


def _drop(plan: Plan, sets: frozenset[str]) -> Plan:
    match plan:
        case Distinct(Project(child, items) as project) if is_set(child, sets):
            kept = {term.name for _, term in items if isinstance(term, Variable)}
            return project if kept >= _free(child) else plan
        case _:
            return plan


def _free(plan: Plan) -> set[str]:
    """The columns that tell rows apart: all but those computed from others."""
    found: set[str] = set()
    waiting = [plan]
    while waiting:
        match waiting.pop():
            case Extend(child, _, _) | Select(child, _) | Guard(child) | Antijoin(child, _) | Lookup(child):
                waiting.append(child)
            case Join(left, right):
                waiting += [left, right]
            case Group(_, keys, _):
                found.update(keys)
            case node:
                found.update(columns(node))
    return found


def is_set(plan: Plan, sets: frozenset[str]) -> bool:
    """Are the rows of this plan distinct for sure?"""
    waiting = [plan]
    while waiting:
        match waiting.pop():
            case Scan(relation, names) if relation in sets and None not in names:
                pass
            case Extend(child, _, _) | Select(child, _) | Guard(child) | Antijoin(child, _):
                waiting.append(child)
            case Join(left, right) | Lookup(left, right):
                waiting += [left, right]
            case Distinct() | Group():
                pass
            case _:
                return False
    return True
