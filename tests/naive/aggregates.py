"""Aggregates of a list of values, one value for each binding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from naive.values import Undefined, Value, checked, extremum, whole


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
        return Decimal(sum(values))
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities among them, or an intermediate sum that is too large
        return float(sum(values))


def mean(values: Sequence[Any]) -> Value:
    if whole(*values):
        return float(sum(values) / len(values))
    result = total(values)
    if not isinstance(result, int | float):
        raise Undefined(f"the average of {values}")
    return result / len(values)
