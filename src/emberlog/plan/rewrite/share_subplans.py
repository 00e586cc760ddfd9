"""A join, group or distinct that several rules compute is computed once, as a relation of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from emberlog.analysis.program import Signature
from emberlog.plan.logical import (
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
    children,
    columns,
    map_children,
    map_plans,
    plans,
    scans,
    walk,
)
from emberlog.plan.names import auxiliary, positions
from emberlog.plan.rename import canonical
from emberlog.syntax.nodes import Variable
from emberlog.types import Column


def share_subplans(program: ProgramPlan) -> ProgramPlan:
    """Sub-plans that occur more than once, up to column names, become auxiliary strata before their first use."""
    found = Counter(
        canonical(node)
        for stratum in program.strata
        for relation in stratum.relations
        for plan in plans(relation)
        for node in _candidates(plan, stratum)
    )
    shared = {plan: auxiliary(number) for number, (plan, times) in enumerate(found.items()) if times > 1}
    if not shared:
        return program
    strata: list[Stratum] = []
    signatures = dict(program.signatures)
    made: set[str] = set()
    for stratum in program.strata:
        for relation in stratum.relations:
            for plan in plans(relation):
                for node in _candidates(plan, stratum):
                    name = shared.get(canonical(node))
                    if name is not None and name not in made:
                        made.add(name)
                        signatures[name] = _signature(name, node)
                        strata.append(_stratum(signatures[name], canonical(node)))
        strata.append(map_plans(stratum, lambda plan, of=stratum: _replace(plan, of, shared)))  # type: ignore[misc]
    return replace(program, strata=tuple(strata), signatures=signatures)


def _candidates(plan: Plan, stratum: Stratum) -> Iterator[Plan]:
    """The largest sub-plans that are worth sharing and read nothing that changes while the stratum is evaluated."""
    inside = set(stratum.names)
    worth = isinstance(plan, Join | Group | Distinct) and any(isinstance(n, Join | Group) for n in walk(plan))
    steady = all(scan.relation not in inside for scan in scans(plan))
    # An error must name the rule that has it, so guarded plans stay in their rules.
    if worth and steady and not any(isinstance(node, Guard | Top) for node in walk(plan)):
        yield plan
        return
    for child in children(plan):
        yield from _candidates(child, stratum)


def _replace(plan: Plan, stratum: Stratum, shared: dict[Plan, str]) -> Plan:
    if plan in set(_candidates(plan, stratum)):
        name = shared.get(canonical(plan))
        if name is not None:
            types = columns(plan)
            return Scan(name, tuple(types), tuple(types.values()))
        return plan
    return map_children(plan, lambda child: _replace(child, stratum, shared))


def _signature(name: str, plan: Plan) -> Signature:
    made = tuple(Column(f"c{i}", type) for i, type in enumerate(columns(plan).values()))
    return Signature(name, made, {}, external=False, declared=False)


def _stratum(signature: Signature, plan: Plan) -> Stratum:
    named = zip(positions(len(signature.columns)), columns(plan), strict=True)
    rows = Project(plan, tuple((position, Variable(name)) for position, name in named))
    return Stratum((RelationPlan(signature, "set", rows),), "once", auxiliary=True)
