"""The error for a rule that has no value for some facts."""

from __future__ import annotations

from emberlog.analysis.program import CoreRule
from emberlog.diagnostics import DataError, InternalError
from emberlog.plan.logical import Guard
from emberlog.types import Type


def no_value(rule: CoreRule | None, guard: Guard | None, values: list[str]) -> DataError | InternalError:
    """What to say of a row for which a guard found no value; `values` are those of the columns it shows."""
    if rule is None or guard is None:
        return InternalError("a statement complained of a rule that is not in the program")
    named = [(name, value) for name, value in zip(guard.shown, values, strict=False) if not name.startswith(("?", "!"))]
    shown = ", ".join(f"{_column(rule, name)} = {_literal(value, rule.types.get(name))}" for name, value in named)
    place = f" for {shown}" if shown else ""
    return DataError(
        f"a value of `{rule.predicate}` {guard.complaint}{place}",
        span=rule.span,
        fix="an integer overflowed, a divisor was zero, or a conversion failed; add a condition that keeps "
        "such facts out of the rule, or compute in floats",
    )


def _column(rule: CoreRule, name: str) -> str:
    """A variable by its name, a position of the head by its column."""
    if not name.startswith("#"):
        return name
    argument = rule.arguments[int(name[1:])]
    return str(getattr(argument, "name", f"column {int(name[1:]) + 1}"))


def _literal(text: str, type: Type | None) -> str:
    return repr(text) if type is not None and type.kind == "symbol" else text
