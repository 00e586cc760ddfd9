"""Which strata the loops of a component go on with: those above it that have its pivot.

The facts of a pivot are finished when its fixpoint is. What is computed once from finished facts, with the same pivot
in its rows, is computed there and then, before the next pivot: nobody has to keep the rows between. That must not cost
the recursion anything. So its columns hold what they would hold alone (numbers that are computed with are no ids), its
pivots stay, and so does the kind of its loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emberlog.analysis.program import Absent, CoreRule, Match
from emberlog.choose.ways import choose_way
from emberlog.choose.wishes import Wishes
from emberlog.components.lower import lower
from emberlog.components.program import Id, KernelProgram, Kind
from emberlog.plan.strata import ProgramPlan, Stratum


@dataclass(frozen=True)
class Continued:
    """Strata above a component, in their order, and the program of all of them together."""

    strata: tuple[Stratum, ...]
    program: KernelProgram

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for stratum in self.strata for name in stratum.names)


def continued_components(
    plan: ProgramPlan, programs: Mapping[tuple[str, ...], KernelProgram], wishes: Wishes
) -> dict[tuple[str, ...], Continued]:
    """For components, by the names of their relations, what their loops go on with; `programs` has those that loops
    evaluate by pivots."""
    found: dict[tuple[str, ...], Continued] = {}
    order = {name: number for number, stratum in enumerate(plan.strata) for name in stratum.names}
    owner = {name: stratum for stratum in plan.strata if stratum.names in programs for name in stratum.names}
    for stratum in plan.strata:
        below = _below(stratum, plan, owner, order)
        if below is None:
            continue
        before = found[below.names].strata if below.names in found else ()
        program = lower(below, plan, (*before, stratum))
        if isinstance(program, KernelProgram) and _keeps_recursion(program, programs[below.names], wishes):
            found[below.names] = Continued((*before, stratum), program)
            owner |= dict.fromkeys(stratum.names, below)
    return found


def _below(
    stratum: Stratum, plan: ProgramPlan, owner: Mapping[str, Stratum], order: Mapping[str, int]
) -> Stratum | None:
    """The last component that a stratum reads, if all else that it reads is there before that one is evaluated."""
    if stratum.evaluation != "once" or len(stratum.relations) > 1 or stratum.relations[0].checks:
        return None
    read = {name for name in stratum.names for rule in plan.rules_of.get(name, ()) for name in _read(rule)}
    below = max((owner[name] for name in read if name in owner), key=lambda one: order[one.names[0]], default=None)
    if below is None:
        return None
    first = order[below.names[0]]
    others = (name for name in read if owner.get(name) is not below)
    return below if all(order[owner[n].names[0] if n in owner else n] < first for n in others if n in order) else None


def _read(rule: CoreRule) -> set[str]:
    return {literal.predicate for literal in rule.body if isinstance(literal, Match | Absent)}


def _keeps_recursion(program: KernelProgram, alone: KernelProgram, wishes: Wishes) -> bool:
    """True if the tables of the recursion have the pivots that they have alone, and ids where they have ids, and the
    loops are of the same kind as far as that can be told from the rules."""
    together, apart = choose_way(program, wishes), choose_way(alone, wishes)
    if not together.pivoted or together.unfit or together.kind != apart.kind:
        return False
    return all(
        together.pivots[table.name] == apart.pivots[table.name] and _ids(program.kinds(table.name)) == _ids(table.kinds)
        for table in alone.tables
    )


def _ids(kinds: Sequence[Kind]) -> list[bool]:
    return [isinstance(kind, Id) for kind in kinds]
