"""`is_min((X, Z), D)` and `is_max` as goals: another notation for the aggregate in the head.

The goal says of a relation that of all rows with the same X and Z only that with the least D counts. About the rule's
own head it is the aggregate there; about an atom of the head's predicate in the body it says the same of the rows that
the recursion reads, so the head has that aggregate too, if it is not written there already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from emberlog.source import Span
from emberlog.syntax import nodes


@dataclass(frozen=True, slots=True)
class Extremum:
    """`is_min((groups), value)`. `place` stands for it in the body until the rule is read."""

    function: str
    groups: frozenset[str]
    value: str
    place: nodes.Truth
    span: Span


def aggregated(head: nodes.Atom, body: nodes.Formula, goal: Extremum) -> nodes.Atom | None:
    """The head with the aggregate that the goal says; None if the goal is about nothing that the head keeps."""
    position = _column(head, goal)
    if position is None:
        atoms = (atom for atom in _atoms(body) if atom.predicate == head.predicate)
        position = next((place for place in (_column(atom, goal) for atom in atoms) if place is not None), None)
    if position is None or position >= len(head.arguments):
        return None
    match head.arguments[position]:
        case nodes.Aggregate(function):
            return head if function == goal.function else None
        case value:
            inside = nodes.Aggregate(goal.function, (value,), span=goal.span)
            return replace(head, arguments=(*head.arguments[:position], inside, *head.arguments[position + 1 :]))


def without(body: nodes.Formula, goal: Extremum) -> nodes.Formula:
    """The body without the goal."""
    if isinstance(body, nodes.And):
        rest = tuple(part for part in body.parts if part is not goal.place)
        return rest[0] if len(rest) == 1 else replace(body, parts=rest)
    if isinstance(body, nodes.Or):
        return replace(body, parts=tuple(without(part, goal) for part in body.parts))
    return body


def _column(atom: nodes.Atom, goal: Extremum) -> int | None:
    """The position of the goal's value in an atom whose other arguments are the goal's groups."""
    spots = [i for i, argument in enumerate(atom.arguments) if _name(argument) == goal.value]
    if len(spots) != 1:
        return None
    others = [argument for i, argument in enumerate(atom.arguments) if i != spots[0]]
    names = {argument.name for argument in others if isinstance(argument, nodes.Variable)}
    return spots[0] if names == goal.groups else None


def _name(argument: nodes.Term) -> str | None:
    match argument:
        case nodes.Variable(name) | nodes.Aggregate("min" | "max", (nodes.Variable(name),)):
            return name
        case _:
            return None


def _atoms(body: nodes.Formula) -> Iterator[nodes.Atom]:
    match body:
        case nodes.Atom():
            yield body
        case nodes.And(parts) | nodes.Or(parts):
            for part in parts:
                yield from _atoms(part)
        case _:
            return
