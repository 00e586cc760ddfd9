"""Terms that may have no value, as variables of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from emberlog.analysis.functions import fallible
from emberlog.analysis.program import Absent, Bind, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import literal_terms, operands, with_operands
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Test, Variable
from emberlog.types import Type


def spelled_out(body: Iterable[Literal], types: Mapping[str, Type]) -> tuple[Literal, ...]:
    """The body with every term that may have no value as a variable of its own, so that its value is a column.

    `10 / X > 3` becomes `N > 3, N = 10 / X`. Literals keep their places; the new ones stand behind all others.
    """
    body = tuple(body)
    if not any(map(_computes, body)):
        return body
    bindings: list[Literal] = []

    def bound(index: int, terms: Iterable[Term]) -> Iterator[Term]:
        for spot, term in enumerate(terms):
            if fallible(term, types):
                name = f"?{index}.{spot}"
                bindings.append(Bind(name, term))
                yield Variable(name)
            else:
                yield term

    spelled: list[Literal] = []
    for index, literal in enumerate(body):
        match literal:
            case Match(_, arguments) | Absent(_, arguments):
                spelled.append(replace(literal, arguments=tuple(bound(index, arguments))))
            case Filter(Test(call)) if fallible(call, types):
                (truth,) = bound(index, (call,))
                spelled.append(Filter(Comparison("=", truth, Constant(True))))
            case Filter(condition):
                spelled.append(Filter(with_operands(condition, bound(index, operands(condition)))))
            case Spread(_, start, stop, step):
                start, stop, step = bound(index, (start, stop, step))
                spelled.append(replace(literal, start=start, stop=stop, step=step))
            case Bind() | Gather():
                spelled.append(literal)
            case _:
                assert_never(literal)
    return (*spelled, *bindings)


def _computes(literal: Literal) -> bool:
    """True if a literal may have terms to be spelled out."""
    match literal:
        case Bind() | Gather():
            return False
        case Filter(Test()):
            return True
        case _:
            return any(isinstance(term, Call) for term in literal_terms(literal))
