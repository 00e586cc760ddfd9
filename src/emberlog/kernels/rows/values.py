"""Values kept with pairs: the smallest wins. A maximum is the minimum of the negated values.

An operator makes a value of the values of two sides; it is a small number in the kernels. Whole numbers stay within
+-LIMIT, so that sums never wrap and a number above EDGE can stand for "no value"; what leaves that range is an error
(`OutOfRange`), not a wrong result.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import overload

from emberlog.components.compositions import Kind, Operator, ValueType
from emberlog.kernels.rows._jit import inlined
from emberlog.kernels.rows.layout import Values

LIMIT = 1 << 59
EDGE = 1 << 61
ABSENT = 1 << 62

LEFT, RIGHT, ADD, MIN, MAX, TIMES, MINUS_TIMES = range(7)


BEYOND = "whole numbers beyond 2^59"


class OutOfRange(Exception):
    """A whole number left the range that the kernels compute in."""


def code(operator: Operator, kind: Kind) -> int:
    """The operator on values as they are kept: negated for a maximum."""
    plain = {"left": LEFT, "right": RIGHT, "+": ADD, "min": MIN, "max": MAX, "*": TIMES}[operator]
    if kind == "max":
        return {MIN: MAX, MAX: MIN, TIMES: MINUS_TIMES}.get(plain, plain)
    return plain


def dtype_of(value: ValueType) -> Any:
    return np.int64 if value == "int" else np.float64


def kept(values: Values, kind: Kind, value: ValueType) -> Values:
    """Values as they are kept. Raises `OutOfRange`."""
    array = np.ascontiguousarray(values, dtype_of(value))
    if value == "int" and len(array) and (array.min() < -LIMIT or array.max() > LIMIT):
        raise OutOfRange(BEYOND)
    return -array if kind == "max" else array


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two, in a form that becomes vector instructions in a loop over rows. |a - b| is below 2^63."""
    return a if a < b else b


@overload(smaller)
def _smaller(a: Any, b: Any) -> Any:
    def whole(a: Any, b: Any) -> Any:
        return b + ((a - b) & ((a - b) >> 63))

    def real(a: Any, b: Any) -> Any:
        return np.minimum(a, b)

    return whole if isinstance(a, numba.types.Integer) else real


@inlined
def made(op: int, a: Any, b: Any) -> Any:
    """The value that the operator makes of two."""
    if op == ADD:
        return a + b
    if op == LEFT:
        return a
    if op == RIGHT:
        return b
    if op == MIN:
        return smaller(a, b)
    if op == MAX:
        return -smaller(-a, -b)
    if op == TIMES:
        return a * b
    return -(a * b)
