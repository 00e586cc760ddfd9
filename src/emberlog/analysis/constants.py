"""Constants as values of a type."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal, localcontext

from emberlog.diagnostics import Diagnostic, Label
from emberlog.syntax.nodes import Constant
from emberlog.types import MAX_DIGITS, Type, integer_range

_SURE_DIGITS = 15  # that a float keeps of any number


def as_constant(constant: Constant, want: Type) -> Constant | Diagnostic | None:
    """The constant as a value of type `want`; a diagnostic if its value has none; None if its type has none.

    A whole number becomes what is wanted, number, unsigned, float or decimal, and a float a decimal; a text becomes a
    date or a timestamp.
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
            return _moment(constant, value, want) if isinstance(value, str) and constant.kind != "decimal" else None
        case "decimal":
            written = as_written(constant)
            return None if written is None else _decimal(written, want)


def _whole(constant: Constant, value: int, want: Type) -> Constant | Diagnostic:
    low, high = integer_range(want)
    if not low <= value <= high:
        message = f"{value} does not fit the type {want}"
        return Diagnostic("E0504", message, (Label(constant.span, f"{want} is {low} to {high}"),))
    kind = "unsigned" if want.kind == "unsigned" else ""
    return constant if constant.kind == kind else replace(constant, kind=kind)


def decimal_constant(value: Decimal) -> Constant | None:
    """The constant for a decimal number; None for what is none, or has more than 38 digits."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -MAX_DIGITS or value.adjusted() >= MAX_DIGITS:
        return None
    with localcontext(prec=2 * MAX_DIGITS):
        constant = Constant(f"{value if exponent <= 0 else value.quantize(Decimal(1)):f}", "decimal")
    return constant if decimal_type(constant).precision <= MAX_DIGITS else None


def as_written(constant: Constant) -> Constant | None:
    """A number of the program's text as a decimal with the digits that it was written with, or a decimal itself; None
    for what is no such number. A float tells 15 digits for certain: one with more is none."""
    match constant.value:
        case bool():
            return None
        case str():
            return constant if constant.kind == "decimal" else None
        case int() as value:
            found = decimal_constant(Decimal(value))
        case float() as value:
            exact = Decimal(repr(value))
            found = decimal_constant(exact) if len(exact.normalize().as_tuple().digits) <= _SURE_DIGITS else None
    return None if found is None else replace(found, span=constant.span)


def decimal_type(constant: Constant) -> Type:
    """The narrowest type of a decimal constant."""
    _, digits, exponent = Decimal(str(constant.value)).as_tuple()
    assert isinstance(exponent, int) and exponent <= 0
    return Type("decimal", precision=max(len(digits), 1 - exponent), scale=-exponent)


def _decimal(constant: Constant, want: Type) -> Constant | Diagnostic:
    """The constant with as many digits after the point as `want` has."""
    own = decimal_type(constant)
    if own.scale > want.scale or own.precision - own.scale > want.precision - want.scale:
        message = f"{constant.value} does not fit the type {want}"
        return Diagnostic("E0504", message, (Label(constant.span, f"a {own}"),))
    with localcontext(prec=MAX_DIGITS):
        return replace(constant, value=f"{Decimal(str(constant.value)).quantize(Decimal(1).scaleb(-want.scale)):f}")


def _moment(constant: Constant, text: str, want: Type) -> Constant | Diagnostic:
    try:
        moment = datetime.fromisoformat(text) if want.kind == "timestamp" else date.fromisoformat(text)
    except ValueError:
        form = "2024-02-29 or 2024-02-29 12:30:00" if want.kind == "timestamp" else "2024-02-29"
        return Diagnostic("E0503", f'"{text}" is not a {want}', (Label(constant.span),), f"it is written like {form}")
    return replace(constant, value=moment.isoformat(), kind=want.kind)
