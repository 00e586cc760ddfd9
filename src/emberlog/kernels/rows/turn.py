"""Rows turned into columns: the transposed deltas and joins need of what is kept by rows."""

from __future__ import annotations

import numpy as np

from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.delta import Delta, Metas
from emberlog.kernels.rows.layout import (
    BITS,
    FORM,
    LIST,
    SIZE,
    Ids,
    Longs,
    Values,
    View,
    fill_range,
    flip,
    int64,
    ones,
    words_of,
)


@jit
def count_columns(xs: Ids, meta: Longs, items: Ids, bits: Longs, words: int, counts: Longs, ys: Ids) -> int:
    """Add up, in column 1 of `counts`, the rows that have each id; the ids that any has go to `ys`."""
    n = 0
    for x in xs:
        where, tag = meta[x, 0], meta[x, 1]
        form = tag & FORM
        if form == BITS:
            for w in range(words):
                word = bits[where + w]
                while word != 0:
                    y = (w << 6) + ones((word & -word) - 1)
                    word &= word - 1
                    if counts[y, 1] == 0:
                        ys[n] = y
                        n += 1
                    counts[y, 1] += 1
        else:
            stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
            for i in range(where, stop):
                y = items[i]
                if y >= 0:
                    if counts[y, 1] == 0:
                        ys[n] = y
                        n += 1
                    counts[y, 1] += 1
    return n


@inlined
def begin_columns(ys: Ids, counts: Longs) -> None:
    """Where the list of each column begins, in column 0, and its form and size, in column 1, of their numbers."""
    at = 0
    for y in ys:
        counts[y, 0] = at
        at += counts[y, 1]
        counts[y, 1] <<= SIZE


@inlined
def end_columns(ys: Ids, counts: Longs) -> None:
    """Lists that have been filled begin again where they began."""
    for y in ys:
        counts[y, 0] -= counts[y, 1] >> SIZE


@jit
def fill_columns(
    xs: Ids, meta: Longs, items: Ids, bits: Longs, words: int, ys: Ids, counts: Longs, columns: Ids
) -> None:
    """Turn counted columns into lists: `counts` becomes the meta of the columns."""
    begin_columns(ys, counts)
    for x in xs:
        where, tag = meta[x, 0], meta[x, 1]
        form = tag & FORM
        if form == BITS:
            for w in range(words):
                word = bits[where + w]
                while word != 0:
                    y = (w << 6) + ones((word & -word) - 1)
                    word &= word - 1
                    columns[counts[y, 0]] = x
                    counts[y, 0] += 1
        else:
            stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
            for i in range(where, stop):
                y = items[i]
                if y >= 0:
                    columns[counts[y, 0]] = x
                    counts[y, 0] += 1
    end_columns(ys, counts)


@jit
def turn_values(
    xs: Ids, meta: Longs, items: Ids, values: Values, ys: Ids, counts: Longs, columns: Ids, out: Values
) -> None:
    """Counted columns of lists with values become lists with values: `counts` becomes their meta."""
    begin_columns(ys, counts)
    for x in xs:
        for i in range(meta[x, 0], meta[x, 0] + (meta[x, 1] >> SIZE)):
            y = items[i]
            columns[counts[y, 0]] = x
            out[counts[y, 0]] = values[i]
            counts[y, 0] += 1
    end_columns(ys, counts)


@jit
def turn_bits(xs: Ids, meta: Longs, items: Ids, bits: Longs, words: int, tall: int, block: Longs, out: Longs) -> None:
    """Transpose rows into bit rows of `tall` words each (zeros before). `xs` are ascending."""
    begin = 0
    while begin < xs.size:
        high = int64(xs[begin]) >> 6
        end = begin
        while end < xs.size and int64(xs[end]) >> 6 == high:
            end += 1
        dense = 0
        for i in range(begin, end):
            x = int64(xs[i])
            where, tag = meta[x, 0], meta[x, 1]
            form = tag & FORM
            if form == BITS:
                dense += 1
                continue
            stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
            for k in range(where, stop):
                y = int64(items[k])
                if y >= 0:
                    out[y * tall + high] |= 1 << (x & 63)
        for w in range(words if dense > 0 else 0):
            fill_range(block, 0, 64, 0)
            for i in range(begin, end):
                x = int64(xs[i])
                if meta[x, 1] & FORM == BITS:
                    block[x & 63] = bits[meta[x, 0] + w]
            flip(block)
            for y in range(w << 6, min((w + 1) << 6, out.size // tall)):
                out[y * tall + high] |= block[y & 63]
        begin = end


@jit
def measure_bits(bits: Longs, tall: int, meta: Longs, ys: Ids) -> int:
    """Enter bit rows, one after another, in `meta`; those that are not empty go to `ys`."""
    n = 0
    for y in range(meta.shape[0]):
        size = 0
        for w in range(y * tall, (y + 1) * tall):
            size += ones(bits[w])
        if size > 0:
            meta[y, 0] = y * tall
            meta[y, 1] = size << SIZE | BITS
            ys[n] = y
            n += 1
    return n


def turned(xs: Ids, view: View, facts: int, first: int, metas: Metas, *, lists: bool = False) -> Delta:
    """The rows `xs` (`facts` facts, out of `first` rows) by their columns, as lists or, where that is less, bits."""
    tall, second = words_of(first), metas.domain
    meta = metas.take()
    ys = np.empty(second, np.int32)
    if facts > 2 * tall * second and not lists:
        bits = np.zeros(tall * second, np.int64)
        turn_bits(np.sort(xs), view.meta, view.items, view.bits, view.words, tall, np.empty(64, np.int64), bits)
        n = measure_bits(bits, tall, meta, ys)
        return Delta(ys[:n], View(meta, np.empty(0, np.int32), bits, tall), facts, ys[:n])
    n = count_columns(xs, view.meta, view.items, view.bits, view.words, meta, ys)
    ys = np.sort(ys[:n])  # rows that lie side by side are joined one after another
    items = np.empty(facts, np.int32)
    fill_columns(xs, view.meta, view.items, view.bits, view.words, ys, meta, items)
    return Delta(ys, View(meta, items, np.empty(0, np.int64), tall), facts, ys)
