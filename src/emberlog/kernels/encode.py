"""Between rows and arrays: columns as numbers, and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from emberlog.clock import Stopwatch
from emberlog.components.program import Id, KernelProgram, Kind
from emberlog.data.arrow import Values, chunks, place_of
from emberlog.kernels.crew import mapped
from emberlog.kernels.dictionaries import (
    Dictionary,
    Ends,
    Range,
    as_arrow,
    different,
    filled,
    joined,
    kept_dictionary,
    numbers_of,
)
from emberlog.kernels.watch import Unsuited
from emberlog.store.kept import Kept
from emberlog.thresholds import ROWS_A_THREAD
from emberlog.types import INT64_MAX, INT64_MIN, Column

Made = TypeVar("Made")

MOST_IDS = (1 << 31) - 2
ROWS_A_PIECE = 1 << 12  # smaller ones are read sooner when they are put together
INT32 = np.iinfo(np.int32)


class Encoder:
    """Encodes the rows of one program and decodes its results."""

    def __init__(
        self,
        program: KernelProgram,
        tables: Mapping[str, Sequence[Sequence[Values]]],
        workers: int = 1,
        kept: Kept | None = None,
    ) -> None:
        """`tables` has, for each relation, its columns from every place where rows come from. `kept` is what earlier
        runs made of them."""
        self.program = program
        self.workers = workers
        self.kept = kept or Kept({})
        self._encoded: dict[Any, np.ndarray[Any, Any]] = {}
        self._ends = Ends(self.kept)
        self.encoding = Stopwatch()
        self.dictionaries: list[Dictionary] = []
        with self.encoding:
            for domain in program.domains:
                columns = [part[spot] for name, spot in domain.columns for part in tables.get(name, ())]
                found = kept_dictionary(domain, different(columns), self.kept, self._ends, workers)
                if found.size > MOST_IDS:
                    raise Unsuited("more than two thousand million different values")
                self.dictionaries.append(found)

    def with_dictionaries(self, dictionaries: list[Dictionary]) -> Encoder:
        """The same with other dictionaries; nothing of what it makes is kept for later runs."""
        made = copy(self)
        made.dictionaries, made.kept, made._encoded = dictionaries, Kept({}), {}
        return made

    @property
    def sizes(self) -> dict[int, int]:
        return {i: max(one.size, 1) for i, one in enumerate(self.dictionaries)}

    def column(self, values: Values, kind: Kind, narrow: bool = False) -> np.ndarray[Any, Any]:
        match kind:
            case Id(domain):
                return self.dictionaries[domain].encode(values)
            case "int":
                fits = self.fits(values) and narrow
                return filled(values, np.dtype(np.int32 if fits else np.int64))
            case "float":
                found = joined(values.cast(pa.float64()), np.float64)
                if not np.isfinite(found).all():
                    raise Unsuited("a float that is not finite")
                return found
            case "unread":
                return np.empty(0, np.uint32)

    def fits(self, values: Values) -> bool:
        """Do these numbers fit in 32 bits? Raises where one does not fit in 64, less the last."""
        if not len(values):
            return False
        low, high = self._ends(values)
        if low == INT64_MIN or high >= INT64_MAX:
            raise Unsuited("a number at the end of what 64 bits hold")
        return low >= INT32.min and high <= INT32.max

    def is_plain(self, kind: Id) -> bool:
        """Are the ids of a domain the numbers themselves?"""
        dictionary = self.dictionaries[kind.domain]
        return isinstance(dictionary, Range) and dictionary.low == 0

    def has(self, values: Values, kind: Kind) -> bool:
        """Was this column encoded already?"""
        return (place_of(values), kind, kind == "int") in self._encoded

    def rows(self, relation: str, columns: Sequence[Values]) -> list[np.ndarray[Any, Any]]:
        """The columns of a relation as numbers."""
        kinds = self.program.kinds(relation)

        def encoded(spot: int) -> np.ndarray[Any, Any]:
            return self._once(columns[spot], kinds[spot], narrow=False)

        many = bool(columns) and len(columns[0]) > ROWS_A_THREAD
        return mapped(encoded, range(len(kinds)), self.workers if many else 1) if columns else []

    def columns(self, relation: str, columns: Sequence[Values]) -> Lazy:
        """The columns of a relation, for whoever may not need all of them as numbers."""
        return Lazy(self, self.program.kinds(relation), columns)

    def distinct_rows(self, relation: str, columns: Sequence[Values]) -> list[np.ndarray[Any, Any]] | None:
        """The rows without duplicates, where all columns are one: `cc(X, min<X>) <- arc(X, _)`. None elsewhere."""
        kinds, places = self.program.kinds(relation), {place_of(values) for values in columns}
        domain = next((kind for kind in kinds if isinstance(kind, Id)), None)
        if domain is None or len(places) != 1 or None in places or len(columns[0]) < self.sizes[domain.domain]:
            return None
        ids = np.flatnonzero(self._there(Lazy(self, [domain], columns).pieces(0), domain)).astype(np.uint32)
        if all(isinstance(kind, Id) and self.is_plain(kind) for kind in kinds):
            return [ids] * len(kinds)
        found = self.dictionaries[domain.domain].decode(ids)
        # Not by `_once`: it knows columns by where they are, and these go; the next ones may come to be in their place.
        return [self.column(found, kind) for kind in kinds]

    def _there(self, pieces: Sequence[np.ndarray[Any, Any]], domain: Id) -> np.ndarray[Any, Any]:
        """A flag for each id that stands somewhere. Workers set flags of their own: lines of memory do not travel."""
        size = self.sizes[domain.domain]
        workers = max(1, min(self.workers, sum(len(piece) for piece in pieces) // (4 * size)))
        flags = np.zeros((workers, size), np.uint8)

        def mark(worker: int) -> None:
            for piece in pieces:
                _mark(piece[len(piece) * worker // workers : len(piece) * (worker + 1) // workers], flags[worker])

        mapped(mark, range(workers), workers)
        found: np.ndarray[Any, Any] = np.bitwise_or.reduce(flags)
        return found

    def _once(self, values: Values, kind: Kind, narrow: bool) -> np.ndarray[Any, Any]:
        """An encoded column; one that stands in several relations is encoded once."""
        key, narrow = place_of(values), narrow and kind == "int"
        if key is None or (key, kind, narrow) not in self._encoded:
            with self.encoding:
                what = ("numbers", self.name_of(kind), narrow)
                found = self.kept.made(
                    what, [values], lambda: self._column(values, kind, narrow), lambda made: made.nbytes
                )
            if key is None:
                return found
            self._encoded[key, kind, narrow] = found
        return self._encoded[key, kind, narrow]

    def _column(self, values: Values, kind: Kind, narrow: bool) -> np.ndarray[Any, Any]:
        """An encoded column in memory of its own: Arrow's must not be written to, and loops are compiled for arrays
        that may be. One kind is enough."""
        found = self.column(values, kind, narrow)
        return found if found.flags.writeable else found.copy()

    def name_of(self, kind: Kind) -> Hashable:
        """What tells the numbers that values of a kind become from those of other kinds and dictionaries."""
        return self.dictionaries[kind.domain].name if isinstance(kind, Id) else kind

    def constant(self, kind: Kind, value: object) -> Any:
        match kind:
            case Id(domain):
                return np.uint32(self.dictionaries[domain].code(value))
            case "float":
                return np.float64(value)  # type: ignore[arg-type]
            case _ if int(value) > INT64_MAX:  # type: ignore[call-overload]
                raise Unsuited("a number at the end of what 64 bits hold")
            case _:
                return np.int64(value)  # type: ignore[arg-type]

    def decoded(
        self, relation: str, columns: Sequence[np.ndarray[Any, Any]], described: Sequence[Column]
    ) -> list[pa.Array]:
        """Encoded columns as Arrow arrays."""
        found = []
        for values, kind in zip(columns, self.program.kinds(relation), strict=True):
            match kind:
                case Id(domain):
                    found.append(self.dictionaries[domain].decode(values))
                case "int":
                    found.append(as_arrow(values.astype(np.int64, copy=False)))
                case "float":
                    found.append(as_arrow(values + 0.0))  # loops may come to -0.0, which no value of a program is
                case _:
                    found.append(as_arrow(values))
        return found


class Lazy(Sequence["np.ndarray[Any, Any]"]):
    """The columns of a relation as numbers, integers in 32 bits where they fit: less to read. They are encoded when
    somebody asks."""

    def __init__(self, encoder: Encoder, kinds: Sequence[Kind], columns: Sequence[Values]) -> None:
        self._encoder, self._kinds, self._columns = encoder, kinds, columns

    def __len__(self) -> int:
        return len(self._kinds)

    def encoded_by(self, encoder: Encoder) -> Lazy:
        """The same columns with the ids of another encoder."""
        return Lazy(encoder, self._kinds, self._columns)

    @overload
    def __getitem__(self, spot: int) -> np.ndarray[Any, Any]: ...

    @overload
    def __getitem__(self, spot: slice) -> list[np.ndarray[Any, Any]]: ...

    def __getitem__(self, spot: int | slice) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]]:
        if isinstance(spot, slice):
            spots = range(*spot.indices(len(self)))
            return mapped(self.__getitem__, spots, self._encoder.workers if self.rows > ROWS_A_THREAD else 1)
        return self._encoder._once(self._columns[spot], self._kinds[spot], narrow=True)

    def made(self, what: Hashable, make: Callable[[], Made], size: Callable[[Made], int]) -> Made:
        """Something that is made of these columns as numbers, or was made of them by an earlier run."""
        names = tuple(map(self._encoder.name_of, self._kinds))
        return self._encoder.kept.made((what, names), self._columns, make, size)

    @property
    def rows(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def dtype(self, spot: int) -> np.dtype[Any]:
        match self._kinds[spot]:
            case "int" if self._encoder.fits(self._columns[spot]):
                return np.dtype(np.int32)
            case "int":
                return np.dtype(np.int64)
            case "float":
                return np.dtype(np.float64)
            case _:
                return np.dtype(np.uint32)

    def pieces(self, spot: int) -> Sequence[np.ndarray[Any, Any]]:
        """The numbers of a column, perhaps in more bits and more pieces: for whoever reads them once. Where values are
        numbers already, this is the memory they came in, unless the pieces are small."""
        kind, values = self._kinds[spot], self._columns[spot]
        as_they_are = kind == "int" or (isinstance(kind, Id) and self._encoder.is_plain(kind))
        as_they_are = as_they_are and len(values) >= ROWS_A_PIECE * len(chunks(values))
        if as_they_are and values.type == pa.int64() and len(values) and not self._encoder.has(values, kind):
            if kind == "int":
                self._encoder.fits(values)  # raises where one is at the end of 64 bits
            return [numbers_of(chunk, np.int64) for chunk in chunks(values) if len(chunk)]
        return [self[spot]]


class Numbers(Lazy):
    """Columns that are numbers already: a worker's share of a relation, which nobody keeps for a later run."""

    def __init__(self, kinds: Sequence[Kind], columns: Sequence[np.ndarray[Any, Any]]) -> None:
        self._kinds = kinds
        self._numbers = [_narrowed(kind, column) for kind, column in zip(kinds, columns, strict=True)]

    def __getitem__(self, spot: Any) -> Any:
        return self._numbers[spot]

    def made(self, what: Hashable, make: Callable[[], Made], size: Callable[[Made], int]) -> Made:
        return make()

    @property
    def rows(self) -> int:
        return max(map(len, self._numbers), default=0)  # a column that no rule reads has no values

    def dtype(self, spot: int) -> np.dtype[Any]:
        found: np.dtype[Any] = self._numbers[spot].dtype
        return found

    def pieces(self, spot: int) -> Sequence[np.ndarray[Any, Any]]:
        return [self._numbers[spot]]


