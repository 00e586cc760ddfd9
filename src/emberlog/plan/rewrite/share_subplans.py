"""A join, group or distinct that several rules compute is computed once, as a relation of its own.

Every sub-plan gets a number, the same for sub-plans that differ in column names only: columns are told apart by their
positions. A sub-plan that is computed in more than one place, when all larger ones that hold it are computed once,
becomes an auxiliary stratum before its first use. Each node is looked at a few times, however many rules there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from emberlog.analysis.program import Signature
from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Group,
    Guard,
    Join,
    Plan,
    Project,
    Scan,
    Top,
    bottom_up,
    children,
    columns,
    map_children,
    replace_parts,
)
from emberlog.plan.missing import unsure
from emberlog.plan.names import auxiliary, positions
from emberlog.plan.rename import canonical, shape
from emberlog.plan.strata import ProgramPlan, RelationPlan, Stratum, map_plans, plans
from emberlog.syntax.nodes import Variable
from emberlog.types import Column


def share_subplans(program: ProgramPlan) -> ProgramPlan:
    """Sub-plans that occur more than once, up to column names, become relations of their own, the largest first."""
    numbered = _Numbered(program.strata)
    repeated = sorted(numbered.repeated(), key=lambda number: -numbered.entries[number].size)
    if not repeated:
        return program
    names = {number: auxiliary(spot) for spot, number in enumerate(repeated)}
    strata: list[Stratum] = []
    made: dict[int, Signature] = {}

    def share(plan: Plan) -> Plan:
        """`plan` with reads of shared relations, each of which stands before what reads it."""
        return replace_parts(plan, lambda node: shared_scan(numbered.numbers[id(node)], node))

    def shared_scan(number: int, node: Plan) -> Scan | None:
        if number not in names:
            return None
        if number not in made:
            entry = numbered.entries[number]
            made[number] = signature = _signature(names[number], entry.plan)
            strata.append(_stratum(signature, canonical(map_children(entry.plan, share))))
        types = columns(node)
        return Scan(names[number], tuple(types), tuple(types.values()))

    for stratum in program.strata:
        strata.append(map_plans(stratum, share))
    signatures = {**program.signatures, **{signature.name: signature for signature in made.values()}}
    return replace(program, strata=tuple(strata), signatures=signatures)


@dataclass
class _Entry:
    """One sub-plan, as it first occurred: how many nodes it has, and whether it is worth sharing and can be.

    `works` is set where something in it is work, `fixed` where it stays the same while its stratum is evaluated and
    cannot fail. An error must name the rule that has it, so what is guarded stays in its rule; and what lacks a value
    does, as relations have no missing values.
    """

    plan: Plan
    size: int
    works: bool
    fixed: bool
    inputs: tuple[int, ...]

    @property
    def can_share(self) -> bool:
        kept = isinstance(self.plan, Join | Antijoin | Group | Distinct) and not unsure(self.plan)
        return kept and self.works and self.fixed


class _Numbered:
    """The sub-plans of a program by number, inputs before what reads them."""

    def __init__(self, strata: Iterable[Stratum]) -> None:
        self.numbers: dict[int, int] = {}  # of a node, by its identity; plans outlive this
        self.entries: list[_Entry] = []
        self.roots: list[int] = []
        self._known: dict[object, int] = {}
        for stratum in strata:
            inside = frozenset(stratum.names)
            self.roots += [self._add(root, inside) for relation in stratum.relations for root in plans(relation)]
            for relation in stratum.relations:
                if relation.constant is not None:  # a part of `exit`, planned again: it counts once
                    self._add(relation.constant, inside)

    def _add(self, root: Plan, inside: frozenset[str]) -> int:
        for node in bottom_up(root, lambda node: id(node) in self.numbers):
            self.numbers[id(node)] = self._number(node, inside)
        return self.numbers[id(root)]

    def _number(self, node: Plan, inside: frozenset[str]) -> int:
        below = tuple(self.numbers[id(child)] for child in children(node))
        moves = isinstance(node, Scan) and node.relation in inside
        key = (type(node), shape(node), below, inside if moves else None)
        if key not in self._known:
            self._known[key] = len(self.entries)
            parts = [self.entries[number] for number in below]
            self.entries.append(
                _Entry(
                    node,
                    size=1 + sum(part.size for part in parts),
                    works=isinstance(node, Join | Antijoin | Group) or any(part.works for part in parts),
                    fixed=not moves and not isinstance(node, Guard | Top) and all(part.fixed for part in parts),
                    inputs=below,
                )
            )
        return self._known[key]

    def repeated(self) -> Iterator[int]:
        """The sub-plans that more than one place computes when the repeated ones above them are computed once."""
        times = [0] * len(self.entries)
        for root in self.roots:
            times[root] += 1
        for number in reversed(range(len(self.entries))):
            entry = self.entries[number]
            shared = entry.can_share and times[number] > 1
            if shared:
                yield number
            for child in entry.inputs:
                times[child] += 1 if shared else times[number]


def _signature(name: str, plan: Plan) -> Signature:
    made = tuple(Column(f"c{i}", type) for i, type in enumerate(columns(plan).values()))
    return Signature(name, made, {}, external=False, declared=False)


def _stratum(signature: Signature, plan: Plan) -> Stratum:
    named = zip(positions(len(signature.columns)), columns(plan), strict=True)
    rows = Project(plan, tuple((position, Variable(name)) for position, name in named))
    return Stratum((RelationPlan(signature, "set", rows),), "once", auxiliary=True)
