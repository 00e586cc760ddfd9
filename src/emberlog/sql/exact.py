"""Decimal arithmetic on texts, for what the types of SQL engines have no room for.

This module travels to Spark's workers as it is: it needs nothing else of this package.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation


def compute(operator: str, left: str | None, right: str | None, precision: int, scale: int) -> str | None:
    """`left operator right` as a decimal of this type; None if it does not fit, or if an operand is no decimal.

    A quotient is rounded, half up; all else is exact.
    """
    if left is None or right is None:
        return None
    room = Context(prec=200, Emax=999, Emin=-999)
    try:
        one, other = Decimal(left), Decimal(right)
        if not (one.is_finite() and other.is_finite()):
            return None
        match operator:
            case "+":
                found = room.add(one, other)
            case "-":
                found = room.subtract(one, other)
            case "*":
                found = room.multiply(one, other)
            case _:
                found = room.divide(one, other)
        fitted = found.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, room)
    except InvalidOperation:
        return None
    exact = operator == "/" or fitted == found
    return f"{fitted:f}" if exact and fitted.adjusted() < precision - scale else None
