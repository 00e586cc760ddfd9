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
    columns,
    keep,
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
                return replace(plan, columns=tuple(name if name in needed else None for name in names))
            case Select(child, conditions):
                read = {name for condition in conditions for name in variables(condition)}
                return Select((yield self.prune(child, needed | read)), conditions)
            case Extend(child, column, term):
                if column not in needed:
                    pruned: Plan = yield self.prune(child, needed)
                    return pruned
                return Extend((yield self.prune(child, (needed - {column}) | set(variables(term)))), column, term)
            case Expand(child, column, start, stop, step):
                read = {name for term in (start, stop, step) for name in variables(term)}
                return replace(plan, input=(yield self.prune(child, (needed - {column}) | read)))
            case Join(left, right):
                shared = columns(left).keys() & columns(right).keys()
                return replace(
                    plan,
                    left=(yield self._narrow(left, needed | shared)),
                    right=(yield self._narrow(right, needed | shared)),
                )
            case Antijoin(left, right, where):
                shared = columns(left).keys() & columns(right).keys()
                read = {name for condition in where for name in variables(condition)}
                return Antijoin(
                    (yield self.prune(left, needed | shared | read)), (yield self._narrow(right, shared | read)), where
                )
            case Lookup(left, right, column):
                if column not in needed:
                    looked: Plan = yield self.prune(left, needed)
                    return looked
                shared = columns(left).keys() & columns(right).keys()
                return replace(
                    plan,
                    left=(yield self.prune(left, needed | shared)),
                    right=(yield self._narrow(right, shared | {column})),
                )
            case Project(child, items):
                kept = tuple((name, term) for name, term in items if name in needed)
                return Project((yield self.prune(child, {name for _, term in kept for name in variables(term)})), kept)
            case Distinct(child):
                return Distinct((yield self.prune(child, set(columns(child)))))
            case Group(child, keys, folds):
                read = set(keys) | {fold.argument for fold in folds if fold.argument is not None}
                return Group((yield self.prune(child, read)), keys, folds)
            case Union(inputs):
                parts = []
                for child in inputs:
                    parts.append((yield self.prune(child, set(columns(child)))))
                return Union(tuple(parts))
            case Top(child):
                return replace(plan, input=(yield self.prune(child, set(columns(child)))))
            case Guard(child, terms, shown):
                return replace(plan, input=(yield self.prune(child, needed.union(terms, shown))))
            case _:
                assert_never(plan)

    def _narrow(self, plan: Plan, needed: set[str]) -> Deep[Plan]:
        """An input of a join with exactly the needed ones of its columns."""
        pruned: Plan = yield self.prune(plan, needed)
        return keep(pruned, tuple(name for name in columns(pruned) if name in needed))
