"""Minima over small domains: a matrix of values for each relation, with lists of what changed in each row.

Rows are relaxed in place, a whole row at once where the right side is a row of a matrix: the loop over y has no
branches, so the compiler makes vector instructions of it. Where there is no value the matrix has a number so large that
sums with it stay above every value. Whole numbers in a row that is done are in range, so that what is made of two of
them cannot wrap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.expand import ITEMS, ROWS
from emberlog.kernels.rows.layout import LIST, SIZE, Ids, Longs, Values, int64
from emberlog.kernels.rows.values import ADD, MAX, RIGHT, TIMES, made, smaller

# How a side is read.
CHANGED, PAIRS, WHOLE = range(3)
"""CHANGED: the ids of delta rows, values in the matrix. PAIRS: static rows with values. WHOLE: rows of the matrix."""


@jit
def relax_row(op: int, a: Any, right: Values, row: Values, absent: Any, edge: Any, limit: Any) -> bool:
    """`row[y]` becomes the smaller of itself and `a op right[y]`, for all y. False if a product is out of range."""
    if op == ADD:
        for y in range(row.size):
            row[y] = smaller(a + right[y], row[y])
    elif op == MAX:
        for y in range(row.size):
            row[y] = smaller(-smaller(-a, -right[y]), row[y])
    elif op == RIGHT:
        for y in range(row.size):
            row[y] = smaller(right[y], row[y])
    else:
        for y in range(row.size):
            if op >= TIMES and right[y] < edge and abs(float(a) * float(right[y])) > limit:
                return False
            row[y] = smaller(made(op, a, right[y]) if right[y] < edge else absent, row[y])
    return True


@inlined
def in_range(row: Values, edge: Any, limit: Any) -> bool:
    """Are all values of a row in range? Floats always are."""
    wrong = 0
    if limit < edge:
        for y in range(row.size):
            if row[y] < -limit or limit < row[y] < edge:
                wrong += 1
    return wrong == 0


@jit
def relax(
    xs: Ids, begin: int, end: int, op: int, copy: bool, irreflexive: bool, absent: Any, edge: Any, limit: Any,
    left: int, lmeta: Longs, litems: Ids, lvals: Values,
    right: int, rmeta: Longs, ritems: Ids, rvals: Values, rmatrix: Values,
    matrix: Values, before: Values, touched: npt.NDArray[np.bool_],
) -> int:  # fmt: skip
    """Relax the rows `xs[begin:end]` of the matrix; the number of values that were made, or -1 if one is out of range.

    For CHANGED and WHOLE left sides `lvals` is the matrix, by rows, as one array; for a copy the right row of x itself
    is taken. Rows are copied to `before` when they are first touched.
    """
    width = matrix.shape[1]
    middle = rmeta.shape[0]
    derived = 0
    for position in range(begin, end):
        x = int64(xs[position])
        row = matrix[x]
        if not touched[x]:
            touched[x] = True
            for y in range(width):
                before[x, y] = row[y]
        kept = row[x] if irreflexive else absent
        start, count = int64(0), int64(1)
        if not copy:
            start = lmeta[x, 0] if left != WHOLE else int64(0)
            count = lmeta[x, 1] >> SIZE if left != WHOLE else int64(middle)
        for i in range(start, start + count):
            a = absent
            if copy:
                z = x
            elif left == WHOLE:
                z = int64(i)
                a = lvals[x * middle + z]
            else:
                z = int64(litems[i])
                a = lvals[x * middle + z] if left == CHANGED else lvals[i]
            where, size = rmeta[z, 0], rmeta[z, 1] >> SIZE
            if not copy and a >= edge:
                continue
            if not copy and (a > limit or a < -limit):
                return -1
            if right == WHOLE or (right == CHANGED and 8 * size > width):
                if not relax_row(op, a, rmatrix[z], row, absent, edge, limit):
                    return -1
                if irreflexive:  # at once: it must not be read as a fact
                    row[x] = kept
                derived += width
                continue
            derived += size
            for k in range(where, where + size):
                y = int64(ritems[k])
                b = rmatrix[z, y] if right == CHANGED else rvals[k]
                if op >= TIMES and abs(float(a) * float(b)) > limit:
                    return -1
                v = made(op, a, b)
                if v < row[y] and not (irreflexive and x == y):
                    row[y] = v
        if not in_range(row, edge, limit):
            return -1
    return derived


@jit
def fallen(
    xs: Ids, matrix: Values, before: Values, touched: npt.NDArray[np.bool_], absent: Any, edge: Any, rows: Longs,
    items: Ids, state: Longs,
) -> None:  # fmt: skip
    """Write the ids whose values fell in the rows `xs` as a new delta; numbers near `absent` become it again."""
    for x in xs:
        row, old = matrix[x], before[x]
        touched[x] = False
        first = at = state[ITEMS]
        for y in range(row.size):
            if row[y] < old[y]:
                if row[y] < edge:
                    items[at] = y
                    at += 1
                else:
                    row[y] = absent
        if at > first:
            rows[state[ROWS], 0] = x
            rows[state[ROWS], 1] = first
            rows[state[ROWS], 2] = (at - first) << SIZE | LIST
            rows[state[ROWS], 3] = 1
            state[ROWS] += 1
            state[ITEMS] = at


@jit
def close_panel(op: int, matrix: Values, begin: int, end: int, absent: Any, edge: Any) -> None:
    """Relax the rows `begin` to `end` through each other: they become closed under ways through themselves."""
    for z in range(begin, end):
        for x in range(begin, end):
            a = matrix[x, z]
            if a < edge:
                relax_row(op, a, matrix[z], matrix[x], absent, edge, absent)


@jit
def relax_panel(op: int, matrix: Values, begin: int, end: int, low: int, high: int, absent: Any, edge: Any) -> int:
    """Relax the rows `low` to `high` through the closed rows `begin` to `end`; the rows that were read."""
    done = 0
    for x in range(low, high):
        if begin <= x < end:
            continue
        row = matrix[x]
        for z in range(begin, end):
            a = row[z]
            if a < edge:
                relax_row(op, a, matrix[z], row, absent, edge, absent)
                done += 1
    return done


@jit
def widest(values: Values, edge: Any) -> Any:
    """The largest absolute value in an array, of those that are there."""
    most = values.dtype.type(0)
    for value in values:
        if value < edge:
            most = max(most, abs(value))
    return most
