"""Aggregates of a list of values, one value for each binding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from naive.values import Value, checked, extremum, whole


def aggregate(function: str, values: Sequence[Value]) -> Value | None:
    """The aggregate; None over nothing, except for count, countd and sum. `Undefined` if a sum does not fit."""
    match function:
        case "count":
            return len(values)
        case "countd":
            return len(set(values))
        case "sum":
            return total(values)
        case "min" | "witness":
            return extremum(min, values) if values else None
        case "max":
            return extremum(max, values) if values else None
        case "avg" | "mean":
            return mean(values) if values else None
        case _:
            raise ValueError(f"no aggregate `{function}`")


def total(values: Sequence[Any]) -> Value:
    """The sum. Of floats it is the exact sum, rounded once: the order of the values does not matter."""
    if whole(*values):
        return checked(sum(values), values)
    if not all(isinstance(value, int | float) for value in values):
        with localcontext(prec=200):
            return Decimal(sum(values))
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities among them, or an intermediate sum that is too large
        return float(sum(values))


def mean(values: Sequence[Any]) -> Value:
    if whole(*values):
        return float(sum(values) / len(values))
    result: Any = total(values)
    if isinstance(result, float):
        return result / len(values)
    # The digits of a type are those of its values here: programs with averages of decimals have them all alike.
    unit = min((Decimal(1).scaleb(value.as_tuple().exponent) for value in values), default=Decimal(1))
    with localcontext(prec=200):
        return Decimal((result / len(values)).quantize(unit.scaleb(-4), ROUND_HALF_UP))
