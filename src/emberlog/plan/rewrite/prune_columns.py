"""Columns that nobody reads are not read from relations and not carried through joins."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from emberlog.deep import Deep, run_deep
from emberlog.plan.bodies import variables
from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Expand,
    Extend,
    Group,
    Guard,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Select,
    Top,
    Union,
    Unit,
    children,
    columns,
    keep,
    with_children,
)
from emberlog.plan.strata import ProgramPlan


def prune_columns(program: ProgramPlan) -> ProgramPlan:
    """Rows keep their multiplicity: a column less makes no row less."""
    return program.map(lambda plan: run_deep(_Pruning().prune(plan, set(columns(plan)))))


class _Pruning:
    """Prunes one plan. A part that several others share is pruned once for each set of columns that they need, and
    shared afterwards: bodies with many aggregates read what is before them again and again."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, frozenset[str]], Plan] = {}

    def prune(self, plan: Plan, needed: set[str]) -> Deep[Plan]:
        """`plan` with at least the columns `needed`, in the order that it had, and no other that costs."""
        key = id(plan), frozenset(needed & columns(plan).keys())
        if key not in self._done:
            self._done[key] = yield self._pruned(plan, needed)
        return self._done[key]

    def _pruned(self, plan: Plan, needed: set[str]) -> Deep[Plan]:
        match plan:
            case Unit():
                return plan
            case Scan(_, names):
                read = tuple(name if name in needed else None for name in names)
                return plan if read == names else replace(plan, columns=read)
            case Select(child, conditions):
                tested = {name for condition in conditions for name in variables(condition)}
                return with_children(plan, [(yield self.prune(child, needed | tested))])
            case Extend(child, column, term):
                if column not in needed:
                    pruned: Plan = yield self.prune(child, needed)
                    return pruned
                return with_children(plan, [(yield self.prune(child, (needed - {column}) | set(variables(term))))])
            case Expand(child, column, start, stop, step):
                bounds = {name for term in (start, stop, step) for name in variables(term)}
                return with_children(plan, [(yield self.prune(child, (needed - {column}) | bounds))])
            case Join(left, right):
                shared = columns(left).keys() & columns(right).keys()
                sides = [(yield self._narrow(left, needed | shared)), (yield self._narrow(right, needed | shared))]
                return with_children(plan, sides)
            case Antijoin(left, right, where):
                shared = columns(left).keys() & columns(right).keys()
                tested = {name for condition in where for name in variables(condition)}
                kept_side = yield self.prune(left, needed | shared | tested)
                return with_children(plan, [kept_side, (yield self._narrow(right, shared | tested))])
            case Lookup(left, right, column):
                if column not in needed:
                    looked: Plan = yield self.prune(left, needed)
                    return looked
                shared = columns(left).keys() & columns(right).keys()
                sides = [(yield self.prune(left, needed | shared)), (yield self._narrow(right, shared | {column}))]
                return with_children(plan, sides)
            case Project(child, items):
                kept = tuple((name, term) for name, term in items if name in needed)
                below: Plan = yield self.prune(child, {name for _, term in kept for name in variables(term)})
                return with_children(plan, [below]) if len(kept) == len(items) else Project(below, kept)
            case Group(child, keys, folds):
                grouped = set(keys) | {fold.argument for fold in folds if fold.argument is not None}
                return with_children(plan, [(yield self.prune(child, grouped))])
            case Distinct() | Top() | Union():
                parts = []
                for child in children(plan):
                    parts.append((yield self.prune(child, set(columns(child)))))
                return with_children(plan, parts)
            case Guard(child, terms, shown):
                return with_children(plan, [(yield self.prune(child, needed.union(terms, shown)))])
            case _:
                assert_never(plan)

    def _narrow(self, plan: Plan, needed: set[str]) -> Deep[Plan]:
        """An input of a join with exactly the needed ones of its columns."""
        pruned: Plan = yield self.prune(plan, needed)
        return keep(pruned, tuple(name for name in columns(pruned) if name in needed))
