"""Rows, literals and rules as text, with the values that variables have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_never

from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
from emberlog.analysis.terms import map_condition, map_term
from emberlog.rules.text import literal_text, rule_text
from emberlog.source import NOWHERE
from emberlog.syntax.nodes import Anonymous, Atom, Constant, Term, Variable
from emberlog.syntax.printer import show
from emberlog.why.questions import Fact


class Wording:
    """Texts about relations with these signatures. Columns that the run did not read are `_` in all of them."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = signatures

    def fact(self, fact: Fact) -> str:
        """`tc(1, 5)`."""
        predicate, values = fact
        return show(Atom(predicate, self._whole(predicate, tuple(map(constant, values)))))

    def rule(self, rule: CoreRule) -> str:
        """The rule in one line."""
        return rule_text(replace(rule, body=tuple(self._filled(literal, {}) for literal in rule.body)))

    def literal(self, literal: Literal, binding: Mapping[str, Any]) -> str:
        """The literal with the values of the variables that have one."""
        return literal_text(self._filled(literal, binding))

    def given_value(self, literal: Bind | Spread | Gather, binding: Mapping[str, Any]) -> str:
        """`D = 3 + 4 = 7`: what a literal gives its variable, and from which values."""
        return f"{self.literal(literal, binding)} = {value_text(binding[literal.variable])}"

    def _whole(self, predicate: str, arguments: tuple[Term, ...]) -> tuple[Term, ...]:
        """The arguments of an atom with those that the source has and the run did not read."""
        reading = self._signatures[predicate].reading
        if reading is None:
            return arguments
        known = dict(zip(reading.positions, arguments, strict=True))
        return tuple(known.get(spot, Anonymous()) for spot in range(len(reading.whole)))

    def _filled(self, literal: Literal, binding: Mapping[str, Any]) -> Literal:
        def fill(term: Term) -> Term:
            return map_term(term, lambda inner: _value_of(inner, binding))

        match literal:
            case Match(predicate, arguments) | Absent(predicate, arguments):
                return replace(literal, arguments=self._whole(predicate, tuple(map(fill, arguments))))
            case Filter(condition):
                return Filter(map_condition(condition, fill))
            case Bind(_, term):
                return replace(literal, term=fill(term))
            case Spread(_, start, stop, step):
                return replace(literal, start=fill(start), stop=fill(stop), step=fill(step))
            case Gather():
                known = {name: binding[name] for name in literal.injected if name in binding}
                bodies = tuple(tuple(self._filled(inner, known) for inner in body) for body in literal.bodies)
                return replace(literal, bodies=bodies)
            case _:
                assert_never(literal)


def _value_of(term: Term, binding: Mapping[str, Any]) -> Term:
    return constant(binding[term.name]) if isinstance(term, Variable) and term.name in binding else term


def constant(value: Any) -> Constant:
    """A value of a row as a constant of the language."""
    match value:
        case datetime():
            return Constant(str(value), kind="timestamp")
        case date():
            return Constant(str(value), kind="date")
        case Decimal():
            return Constant(str(value), kind="decimal")
        case _:
            return Constant(value)


def value_text(value: Any) -> str:
    """A value as programs write it."""
    return show(constant(value))


def place_of(rule: CoreRule) -> str:
    """The file, without its folder, and the line where a rule stands."""
    span = rule.span
    return "" if span.source is NOWHERE.source else f"{Path(span.source.name).name}:{span.line}"
