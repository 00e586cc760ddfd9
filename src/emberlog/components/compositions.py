"""What is evaluated row by row: compositions of binary relations over dense ids, as plain data.

A relation maps ids of one domain (the rows) to sets of ids of another. The rules of a component are compositions of
two atoms that share one variable, or copies of one atom:

    head(X, Y) <- left(X, Z), right(Z, Y).      head(X, Y) <- left(X, Y).

Longer rules are split by the caller. A relation of kind `min` or `max` keeps one value with each pair, and a
composition into it says how the head's value is made of the sides' values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from emberlog.diagnostics import InternalError

Kind: TypeAlias = Literal["set", "min", "max"]
ValueType: TypeAlias = Literal["int", "float"]
Operator: TypeAlias = Literal["left", "right", "+", "min", "max", "*"]
Storage: TypeAlias = Literal["auto", "bits", "sparse"]
"""How sets are kept: `auto` picks for each row and changes its mind while rows grow; `bits` and `sparse` force one form
of rows; `hash` is one open-addressing table of packed pairs for the whole relation."""


@dataclass(frozen=True, slots=True)
class Side:
    """One atom of a composition, read from its first to its second column or, `flipped`, from second to first."""

    relation: str
    flipped: bool = False


@dataclass(frozen=True, slots=True)
class Composition:
    """`head(X, Y) <- left(X, Z), right(Z, Y)`, or `head(X, Y) <- left(X, Y)` where there is no right side.

    `irreflexive` adds `X != Y`. `value` is set for heads of kind min or max: `left` or `right` takes that side's
    value, an operator joins the values of both. Values of sides that are not asked for are not looked at.
    """

    head: str
    left: Side
    right: Side | None = None
    irreflexive: bool = False
    value: Operator | None = None

    def sides(self) -> tuple[Side, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True, slots=True)
class RowRelation:
    """A recursive relation: the names of the domains of its columns, and what is kept with a pair."""

    name: str
    first: str
    second: str
    kind: Kind = "set"
    value: ValueType = "int"


@dataclass(frozen=True, slots=True)
class StaticRelation:
    """A relation that does not change. With `valued`, its third column is a value."""

    name: str
    first: str
    second: str
    valued: bool = False


@dataclass(frozen=True, slots=True)
class RowsProgram:
    """A component: its recursive relations, what they read, and the rules. `check` says whether it hangs together."""

    recursive: tuple[RowRelation, ...]
    statics: tuple[StaticRelation, ...]
    rules: tuple[Composition, ...]

    def names(self) -> Mapping[str, RowRelation | StaticRelation]:
        relations: tuple[RowRelation | StaticRelation, ...] = (*self.recursive, *self.statics)
        return {relation.name: relation for relation in relations}

    def check(self) -> None:
        """Raises `InternalError` if a rule does not fit its relations: whoever made the program made a mistake."""
        if mistakes := list(_mistakes(self)):
            raise InternalError(f"not a program of rows: {'; '.join(mistakes)}")


def _mistakes(program: RowsProgram) -> Iterator[str]:
    names = program.names()
    if len(names) != len(program.recursive) + len(program.statics):
        yield "a relation has two declarations"
    if len({(relation.kind, relation.value) for relation in program.recursive if relation.kind != "set"}) > 1:
        yield "minima, maxima, whole numbers and floats in one component"
    heads = {relation.name for relation in program.recursive}
    for rule in program.rules:
        unknown = [side.relation for side in rule.sides() if side.relation not in names]
        if unknown or rule.head not in heads:
            yield f"{rule}: unknown {', '.join(unknown) or rule.head}"
            continue
        yield from (f"{rule}: {mistake}" for mistake in _misfits(rule, names))


def _misfits(rule: Composition, names: Mapping[str, RowRelation | StaticRelation]) -> Iterator[str]:
    head = names[rule.head]
    assert isinstance(head, RowRelation)
    ends = [_ends(side, names) for side in rule.sides()]
    if ends[0][0] != head.first or ends[-1][1] != head.second or (ends[0][1] != ends[-1][0] and len(ends) == 2):
        yield "the domains do not match"
    if rule.irreflexive and head.first != head.second:
        yield "X and Y are of two domains"
    if (head.kind == "set") != (rule.value is None):
        yield "a value is wanted for min and max, and for these only"
    asked = {None: (), "left": (0,), "right": (1,)}.get(rule.value, (0, 1))
    for place in asked:
        if place >= len(ends) or not _valued(names[rule.sides()[place].relation]):
            yield f"side {place + 1} has no value"


def _ends(side: Side, names: Mapping[str, RowRelation | StaticRelation]) -> tuple[str, str]:
    relation = names[side.relation]
    return (relation.second, relation.first) if side.flipped else (relation.first, relation.second)


def _valued(relation: RowRelation | StaticRelation) -> bool:
    return relation.valued if isinstance(relation, StaticRelation) else relation.kind != "set"
