"""Computed numbers that conditions bound, so that a recursion over them comes to an end.

A rule makes a step if it adds a constant to an integer, or takes one away. Where every step up has a bound above, and
every step down one below, all that is derived lies between these bounds and the values that the recursion began with:
`p(X + 1) <- p(X), X < 9.` A bound is a constant, a value of a relation outside of the recursion, or that of a column
whose values have a bound in all rules of the recursion: `p(X + 1) <- q(X). q(X) <- p(X), X < 9.`
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from emberlog.analysis.program import Bind, CoreRule, Filter, Match
from emberlog.syntax.nodes import Aggregate, Call, Comparison, Constant, Term, Variable

Side: TypeAlias = Literal["above", "below"]
Column: TypeAlias = tuple[str, int, Side]
"""A column of a recursive predicate, and the side on which its values have a bound."""

_SIDES: tuple[Side, Side] = ("above", "below")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_BOUNDING: dict[Side, tuple[str, ...]] = {"above": ("<", "<=", "="), "below": (">", ">=", "=")}


@dataclass(frozen=True, slots=True)
class Recursion:
    """A recursion: its predicates, and the columns of theirs that are bounded."""

    members: Collection[str]
    columns: Collection[Column] = ()

    def bounds(self, rule: CoreRule, computed: Iterable[Term]) -> bool:
        """True if all terms that a rule computes are steps that stay inside of bounds."""
        known = _Known(rule, self)
        results = {literal.term: literal.variable for literal in rule.body if isinstance(literal, Bind)}
        return all(known.holds_step(term, results.get(term)) for term in computed)


def bounded_recursion(rules: Iterable[CoreRule], members: Collection[str]) -> Recursion:
    """The recursion of these rules. A column is bounded if each rule gives it a bounded value, or hands on its own."""
    inside = [rule for rule in rules if rule.predicate in members]
    spots = {(rule.predicate, spot) for rule in inside for spot in range(len(rule.arguments))}
    waiting = {(*spot, side) for spot in spots for side in _SIDES}
    found = Recursion(members)
    while True:
        known = [(rule, _Known(rule, found)) for rule in inside]
        more = {column for column in waiting if all(_is_bounded(*one, column) for one in known)}
        if not more:
            return found
        waiting -= more
        found = Recursion(members, {*found.columns, *more})


def _is_bounded(rule: CoreRule, known: _Known, column: Column) -> bool:
    """True if a rule gives a column only values with a bound, or those that it has anyway; or does not derive it."""
    predicate, spot, side = column
    if rule.predicate != predicate:
        return True
    match rule.arguments[spot]:
        case Aggregate("min" | "max", arguments):
            term = arguments[-1]
        case term:
            pass
    own = (atom.arguments[spot] for atom in rule.body if isinstance(atom, Match) and atom.predicate == predicate)
    return term in own or known.holds(term, side)


class _Known:
    """The variables of a rule that are bounded above and below."""

    def __init__(self, rule: CoreRule, recursion: Recursion) -> None:
        self.rule = rule
        atoms = [literal for literal in rule.body if isinstance(literal, Match)]
        outside = set(
            _variables(term for one in atoms if one.predicate not in recursion.members for term in one.arguments)
        )
        self.names: dict[Side, set[str]] = {side: set(outside) for side in _SIDES}
        for predicate, spot, side in recursion.columns:
            self.names[side].update(_variables(one.arguments[spot] for one in atoms if one.predicate == predicate))
        for literal in rule.body:
            if isinstance(literal, Filter) and isinstance(literal.condition, Comparison):
                self._compare(literal.condition)
        for literal in rule.body:
            if isinstance(literal, Bind):
                for side in _SIDES:
                    if self.holds(literal.term, side):
                        self.names[side].add(literal.variable)

    def holds(self, term: Term, side: Side) -> bool:
        """True if the values of a term have a bound on this side."""
        match term:
            case Constant(int()):
                return True
            case Variable(name):
                return name in self.names[side]
            case _:
                begin, _ = _step(term)
                return begin is not None and self.rule.types[begin].is_integer and begin in self.names[side]

    def holds_step(self, term: Term, result: str | None) -> bool:
        """True if a term makes a step whose begin or `result` is bounded on the side that it leads to."""
        name, side = _step(term)
        if name is None or not self.rule.types[name].is_integer:
            return False
        return name in self.names[side] or result in self.names[side]

    def _compare(self, condition: Comparison) -> None:
        mirrored = _MIRRORED.get(condition.operator)
        if mirrored is None:
            return
        for one, operator, other in (
            (condition.left, condition.operator, condition.right),
            (condition.right, mirrored, condition.left),
        ):
            if isinstance(one, Variable) and self._is_integer(other):
                for side in _SIDES:
                    if operator in _BOUNDING[side] and self.holds(other, side):
                        self.names[side].add(one.name)

    def _is_integer(self, term: Term) -> bool:
        """True for terms that cannot be infinite, as a float can."""
        return isinstance(term, Constant) or (isinstance(term, Variable) and self.rule.types[term.name].is_integer)


def _step(term: Term) -> tuple[str | None, Side]:
    """The variable that a constant is added to, and where that leads; None if the term is no such step."""
    match term:
        case Call("+", (Variable(name), Constant(int(value)))) | Call("+", (Constant(int(value)), Variable(name))):
            return name, "above" if value >= 0 else "below"
        case Call("-", (Variable(name), Constant(int(value)))):
            return name, "above" if value <= 0 else "below"
        case _:
            return None, "above"


def _variables(terms: Iterable[Term]) -> Iterator[str]:
    return (term.name for term in terms if isinstance(term, Variable))
