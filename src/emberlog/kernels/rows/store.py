"""The full rows of a relation: each row in the form that is smallest for its size, all in two growing pools.

A row is a list up to 16 ids, then an open-addressing table at most three quarters full, and a bit set from when the
table would take more room than that. Blocks of lists and tables are powers of two in length; those that a row has
grown out of are kept in lists, one a length, and used again.

Rows take in a delta in three steps, so that workers can share the copying: `plan` (one worker) finds room for every
row that grows, `fill` (any worker, any part) copies, `settle` (one worker) makes the new blocks the rows'.
"""

from __future__ import annotations

import numpy as np

from emberlog.components.compositions import Storage
from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.delta import Delta, longer
from emberlog.kernels.rows.layout import (
    BITS,
    FORM,
    LIST,
    SIZE,
    Ids,
    Longs,
    View,
    fill_range,
    int64,
    ones,
    slot_of,
    words_of,
)

SHORT = 16
SMALLEST = 2  # blocks have at least 2^2 slots

# Places in the state of a store.
USED_ITEMS, USED_WORDS = range(2)


@inlined
def log2_above(size: int) -> int:
    """The smallest c with 2^c >= size."""
    c = 0
    while (1 << c) < size:
        c += 1
    return c


@inlined
def block_of(size: int) -> int:
    """The length, as a power of two, of the block for a list or table of `size` ids."""
    if size <= SHORT:
        return max(SMALLEST, log2_above(size))
    return log2_above(size + size // 3 + 1)


@inlined
def form_of(size: int, words: int, bits_from: int) -> int:
    """The form of a row of `size` ids: BITS from `bits_from` slots on."""
    block = block_of(size)
    if (1 << block) >= bits_from:
        return BITS
    return LIST if size <= SHORT else block


@jit
def demand(xs: Ids, dmeta: Longs, meta: Longs, words: int, bits_from: int) -> tuple[int, int]:
    """At most how many slots and words the rows need to take the delta in."""
    slots, more = 0, 0
    for x in xs:
        if meta[x, 1] & FORM != BITS or meta[x, 1] == 0:
            size = (meta[x, 1] >> SIZE) + (dmeta[x, 1] >> SIZE)
            if form_of(size, words, bits_from) == BITS:
                more += words
            else:
                slots += 1 << block_of(size)
    return slots, more


@jit
def plan(
    xs: Ids, dmeta: Longs, meta: Longs, items: Ids, words: int, bits_from: int, free: Longs, state: Longs, moves: Longs
) -> None:
    """Find room for the rows that take in a delta: `moves` gets (where, tag) of each row to come.

    The pools have room for all, by `demand`.
    """
    for i in range(xs.size):
        x = xs[i]
        tag = meta[x, 1]
        size = (tag >> SIZE) + (dmeta[x, 1] >> SIZE)
        form = form_of(size, words, bits_from)
        if tag != 0 and tag & FORM == BITS:
            form = BITS
        moves[i, 1] = size << SIZE | form
        if tag != 0 and tag & FORM == form and (form != LIST or block_of(tag >> SIZE) == block_of(size)):
            moves[i, 0] = meta[x, 0]
        elif form == BITS:
            moves[i, 0] = state[USED_WORDS]
            state[USED_WORDS] += words
        else:
            block = block_of(size)
            if free[block] >= 0:
                moves[i, 0] = free[block]
                free[block] = int64(items[free[block]]) << SMALLEST if items[free[block]] >= 0 else -1
            else:
                moves[i, 0] = state[USED_ITEMS]
                state[USED_ITEMS] += 1 << block


@inlined
def put(y: int, where: int, form: int, items: Ids) -> None:
    """Enter y, which is not there, in a table."""
    mask = (1 << form) - 1
    at = slot_of(y, form)
    while items[where + at] >= 0:
        at = (at + 1) & mask
    items[where + at] = y


@inlined
def pour(
    source: Ids, sbits: Longs, where: int, tag: int, words: int, to: int, form: int, at: int, items: Ids, bits: Longs
) -> None:
    """Add a row to another: to a list from its position `at` on, to a table or to a bit row. None is in both."""
    from_form = tag & FORM
    if from_form == BITS:
        if form == BITS:
            for w in range(words):
                bits[to + w] |= sbits[where + w]
            return
        for w in range(words):  # only where bit rows are not wanted
            word = sbits[where + w]
            while word != 0:
                y = (w << 6) + ones((word & -word) - 1)
                word &= word - 1
                if form == LIST:
                    items[to + at] = y
                    at += 1
                else:
                    put(y, to, form, items)
        return
    stop = where + (tag >> SIZE) if from_form == LIST else where + (1 << from_form)
    for i in range(where, stop):
        y = int64(source[i])
        if y >= 0:
            if form == BITS:
                bits[to + (y >> 6)] |= 1 << (y & 63)
            elif form == LIST:
                items[to + at] = y
                at += 1
            else:
                put(y, to, form, items)


@jit
def fill(
    xs: Ids, begin: int, end: int, dmeta: Longs, ditems: Ids, dbits: Longs, meta: Longs, items: Ids, bits: Longs,
    words: int, moves: Longs,
) -> None:  # fmt: skip
    """Copy the rows `xs[begin:end]` to where they are to be, and their deltas behind them."""
    for i in range(begin, end):
        x = xs[i]
        where, tag = meta[x, 0], meta[x, 1]
        to, form = moves[i, 0], moves[i, 1] & FORM
        if tag == 0 or to != where or form != tag & FORM:
            if form == BITS:
                fill_range(bits, to, to + words, 0)
            elif form != LIST:
                fill_range(items, to, to + (1 << form), -1)
            pour(items, bits, where, tag, words, to, form, 0, items, bits)
        pour(ditems, dbits, dmeta[x, 0], dmeta[x, 1], words, to, form, tag >> SIZE, items, bits)


@jit
def settle(xs: Ids, meta: Longs, items: Ids, free: Longs, moves: Longs) -> None:
    """The rows are where `moves` says; the blocks that they left are free."""
    for i in range(xs.size):
        x = xs[i]
        where, tag = meta[x, 0], meta[x, 1]
        if tag != 0 and tag & FORM != BITS and (where != moves[i, 0] or moves[i, 1] & FORM == BITS):
            block = block_of(tag >> SIZE) if tag & FORM == LIST else tag & FORM
            items[where] = free[block] >> SMALLEST if free[block] >= 0 else -1
            free[block] = where
        meta[x, 0] = moves[i, 0]
        meta[x, 1] = moves[i, 1]


class Store:
    """The rows of a relation from `first` ids to sets of `second` ids."""

    def __init__(self, first: int, second: int, storage: Storage = "auto") -> None:
        self.first, self.second = first, second
        self.words = words_of(second)
        match storage:
            case "bits":
                self.bits_from = 0
            case "auto":
                self.bits_from = max(2 * self.words, 1 << SMALLEST)  # slots of 4 bytes against words of 8
            case "sparse":
                self.bits_from = 1 << 40
        self.view = View(
            np.zeros((first, 2), np.int64), np.empty(0, np.int32), np.empty(0, np.int64), self.words
        )  # fmt: skip
        self._free = np.full(64, -1, np.int64)
        self._state = np.zeros(2, np.int64)

    @property
    def bytes(self) -> int:
        """What the rows take. Room that is only reserved is not counted."""
        return self.view.meta.nbytes + 4 * int(self._state[USED_ITEMS]) + 8 * int(self._state[USED_WORDS])

    def widen(self, first: int) -> None:
        """Room for more rows, which are empty."""
        meta = np.zeros((first, 2), np.int64)
        meta[: self.first] = self.view.meta
        self.first, self.view.meta = first, meta

    def reserve(self, delta: Delta) -> Longs:
        """Find room for the delta; the moves to make."""
        view = self.view
        slots, more = demand(delta.todo, delta.view.meta, view.meta, self.words, self.bits_from)
        items, words = int(self._state[USED_ITEMS]), int(self._state[USED_WORDS])
        if items + slots > view.items.size:
            view.items = longer(view.items, max(items + slots, 2 * view.items.size), items)
        if words + more > view.bits.size:
            view.bits = longer(view.bits, max(words + more, 2 * view.bits.size), words)
        moves = np.empty((len(delta.todo), 2), np.int64)
        plan(
            delta.todo,
            delta.view.meta,
            view.meta,
            view.items,
            self.words,
            self.bits_from,
            self._free,
            self._state,
            moves,
        )
        return moves

    def copy(self, delta: Delta, moves: Longs, begin: int, end: int) -> None:
        """Make the moves `begin` to `end`."""
        view, new = self.view, delta.view
        fill(
            delta.todo, begin, end, new.meta, new.items, new.bits, view.meta, view.items, view.bits, self.words, moves
        )  # fmt: skip

    def settle(self, delta: Delta, moves: Longs) -> None:
        """All moves are made."""
        settle(delta.todo, self.view.meta, self.view.items, self._free, moves)
