"""A rule seen from its head: the row is given, and one body that gives it is looked for.

This is what is asked when a deleted row may have another derivation, when somebody wants to know why a row holds, and
when only some rows are wanted. The values of the head are known from the start, so that literals are ordered anew:
conditions as soon as their variables are known, then atoms with the most known arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from emberlog.analysis.program import Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import gives, literal_terms, names, needs
from emberlog.syntax.nodes import Aggregate, Comparison, Variable


@dataclass(frozen=True, slots=True)
class HeadRule:
    """A rule whose head is given. `given` are the positions whose value is that of a variable of the rule; the value at
    another position is the variable `value(position)`, and `body` ends in the conditions that the head's terms equal
    it. The values that go into an aggregate are not given: its row has a group, and the body finds contributions.

    `ranked` are the indexes in `body` of atoms of the rule's own component. A derivation that rests on facts found
    before the head has facts below its rank there.
    """

    rule: CoreRule
    given: tuple[tuple[int, str], ...]
    body: tuple[Literal, ...]
    ranked: tuple[int, ...]


def value(position: int) -> str:
    """The variable that holds the given value at a position of the head, where the rule has none."""
    return f"#{position}"


def head_rule(rule: CoreRule, inside: Collection[str], *, as_written: bool = False) -> HeadRule:
    """The rule seen from its head; `inside` are the predicates of its component. With `as_written` the literals keep
    the order of the rule, and conditions on the head stand where they can first be evaluated."""
    given: dict[str, int] = {}
    conditions: list[Literal] = []
    for position, argument in enumerate(rule.arguments):
        match argument:
            case Aggregate():
                continue
            case Variable(name) if name not in given:
                given[name] = position
            case _:
                conditions.append(Filter(Comparison("=", Variable(value(position)), argument)))
    known = {*given, *(value(position) for position in range(len(rule.arguments)))}
    body = tuple(_merged(rule.body, conditions, known) if as_written else ordered([*rule.body, *conditions], known))
    ranked = (i for i, literal in enumerate(body) if isinstance(literal, Match) and literal.predicate in inside)
    return HeadRule(rule, tuple((position, name) for name, position in given.items()), body, tuple(ranked))


def ordered(body: Iterable[Literal], known: Collection[str], late: Collection[str] = ()) -> Iterator[Literal]:
    """The literals, each as soon as it can be evaluated; one that computes a variable with a known value compares the
    two. A body comes in an order in which all can. Those that mention variables of `late` come after all others."""
    bound, waiting = set(known), list(body)
    while waiting:
        literal = min(waiting, key=lambda literal: (*_turn(literal, bound, late), *_cost(literal, bound)))
        waiting.remove(literal)
        yield from _checking(literal, bound)
        bound |= names(literal_terms(literal)) | set(gives(literal))


def _checking(literal: Literal, known: Collection[str]) -> Iterator[Literal]:
    """The literal; if it computes a variable whose value is known, the comparison with it instead."""
    match literal:
        case Bind(variable, term) if variable in known:
            yield Filter(Comparison("=", Variable(variable), term))
        case Spread(variable) | Gather(variable) if variable in known:
            yield replace(literal, variable=f"{variable}'")
            yield Filter(Comparison("=", Variable(variable), Variable(f"{variable}'")))
        case _:
            yield literal


def _turn(literal: Literal, known: set[str], late: Collection[str]) -> tuple[bool, bool]:
    """Sorts literals that cannot be evaluated yet behind all others, and then those that are late."""
    return not needs(literal) <= known, bool(late) and not names(literal_terms(literal)).isdisjoint(late)


def _merged(body: Iterable[Literal], conditions: Iterable[Literal], known: set[str]) -> Iterator[Literal]:
    """The literals of a body in their order, each condition as soon as its variables are known."""
    waiting = list(conditions)
    for literal in (None, *body):
        if literal is not None:
            yield from _checking(literal, known)
            known |= names(literal_terms(literal)) | set(gives(literal))
        yield from (condition for condition in waiting if needs(condition) <= known)
        waiting = [condition for condition in waiting if not needs(condition) <= known]


def _cost(literal: Literal, known: Collection[str]) -> tuple[int, int]:
    """The lowest first: conditions, look-ups by all columns, atoms by the number of columns that are open,
    aggregates."""
    match literal:
        case Match(_, arguments):
            open_ = sum(isinstance(argument, Variable) and argument.name not in known for argument in arguments)
            whole = open_ == len(arguments) > 0
            return (0 if not open_ else 2 if whole else 1, open_)
        case Gather():
            return (3, 0)
        case _:
            return (0, 0)
