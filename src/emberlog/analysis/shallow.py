"""Terms of little height: what is nested deeper becomes assignments.

`Y = abs(abs(abs(..)))` becomes `?h0 = abs(..), ?h1 = abs(?h0), ..`: SQL and loops write out an argument once for each
of its uses, so that a nest of calls would double with every level. A value that is missing is missing under any name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.source import Span
from emberlog.syntax.nodes import Aggregate, Call, Comparison, Term, Test, Variable
from emberlog.types import Type

HIGHEST = 4  # calls inside one another
# These count as two: their SQL has arguments more than once.
COPYING = frozenset({"/", "%", "^", "pow", "abs", "min", "max", "clip", "relu", "log", "sqrt", "substr",
                     "lower", "upper", "split", "lpad", "regexp_extract"})  # fmt: skip


def name_deep_terms(rule: CoreRule) -> CoreRule:
    """The rule with a variable for each part of a term that is too deep."""
    naming = _Naming(dict(rule.types))
    body = naming.body(rule.body)
    arguments = tuple(naming.term(argument, rule.span) for argument in rule.arguments)
    if not naming.count:
        return rule
    return replace(rule, arguments=arguments, body=(*body, *naming.taken()), types=naming.types)


class _Naming:
    """Names parts of terms. Their assignments wait until whoever asks puts them into a body."""

    def __init__(self, types: dict[str, Type]) -> None:
        self.types = types
        self.count = 0
        self._waiting: list[Bind] = []

    def taken(self) -> list[Bind]:
        found, self._waiting = self._waiting, []
        return found

    def body(self, literals: Iterable[Literal]) -> tuple[Literal, ...]:
        found: list[Literal] = []
        for literal in literals:
            shallow = self._literal(literal)
            found += [*self.taken(), shallow]
        return tuple(found)

    def _literal(self, literal: Literal) -> Literal:
        match literal:
            case Match(_, arguments, span) | Absent(_, arguments, span):
                return replace(literal, arguments=tuple(self.term(argument, span) for argument in arguments))
            case Filter(condition):
                return Filter(self._condition(condition))
            case Bind(_, term, span):
                return replace(literal, term=self.term(term, span))
            case Spread(_, start, stop, step, span):
                bounds = [self.term(term, span) for term in (start, stop, step)]
                return replace(literal, start=bounds[0], stop=bounds[1], step=bounds[2])
            case Gather(_, _, target, bodies, _, _, span):
                inner = [self.body(body) for body in bodies]
                shallow = None if target is None else self.term(target, span)
                named = self.taken()
                return replace(literal, target=shallow, bodies=tuple((*body, *named) for body in inner))
            case _:
                assert_never(literal)

    def _condition(self, condition: Comparison | Test) -> Comparison | Test:
        span = condition.span
        match condition:
            case Comparison(_, left, right):
                return replace(condition, left=self.term(left, span), right=self.term(right, span))
            case Test(call):
                made = self.term(call, span)
                assert isinstance(made, Call)
                return replace(condition, call=made)

    def term(self, term: Term, span: Span) -> Term:
        return self._shallow(term, span)[0]

    def _shallow(self, term: Term, span: Span) -> tuple[Term, int]:
        """A term of the same value, and its height."""
        if isinstance(term, Aggregate):
            return replace(term, arguments=tuple(self.term(argument, span) for argument in term.arguments)), 0
        if not isinstance(term, Call):
            return term, 0
        parts = [self._shallow(argument, span) for argument in term.arguments]
        arguments = tuple(self._named(part, span) if height >= HIGHEST else part for part, height in parts)
        own = 2 if term.function in COPYING else 1
        height = own + max((height for _, height in parts if height < HIGHEST), default=0)
        return (term if arguments == term.arguments else replace(term, arguments=arguments)), height

    def _named(self, term: Term, span: Span) -> Variable:
        name = f"?h{self.count}"
        self.count += 1
        self.types[name] = type_of(term, self.types)
        self._waiting.append(Bind(name, term, span))
        return Variable(name, span=term.span)
