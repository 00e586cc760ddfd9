"""The tables of a run in shards: as facts, each with a place of its own, or as rows of sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from emberlog.components.compositions import RowRelation
from emberlog.components.layout import TableLayout
from emberlog.components.program import Id
from emberlog.kernels.cache import call
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows._jit import jit as rows_jit
from emberlog.kernels.rows.delta import Delta
from emberlog.kernels.rows.layout import SIZE, Ids, Longs, View, decode
from emberlog.kernels.rows.relations import Join
from emberlog.kernels.rows.setrows import SetRows
from emberlog.kernels.rows.turn import begin_columns, end_columns
from emberlog.kernels.shards.directory import Directory, Matrix, write_codes

PIECE = 1 << 20  # facts that are read out at once


def dtype_of(layout: TableLayout) -> str:
    """The type in which the columns of a table are kept."""
    return "uint32" if all(isinstance(kind, Id) for kind in layout.table.kinds) else "int64"


class Relation(ABC):
    """A table. `facts` has what is new in the round that goes on, column by column of each fact; `fresh` the rows of
    keys that are new, `changed` those that have new facts."""

    def __init__(self, layout: TableLayout, crew: Crew) -> None:
        self.layout, self.crew = layout, crew
        self.dtype = dtype_of(layout)
        self.directory = Directory(len(layout.keys), self.dtype, crew)
        self.facts: Matrix = np.empty((0, len(layout.table.kinds)), self.dtype)
        self.fresh: Matrix = np.empty(0, np.int64)
        self.changed: Matrix = np.empty(0, np.int64)
        self._before = np.zeros_like(self.directory.counts)

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of its facts."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...

    @abstractmethod
    def put(self, found: Matrix, count: int) -> None:
        """Takes in facts: their codes, keys, and, of rows, an element of the set."""

    @abstractmethod
    def turn(self) -> int:
        """What was found becomes what is new; how many facts that is."""

    @abstractmethod
    def pieces(self) -> Iterator[Sequence[np.ndarray[Any, Any]]]:
        """The facts as columns, some at a time."""

    def put_columns(self, columns: Sequence[np.ndarray[Any, Any]]) -> None:
        """Takes in facts that are given by their columns."""
        layout = self.layout
        order = [*layout.keys, *(() if layout.set_column is None else (layout.set_column,))]
        for begin in range(0, len(columns[0]), PIECE):
            found = np.empty((len(columns[0][begin : begin + PIECE]), len(order) + 1), np.int64)
            for spot, column in enumerate(order, 1):
                found[:, spot] = columns[column][begin : begin + PIECE]
            call(write_codes, found, len(layout.keys), 0, len(found))
            self.put(found, len(found))

    def _fresh_rows(self) -> Matrix:
        rows = self.directory.since(self._before)
        self._before = self.directory.counts.copy()
        return rows


class PlainFacts(Relation):
    """Facts, each with a key of all its columns."""

    @property
    def count(self) -> int:
        return self.directory.size

    @property
    def bytes(self) -> int:
        return self.directory.bytes + self.facts.nbytes

    def put(self, found: Matrix, count: int) -> None:
        self.directory.take(found, count)

    def turn(self) -> int:
        self.fresh = self._fresh_rows()
        self.facts = self.directory.keys[self.fresh]
        return len(self.fresh)

    def pieces(self) -> Iterator[Sequence[np.ndarray[Any, Any]]]:
        rows = self.directory.since(np.zeros_like(self.directory.counts))
        for begin in range(0, len(rows), PIECE):
            facts = self.directory.keys[rows[begin : begin + PIECE]]
            yield [np.ascontiguousarray(facts[:, spot]) for spot in range(facts.shape[1])]


class RowFacts(Relation):
    """Facts as rows: a key of all columns but one, and the set of the values of that one."""

    def __init__(self, layout: TableLayout, crew: Crew, domain: int) -> None:
        super().__init__(layout, crew)
        assert layout.set_column is not None
        self.domain, self.derivations = domain, 0
        relation = RowRelation(layout.table.name, "", "")
        self.rows = SetRows(relation, (self.directory.room, domain), crew, "auto", "")
        order = [*layout.keys, layout.set_column]
        self._places = np.argsort(order)

    @property
    def count(self) -> int:
        return self.rows.facts

    @property
    def bytes(self) -> int:
        return self.directory.bytes + self.rows.bytes + self.facts.nbytes

    def put(self, found: Matrix, count: int) -> None:
        heads = self._heads(found, count)
        pairs = grouped(heads, found[:count, -1], self.rows, None)
        self._join(Join(pairs.xs, pairs.view, pairs.view, copy=True, weight=pairs.facts))
        self.rows.metas.give(pairs)

    def unite(self, found: Matrix, count: int, source: RowFacts, delta: bool) -> None:
        """Unites rows with rows of a source, all of them or what is new in them."""
        heads = self._heads(found, count)
        pairs = grouped(heads, found[:count, -1], self.rows, source.directory.room)
        right = source.rows.delta.view if delta else source.rows.full(False)
        self._join(Join(pairs.xs, pairs.view, right, weight=pairs.facts))
        self.rows.metas.give(pairs)

    def turn(self) -> int:
        self.fresh = self._fresh_rows()
        taken = self.rows.turn()
        delta = self.rows.delta
        self.changed = delta.xs.astype(np.int64)
        self.facts = self._unpacked(delta.xs, delta.view, delta.facts)
        return taken

    def pieces(self) -> Iterator[Sequence[np.ndarray[Any, Any]]]:
        rows = self.directory.since(np.zeros_like(self.directory.counts)).astype(np.int32)
        view = self.rows.full(False)
        ends = np.cumsum(view.meta[rows, 1] >> SIZE)
        begin, done = 0, 0
        while begin < len(rows):
            end = max(int(np.searchsorted(ends, done + PIECE, side="right")), begin + 1)
            facts = self._unpacked(rows[begin:end], view, int(ends[end - 1]) - done)
            yield [np.ascontiguousarray(facts[:, spot]) for spot in range(facts.shape[1])]
            begin, done = end, int(ends[end - 1])

    def _heads(self, found: Matrix, count: int) -> Matrix:
        heads = self.directory.take(found, count)
        if self.rows.first < self.directory.room:
            self.rows.widen(self.directory.room)
        return heads

    def _join(self, join: Join) -> None:
        self.derivations += self.rows.join(join)

    def _unpacked(self, xs: Ids, view: View, count: int) -> Matrix:
        facts = np.empty((count, len(self.layout.table.kinds)), self.dtype)
        items = np.empty(self.domain, np.int32)
        unpack(xs, view.meta, view.items, view.bits, view.words, self.directory.keys, self._places, items, facts)
        return facts


@rows_jit
def unpack(
    xs: Ids, meta: Longs, items: Ids, bits: Longs, words: int, keys: Any, places: Any, row: Ids, facts: Any
) -> None:
    """The facts of some rows: the columns of the key and the element, at their places."""
    at, width = 0, keys.shape[1]
    for x in xs:
        for i in range(decode(x, meta, items, bits, words, row, 0)):
            for j in range(width + 1):
                place = places[j]
                facts[at, j] = keys[x, place] if place < width else row[i]
            at += 1


# --- pairs as rows ---------------------------------------------------------------------------------------------------


def grouped(heads: Matrix, items: Matrix, rows: SetRows, sources: int | None) -> Delta:
    """Pairs of a row and an item as rows of lists. With so many `sources`, items are rows of a source, and each comes
    once in a list."""
    meta = rows.metas.take()
    xs = np.empty(len(heads), np.int32)
    count = count_rows(heads, meta, xs)
    xs = np.sort(xs[:count])
    found = np.empty(len(heads), np.int32)
    fill_rows(heads, items, xs, meta, found)
    if sources is not None:
        drop_twins(xs, meta, found, np.full(sources, -1, np.int32))
    return Delta(xs, View(meta, found, np.empty(0, np.int64), rows.words), len(heads), xs)


@rows_jit
def count_rows(heads: Any, meta: Longs, xs: Ids) -> int:
    """Adds up the items of each row in column 1 of `meta`; the rows go to `xs`."""
    n = 0
    for x in heads:
        if meta[x, 1] == 0:
            xs[n] = x
            n += 1
        meta[x, 1] += 1
    return n


@rows_jit
def fill_rows(heads: Any, items: Any, xs: Ids, meta: Longs, found: Ids) -> None:
    """The counted rows become lists."""
    begin_columns(xs, meta)
    for i in range(heads.size):
        x = heads[i]
        found[meta[x, 0]] = items[i]
        meta[x, 0] += 1
    end_columns(xs, meta)


@rows_jit
def drop_twins(xs: Ids, meta: Longs, items: Ids, last: Ids) -> None:
    """Leaves out items that come again in the same list. `last` has the row in which each was last seen."""
    for x in xs:
        start = at = meta[x, 0]
        for i in range(start, start + (meta[x, 1] >> SIZE)):
            y = items[i]
            if last[y] != x:
                last[y] = x
                items[at] = y
                at += 1
        meta[x, 1] = (at - start) << SIZE
