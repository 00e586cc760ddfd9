"""The rows of a relation in a table of the kernels, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from emberlog.data.arrow import arrow_schema
from emberlog.kernels.upkeep.table import Table
from emberlog.kernels.upkeep.tables import add_row, has_row, remove_row
from emberlog.maintain.native.encoding import Encoding, Words
from emberlog.maintain.store import Row
from emberlog.types import Column


class Columns:
    """Where a relation keeps its rows, instead of a set of tuples."""

    def __init__(self, columns: Sequence[Column], encoding: Encoding, table: Table) -> None:
        self.table = table
        self._columns = tuple(columns)
        self._encoding = encoding
        self._row: Words = np.zeros((1, len(columns)), np.int64)
        self.is_loaded = False  # all rows came with the change that is under way
        self._net: tuple[Words, Words] | None = None  # the rows that came and went, once they were asked for

    @staticmethod
    def of_rows(columns: Sequence[Column], encoding: Encoding, rows: set[Row]) -> Columns:
        """The place of some rows."""
        listed = list(rows)
        words = [encoding.words_of([row[i] for row in listed], column.type) for i, column in enumerate(columns)]
        return Columns._loaded(columns, encoding, words)

    @staticmethod
    def of_table(columns: Sequence[Column], encoding: Encoding, found: pa.Table) -> Columns:
        """The place of the rows of an Arrow table, with duplicates or without."""
        words = [encoding.words(found.column(i), column.type) for i, column in enumerate(columns)]
        place = Columns._loaded(columns, encoding, words)
        place.is_loaded = True
        return place

    @staticmethod
    def _loaded(columns: Sequence[Column], encoding: Encoding, words: Sequence[Words]) -> Columns:
        table = Table(len(columns), tuple(range(len(columns))))
        table.load(words)
        return Columns(columns, encoding, table)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def has_values(self) -> bool:
        """True if rows are facts whose value may change where they stand."""
        return len(self.table.key) < len(self._columns)

    # --- rows ----------------------------------------------------------------------------------------------------

    def has(self, row: Row) -> bool:
        words = [self._encoding.known(value, column.type) for value, column in zip(row, self._columns, strict=True)]
        if None in words:
            return False
        self._row[0] = np.array(words, np.int64)
        return bool(has_row(self.table.arrays, self._row, 0))

    def add(self, row: Row) -> None:
        """Takes in a row. Raises `Unheld` if no words stand for it."""
        self._net = None
        self._row[0] = self.words(row)
        while add_row(self.table.arrays, self._row, 0) < 0:
            self.table.grow()

    def remove(self, row: Row) -> None:
        """Lets go of a row that is there."""
        self._net = None
        self._row[0] = self.words(row)
        while remove_row(self.table.arrays, self._row, 0) < 0:
            self.table.grow()

    def words(self, row: Row) -> list[int]:
        return [self._encoding.word(value, column.type) for value, column in zip(row, self._columns, strict=True)]

    def rows(self) -> set[Row]:
        """All rows, as tuples of Python."""
        return self._encoding.rows(np.stack(self.table.columns(), axis=1), self._columns)

    def frozen(self) -> Callable[[], pa.Table]:
        """The rows as they are now; what it returns makes columns `c0`, `c1`, .. of Arrow from them."""
        words, columns, encoding = self.table.columns(), self._columns, self._encoding

        def table() -> pa.Table:
            arrays = [encoding.array(found, column.type) for found, column in zip(words, columns, strict=True)]
            return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))

        return table

    # --- the change that is under way ----------------------------------------------------------------------------

    @property
    def is_changed(self) -> bool:
        return self.is_loaded or self.table.is_changed

    def follow(self) -> None:
        """Takes note that loops changed the table."""
        self._net = None

    def differences(self) -> tuple[set[Row], set[Row]]:
        """The rows that came and went, net."""
        if self.is_loaded:
            return self.rows(), set()
        inserted, deleted = self._words()
        return self._encoding.rows(inserted, self._columns), self._encoding.rows(deleted, self._columns)

    def counts(self) -> tuple[int, int]:
        """How many rows came and went, net."""
        if self.is_loaded:
            return len(self), 0
        inserted, deleted = self._words()
        return len(inserted), len(deleted)

    def _words(self) -> tuple[Words, Words]:
        if self._net is None:
            self._net = self.table.differences()
        return self._net

    def commit(self) -> None:
        self.is_loaded, self._net = False, None
        self.table.commit()

    def undo(self) -> None:
        if self.is_loaded:
            self.table.load([np.empty(0, np.int64) for _ in self._columns])
            self.is_loaded = False
        self._net = None
        self.table.undo()
