"""Recursive minima as tables of values (`tables`), one for each row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emberlog.components.compositions import RowRelation
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows.delta import Buffer, Delta, gathered, longer
from emberlog.kernels.rows.expand import AT, DERIVED, ROWS
from emberlog.kernels.rows.layout import SIZE, View, words_of
from emberlog.kernels.rows.plan import ByColumn
from emberlog.kernels.rows.relations import Join, Rows
from emberlog.kernels.rows.tables import (
    END,
    FAILED,
    ITEMS_NEED,
    NEED,
    NEW,
    NEXT,
    improve,
    recycle,
    unpack_values,
)  # fmt: skip
from emberlog.kernels.rows.turn import count_columns, turn_values
from emberlog.kernels.rows.values import BEYOND, LIMIT, RIGHT, OutOfRange, dtype_of

STRETCH = 1 << 12
"""Slots that a worker gets at least when it needs room."""


class Tables:
    """Rows of `first` ids as tables from `second` ids to values, and what workers need to change them."""

    def __init__(self, relation: RowRelation, first: int, second: int, crew: Crew) -> None:
        dtype = dtype_of(relation.value)
        self.first, self.second, self.crew = first, second, crew
        self.limit = dtype(LIMIT if relation.value == "int" else np.inf)
        self.nothing = dtype(0)
        self.view = View(
            np.zeros((first, 2), np.int64), np.empty(0, np.int32), np.empty(0, np.int64), words_of(second),
            np.empty(0, dtype),
        )  # fmt: skip
        self._stretches = [np.zeros(4, np.int64) for _ in range(crew.size)]
        self._free = [np.full(64, -1, np.int64) for _ in range(crew.size)]
        self._gone = [np.zeros(1 << 12, np.int64) for _ in range(crew.size)]
        self._ys = [np.empty(0, np.int32) for _ in range(crew.size)]
        self._used = 0

    @property
    def bytes(self) -> int:
        return self.view.meta.nbytes + self._used * (4 + self.view.values.itemsize)

    def improve(self, join: Join, buffers: list[Buffer]) -> None:
        """Do the join; what changed is in the buffers."""
        todo = [(0, len(join.xs))]
        while todo:
            todo = [rest for begin, end in todo for rest in self._share(join, begin, end, buffers)]
            if any(buffer.state[FAILED] for buffer in buffers):
                raise OutOfRange(BEYOND)
            for worker, buffer in enumerate(buffers):
                self._supply(worker, buffer)

    def _share(self, join: Join, low: int, high: int, buffers: list[Buffer]) -> list[tuple[int, int]]:
        """Join the rows `low` to `high`; the stretches of them that want of room left undone."""
        stopped: list[tuple[int, int]] = []

        def work(worker: int, begin: int, end: int) -> None:
            self._part(join, low + begin, low + end, worker, buffers[worker], stopped)

        weight = 0 if join.alone else join.weight
        self.crew.share(high - low, work, least=self.crew.least(high - low, weight))
        return stopped

    def _part(
        self, join: Join, begin: int, end: int, worker: int, buffer: Buffer, stopped: list[tuple[int, int]]
    ) -> None:
        left, right, full = join.left, join.right, self.view
        zs = buffer.room_for(1 if join.copy else max(right.meta.shape[0], 1))
        if right.bits.size and not self._ys[worker].size:
            self._ys[worker] = np.empty(self.second, np.int32)
        buffer.state[AT] = begin
        if not improve(
            join.xs, end, join.op, join.copy, join.irreflexive, self.second, self.limit, self.nothing,
            left.meta, left.items, left.bits, left.words, left.values,
            right.meta, right.items, right.bits, right.words, right.values,
            full.meta, full.items, full.values, self._stretches[worker], self._free[worker], self._gone[worker],
            zs, self._ys[worker], buffer.row, buffer.rows, buffer.items, buffer.values, buffer.state,
        ):  # fmt: skip
            stopped.append((int(buffer.state[AT]), end))

    def _supply(self, worker: int, buffer: Buffer) -> None:
        """Give a worker what it stopped for; nobody is at work now."""
        view, stretch = self.view, self._stretches[worker]
        recycle(self._gone[worker], view.items, self._free[worker])
        buffer.hold(int(buffer.state[ITEMS_NEED]))
        if buffer.state[ROWS] >= len(buffer.rows):
            buffer.rows = longer(buffer.rows, 2 * len(buffer.rows), int(buffer.state[ROWS]))
        need = int(buffer.state[NEED])
        if stretch[NEXT] + need > stretch[END]:
            size = max(2 * need, STRETCH, self._used // (4 * self.crew.size)) & ~3
            if stretch[END] == self._used:
                self._used -= int(stretch[END] - stretch[NEXT])  # the last stretch goes on
            stretch[NEXT] = self._used
            self._used = stretch[END] = self._used + size
            if self._used > view.items.size:
                slots = max(self._used, 2 * view.items.size)
                view.items = longer(view.items, slots, view.items.size)
                view.values = longer(view.values, slots, view.values.size)


class MapRows(Rows):
    """A recursive minimum. Maxima are minima of negated values."""

    store: Tables
    columns: Tables | None

    def __init__(self, relation: RowRelation, domains: tuple[int, int], crew: Crew, by_column: ByColumn) -> None:
        super().__init__(relation, domains, crew)
        self.store = Tables(relation, self.first, self.second, crew)
        self.columns = Tables(relation, self.second, self.first, crew) if by_column == "full" else None
        dtype = dtype_of(relation.value)
        self._tall_buffers = [Buffer(words_of(self.first), dtype) for _ in range(crew.size)] if self.columns else []

    def join(self, join: Join) -> int:
        self.store.improve(join, self.buffers)
        derived = sum(int(buffer.state[DERIVED]) for buffer in self.buffers)
        self.facts += sum(int(buffer.state[NEW]) for buffer in self.buffers)
        for buffer in self.buffers:
            buffer.state[[DERIVED, NEW]] = 0
        self.take(gathered(self.buffers, self.metas))
        return derived

    def turn(self) -> int:
        super().turn()
        if self.columns is not None and self.delta.facts:
            columns = self.changed(True)
            self.columns.improve(
                Join(columns.xs, columns.view, columns.view, True, op=RIGHT, weight=columns.facts), self._tall_buffers
            )
            for buffer in self._tall_buffers:
                buffer.clear()
        return self.delta.facts

    def turned(self, delta: Delta) -> Delta:
        view, meta = delta.view, self.tall.take()
        ys = np.empty(self.second, np.int32)
        n = count_columns(delta.xs, view.meta, view.items, view.bits, view.words, meta, ys)
        ys = np.sort(ys[:n])
        items, values = np.empty(delta.facts, np.int32), np.empty(delta.facts, view.values.dtype)
        turn_values(delta.xs, view.meta, view.items, view.values, ys, meta, items, values)
        return Delta(ys, View(meta, items, view.bits, words_of(self.first), values), delta.facts, ys)

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        view = self.store.view
        ends = np.cumsum(view.meta[:, 1] >> SIZE)
        begin, done = 0, 0
        while begin < len(ends) and ends[-1] > done:
            end = max(int(np.searchsorted(ends, done + rows, side="right")), begin + 1)
            count = int(ends[end - 1]) - done
            if count:
                xs, ys = np.empty(count, np.int32), np.empty(count, np.int32)
                values = np.empty(count, view.values.dtype)
                unpack_values(begin, end, view.meta, view.items, view.values, xs, ys, values)
                yield xs, ys, -values if self.relation.kind == "max" else values
            begin, done = end, done + count
