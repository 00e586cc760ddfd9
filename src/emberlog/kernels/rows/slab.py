"""Dense left rows joined with a sparse right side, 512 rows at a time, by columns.

Enumerating the ids of dense rows makes facts x degree candidates. Turned by 64 x 64 blocks of bits, a slab of 512 left
rows is one cache line for each z, and the join is one or of a line for each pair of the right side:

    columns of left                  joined columns                            rows of candidates
    line[z] = the x with left(x, z)  line'[y] = or of line[z], right(z, y)     turned back, less what is known
"""

from __future__ import annotations

import numpy as np

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.expand import AT, emit, subtract
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, flip, int64

LINE = 8  # words in a line
SLAB = 64 * LINE


@jit
def lines_of(
    xs: Ids, begin: int, end: int, meta: Longs, items: Ids, bits: Longs, words: int, block: Longs, lines: Longs
) -> None:
    """The columns of the rows `xs[begin:end]`, at most a slab of them, as lines."""
    for z in range(lines.shape[0]):
        for g in range(LINE):
            lines[z, g] = 0
    for g in range((end - begin + 63) >> 6):
        low = begin + (g << 6)
        high = min(low + 64, end)
        dense = 0
        for i in range(low, high):
            where, tag = meta[xs[i], 0], meta[xs[i], 1]
            form = tag & FORM
            if form == BITS:
                dense += 1
                continue
            stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
            for k in range(where, stop):
                if items[k] >= 0:
                    lines[items[k], g] |= 1 << (i - low)
        for w in range(words if dense > 0 else 0):
            for i in range(low, low + 64):
                if i < high and meta[xs[i], 1] & FORM == BITS:
                    block[i - low] = bits[meta[xs[i], 0] + w]
                else:
                    block[i - low] = 0
            flip(block)
            for z in range(w << 6, min((w + 1) << 6, lines.shape[0])):
                lines[z, g] |= block[z & 63]


@jit
def join_lines(meta: Longs, items: Ids, left: Longs, out: Longs) -> None:
    """`out[y]`: the or of the lines of the ids in row y, which is a list."""
    for y in range(meta.shape[0]):
        a = b = c = d = e = f = g = h = int64(0)
        where = meta[y, 0]
        for i in range(where, where + (meta[y, 1] >> SIZE)):
            z = int64(items[i])
            a |= left[z, 0]
            b |= left[z, 1]
            c |= left[z, 2]
            d |= left[z, 3]
            e |= left[z, 4]
            f |= left[z, 5]
            g |= left[z, 6]
            h |= left[z, 7]
        out[y, 0], out[y, 1], out[y, 2], out[y, 3] = a, b, c, d
        out[y, 4], out[y, 5], out[y, 6], out[y, 7] = e, f, g, h


@jit
def rows_of(
    xs: Ids, stop: int, irreflexive: bool, lines: Longs, fmeta: Longs, fitems: Ids, fbits: Longs, words: int,
    block: Longs, cand: Longs, rows: Longs, items: Ids, bits: Longs, state: Longs,
) -> None:  # fmt: skip
    """Turn lines of candidates back into rows and write what is new. The buffers have room for a slab."""
    begin = state[AT]
    count = lines.shape[0]
    for g in range((stop - begin + 63) >> 6):
        low = begin + (g << 6)
        high = min(low + 64, stop)
        for w in range(words):
            for y in range(w << 6, (w + 1) << 6):
                block[y & 63] = lines[y, g] if y < count else 0
            flip(block)
            for i in range(high - low):
                cand[i * words + w] = block[i]
        for i in range(low, high):
            x = int64(xs[i])
            row = cand[(i - low) * words : (i - low + 1) * words]
            if irreflexive:
                row[x >> 6] &= ~(1 << (x & 63))
            emit(x, subtract(x, fmeta, fitems, fbits, row), row, rows, items, bits, state)
    state[AT] = stop


class Slab:
    """Room for one worker's slab of a join from `middle` to `second` ids."""

    def __init__(self, middle: int, second: int, words: int) -> None:
        self.left = np.empty((middle, LINE), np.int64)
        self.joined = np.empty((second, LINE), np.int64)
        self.block = np.empty(64, np.int64)
        self.cand = np.empty(64 * words, np.int64)


def slabs_pay(rows: int, facts: int, right: int, middle: int, second: int) -> bool:
    """Is joining `rows` left rows with `facts` facts by columns cheaper than enumerating? `right` pairs are static."""
    enumerated = facts * right / max(middle, 1)
    turned = -(-rows // SLAB) * LINE * (right + 8 * (middle + second))
    return turned < 4 * enumerated and facts * 64 >= rows * middle
