"""What a turn found: rows of new facts, made by workers in buffers of their own and then put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.expand import ITEMS, ROWS, WORDS
from emberlog.kernels.rows.layout import BITS, FORM, SIZE, Ids, Longs, Values, View

A = TypeVar("A", Ids, Longs, Values)

FIRST_ITEMS = 1 << 12
STATE = 16  # places in the state of a worker, more than any kernel uses


class Buffer:
    """Where one worker writes rows of new facts: `rows` are (x, where, tag), as in a view, and
    whether the facts are in the full row already."""

    def __init__(self, words: int, dtype: Any = None) -> None:
        """With a dtype, there is a value beside each item."""
        self.words, self._dtype = words, dtype
        self.row = np.zeros(self.words, np.int64)
        self.zs = np.empty(0, np.int32)
        self.state = np.zeros(STATE, np.int64)
        self.clear()

    def clear(self) -> None:
        """Start anew, with room for twice as much; what was written belongs to the delta that was made of it."""
        rows, items, words = (int(self.state[place]) for place in (ROWS, ITEMS, WORDS))
        self.rows = np.empty((max(256, 2 * rows), 4), np.int64)
        self.items = np.empty(max(FIRST_ITEMS, 2 * items) + 4 * self.words, np.int32)
        self.bits = np.empty(2 * words + self.words, np.int64)
        self.values = np.empty(self.items.size if self._dtype else 0, self._dtype or np.int64)
        self.state = np.zeros(STATE, np.int64)

    def hold(self, count: int) -> None:
        """Make room for `count` more items, and values if there are any."""
        items = int(self.state[ITEMS])
        if items + count > self.items.size:
            self.items = longer(self.items, 2 * self.items.size + count, items)
            if self._dtype is not None:
                self.values = longer(self.values, self.items.size, items)

    def room_for(self, middle: int) -> Ids:
        """Room for the ids of a left row."""
        if self.zs.size < middle:
            self.zs = np.empty(middle, np.int32)
        return self.zs

    def grow(self, more: int = 1) -> None:
        """Make room for `more` rows, and twice what there is of what is nearly full."""
        rows, items, words = (int(self.state[place]) for place in (ROWS, ITEMS, WORDS))
        if rows + more > len(self.rows):
            self.rows = longer(self.rows, 2 * len(self.rows) + more, rows)
        if items + 2 * more * self.words > self.items.size:
            self.items = longer(self.items, 2 * self.items.size + 2 * more * self.words, items)
        if words + more * self.words > self.bits.size:
            self.bits = longer(self.bits, 2 * self.bits.size + more * self.words, words)


def longer(array: A, size: int, used: int) -> A:
    """A longer copy of the array; only the first `used` entries are kept."""
    new = np.empty((size, *array.shape[1:]), array.dtype)
    new[:used] = array[:used]
    return new


@jit
def spread(
    rows: Longs, count: int, items_from: int, words_from: int, meta: Longs, xs: Ids, at: int, todo: Ids, rest: int
) -> tuple[int, int]:
    """Enter a buffer's rows in the meta of a delta, shifted to where its contents were copied.

    The number of facts, and how many entries `todo` has now: the rows whose facts are not yet in the full rows.
    """
    total = 0
    for i in range(count):
        x, where, tag = rows[i, 0], rows[i, 1], rows[i, 2]
        xs[at + i] = x
        if rows[i, 3] == 0:
            todo[rest] = x
            rest += 1
        meta[x, 0] = where + (words_from if tag & FORM == BITS else items_from)
        meta[x, 1] = tag
        total += tag >> SIZE
    return total, rest


@jit
def forget(xs: Ids, meta: Longs) -> None:
    """Make the rows empty again."""
    for x in xs:
        meta[x, 1] = 0


@dataclass(slots=True)
class Delta:
    """Rows of new facts: `xs` are those that are not empty, `facts` the number of facts in them.

    The full rows of `todo` do not have their facts yet.
    """

    xs: Ids
    view: View
    facts: int
    todo: Ids

    @property
    def bytes(self) -> int:
        return self.view.items.nbytes + self.view.bits.nbytes


class Metas:
    """Metas of deltas, all zeros, used again and again: they are as long as the domain, deltas are not."""

    def __init__(self, domain: int) -> None:
        self.domain = domain
        self._free: list[Longs] = []

    def take(self) -> Longs:
        return self._free.pop() if self._free else np.zeros((self.domain, 2), np.int64)

    def give(self, delta: Delta) -> None:
        """Take back the meta of a delta that nobody reads any more. One from before there were more rows is dropped."""
        if len(delta.view.meta) == self.domain:
            forget(delta.xs, delta.view.meta)
            self._free.append(delta.view.meta)

    def widen(self, domain: int) -> None:
        """There are more rows now."""
        self.domain = domain
        self._free.clear()


def gathered(buffers: list[Buffer], metas: Metas) -> Delta:
    """What the workers wrote, as one delta. The buffers are cleared."""
    used = [buffer for buffer in buffers if buffer.state[ROWS]]
    xs = np.empty(sum(int(buffer.state[ROWS]) for buffer in used), np.int32)
    meta = metas.take()
    todo = np.empty_like(xs)
    facts = at = rest = items_from = words_from = 0
    for buffer in used:
        new, rest = spread(buffer.rows, buffer.state[ROWS], items_from, words_from, meta, xs, at, todo, rest)
        facts += new
        at += int(buffer.state[ROWS])
        items_from += int(buffer.state[ITEMS])
        words_from += int(buffer.state[WORDS])
    items = _together([buffer.items[: buffer.state[ITEMS]] for buffer in used], np.int32)
    bits = _together([buffer.bits[: buffer.state[WORDS]] for buffer in used], np.int64)
    values = _together([buffer.values[: buffer.state[ITEMS]] for buffer in used], buffers[0].values.dtype)
    for buffer in used:
        buffer.clear()
    return Delta(xs, View(meta, items, bits, buffers[0].words, values), facts, todo[:rest])


def _together(arrays: list[A], dtype: Any) -> A:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
