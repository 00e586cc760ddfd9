"""Tables of facts as columns that grow: sets, best values, sums.

Every fact has a row. Facts wait until a round takes them up; `taken` tells which ones a round has taken up so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from emberlog.components.program import TOLERANCE, Id, Table
from emberlog.kernels.columns.joins import Column, Index, begins, different, ranked
from emberlog.kernels.columns.terms import added
from emberlog.kernels.watch import Failed, Overworked
from emberlog.types import INT64_MAX, INT64_MIN

BITS = 62  # of a code
FEWEST_BITS = 10  # for a column of numbers
MOST_PLACES = 1 << 20  # codes for which there is an array of their rows
SAFE_SUM = 2.0**62  # a sum of floats that is below tells that one of integers stays in 64 bits
UNKNOWN = INT64_MIN  # the code of a key that is nowhere


class Numbering:
    """Numbers 0, 1, .. for whatever integers come."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values = np.empty(0, np.int64)  # sorted
        self.numbers = np.empty(0, np.int64)

    def __call__(self, column: Column, grow: bool) -> tuple[Column, Column]:
        """The number of each integer, and whether it has one; with `grow` new ones get theirs."""
        places, there = ranked(self.values, column)
        if grow and not there.all():
            new = different(column[~there])
            if len(self.values) + len(new) > self.most:
                raise Overworked("keys have more different numbers than a code has room for")
            spots = np.searchsorted(self.values, new)
            self.numbers = np.insert(self.numbers, spots, len(self.values) + np.arange(len(new)))
            self.values = np.insert(self.values, spots, new)
            places, there = ranked(self.values, column)
        return (self.numbers[places] if len(self.numbers) else places), there


