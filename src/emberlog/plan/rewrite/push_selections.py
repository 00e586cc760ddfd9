"""Selections move down to the inputs that have their columns, and assignments up out of the way of joins."""

from __future__ import annotations

from dataclasses import replace

from emberlog.deep import Deep, run_deep
from emberlog.plan.bodies import variables
from emberlog.plan.logical import Antijoin, Condition, Expand, Extend, Join, Lookup, Plan, Select, columns, rebuild
from emberlog.plan.strata import ProgramPlan


def push_selections(program: ProgramPlan) -> ProgramPlan:
    """Each condition stands as low as the columns that it reads allow.

    A condition that mentions a missing value lets its row pass, wherever it stands.
    """
    return program.map(lambda plan: rebuild(plan, _push))


def _push(plan: Plan) -> Plan:
    """A node whose inputs are done."""
    match plan:
        case Select(child, conditions):
            for condition in conditions:
                child = run_deep(_sink(child, condition))
            return child
        case Join(left, right):
            assigned: list[Extend] = []
            while isinstance(left, Extend) and left.column not in columns(right):
                assigned.append(left)
                left = left.input
            joined: Plan = replace(plan, left=left) if assigned else plan
            for extend in reversed(assigned):
                joined = Extend(joined, extend.column, extend.term)
            return joined
        case _:
            return plan


def _sink(plan: Plan, condition: Condition) -> Deep[Plan]:
    """`plan` with the condition applied as far down as it can go."""
    needed = set(variables(condition))
    match plan:
        case Select(child, others):
            below = yield _sink(child, condition)
            if isinstance(below, Select) and below.input is child:
                return Select(child, (*others, *below.conditions))
            return Select(below, others)
        case Join(left, right) if needed <= columns(left).keys():
            return replace(plan, left=(yield _sink(left, condition)))
        case Join(left, right) if needed <= columns(right).keys():
            return replace(plan, right=(yield _sink(right, condition)))
        case Antijoin(left, right, where) if needed <= columns(left).keys():
            return Antijoin((yield _sink(left, condition)), right, where)
        case Lookup(left) if needed <= columns(left).keys():
            return replace(plan, left=(yield _sink(left, condition)))
        case Extend(child, column, term) if needed <= columns(child).keys():
            return Extend((yield _sink(child, condition)), column, term)
        case Expand(child) if needed <= columns(child).keys():
            return replace(plan, input=(yield _sink(child, condition)))
        case _:
            return Select(plan, (condition,))
