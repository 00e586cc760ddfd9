"""Recursive sets as rows in the smallest form (`store`), joined row by row (`expand`) or by columns (`slab`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from emberlog.components.compositions import RowRelation, Storage
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.delta import Delta, gathered
from emberlog.kernels.rows.expand import AT, DERIVED, expand
from emberlog.kernels.rows.layout import SIZE, Ids, Longs, View, decode
from emberlog.kernels.rows.plan import ByColumn
from emberlog.kernels.rows.relations import Join, Rows
from emberlog.kernels.rows.slab import LINE, SLAB, Slab, join_lines, lines_of, rows_of
from emberlog.kernels.rows.store import Store
from emberlog.kernels.rows.turn import turned


class SetRows(Rows):
    store: Store
    columns: Store | None

    def __init__(
        self, relation: RowRelation, domains: tuple[int, int], crew: Crew, storage: Storage, by_column: ByColumn
    ) -> None:
        super().__init__(relation, domains, crew)
        self.store = Store(*domains, storage)
        self.width = self.second  # the most ids that a row can have
        self.columns = Store(self.second, self.first, storage) if by_column == "full" else None

    def widen(self, first: int) -> None:
        """Room for rows up to the number `first`. Nobody reads the relation by its columns."""
        self.first = first
        self.store.widen(first)
        self.metas.widen(first)

    def turned(self, delta: Delta) -> Delta:
        return turned(delta.xs, delta.view, delta.facts, self.first, self.tall)

    def turn(self) -> int:
        super().turn()
        if self.columns is not None and self.delta.facts:
            merge(self.columns, self.changed(True), self.crew)
        return self.delta.facts

    def open(self, xs: Ids) -> Ids:
        """Those of the rows that can still grow."""
        still: npt.NDArray[np.bool_] = self.store.view.meta[xs, 1] >> SIZE < self.width
        return xs[still]

    def join(self, join: Join) -> int:
        left, right, full = join.left, join.right, self.store.view
        in_place = right is not full  # facts of a turn are not to be seen before its end

        def work(worker: int, begin: int, end: int) -> None:
            buffer = self.buffers[worker]
            # With values, a pair may be there several times.
            zs = buffer.room_for(max(right.meta.shape[0], left.items.size if left.values.size else 1))
            buffer.state[AT] = begin
            while not expand(
                join.xs, end, join.copy, join.irreflexive, in_place, self.width,
                left.meta, left.items, left.bits, left.words, right.meta, right.items, right.bits,
                full.meta, full.items, full.bits, zs, buffer.row, buffer.rows, buffer.items, buffer.bits, buffer.state,
            ):  # fmt: skip
                buffer.grow()

        self.crew.share(len(join.xs), work, least=self.crew.least(len(join.xs), join.weight))
        return self._end()

    def join_dense(self, xs: Ids, left: View, columns: View, irreflexive: bool) -> int:
        """Join dense left rows with a static right side that is given by its columns, by slabs."""
        full = self.store.view
        slabs: list[Slab | None] = [None] * self.crew.size

        def work(worker: int, begin: int, end: int) -> None:
            buffer = self.buffers[worker]
            slab = slabs[worker] = slabs[worker] or Slab(64 * left.words, self.second, self.words)
            for low in range(begin, end, SLAB):
                high = min(low + SLAB, end)
                lines_of(xs, low, high, left.meta, left.items, left.bits, left.words, slab.block, slab.left)
                join_lines(columns.meta, columns.items, slab.left, slab.joined)
                buffer.grow(high - low)
                buffer.state[AT] = low
                buffer.state[DERIVED] += LINE * len(columns.items)
                rows_of(
                    xs, high, irreflexive, slab.joined, full.meta, full.items, full.bits, self.words, slab.block,
                    slab.cand, buffer.rows, buffer.items, buffer.bits, buffer.state,
                )  # fmt: skip

        self.crew.share(len(xs), work, least=SLAB)
        return self._end()

    def _end(self) -> int:
        """A join is done: take in what the workers found."""
        derived = sum(int(buffer.state[DERIVED]) for buffer in self.buffers)
        found = gathered(self.buffers, self.metas)
        merge(self.store, found, self.crew)
        self.facts += found.facts
        self.take(found)
        return derived

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        return chunks(self.store.view, rows)


def merge(store: Store, delta: Delta, crew: Crew) -> None:
    """Add new facts to the full rows."""
    if not delta.facts:
        return
    if not len(delta.todo):
        return
    moves = store.reserve(delta)
    least = crew.least(len(delta.todo), delta.facts)
    crew.share(len(delta.todo), lambda _, begin, end: store.copy(delta, moves, begin, end), least=least)
    store.settle(delta, moves)


@jit
def unpack(
    begin: int, end: int, meta: Longs, items: Ids, bits: Longs, words: int, xs: Ids, ys: Ids
) -> None:  # fmt: skip
    """The pairs of rows `begin` to `end`."""
    at = 0
    for x in range(begin, end):
        stop = decode(x, meta, items, bits, words, ys, at)
        for i in range(at, stop):
            xs[i] = x
        at = stop


def chunks(view: View, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
    """The facts as pairs of columns, in pieces of about `rows` facts (never less than one row of the relation)."""
    ends = np.cumsum(view.meta[:, 1] >> SIZE)
    begin, done = 0, 0
    while begin < len(ends) and ends[-1] > done:
        end = max(int(np.searchsorted(ends, done + rows, side="right")), begin + 1)
        count = int(ends[end - 1]) - done
        if count:
            xs, ys = np.empty(count, np.int32), np.empty(count, np.int32)
            unpack(begin, end, view.meta, view.items, view.bits, view.words, xs, ys)
            yield xs, ys
        begin, done = end, done + count