class Keys:
    """One number, its code, for each key of a table. A key that is one number is its own code."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        kinds = [table.kinds[key] for key in table.keys]
        known = [sizes[kind.domain] if isinstance(kind, Id) else None for kind in kinds]
        self.plain = known == [None]
        used = sum((size - 1).bit_length() for size in known if size is not None)
        each = (BITS - used) // max(known.count(None), 1)
        if not self.plain and each < (FEWEST_BITS if None in known else 0):
            raise Overworked(f"the keys of `{table.name}` are too wide for a code")
        self.numberings = [Numbering(1 << each) if size is None else None for size in known]
        self.shifts = [each if size is None else (size - 1).bit_length() for size in known]
        # How many codes there may be, where that is known.
        self.space = None if None in known else 1 << used

    def codes(self, keys: Sequence[Column], rows: int, grow: bool) -> Column:
        if self.plain:
            return keys[0]
        found, there = np.zeros(rows, np.int64), np.ones(rows, bool)
        for column, numbering, shift in zip(keys, self.numberings, self.shifts, strict=True):
            if numbering is not None:
                column, known = numbering(column, grow)
                there &= known
            found = (found << shift) | column
        return found if there.all() else np.where(there, found, UNKNOWN)


class Places:
    """The row of each code: from an array of all codes where they are few, else by search among sorted ones."""

    def __init__(self, space: int | None) -> None:
        self.count = 0
        self.direct = None if space is None or space > MOST_PLACES else np.full(space, -1, np.int64)
        self.codes = np.empty(0, np.int64)
        self.rows = np.empty(0, np.int64)

    def find(self, codes: Column) -> Column:
        """The rows; -1 for codes that have none."""
        if self.direct is not None:
            return self.direct[codes]
        if not self.count:
            return np.full(len(codes), -1)
        places, there = ranked(self.codes, codes)
        return np.where(there, self.rows[places], -1)

    def spread(self, space: int) -> None:
        """Finds rows by an array of all codes from now on."""
        self.direct = np.full(space, -1, np.int64)
        self.direct[self.codes] = self.rows
        self.codes = self.rows = np.empty(0, np.int64)

    def place(self, codes: Column) -> tuple[Column, Column]:
        """The rows; codes that have none get the next ones. Also, for each new row, where its code stands."""
        rows = self.find(codes)
        missing = np.flatnonzero(rows < 0)
        if not len(missing):
            return rows, missing
        new = codes[missing]
        if self.direct is not None:
            # Of equal codes the one that is written last stays.
            self.direct[new] = np.arange(len(new))
            first = np.flatnonzero(self.direct[new] == np.arange(len(new)))
            self.direct[new[first]] = self.count + np.arange(len(first))
            rows[missing] = self.direct[new]
        else:
            order = np.argsort(new, kind="stable")
            starts = begins(new[order])
            first, ranks = order[starts], np.cumsum(starts) - 1
            rows[missing[order]] = self.count + ranks
            spots = np.searchsorted(self.codes, new[first])
            self.codes = np.insert(self.codes, spots, new[first])
            self.rows = np.insert(self.rows, spots, self.count + np.arange(len(first)))
        self.count += len(first)
        return rows, missing[first]


class Facts(ABC):
    """A table. Arrays have room for more rows than there are."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        self.table = table
        self.sizes = [sizes[kind.domain] if isinstance(kind, Id) else None for kind in table.kinds]
        self.keys = Keys(table, sizes)
        self.places = Places(self.keys.space)
        self.stored = {key: np.empty(16, np.int64) for key in table.keys}
        self._indexes: dict[tuple[int, ...], tuple[int, Column, Index]] = {}

    @property
    def count(self) -> int:
        return self.places.count

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How many facts wait."""

    @abstractmethod
    def put(self, columns: Sequence[Column], rows: int) -> None:
        """Takes in what was derived; what is new or better waits."""

    def state(self) -> dict[str, Column]:
        """All that a table of the same facts needs to go on: keys by their positions, and what else there is."""
        return {str(key): self.stored[key][: self.count].copy() for key in self.table.keys}

    @abstractmethod
    def restore(self, state: Mapping[str, Column]) -> None:
        """Takes in the state of another table; this one is empty. Rows may come to lie in another order."""

    @abstractmethod
    def taken(self) -> Column:
        """The rows that were taken up."""

    @abstractmethod
    def are_taken(self, rows: Column) -> Column: ...

    def column(self, position: int, rows: Column | slice) -> Column:
        return self.stored[position][rows]

    def columns(self) -> list[Column]:
        """All facts."""
        return [self.column(position, slice(self.count)) for position in range(len(self.table.kinds))]

    def _placed(self, columns: Sequence[Column], rows: int) -> tuple[Column, Column]:
        """The rows of the facts, which are made where there are none, and those that were made."""
        return self._placed_keys([columns[key] for key in self.table.keys], rows)

    def _placed_keys(self, keys: Sequence[Column], rows: int) -> tuple[Column, Column]:
        before = self.count
        places, new = self.places.place(self.keys.codes(keys, rows, grow=True))
        if len(new):
            for key, column in zip(self.table.keys, keys, strict=True):
                self.stored[key] = _with_room(self.stored[key], self.count)
                self.stored[key][before : self.count] = column[new]
        return places, np.arange(before, self.count)

    def _keys_of(self, state: Mapping[str, Column]) -> list[Column]:
        return [state[str(key)] for key in self.table.keys]

    def find(self, keys: Sequence[Column], rows: int) -> Column:
        """The rows of those facts that were taken up, for keys in their order; -1 where there is none."""
        found = self.places.find(self.keys.codes(keys, rows, grow=False))
        there = np.flatnonzero(found >= 0)
        found[there[~self.are_taken(found[there])]] = -1
        return found

    def index(self, bound: tuple[int, ...]) -> tuple[Column, Index]:
        """The rows that were taken up, and an index of them by some keys."""
        taken = self.taken()
        if bound not in self._indexes or self._indexes[bound][0] != len(taken):
            columns = [self.stored[position][taken] for position in bound]
            sizes = [self.sizes[position] for position in bound]
            self._indexes[bound] = (len(taken), taken, Index(columns, sizes, len(taken)))
        return self._indexes[bound][1:]


class SetFacts(Facts):
    """Facts in the order in which they came: those that wait are the last ones."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        super().__init__(table, sizes)
        self.done = 0

    @property
    def waiting(self) -> int:
        return self.count - self.done

    def put(self, columns: Sequence[Column], rows: int) -> None:
        self._placed(columns, rows)

    def state(self) -> dict[str, Column]:
        return super().state() | {"done": np.array([self.done]), "count": np.array([self.count])}

    def restore(self, state: Mapping[str, Column]) -> None:
        keys, done, count = self._keys_of(state), int(state["done"][0]), int(state["count"][0])
        self._placed_keys([column[:done] for column in keys], done)
        self.done = self.count
        self._placed_keys([column[done:] for column in keys], count - done)

    def taken(self) -> Column:
        return np.arange(self.done)

    def are_taken(self, rows: Column) -> Column:
        return rows < self.done

    def take(self) -> Column:
        """The rows that waited, which are taken up now."""
        rows = np.arange(self.done, self.count)
        self.done = self.count
        return rows


