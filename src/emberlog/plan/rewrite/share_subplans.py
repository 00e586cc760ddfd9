"""A join, group or distinct that several rules compute is computed once, as a relation of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from emberlog.analysis.program import Signature
from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Group,
    Guard,
    Join,
    Plan,
    ProgramPlan,
    Project,
    RelationPlan,
    Scan,
    Stratum,
    Top,
    columns,
    map_children,
    map_plans,
    plans,
    walk,
)
from emberlog.plan.names import auxiliary, positions
from emberlog.plan.rename import canonical
from emberlog.syntax.nodes import Variable
from emberlog.types import Column


def share_subplans(program: ProgramPlan) -> ProgramPlan:
    """Sub-plans that occur more than once, up to column names, become auxiliary strata before their first use.

    The largest goes first; what it holds can then be shared with other rules as well.
    """
    made = 0
    while True:
        found = Counter(canonical(node) for stratum in program.strata for node in _candidates_of(stratum))
        repeated = [plan for plan, times in found.items() if times > 1]
        if not repeated:
            return program
        largest = max(repeated, key=lambda plan: sum(1 for _ in walk(plan)))
        program = _shared(program, largest, auxiliary(made))
        made += 1


def _shared(program: ProgramPlan, shared: Plan, name: str) -> ProgramPlan:
    """The program in which a relation of its own computes the sub-plan `shared`."""
    signature = _signature(name, shared)
    strata: list[Stratum] = []
    for stratum in program.strata:
        changed = map_plans(stratum, lambda plan, of=stratum: _replace(plan, of, shared, name))  # type: ignore[misc]
        if changed != stratum and not any(before.names == (name,) for before in strata):
            strata.append(_stratum(signature, shared))
        strata.append(changed)
    return replace(program, strata=tuple(strata), signatures={**program.signatures, name: signature})


def _candidates_of(stratum: Stratum) -> Iterator[Plan]:
    """The sub-plans of a stratum that are worth sharing and could be."""
    roots = (plan for relation in stratum.relations for plan in plans(relation))
    return (node for root in roots for node in walk(root) if _can_share(node, stratum))


def _can_share(plan: Plan, stratum: Stratum) -> bool:
    """Is this work, does it stay the same while the stratum is evaluated, and can it not fail?

    An error must name the rule that has it, so what is guarded stays in its rule.
    """
    if not isinstance(plan, Join | Antijoin | Group | Distinct):
        return False
    nodes, inside = list(walk(plan)), frozenset(stratum.names)
    return (
        any(isinstance(node, Join | Antijoin | Group) for node in nodes)
        and not any(isinstance(node, Scan) and node.relation in inside for node in nodes)
        and not any(isinstance(node, Guard | Top) for node in nodes)
    )


def _replace(plan: Plan, stratum: Stratum, shared: Plan, name: str) -> Plan:
    if _can_share(plan, stratum) and canonical(plan) == shared:
        types = columns(plan)
        return Scan(name, tuple(types), tuple(types.values()))
    return map_children(plan, lambda child: _replace(child, stratum, shared, name))


def _signature(name: str, plan: Plan) -> Signature:
    made = tuple(Column(f"c{i}", type) for i, type in enumerate(columns(plan).values()))
    return Signature(name, made, {}, external=False, declared=False)


def _stratum(signature: Signature, plan: Plan) -> Stratum:
    named = zip(positions(len(signature.columns)), columns(plan), strict=True)
    rows = Project(plan, tuple((position, Variable(name)) for position, name in named))
    return Stratum((RelationPlan(signature, "set", rows),), "once", auxiliary=True)
