"""Elements of rows of sets, for loops that read single facts of them."""

from __future__ import annotations

from typing import Any

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.expand import known_to
from emberlog.kernels.rows.layout import FORM, LIST, SIZE, decode, int64


@jit
def is_element(element: Any, row: Any, meta: Any, items: Any, bits: Any) -> Any:
    """Is this in the row?"""
    where, tag = meta[row, 0], meta[row, 1]
    if tag == 0:
        return False
    y = int64(element)
    if tag & FORM != LIST:
        return known_to(y, where, tag & FORM, items, bits)
    for i in range(where, where + (tag >> SIZE)):  # noqa: SIM110 - Numba knows loops
        if items[i] == y:
            return True
    return False


@jit
def elements_of(row: Any, meta: Any, items: Any, bits: Any, words: Any, found: Any) -> Any:
    """Writes the elements of a row to `found`; how many they are."""
    return decode(row, meta, items, bits, words, found, 0)
