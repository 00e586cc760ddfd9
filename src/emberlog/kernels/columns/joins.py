"""Finds rows by the values of their columns: all rows of a relation, for all bindings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Column: TypeAlias = np.ndarray[Any, Any]  # of int64 or float64

MOST_CODES = 1 << 62
MOST_OFFSETS = 1 << 17  # numbers of keys for which there is an array of where their rows begin


def different(column: Column) -> Column:
    """The numbers that stand in a column, sorted. NumPy's own way loads its masked arrays first."""
    found = np.sort(column)
    return found[begins(found)]


def begins(column: Column) -> Column:
    """Where a sorted column has another number than before."""
    found = np.ones(len(column), bool)
    np.not_equal(column[1:], column[:-1], out=found[1:])
    return found


def ranked(values: Column, column: Column) -> tuple[Column, Column]:
    """The place of each number among sorted `values`, and whether it is there at all."""
    if not len(values):
        return np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    places = np.minimum(np.searchsorted(values, column), len(values) - 1)
    return places, values[places] == column


def expanded(low: Column, high: Column) -> tuple[Column, Column]:
    """Pairs from ranges: the number of each range as often as it is long, and what is in it."""
    counts = high - low
    ends = np.cumsum(counts)
    first = np.repeat(np.arange(len(counts)), counts)
    return first, np.arange(len(first)) - np.repeat(ends - counts - low, counts)


class Index:
    """Rows in the order of the columns by which they are found.

    `sizes` says of each column how many ids it may hold, None where it holds any number. The columns of a row are put
    together in one number, its code: numbers count by their place among those there are, and where codes would become
    too large, so do the codes so far.
    """

    def __init__(self, columns: Sequence[Column], sizes: Sequence[int | None], rows: int) -> None:
        self.rows = rows
        self.steps: list[tuple[Column | None, Column | None, int]] = []  # known numbers, known codes, size
        codes, space = np.zeros(rows, np.int64), 1
        for column, size in zip(columns, sizes, strict=True):
            values = known = None
            if size is None:
                values = different(column)
                size = max(len(values), 1)
            if space * size > MOST_CODES:
                known = different(codes)
                space = max(len(known), 1)
            self.steps.append((values, known, size))
            codes, _ = self._step(len(self.steps) - 1, codes, column)
            space *= size
        self.order = np.argsort(codes, kind="stable")
        self.codes = codes[self.order]
        self.offsets = None
        if space <= MOST_OFFSETS:
            self.offsets = np.zeros(space + 1, np.int64)
            np.cumsum(np.bincount(codes, minlength=space), out=self.offsets[1:])

    def _step(self, number: int, codes: Column, column: Column) -> tuple[Column, Column | None]:
        """Codes with one more column, and where its values are known (None: everywhere)."""
        values, known, size = self.steps[number]
        there = None
        if values is not None:
            column, there = ranked(values, column)
        if known is not None:
            codes, also = ranked(known, codes)
            there = also if there is None else there & also
        return codes * size + column, there

    def ranges(self, columns: Sequence[Column], rows: int) -> tuple[Column, Column]:
        """Where in `order` the rows with these values stand, for so many bindings."""
        codes, found = np.zeros(rows, np.int64), None
        for number, column in enumerate(columns):
            codes, there = self._step(number, codes, column)
            found = there if found is None else found if there is None else found & there
        if self.offsets is not None:
            low, high = self.offsets[codes], self.offsets[codes + 1]
        else:
            low, high = np.searchsorted(self.codes, codes), np.searchsorted(self.codes, codes, "right")
        if found is not None:
            low, high = np.where(found, low, 0), np.where(found, high, 0)
        return low, high
