"""Duplicates die before they multiply: in a rule with several joins, columns that nobody reads any more go at once.

`sg(X,Y) <- arc(A,X), sg(A,B), arc(B,Y)` becomes two joins with a distinct in between: the first gives pairs (X,B), in
which `A` is forgotten and each pair stands once. Only where duplicates do not count: rules of sets, of min and max.
"""

from __future__ import annotations

from dataclasses import replace

from emberlog.deep import Deep, run_deep
from emberlog.plan.bodies import variables
from emberlog.plan.logical import (
    Distinct,
    Extend,
    Group,
    Guard,
    Join,
    Plan,
    Project,
    Select,
    Union,
    columns,
    keep,
    with_children,
)
from emberlog.plan.strata import ProgramPlan, RelationPlan, with_plans, with_relations


def project_early(program: ProgramPlan) -> ProgramPlan:
    return replace(program, strata=tuple(with_relations(stratum, _relation) for stratum in program.strata))


def _relation(relation: RelationPlan) -> RelationPlan:
    """Delta plans of sets and extrema are made distinct afterwards; other plans say so themselves."""
    return with_plans(
        relation,
        start=relation.start and _below_distinct(relation.start),
        exit=relation.exit and _below_distinct(relation.exit),
        steps=relation.steps if relation.state == "total" else tuple(_rows(step) for step in relation.steps),
    )


def _below_distinct(plan: Plan) -> Plan:
    match plan:
        case Distinct(child):
            return with_children(plan, [_rows(child)])
        case Group(child, _, folds) if all(fold.function in ("min", "max", "countd") for fold in folds):
            return with_children(plan, [_rows(child)])
        case Project(child):
            return with_children(plan, [_below_distinct(child)])
        case _:
            return plan


def _rows(plan: Plan) -> Plan:
    """A plan whose duplicates do not count."""
    match plan:
        case Union(inputs):
            return with_children(plan, [_rows(child) for child in inputs])
        case Project(child, items):
            needed = frozenset(name for _, term in items for name in variables(term))
            return with_children(plan, [run_deep(_body(child, needed))])
        case _:
            return plan


def _body(plan: Plan, needed: frozenset[str]) -> Deep[Plan]:
    """A body of which only the columns `needed` are read above."""
    match plan:
        case Guard(child, terms, shown):
            return with_children(plan, [(yield _body(child, needed.union(terms, shown)))])
        case Select(child, conditions):
            read = {name for condition in conditions for name in variables(condition)}
            return with_children(plan, [(yield _body(child, needed | read))])
        case Extend(child, column, term):
            return with_children(plan, [(yield _body(child, (needed - {column}).union(variables(term))))])
        case Join(Join() as left, right):
            wanted = needed.union(columns(right))
            kept = tuple(name for name in columns(left) if name in wanted)
            left = yield _body(left, wanted)
            if len(kept) < len(columns(left)):
                return replace(plan, left=Distinct(keep(left, kept)))
            return with_children(plan, [left, right])
        case _:
            return plan
