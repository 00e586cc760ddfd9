"""Type conflicts as diagnostics, and what to write instead."""

from __future__ import annotations

from emberlog.analysis.infer import show
from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.types import Type


def conflict(span: Span, given: Type, want: Type, place: Label | None = None, what: str = "") -> Diagnostic:
    """A value of one type where another is wanted."""
    labels = [Label(span, f"{show(given)}{what}")]
    if place is not None and place.span is not span and place.text:
        labels.append(place)
    message = f"type conflict: {show(given)} where {show(want)} is wanted"
    return Diagnostic("E0501", message, tuple(labels), instead_of(given, want))


def instead_of(given: Type, want: Type) -> str | None:
    """What to write instead of a value of one type where another is wanted."""
    kinds = {given.kind, want.kind}
    if kinds == {"number", "float"}:
        return "convert one side: `to_float(...)` makes a float of a number, `to_number(...)` a number of a float"
    if kinds == {"number", "unsigned"}:
        return "convert one side: `to_number(...)` or `to_unsigned(...)`"
    if "symbol" in kinds and kinds & {"number", "float", "unsigned"}:
        return "convert one side: `to_string(...)`, `to_number(...)` or `to_float(...)`"
    if "decimal" in kinds:
        return "`to_float(...)` makes a float of a decimal, `to_decimal(..., P, S)` a decimal of P digits of a number"
    return None


def instead_of_number(given: Type) -> str | None:
    """What to write instead of a value that is no number."""
    match given.kind:
        case "symbol":
            return "`to_number(...)` or `to_float(...)` makes a number of it; `cat` joins texts"
        case "bool" | "unsigned" | "number":
            return "`to_number(...)` makes a number of it"
        case "decimal":
            return "`to_float(...)` makes a float of it"
        case _:
            return None


def instead_of_operands(left: Type, right: Type) -> str:
    """What to write instead of arithmetic that has no type."""
    kinds = (left.kind, right.kind)
    if "decimal" in kinds:
        return "a decimal computes with decimals, numbers and floats"
    if "timestamp" in kinds and "date" in kinds:
        return "`to_date(...)` or `to_timestamp(...)` makes one of the other"
    return "a number of days can be added to or taken from a date, and a number of microseconds to a timestamp"
