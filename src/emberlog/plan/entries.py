"""What enters a recursion: a component derives nothing until a rule outside of it, a fact or a source gives a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

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
    bottom_up,
    children,
    scans,
)
from emberlog.plan.names import given_name, given_part, stateless
from emberlog.plan.strata import ProgramPlan, Stratum, plans


def no_entry(plan: ProgramPlan, empty: Iterable[str]) -> Mapping[tuple[str, ...], str]:
    """For each recursive component, by its names, that derives nothing when the predicates `empty` have no given rows:
    why that is so."""
    known = {relation for name in empty for relation in (name, given_part(name))}
    found = {}
    for stratum in plan.strata:
        nothing = known | set(stratum.names)  # before the first round
        whole = [relation for relation in stratum.relations if relation.start or relation.exit]
        if all(is_empty(root, nothing) for relation in whole for root in (relation.start, relation.exit) if root):
            known |= stratum.made
            if stratum.evaluation != "once":
                found[stratum.names] = why_empty(stratum, known)
    return found


def why_empty(stratum: Stratum, empty: Iterable[str]) -> str:
    """Why a component has no rows, given the relations that have none."""
    names = ", ".join(f"`{stateless(name)}`" for name in stratum.names)
    entering = entering_parts(stratum)
    if not entering:
        return f"nothing enters the recursion of {names}: there is no rule outside of it, no fact and no source"
    outside = {given_name(scan.relation) for part in entering for scan in scans(part) if scan.relation in empty}
    without = ", ".join(f"`{name}`" for name in sorted(outside))
    return f"nothing enters the recursion of {names}" + (f": no rows in {without}" if outside else "")


def entering_parts(stratum: Stratum) -> list[Plan]:
    """The plans of the rules, facts and sources of a component that read nothing of it."""
    whole = (part for relation in stratum.relations for part in parts(relation.start, relation.exit))
    return [part for part in whole if not any(scan.relation in stratum.names for scan in scans(part))]


def read_beside(stratum: Stratum) -> set[str]:
    """The relations of other strata that the recursive rules of a component read."""
    entering = entering_parts(stratum)
    every = (part for relation in stratum.relations for root in plans(relation) for part in parts(root))
    read = {scan.relation for part in every if part not in entering for scan in scans(part)}
    return read - set(stratum.names)


def parts(*roots: Plan | None) -> list[Plan]:
    """The plans of single rules that these plans put together."""
    found: list[Plan] = []
    for root in roots:
        match root:
            case None:
                continue
            case Union(inputs):
                found += parts(*inputs)
            case Distinct(child) | Group(child) | Guard(child) | Project(child) if _is_union(child):
                found += parts(child)
            case _:
                found.append(root)
    return found


def _is_union(plan: Plan) -> bool:
    match plan:
        case Union():
            return True
        case Distinct(child) | Group(child) | Guard(child) | Project(child):
            return _is_union(child)
        case _:
            return False


def is_empty(plan: Plan, empty: set[str]) -> bool:
    """True if a plan gives no rows because relations that it reads have none."""
    found: dict[int, bool] = {}
    for node in bottom_up(plan, lambda node: id(node) in found):
        found[id(node)] = _is_empty_above(node, [found[id(child)] for child in children(node)], empty)
    return found[id(plan)]


def _is_empty_above(plan: Plan, inputs: list[bool], empty: set[str]) -> bool:
    """The same for a node of whose inputs it is known."""
    match plan:
        case Unit():
            return False
        case Scan(relation):
            return relation in empty
        case Join():
            return any(inputs)
        case Union():
            return all(inputs)
        case Antijoin() | Lookup():
            return inputs[0]
        case Select() | Extend() | Expand() | Project() | Distinct() | Group() | Top() | Guard():
            return inputs[0]
        case _:
            assert_never(plan)
