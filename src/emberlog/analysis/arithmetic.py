"""Types of arithmetic on decimals, dates and timestamps.

Decimals have Spark's result types: a sum has room for one digit more before the point, a product for the digits of
both. A result that would need more than 38 digits has 38. Sums keep all digits behind the point then; products give up
digits behind the point, down to 6, for those before it. No value is ever rounded: one that does not fit is missing.
"""

from __future__ import annotations

from emberlog.types import DATE, FLOAT, MAX_DIGITS, NUMBER, TIMESTAMP, Type

MIN_SCALE = 6  # digits behind the point that a product keeps at least, if it has so many
MEAN_DIGITS = 4  # behind the point, that an average has more than its values

DURATIONS = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000}
UNITS_OF_DATES = ("year", "quarter", "month", "week", "day")
UNITS = (*UNITS_OF_DATES, "hour", "minute", "second")

_MOMENTS = {"date": DATE, "timestamp": TIMESTAMP}


def is_mixed(function: str, types: tuple[Type, ...]) -> bool:
    """True if a call is arithmetic on decimals, dates or timestamps, whose type is that of no single argument."""
    return function in ("+", "-", "*") and any(type.kind in ("decimal", *_MOMENTS) for type in types)


def mixed_type(operator: str, left: Type, right: Type) -> Type | None:
    """The type of `left operator right`, of which one is a decimal, date or timestamp; None if there is none."""
    kinds = left.kind, right.kind
    if "decimal" in kinds:
        if "float" in kinds:
            return FLOAT
        one, other = as_decimal(left), as_decimal(right)
        return None if one is None or other is None else _bounded(operator, *_digits(operator, one, other))
    if operator == "-" and left.kind == right.kind:
        return NUMBER
    if operator in ("+", "-") and right.kind == "number":
        return _MOMENTS.get(left.kind)
    if operator == "+" and left.kind == "number":
        return _MOMENTS.get(right.kind)
    return None


def as_decimal(type: Type) -> Type | None:
    """The decimals that hold all values of this type of whole numbers or decimals."""
    if type.is_integer:
        return Type("decimal", precision=20)
    return type if type.kind == "decimal" else None


def always_fits(operator: str, left: Type, right: Type) -> bool:
    """True if every result of decimal arithmetic fits its type."""
    one, other = as_decimal(left), as_decimal(right)
    return one is not None and other is not None and _digits(operator, one, other)[0] <= MAX_DIGITS


def _digits(operator: str, left: Type, right: Type) -> tuple[int, int]:
    """How many digits a result has at most, and how many of them behind the point."""
    if operator == "*":
        return left.precision + right.precision + 1, left.scale + right.scale
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _bounded(operator: str, precision: int, scale: int) -> Type:
    if precision <= MAX_DIGITS:
        return Type("decimal", precision=precision, scale=scale)
    if operator == "*":
        scale = max(MAX_DIGITS - (precision - scale), min(scale, MIN_SCALE))
    return Type("decimal", precision=MAX_DIGITS, scale=scale)


def mean_type(type: Type) -> Type:
    """The type of an average: of decimals one with a few more digits behind the point, if there is room for them, as
    Spark has it; else float."""
    if type.kind != "decimal":
        return FLOAT
    whole = type.precision - type.scale
    scale = min(type.scale + MEAN_DIGITS, MAX_DIGITS - whole)
    return Type("decimal", precision=whole + scale, scale=scale)


def rounded_type(type: Type, places: int) -> Type:
    """The type of a decimal that is rounded to so many digits behind the point."""
    if places >= type.scale:
        return type
    return Type("decimal", precision=type.precision - type.scale + 1 + places, scale=places)
