"""The error for a rule that has no value for some facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emberlog.analysis.functions import NARROWING
from emberlog.analysis.program import Bind, CoreRule, Filter, Gather, Literal
from emberlog.diagnostics import DataError, InternalError
from emberlog.plan.logical import Guard
from emberlog.syntax.nodes import Aggregate, Call, Comparison, Constant, Term, Test
from emberlog.types import Type

CAUSES = {
    **dict.fromkeys(("+", "-", "*", "neg", "abs"), "an integer does not fit in 64 bits"),
    **dict.fromkeys(("/", "%"), "a divisor is zero"),
    **dict.fromkeys(("to_number", "to_unsigned", "to_float"), "a conversion fails"),
    "^": "a power has no value (too large a result, or a negative number with such an exponent)",
    **dict.fromkeys(("log", "sqrt"), "a logarithm or root has no value"),
    **dict.fromkeys(NARROWING, "a value does not fit in its column"),
}


def no_value(rule: CoreRule | None, guard: Guard, values: list[str]) -> DataError | InternalError:
    """What to say of a row for which a guard found no value; `values` are those of the columns it shows."""
    if rule is None:
        return InternalError("a statement complained of a rule that is not in the program")
    named = [(name, value) for name, value in zip(guard.shown, values, strict=False) if not name.startswith(("?", "!"))]
    shown = ", ".join(f"{_column(rule, name)} = {_literal(value, rule.types.get(name))}" for name, value in named)
    place = f" for {shown}" if shown else ""
    if guard.complaint != NO_VALUE:
        return DataError(f"`{rule.predicate}` {guard.complaint}{place}", span=rule.span)
    causes = list(dict.fromkeys(CAUSES[name] for name in _functions(rule) if name in CAUSES))
    return DataError(
        f"this rule has no value{place}: {' or '.join(causes)}",
        span=rule.span,
        fix="add a condition that keeps such facts out of the rule",
    )


def bad_pattern(rules: Iterable[CoreRule], reason: str) -> DataError | None:
    """The error for a pattern among the facts that is no regular expression; None if no rule takes patterns from facts.

    Engines do not tell which rule they were at: where several rules could be meant, the first one is named.
    """
    rule = next((rule for rule in rules if any(map(_takes_pattern, rule.body))), None)
    if rule is None:
        return None
    return DataError(
        f"a pattern that this rule matches with is not a regular expression: {reason}",
        span=rule.span,
        fix="the pattern comes from the facts; patterns have no look-around and no back-references",
    )


def _takes_pattern(literal: Literal) -> bool:
    match literal:
        case Filter(Test(goal)):
            return _has_pattern(goal)
        case Filter(Comparison(_, left, right)):  # a negated goal too
            return _has_pattern(left) or _has_pattern(right)
        case Bind(_, term):
            return _has_pattern(term)
        case Gather(bodies=bodies):
            return any(_takes_pattern(inner) for body in bodies for inner in body)
        case _:
            return False


def _has_pattern(term: Term) -> bool:
    match term:
        case Call("match", (pattern, _)):
            return not isinstance(pattern, Constant)
        case Call(_, arguments):
            return any(map(_has_pattern, arguments))
        case _:
            return False


NO_VALUE = "has no value"


def _functions(rule: CoreRule) -> Iterator[str]:
    """The functions that the rule calls, in the order of its text."""
    for literal in rule.body:
        match literal:
            case Filter(Comparison(_, left, right)):
                yield from _calls(left)
                yield from _calls(right)
            case Bind(_, term):
                yield from _calls(term)
            case _:
                pass
    for argument in rule.arguments:
        yield from _calls(argument)


def _calls(term: Term) -> Iterator[str]:
    match term:
        case Call(function, arguments):
            for argument in arguments:
                yield from _calls(argument)
            yield function
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
