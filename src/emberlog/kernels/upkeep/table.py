"""The arrays of a table: how they are made, how they grow, and how they are read as columns.

Room is taken generously: pages of memory that nothing was written to cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from emberlog.kernels.upkeep import layout
from emberlog.kernels.upkeep.layout import COUNT, FIRST, INDEX, LOGGED, NEW, OLD, OUTSIDE, USED, WIDTH
from emberlog.kernels.upkeep.tables import commit, link_all, undo
from emberlog.thresholds import IDS_A_ROW, IDS_ANYWAY

Words: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Arrays: TypeAlias = tuple[Words, np.ndarray[Any, np.dtype[np.int32]], Words, Words]

LEAST_ROOM = 64
LONG_LOG = 1 << 16  # entries of a log that is not kept for the next change
MOST_ROWS = 1 << 30  # slots are numbers of 32 bits, also twice their number
FARTHEST = 1 << 62  # keys of dense indexes lie between this and its negative: differences of keys fit in 64 bits


class Table:
    """Rows of 64-bit words, found by their key and by other lists of columns.

    `key` are the columns that no two rows share; `extra` is the number of words that follow the flags of a row.
    """

    def __init__(self, width: int, key: tuple[int, ...], extra: int = 0) -> None:
        self._width = width
        self._extra = extra
        self._indexes = [key]
        self._rows: Words = np.zeros((LEAST_ROOM, width + 1 + extra), np.int64)
        self._log: Words = np.zeros((LEAST_ROOM, width + 2 + extra), np.int64)
        self._meta: Words = np.zeros(FIRST + INDEX, np.int64)
        self._rebuild()

    @property
    def arrays(self) -> Arrays:
        """What loops take."""
        return self._rows, self._arena, self._log, self._meta

    def __len__(self) -> int:
        return int(self._meta[COUNT])

    @property
    def key(self) -> tuple[int, ...]:
        return self._indexes[0]

    def index(self, columns: tuple[int, ...]) -> int:
        """Where `meta` describes the index of some columns, which is made if there is none."""
        if columns not in self._indexes[1:]:
            self._indexes.append(columns)
            self._rebuild()
        return FIRST + INDEX * self._indexes.index(columns, 1)

    # --- rows ----------------------------------------------------------------------------------------------------

    def load(self, columns: Sequence[Words]) -> None:
        """Takes in the rows of some columns, for a table that is empty; they are committed."""
        count = len(columns[0])
        self._rows = np.empty((max(LEAST_ROOM, 2 * count), self._rows.shape[1]), np.int64)
        for position, column in enumerate(columns):
            self._rows[:count, position] = column
        self._rows[:count, self._width] = NEW | OLD
        self._rows[:count, self._width + 1 :] = 0
        self._meta[USED] = self._meta[COUNT] = count
        self._rebuild()

    def columns(self) -> list[Words]:
        """The words of the columns, as copies."""
        used = self._rows[: self._meta[USED]]
        kept = used[(used[:, self._width] & NEW) != 0]
        return [kept[:, position].copy() for position in range(self._width)]

    def differences(self) -> tuple[Words, Words]:
        """The rows that the change inserted and deleted, net."""
        entries = self._log[: self._meta[LOGGED]]
        rows, width = self._rows[entries[:, 0]], self._width
        old = entries[:, 1:]
        is_there, was_there = (rows[:, width] & NEW) != 0, (old[:, width] & OLD) != 0
        moved = (rows[:, :width] != old[:, :width]).any(axis=1)
        return rows[is_there & (~was_there | moved), :width], old[was_there & (~is_there | moved), :width]

    @property
    def is_changed(self) -> bool:
        """True if there is something to commit or to undo."""
        return bool(self._meta[LOGGED])

    def commit(self) -> None:
        commit(self.arrays)
        if len(self._log) > LONG_LOG:
            self._log = np.zeros((LEAST_ROOM, self._log.shape[1]), np.int64)

    def undo(self) -> None:
        undo(self.arrays)

    # --- room ----------------------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Makes room where there was none."""
        meta = self._meta
        if meta[LOGGED] == len(self._log):
            self._log = _longer(self._log)
            return
        if meta[layout.FREE] == 0 and meta[USED] == len(self._rows):
            self._rows = _longer(self._rows)
        self._rebuild(outside=[int(meta[OUTSIDE])])

    def _rebuild(self, outside: Sequence[int] = ()) -> None:
        """Makes all indexes anew, with room for as many rows as the table has slots."""
        room = len(self._rows)
        if room > MOST_ROWS:
            raise MemoryError(f"a table of more than {MOST_ROWS:,} rows")
        meta = np.zeros(FIRST + INDEX * len(self._indexes), np.int64)
        meta[:FIRST] = self._meta[:FIRST]
        meta[WIDTH], meta[layout.INDEXES] = self._width, len(self._indexes)
        size = 0
        for number, columns in enumerate(self._indexes):
            part = meta[FIRST + INDEX * number : FIRST + INDEX * (number + 1)]
            part[layout.KEYS] = len(columns)
            part[layout.COLUMNS : layout.COLUMNS + len(columns)] = columns
            self._choose_heads(part, columns, outside, room)
            size = _take_parts(part, size, room, blocks=number > 0)
        self._meta = meta
        self._arena = np.zeros(size, np.int32)
        stuck = link_all(self.arrays)
        assert stuck < 0, "the indexes have room for all rows"

    def _choose_heads(self, part: Words, columns: tuple[int, ...], outside: Sequence[int], room: int) -> None:
        """Makes an index dense if its key is one column with few gaps."""
        used = self._rows[: self._meta[USED]]
        if len(columns) == 1:
            there = used[used[:, self._width] != 0, columns[0]]
            ends = [*outside, *((int(there.min()), int(there.max())) if len(there) else ())]
            low, high = min([0, *ends]), max([0, *ends])
            span = high - low + 1
            if span <= max(IDS_A_ROW * len(used), IDS_ANYWAY) and -FARTHEST < low <= high < FARTHEST:
                part[layout.DENSE], part[layout.LOW] = 1, low - (span // 2 if low < 0 else 0)
                part[layout.HEAD_ROOM] = high - int(part[layout.LOW]) + 1 + span // 2
                return
        part[layout.HEAD_ROOM] = 1 << (room * 3 // 2).bit_length()

    # --- persistence ---------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Words]:
        """What a table is restored from, between changes: its rows with all that is kept of them."""
        used = self._rows[: self._meta[USED]]
        return {"rows": used[used[:, self._width] != 0].copy()}

    def restore(self, state: Mapping[str, Words]) -> None:
        """Gives a table the rows that `snapshot` took."""
        rows = state["rows"]
        self._rows = np.zeros((max(LEAST_ROOM, 2 * len(rows)), self._rows.shape[1]), np.int64)
        self._rows[: len(rows)] = rows
        self._meta[USED] = self._meta[COUNT] = len(rows)
        self._meta[LOGGED] = 0
        self._rebuild()


def _take_parts(part: Words, size: int, room: int, blocks: bool) -> int:
    """Divides the arena, from `size` on, among the parts of an index; returns where they end."""
    # No more keys than rows, nor than places of a dense index; blocks that were left wait for others to use them.
    keys = min(room, int(part[layout.HEAD_ROOM])) if part[layout.DENSE] else room
    lengths = {layout.HEADS: int(part[layout.HEAD_ROOM]), layout.NEXT: 0 if part[layout.DENSE] else room}
    if blocks:
        part[layout.KEY_ROOM], part[layout.POOL_ROOM] = keys, 4 * room
        lengths |= {layout.BLOCKS: 3 * keys, layout.POOL: 4 * room, layout.PLACES: room}
    for place, length in lengths.items():
        part[place] = size
        size += length
    return size


def _longer(array: Words) -> Words:
    """The array with twice as many rows."""
    longer = np.zeros((2 * array.shape[0], array.shape[1]), array.dtype)
    longer[: len(array)] = array
    return longer
