"""Selections move down to the inputs that have their columns, and assignments up out of the way of joins."""

from __future__ import annotations

from dataclasses import replace

from emberlog.plan.bodies import condition_fallible, variables
from emberlog.plan.logical import (
    Antijoin,
    Condition,
    Expand,
    Extend,
    Join,
    Lookup,
    Plan,
    ProgramPlan,
    Select,
    columns,
    map_children,
)


def push_selections(program: ProgramPlan) -> ProgramPlan:
    """Each condition stands as low as the columns that it reads allow.

    A condition that may have no value stays where it is: lower down it would be asked of bindings that later literals
    drop.
    """
    return program.map(_push)


def _push(plan: Plan) -> Plan:
    plan = map_children(plan, _push)
    match plan:
        case Select(child, conditions):
            for condition in conditions:
                child = _sink(child, condition)
            return child
        case Join(Extend(child, column, term), right) if column not in columns(right):
            return Extend(_push(Join(child, right)), column, term)
        case _:
            return plan


def _sink(plan: Plan, condition: Condition) -> Plan:
    """`plan` with the condition applied as far down as it can go."""
    needed = set(variables(condition))
    if condition_fallible(condition, columns(plan)):
        return Select(plan, (condition,))
    match plan:
        case Select(child, others):
            below = _sink(child, condition)
            if isinstance(below, Select) and below.input == child:
                return Select(child, (*others, *below.conditions))
            return Select(below, others)
        case Join(left, right) if needed <= set(columns(left)):
            return Join(_sink(left, condition), right)
        case Join(left, right) if needed <= set(columns(right)):
            return Join(left, _sink(right, condition))
        case Antijoin(left, right, where) if needed <= set(columns(left)):
            return Antijoin(_sink(left, condition), right, where)
        case Lookup(left, right, column, default) if needed <= set(columns(left)):
            return Lookup(_sink(left, condition), right, column, default)
        case Extend(child, column, term) if needed <= set(columns(child)):
            return Extend(_sink(child, condition), column, term)
        case Expand(child) if needed <= set(columns(child)):
            return replace(plan, input=_sink(child, condition))
        case _:
            return Select(plan, (condition,))
