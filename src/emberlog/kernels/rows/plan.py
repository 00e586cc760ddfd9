"""Which rules run in which turn, over which deltas, and what must be kept for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from emberlog.components.compositions import Composition, RowsProgram, Side
from emberlog.rules.changes import turns

ByColumn: TypeAlias = Literal["full", "delta", ""]
"""What rules read of a relation from its second to its first column."""


@dataclass(frozen=True, slots=True)
class Term:
    """A rule with the side that is read as a delta; the other side is read in full."""

    rule: Composition
    delta: int  # 0 left, 1 right


def closure_of(program: RowsProgram) -> Composition | None:
    """The rule that composes the only recursive relation with itself, if it is the only recursive rule."""
    names = {relation.name for relation in program.recursive}
    recursive = [rule for rule in program.rules if any(side.relation in names for side in rule.sides())]
    match recursive:
        case [Composition(head, Side(left, False), Side(right, False), False) as rule] if head == left == right:
            return rule if len(names) == 1 else None
    return None


def terms_of(program: RowsProgram, head: str) -> tuple[Term, ...]:
    """The rules of a relation, once for each side that carries a change. The other side is read as it is by then:
    sets, minima and maxima may meet a pair of facts twice."""
    closure = one_sided_closure(program)
    if closure is not None:
        return (Term(closure, 0),)
    recursive = {relation.name for relation in program.recursive}
    return tuple(
        Term(rule, side)
        for rule in program.rules
        if rule.head == head
        for side, _ in turns([spot for spot, side in enumerate(rule.sides()) if side.relation in recursive])
    )


def one_sided_closure(program: RowsProgram) -> Composition | None:
    """The rule of a set that is closed under composition with itself, which needs the change on its left side only.

    This is no delta rule of `rules.changes`. What licenses it: facts of a turn are not seen before its end, a way of
    2^k to 2^(k+1) steps begins with a shortest way of 2^k steps, which is found in turn k and not before, and the rest
    of it is known by then.
    """
    closure = closure_of(program)
    return closure if closure is not None and closure.value is None else None


def by_column(program: RowsProgram) -> Mapping[str, ByColumn]:
    """What rules read of each recursive relation from its second to its first column: "full", "delta" or nothing."""
    needs: dict[str, ByColumn] = {relation.name: "" for relation in program.recursive}
    if one_sided_closure(program) is not None:
        return needs

    def need(side: Side, what: ByColumn) -> None:
        if side.flipped and needs.get(side.relation, "full") != "full":
            needs[side.relation] = what

    for rule in program.rules:
        for side in rule.sides():
            need(side, "delta")
        if rule.right is not None and rule.right.relation in needs:
            need(rule.left, "full")
            need(Side(rule.left.relation, not rule.left.flipped), "full")
        if rule.right is not None and rule.left.relation in needs:
            need(rule.right, "full")
    return needs


def order_of(program: RowsProgram, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The relations in an order in which facts travel far in one round: readers after what they read.

    The roots are those with exit facts; they come first.
    """
    order = list(roots)
    for name in order:
        readers = (rule.head for rule in program.rules if any(side.relation == name for side in rule.sides()))
        order.extend(head for head in dict.fromkeys(readers) if head not in order)
    return (*order, *(relation.name for relation in program.recursive if relation.name not in order))