def _narrowed(kind: Kind, column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ids in 32 bits, and integers where they fit."""
    match kind:
        case "float":
            return column
        case "int":
            low, high = (column.min(), column.max()) if len(column) else (0, 0)
            return column.astype(np.int32) if low >= -(2**31) and high < 2**31 else column
        case _:
            return column.astype(np.uint32)


def _mark(slots: np.ndarray[Any, Any], there: np.ndarray[Any, Any]) -> None:
    """Sets the flag of each slot; of many by a loop, which is compiled once for all programs."""
    if len(slots) < ROWS_A_THREAD:
        there[slots] = 1
        return
    from emberlog.kernels.cache import call
    from emberlog.kernels.runtime import mark

    call(mark, slots, there)


def by_name(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, list[Sequence[Values]]]:
    """The columns of each relation from every place where it has rows."""
    found: dict[str, list[Sequence[Values]]] = {}
    for part in parts:
        for name, table in part.items():
            found.setdefault(name, []).append(table.columns)
    return found


def check_contributors(
    program: KernelProgram, statics: Mapping[str, Sequence[np.ndarray[Any, Any]]], tables: Mapping[str, pa.Table]
) -> None:
    """Raises where a contributor of `sum<(K,V)>` has several values at a time."""
    for name, columns in program.unique:
        if not is_unique([statics[name][spot] for spot in columns], tables[name].num_rows):
            raise Unsuited(f"a contributor has several values in `{name}`")


def is_unique(columns: Sequence[np.ndarray[Any, Any]], rows: int) -> bool:
    """Does no row of these columns, of which there may be none, stand twice?"""
    if not columns or rows < 2:
        return rows < 2
    order = np.lexsort(columns)
    same = np.ones(len(order) - 1, bool)
    for column in columns:
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    return not same.any()
