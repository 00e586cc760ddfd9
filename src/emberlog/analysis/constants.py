"""Constants as values of a type."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

from emberlog.diagnostics import Diagnostic, Label
from emberlog.syntax.nodes import Constant
from emberlog.types import Type, integer_range


def as_constant(constant: Constant, want: Type) -> Constant | Diagnostic | None:
    """The constant as a value of type `want`; a diagnostic if its value has none; None if its type has none.

    A whole number becomes what is wanted, number, unsigned or float; a text becomes a date or a timestamp.
    """
    value = constant.value
    match want.kind:
        case "number" | "unsigned":
            if not isinstance(value, int) or isinstance(value, bool):
                return None
            if constant.kind == "unsigned" and want.kind == "number":
                return None
            return _whole(constant, value, want)
        case "float":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            return constant if isinstance(value, float) else replace(constant, value=float(value), kind="")
        case "symbol":
            return constant if isinstance(value, str) and not constant.kind else None
        case "bool":
            return constant if isinstance(value, bool) else None
        case "date" | "timestamp":
            return _moment(constant, value, want) if isinstance(value, str) else None
        case "decimal":
            return None


def _whole(constant: Constant, value: int, want: Type) -> Constant | Diagnostic:
    low, high = integer_range(want)
    if not low <= value <= high:
        message = f"{value} does not fit the type {want}"
        return Diagnostic("E0504", message, (Label(constant.span, f"{want} is {low} to {high}"),))
    kind = "unsigned" if want.kind == "unsigned" else ""
    return constant if constant.kind == kind else replace(constant, kind=kind)


def _moment(constant: Constant, text: str, want: Type) -> Constant | Diagnostic:
    try:
        moment = datetime.fromisoformat(text) if want.kind == "timestamp" else date.fromisoformat(text)
    except ValueError:
        form = "2024-02-29 or 2024-02-29 12:30:00" if want.kind == "timestamp" else "2024-02-29"
        return Diagnostic("E0503", f'"{text}" is not a {want}', (Label(constant.span),), f"it is written like {form}")
    return replace(constant, value=moment.isoformat(), kind=want.kind)
