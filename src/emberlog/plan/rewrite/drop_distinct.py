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
    ProgramPlan,
    Project,
    Scan,
    Select,
    columns,
    map_plans,
)
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
    match plan:
        case Extend(child, _, _) | Select(child, _) | Guard(child) | Antijoin(child, _):
            return _free(child)
        case Lookup(left, _, _, _):
            return _free(left)
        case Join(left, right):
            return _free(left) | _free(right)
        case Group(_, keys, _):
            return set(keys)
        case _:
            return set(columns(plan))


def is_set(plan: Plan, sets: frozenset[str]) -> bool:
    """Are the rows of this plan distinct for sure?"""
    match plan:
        case Scan(relation, names):
            return relation in sets and None not in names
        case Extend(child, _, _) | Select(child, _) | Guard(child) | Antijoin(child, _):
            return is_set(child, sets)
        case Join(left, right):
            return is_set(left, sets) and is_set(right, sets)
        case Lookup(left, right, _, _):
            return is_set(left, sets) and is_set(right, sets)
        case Distinct() | Group():
            return True
        case _:
            return False
