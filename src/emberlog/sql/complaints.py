"""The error for a rule that has no value for some facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import Bind, CoreRule, Filter, Gather, Literal, Spread
from emberlog.analysis.terms import literal_terms
from emberlog.diagnostics import DataError, InternalError
from emberlog.plan.logical import Guard
from emberlog.sql.causes import DOES_NOT_FIT, Causes
from emberlog.syntax.nodes import Aggregate, Call, Term, Test
from emberlog.types import Type


class TooLarge(DataError):
    """A value left the range of its type. In recursion it may have grown along a cycle."""


def no_value(rule: CoreRule | None, guard: Guard, values: list[str]) -> DataError | InternalError:
    """What to say of a row for which a guard found no value; `values` are those of the columns it shows."""
    if rule is None:
        return InternalError("a statement complained of a rule that is not in the program")
    named = [(name, value) for name, value in zip(guard.shown, values, strict=False) if not name.startswith(("?", "!"))]
    written = [(name, value) for name, value in named if "/" not in name]  # the others are ours
    shown = ", ".join(f"{_column(rule, name)} = {_literal(value, rule.types.get(name))}" for name, value in written)
    place = f" for {shown}" if shown else ""
    if guard.complaint != NO_VALUE:
        kind = TooLarge if DOES_NOT_FIT in guard.complaint else DataError
        return kind(f"`{rule.predicate}` {guard.complaint}{place}", span=rule.span)
    bound = {literal.variable: literal.term for literal in rule.body if isinstance(literal, Bind)}
    others = (*_sum_causes(rule), *_range_causes(rule))
    causes = Causes(dict(named), bound, rule.types).of(_all_calls(rule), others)
    kind = TooLarge if any(DOES_NOT_FIT in cause for cause in causes) else DataError
    return kind(
        f"this rule has no value{place}: {' or '.join(causes)}",
        span=rule.span,
        fix="add a condition that keeps such facts out of the rule",
    )


NO_VALUE = "has no value"


def _sum_causes(rule: CoreRule) -> Iterator[str]:
    """That a sum may be too large, if the body has one of whole numbers or decimals."""
    gathers = (literal for literal in _literals(rule.body) if isinstance(literal, Gather) and literal.function == "sum")
    types = [type_of(gather.target, rule.types) for gather in gathers if gather.target is not None]
    if any(type.kind != "float" for type in types):
        yield f"a sum {DOES_NOT_FIT}"


def _range_causes(rule: CoreRule) -> Iterator[str]:
    if any(isinstance(literal, Spread) for literal in _literals(rule.body)):
        yield "a range has step 0, a bound that is not finite, or more than 100,000,000 values"


def _all_calls(rule: CoreRule) -> Iterator[Call]:
    """The calls of the rule, in the order of its text."""
    for literal in _literals(rule.body):
        match literal:
            case Filter(Test(call)):
                yield from _calls(call)
            case _:
                for term in literal_terms(literal):
                    yield from _calls(term)
        if isinstance(literal, Gather) and literal.target is not None:
            yield from _calls(literal.target)
    for argument in rule.arguments:
        yield from _calls(argument)


def _literals(body: Iterable[Literal]) -> Iterator[Literal]:
    """The literals of a body, and those inside of its aggregates."""
    for literal in body:
        yield literal
        if isinstance(literal, Gather):
            for inner in literal.bodies:
                yield from _literals(inner)


def _calls(term: Term) -> Iterator[Call]:
    match term:
        case Call(_, arguments):
            for argument in arguments:
                yield from _calls(argument)
            yield term
        case Aggregate(_, arguments):
            for argument in arguments:
                yield from _calls(argument)
        case _:
            return


def _column(rule: CoreRule, name: str) -> str:
    """A variable by its name, a position of the head by its column."""
    if not name.startswith("#"):
        return name
    argument = rule.arguments[int(name[1:])]
    return str(getattr(argument, "name", f"column {int(name[1:]) + 1}"))


def _literal(text: str, type: Type | None) -> str:
    return repr(text) if type is not None and type.kind == "symbol" else text
