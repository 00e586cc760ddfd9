"""Rows of new facts out of several deltas: put together, or kept back until the rows that they depend on are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.delta import Delta, Metas
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, Values, View, decode

ENOUGH = 1 << 12
"""Facts that are worth a turn: fewer wait for company."""


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
            out_bits[word : word + words] = 0
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
                y = np.int64(items[k])
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
    return Delta(xs[:n], view, facts, xs[:0])


class Gate:
    """The rank up to which rows are due: the lowest that waits, and more until there is enough to do."""

    def __init__(self, ranks: Mapping[str, Ids]) -> None:
        self._facts = np.zeros(max(int(own.max(initial=0)) for own in ranks.values()) + 1, np.int64)
        self._low = 0

    def add(self, rank: int, facts: int) -> None:
        self._facts[rank] += facts
        self._low = min(self._low, rank)

    def rank(self) -> int:
        """The rank up to which rows are due."""
        facts = self._facts
        while self._low < len(facts) - 1 and not facts[self._low]:
            self._low += 1
        total, rank = int(facts[self._low]), self._low
        while total < ENOUGH and rank < len(facts) - 1:
            rank += 1
            total += int(facts[rank])
        return rank


class Waiting:
    """Rows that wait for their rank to come up. `ranks[x]` is the rank of row x."""

    def __init__(self, ranks: Ids) -> None:
        self._ranks = ranks
        self._parts: dict[int, list[Part]] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def bytes(self) -> int:
        parts = (part for parts in self._parts.values() for part in parts)
        return sum(part.rows.nbytes + part.items.nbytes + part.bits.nbytes + part.values.nbytes for part in parts)

    def add(self, delta: Delta, gate: Gate) -> None:
        """Let the rows of a delta wait."""
        ranks = self._ranks[delta.xs]
        order = np.argsort(ranks, kind="stable")
        part = packed(delta, delta.xs[order])
        ranks = ranks[order]
        starts = np.flatnonzero(np.diff(ranks, prepend=-1))
        for begin, end in zip(starts, [*starts[1:], len(ranks)], strict=True):
            piece = _slice(part, int(begin), int(end), delta.view.words)
            self._parts.setdefault(int(ranks[begin]), []).append(piece)
            gate.add(int(ranks[begin]), int((piece.rows[:, 2] >> SIZE).sum()))

    def due(self, gate: Gate) -> list[Part]:
        """The rows of all ranks up to the gate's; they wait no longer."""
        last = gate.rank()
        ranks = [rank for rank in self._parts if rank <= last]
        for rank in ranks:
            gate.add(rank, -sum(int((part.rows[:, 2] >> SIZE).sum()) for part in self._parts[rank]))
        return [part for rank in ranks for part in self._parts.pop(rank)]


def _slice(part: Part, begin: int, end: int, words: int) -> Part:
    """A stretch of the rows of packed rows, with what they hold."""
    rows = part.rows[begin:end].copy()
    dense = rows[:, 2] & FORM == BITS
    first_item = int(rows[~dense, 1].min()) if not dense.all() else 0
    first_word = int(rows[dense, 1].min()) if dense.any() else 0
    items = int((rows[~dense, 2] >> SIZE).sum())
    rows[:, 1] -= np.where(dense, first_word, first_item)
    return Part(
        rows, part.items[first_item : first_item + items], part.bits[first_word : first_word + words * int(dense.sum())],
        part.values[first_item : first_item + items],
    )  # fmt: skip
