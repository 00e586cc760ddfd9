"""How rows lie in arrays, and the loops that read them.

A *view* of a relation is three arrays. `meta[r]` is (where, tag) of row r: `tag >> 6` is the number of its ids, and
`tag & 63` its form:

    LIST          the ids are `items[where : where + size]`, in any order
    c in 3..31    an open-addressing table of 2^c slots in `items` from `where`; free slots are -1
    BITS          a bit set of `words` words in `bits` from `where`

An empty row is (anything, 0). Full relations, deltas and static relations all have this shape, so one loop serves
every kind of join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from emberlog.kernels.rows._jit import inlined, jit

Ids: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[Any]  # of int64 or float64

int64 = cast("Callable[[Any], int]", np.int64)
"""Of a number that is kept in 32 bits, for what is computed with it."""

LIST = 0
BITS = 63
FORM = 63
SIZE = 6

_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_H1 = np.uint64(0x0101010101010101)


@dataclass(slots=True)
class View:
    """Rows as arrays. `words` is the length of a bit row; `values`, if there are any, lie beside the items."""

    meta: Longs
    items: Ids
    bits: Longs
    words: int
    values: Values = field(default_factory=lambda: np.empty(0, np.int64))


def words_of(domain: int) -> int:
    """The words of a bit set over `domain` ids."""
    return (domain + 63) >> 6


@inlined
def ones(word: int) -> int:
    """The number of set bits."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & _M1)
    x = (x & _M2) + ((x >> np.uint64(2)) & _M2)
    x = (x + (x >> np.uint64(4))) & _M4
    return int64((x * _H1) >> np.uint64(56))


@inlined
def slot_of(key: int, form: int) -> int:
    """Where the search for `key` starts in a table of 2^form slots."""
    return ((int64(key) * 0x9E3779B1) & 0xFFFFFFFF) >> (32 - form)


@inlined
def decode_bits(row: Longs, out: Ids, at: int) -> int:
    """Write the ids of a bit row to `out` from `at`; the position after the last."""
    for w in range(row.size):
        word = row[w]
        while word != 0:
            out[at] = (w << 6) + ones((word & -word) - 1)
            at += 1
            word &= word - 1
    return at


@inlined
def decode(x: int, meta: Longs, items: Ids, bits: Longs, words: int, out: Ids, at: int) -> int:
    """Write the ids of row x to `out` from `at`; the position after the last."""
    where, tag = meta[x, 0], meta[x, 1]
    form, size = tag & FORM, tag >> SIZE
    if form == BITS:
        return decode_bits(bits[where : where + words], out, at)
    if form == LIST:
        for i in range(where, where + size):
            out[at] = items[i]
            at += 1
        return at
    for i in range(where, where + (1 << form)):
        if items[i] >= 0:
            out[at] = items[i]
            at += 1
    return at


@inlined
def flip(block: Longs) -> None:
    """Transpose 64 by 64 bits in place: bit c of word r becomes bit r of word c."""
    width = 32
    mask = int64(0x00000000FFFFFFFF)
    while width > 0:
        k = 0
        while k < 64:
            for i in range(k, k + width):
                other = ((block[i] >> width) ^ block[i + width]) & mask
                block[i] ^= other << width
                block[i + width] ^= other
            k += 2 * width
        width >>= 1
        mask ^= mask << width


@inlined
def fill_range(array: Any, begin: int, end: int, value: int) -> None:
    """Set a stretch of an array. Assigning to a slice takes the compiler much longer."""
    for i in range(begin, end):
        array[i] = value


@jit
def csr(keys: Ids, values: Ids, meta: Longs, items: Ids) -> None:
    """Fill `meta` (zeros) and `items` with the pairs grouped by key, in a stable order."""
    for key in keys:
        meta[key, 1] += 1
    at = 0
    for r in range(meta.shape[0]):
        meta[r, 0] = at
        at += meta[r, 1]
    for i in range(keys.size):
        key = keys[i]
        items[meta[key, 0]] = values[i]
        meta[key, 0] += 1
    for r in range(meta.shape[0]):
        meta[r, 0] -= meta[r, 1]
        meta[r, 1] <<= SIZE


@jit
def once(meta: Longs, items: Ids, last: Ids) -> None:
    """Leave out ids that come again in the same list. `last[y]` is the row where y was last seen, at first none."""
    for r in range(meta.shape[0]):
        start = at = meta[r, 0]
        for i in range(start, start + (meta[r, 1] >> SIZE)):
            y = items[i]
            if last[y] != r:
                last[y] = r
                items[at] = y
                at += 1
        meta[r, 1] = (at - start) << SIZE


def grouped(keys: Ids, values: Ids, domain: int, width: int, *, distinct: bool = True) -> View:
    """The pairs (key, value) as rows of lists; keys are below `domain`, values below `width`."""
    meta = np.zeros((domain, 2), np.int64)
    items = np.empty(len(keys), np.int32)
    csr(keys, values, meta, items)
    if distinct:
        once(meta, items, np.full(width, -1, np.int32))
    return View(meta, items, np.empty(0, np.int64), words_of(width))
