"""Recursive sets as one open-addressing table of packed pairs: the plain way, kept to compare with.

Every candidate is one probe at a random place of a table as large as the relation. One worker does it all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.crew import Crew
from emberlog.kernels.rows.delta import Delta, gathered
from emberlog.kernels.rows.expand import AT, DERIVED, ITEMS, ROWS, gather
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, View, decode, int64
from emberlog.kernels.rows.plan import ByColumn
from emberlog.kernels.rows.program import RowRelation
from emberlog.kernels.rows.relations import Join, Rows
from emberlog.kernels.rows.setrows import merge
from emberlog.kernels.rows.store import Store
from emberlog.kernels.rows.turn import turned

COUNT, NEED = 9, 10  # places in the state of a worker, after those of others
FIRST = 12  # the table starts with 2^12 slots


@inlined
def place_of(key: int, shift: int) -> int:
    """Where the search for a key starts in a table of 2^(64 - shift) slots."""
    return int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@inlined
def enter_key(key: int, keys: Longs, shift: int) -> bool:
    """Enter a key; was it new?"""
    mask = keys.size - 1
    at = place_of(key, shift)
    while keys[at] >= 0:
        if keys[at] == key:
            return False
        at = (at + 1) & mask
    keys[at] = key
    return True


@jit
def expand_packed(
    xs: Ids, stop: int, copy: bool, irreflexive: bool, width: int,
    lmeta: Longs, litems: Ids, lbits: Longs, lwords: int,
    rmeta: Longs, ritems: Ids, rbits: Longs, rwords: int,
    keys: Longs, shift: int, zs: Ids, ys: Ids, rows: Longs, items: Ids, state: Longs,
) -> bool:  # fmt: skip
    """As `expand`, into one table of packed pairs. False if there may be too little room for the next row."""
    while state[AT] < stop:
        x = int64(xs[state[AT]])
        n = 1
        zs[0] = x
        if not copy:
            n, _, _ = gather(x, lmeta, litems, lbits, lwords, rmeta, zs)
        most = 0
        for k in range(n):
            most += rmeta[zs[k], 1] >> SIZE
        state[NEED] = min(most, width)
        if state[ROWS] >= rows.shape[0] or state[ITEMS] + state[NEED] > items.size:
            return False
        if 2 * (state[COUNT] + state[NEED]) > keys.size:
            return False
        state[DERIVED] += most
        first = at = state[ITEMS]
        for k in range(n):
            z = int64(zs[k])
            where, tag = rmeta[z, 0], rmeta[z, 1]
            form = tag & FORM
            stretch = ritems
            stop_at = where + (tag >> SIZE if form == LIST else 1 << form)
            if form == BITS:
                stretch = ys
                where, stop_at = int64(0), int64(decode(z, rmeta, ritems, rbits, rwords, ys, 0))
            for i in range(where, stop_at):
                y = int64(stretch[i])
                if y >= 0 and not (irreflexive and x == y) and enter_key(x * width + y, keys, shift):
                    items[at] = y
                    at += 1
        if at > first:
            rows[state[ROWS], 0] = x
            rows[state[ROWS], 1] = first
            rows[state[ROWS], 2] = (at - first) << SIZE | LIST
            rows[state[ROWS], 3] = 0
            state[ROWS] += 1
            state[ITEMS] = at
            state[COUNT] += at - first
        state[AT] += 1
    return True


@jit
def rehash(old: Longs, keys: Longs, shift: int) -> None:
    """Enter all keys of a table in another."""
    for key in old:
        if key >= 0:
            enter_key(key, keys, shift)


class PackedRows(Rows):
    """A recursive set in one table. Rules that read all its facts by rows need these kept beside it."""

    def __init__(
        self, relation: RowRelation, domains: tuple[int, int], crew: Crew, by_column: ByColumn, by_row: bool
    ) -> None:
        super().__init__(relation, domains, crew)
        self._shift = 64 - FIRST
        self._keys = np.full(1 << FIRST, -1, np.int64)
        self._store = Store(self.first, self.second, "sparse") if by_row else None
        self._columns = Store(self.second, self.first, "sparse") if by_column == "full" else None
        self._ys = np.empty(self.second, np.int32)

    @property
    def stored(self) -> int:
        stores = (self._store, self._columns)
        return self._keys.nbytes + sum(store.bytes for store in stores if store is not None)

    def full(self, flipped: bool) -> View:
        store = self._columns if flipped else self._store
        assert store is not None
        return store.view

    def turned(self, delta: Delta) -> Delta:
        return turned(delta.xs, delta.view, delta.facts, self.first, self.tall)

    def join(self, join: Join) -> int:
        if not len(join.xs):
            return 0
        left, right, buffer = join.left, join.right, self.buffers[0]
        zs = buffer.room_for(max(right.meta.shape[0], left.items.size if left.values.size else 1))
        buffer.state[AT], buffer.state[COUNT] = 0, self.facts
        while not expand_packed(
            join.xs, len(join.xs), join.copy, join.irreflexive, self.second,
            left.meta, left.items, left.bits, left.words, right.meta, right.items, right.bits, right.words,
            self._keys, self._shift, zs, self._ys, buffer.rows, buffer.items, buffer.state,
        ):  # fmt: skip
            self._grow(int(buffer.state[COUNT] + buffer.state[NEED]))
            buffer.grow()
            buffer.hold(int(buffer.state[NEED]))
        derived = int(buffer.state[DERIVED])
        found = gathered(self.buffers, self.metas)
        if self._store is not None:
            merge(self._store, found, self.crew)
        self.facts += found.facts
        self.take(found)
        return derived

    def _grow(self, count: int) -> None:
        """Make the table at most half full with `count` keys."""
        if 2 * count <= self._keys.size:
            return
        while 2 * count > 1 << (64 - self._shift):
            self._shift -= 1
        old, self._keys = self._keys, np.full(1 << (64 - self._shift), -1, np.int64)
        rehash(old, self._keys, self._shift)

    def turn(self) -> int:
        super().turn()
        if self._columns is not None and self.delta.facts:
            merge(self._columns, self.changed(True), self.crew)
        return self.delta.facts

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        for begin in range(0, self._keys.size, 2 * rows):
            keys = self._keys[begin : begin + 2 * rows]
            keys = keys[keys >= 0]
            if len(keys):
                xs, ys = np.divmod(keys, self.second)
                yield xs.astype(np.int32), ys.astype(np.int32)