class Groups(Facts):
    """A value for each key."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        super().__init__(table, sizes)
        assert table.value is not None
        self.position = table.value
        self.kind = table.kinds[table.value]
        self.dtype = np.float64 if self.kind == "float" else np.int64
        self.values = np.empty(16, self.dtype)
        self.waits = np.zeros(16, bool)
        self.seen = np.zeros(16, bool)  # was it taken up?

    def state(self) -> dict[str, Column]:
        more = {"values": self.values, "waits": self.waits, "seen": self.seen}
        counted = {name: column[: self.count].copy() for name, column in more.items()}
        return super().state() | counted

    def restore(self, state: Mapping[str, Column]) -> None:
        places, _ = self._placed_keys(self._keys_of(state), len(state["values"]))
        self._grown()
        self.values[places], self.waits[places], self.seen[places] = state["values"], state["waits"], state["seen"]

    @property
    def waiting(self) -> int:
        return int(np.count_nonzero(self.waits[: self.count]))

    def taken(self) -> Column:
        return np.flatnonzero(self.seen[: self.count])

    def are_taken(self, rows: Column) -> Column:
        return self.seen[rows]

    def column(self, position: int, rows: Column | slice) -> Column:
        return self.values[rows] if position == self.position else self.stored[position][rows]

    def _grown(self) -> None:
        self.values = _with_room(self.values, self.count)
        self.waits = _with_room(self.waits, self.count)
        self.seen = _with_room(self.seen, self.count)

    def take(self) -> tuple[Column, Column]:
        """The rows that waited, which are taken up now, and which of them are for the first time."""
        rows = np.flatnonzero(self.waits[: self.count])
        first = ~self.seen[rows]
        self.waits[rows] = False
        self.seen[rows] = True
        return rows, first


class BestFacts(Groups):
    """The least or greatest value of each key; it waits when it became better."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        super().__init__(table, sizes)
        self.least = table.fold == "min"
        if self.kind == "float":
            self.worst = np.inf if self.least else -np.inf
        else:
            self.worst = INT64_MAX if self.least else INT64_MIN

    def put(self, columns: Sequence[Column], rows: int) -> None:
        values = columns[self.position]
        # A value as bad as the worst number, or not a number, is no value.
        if not (values < self.worst if self.least else values > self.worst).all():
            raise Failed
        places, new = self._placed(columns, rows)
        self._grown()
        self.values[new] = self.worst
        before = self.values[places]
        (np.minimum if self.least else np.maximum).at(self.values, places, values)
        self.waits[places[self.values[places] != before]] = True


class SumFacts(Groups):
    """The sum of each key; beside it what has come for it and waits to be handed on."""

    def __init__(self, table: Table, sizes: Mapping[int, int]) -> None:
        super().__init__(table, sizes)
        self.pending = np.zeros(16, self.dtype)

    def state(self) -> dict[str, Column]:
        return super().state() | {"pending": self.pending[: self.count].copy()}

    def restore(self, state: Mapping[str, Column]) -> None:
        super().restore(state)
        self.pending = _with_room(self.pending, self.count)
        self.pending[self.places.find(self.keys.codes(self._keys_of(state), self.count, grow=False))] = state["pending"]

    def put(self, columns: Sequence[Column], rows: int) -> None:
        values = columns[self.position]
        places, new = self._placed(columns, rows)
        self._grown()
        self.pending = _with_room(self.pending, self.count)
        self.values[new] = 0
        if self.kind == "float":
            np.add.at(self.pending, places, values)
            moved = np.abs(self.pending[places]) > TOLERANCE * np.abs(self.values[places])
            self.waits[places[moved]] = True
            self.waits[new] = True
            return
        if float(np.abs(values.astype(np.float64)).sum()) + float(np.abs(self.pending[places]).max()) > SAFE_SUM:
            self._check(places, values)
        np.add.at(self.pending, places, values)
        self.waits[places] = True

    def _check(self, places: Column, values: Column) -> None:
        """Raises where a sum leaves 64 bits on the way."""
        totals: dict[int, int] = {}
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            totals[place] = totals.get(place, int(self.pending[place])) + value
            if abs(totals[place]) > INT64_MAX:
                raise Failed

    def take_changes(self) -> tuple[Column, Column, Column, Column]:
        """The rows that waited, which of them are new, by how much they change, and what they were."""
        rows, first = self.take()
        changes, old = self.pending[rows], self.values[rows]
        self.pending[rows] = 0
        if self.kind == "float":
            now = old + changes
            if np.isnan(now).any():
                raise Failed
        else:
            now = added(old, changes)
        self.values[rows] = now
        return rows, first, changes, old

    def columns(self) -> list[Column]:
        found = super().columns()
        with np.errstate(all="ignore"):  # whoever looks at the sums tells those that are no numbers
            found[self.position] = found[self.position] + self.pending[: self.count]
        return found


def facts(table: Table, sizes: Mapping[int, int]) -> Facts:
    match table.fold:
        case "set":
            return SetFacts(table, sizes)
        case "min" | "max":
            return BestFacts(table, sizes)
        case "sum":
            return SumFacts(table, sizes)


def _with_room(array: Column, rows: int) -> Column:
    """An array with at least so many places; those that are new are zero."""
    if rows <= len(array):
        return array
    found = np.zeros(max(2 * len(array), rows), array.dtype)
    found[: len(array)] = array
    return found
