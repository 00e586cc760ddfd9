"""Rows of new facts out of several deltas, put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.delta import Delta, Metas
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, Values, View, decode, fill_range, int64


@dataclass(slots=True)
class Part:
    """Rows (x, where, tag), lists and bit rows, with the arrays that they lie in."""

    rows: Longs
    items: Ids
    bits: Longs
    values: Values


@jit
def pack(
    xs: Ids, meta: Longs, items: Ids, bits: Longs, words: int, values: Values, rows: Longs, out: Ids, out_bits: Longs,
    out_values: Values,
) -> None:  # fmt: skip
    """Copy the rows `xs`, lists and bit rows, one after another."""
    at, word = 0, 0
    for i in range(xs.size):
        x = xs[i]
        where, tag = meta[x, 0], meta[x, 1]
        rows[i, 0] = x
        rows[i, 2] = tag
        if tag & FORM == BITS:
            rows[i, 1] = word
            for w in range(words):
                out_bits[word + w] = bits[where + w]
            word += words
        else:
            rows[i, 1] = at
            for k in range(tag >> SIZE):
                out[at + k] = items[where + k]
            if values.size > 0:
                for k in range(tag >> SIZE):
                    out_values[at + k] = values[where + k]
            at += tag >> SIZE


@jit
def regroup(
    rows: Longs, items: Ids, bits: Longs, words: int, values: Values, meta: Longs, xs: Ids, out: Ids, out_bits: Longs,
    out_values: Values,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Put rows together, those of the same x into one: distinct rows, facts, items and words.

    Rows of the same x have no id in common, unless there are values: then both stay.
    """
    n, facts = 0, 0
    for i in range(rows.shape[0]):
        x, size = rows[i, 0], rows[i, 2] >> SIZE
        if meta[x, 1] == 0:
            xs[n] = x
            n += 1
        meta[x, 1] += size
        facts += size
    at, word = 0, 0
    for i in range(n):
        x = xs[i]
        size = meta[x, 1]
        if size > 2 * words and values.size == 0:
            meta[x, 0] = word
            meta[x, 1] = size << SIZE | BITS
            fill_range(out_bits, word, word + words, 0)
            word += words
        else:
            meta[x, 0] = at
            meta[x, 1] = size << SIZE | LIST
            at += size
    for i in range(rows.shape[0]):
        x, where, tag = rows[i, 0], rows[i, 1], rows[i, 2]
        to = meta[x, 0]
        if meta[x, 1] & FORM == LIST:
            for k in range(tag >> SIZE if values.size > 0 else 0):
                out_values[to + k] = values[where + k]
            meta[x, 0] = decode(i, rows[:, 1:], items, bits, words, out, to)
        elif tag & FORM == BITS:
            for w in range(words):
                out_bits[to + w] |= bits[where + w]
        else:
            for k in range(where, where + (tag >> SIZE)):
                y = int64(items[k])
                out_bits[to + (y >> 6)] |= 1 << (y & 63)
    for i in range(n):
        x = xs[i]
        if meta[x, 1] & FORM == LIST:
            meta[x, 0] -= meta[x, 1] >> SIZE
    return n, facts, at, word


def packed(delta: Delta, xs: Ids) -> Part:
    """The rows `xs` of a delta, one after another."""
    view = delta.view
    rows = np.empty((len(xs), 3), np.int64)
    out = Part(rows, np.empty_like(view.items), np.empty_like(view.bits), np.empty_like(view.values))
    pack(xs, view.meta, view.items, view.bits, view.words, view.values, rows, out.items, out.bits, out.values)
    return out


def together(parts: list[Part], words: int, metas: Metas) -> Delta:
    """All rows of the parts as one delta."""
    rows = np.concatenate([part.rows for part in parts])
    items = np.concatenate([part.items for part in parts])
    bits = np.concatenate([part.bits for part in parts])
    values = np.concatenate([part.values for part in parts])
    at = items_from = bits_from = 0
    for part in parts:
        own = rows[at : at + len(part.rows)]
        own[:, 1] += np.where(own[:, 2] & FORM == BITS, bits_from, items_from)
        at, items_from, bits_from = at + len(own), items_from + len(part.items), bits_from + len(part.bits)
    facts = int((rows[:, 2] >> SIZE).sum())
    meta, xs = metas.take(), np.empty(len(rows), np.int32)
    out, out_values = np.empty(facts, np.int32), np.empty(len(values) and facts, values.dtype)
    out_bits = np.empty(min(facts // max(2 * words, 1), len(rows)) * words, np.int64)
    n, facts, used, word = regroup(rows, items, bits, words, values, meta, xs, out, out_bits, out_values)
    view = View(meta, out[:used], out_bits[:word], words, out_values[:used] if len(values) else out_values)
    return Delta(np.sort(xs[:n]), view, facts, xs[:0])
