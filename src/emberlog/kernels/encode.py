"""Between rows and arrays: dictionaries of domains, columns as numbers, and back.

All encodings keep the order of values, so that ids compare as the values do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlog.data.arrow import arrow_type
from emberlog.kernels.crew import mapped
from emberlog.kernels.program import Domain, Id, KernelProgram, Kind
from emberlog.kernels.watch import Unsuited
from emberlog.types import INT64_MAX, INT64_MIN, Column

Values: TypeAlias = pa.Array | pa.ChunkedArray

# Integers whose range is not much larger than their number are ids as they are.
IDS_A_ROW = 4
IDS_ANYWAY = 1 << 16
MANY = 1 << 18  # rows for which threads pay
MOST_IDS = (1 << 31) - 2
MOST_DIGITS = 38  # of a decimal
INT32 = np.iinfo(np.int32)


class Dictionary(ABC):
    """The values of a domain, in order."""

    size: int

    @abstractmethod
    def encode(self, values: Values) -> np.ndarray[Any, Any]: ...

    @abstractmethod
    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array: ...

    @abstractmethod
    def code(self, value: Any) -> int: ...


class Range(Dictionary):
    """Integers from `low` on."""

    def __init__(self, low: int, size: int) -> None:
        self.low, self.size = low, size

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        return _filled(values, np.dtype(np.uint32), self.low)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        wide = ids.astype(np.int64)
        return as_arrow(wide + self.low if self.low else wide)

    def code(self, value: Any) -> int:
        return int(value) - self.low


class Listed(Dictionary):
    """Any values, sorted."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        self.size = len(values)

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        found = pc.index_in(values.cast(self.values.type), value_set=self.values)
        return _joined(found, np.int32).astype(np.uint32)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        return self.values.take(as_arrow(ids))

    def code(self, value: Any) -> int:
        return int(pc.index(self.values, _constants([value], self.values.type)[0]).as_py())


class Coded(Dictionary):
    """Numbers that somebody else gave to values."""

    def __init__(self, numbers: Dictionary, codes: Mapping[object, int]) -> None:
        self.numbers, self.codes = numbers, codes
        self.size = numbers.size

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        return self.numbers.encode(values)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        return self.numbers.decode(ids)

    def code(self, value: Any) -> int:
        return self.numbers.code(self.codes[value])


def _filled(values: Values, dtype: np.dtype[Any], low: int = 0) -> np.ndarray[Any, Any]:
    """Integers, less `low`, in one array of their own, chunk by chunk: one that has the whole column first is dear."""
    found = np.empty(len(values), dtype)
    end = 0
    for chunk in chunks(values):
        start, end = end, end + len(chunk)
        numbers = _numbers(chunk.cast(pa.int64()), np.int64)
        found[start:end] = numbers - low if low else numbers
    return found


def _place(values: Values) -> tuple[tuple[int, int, int], ...] | None:
    """Where values are in memory; None for values of which this is not known."""
    if values.type.num_buffers != 2:
        return None
    places = [(chunk.buffers()[1], chunk.offset, len(chunk)) for chunk in chunks(values)]
    return tuple((data.address if data is not None else 0, offset, size) for data, offset, size in places)


def _different(columns: Sequence[Values]) -> list[Values]:
    """The columns, each one that stands in several relations once."""
    return list({_place(column) or number: column for number, column in enumerate(columns)}.values())


def _ends(values: Values) -> tuple[int, int]:
    """The least and the greatest of some integers."""
    found = pc.min_max(values)
    return found["min"].as_py(), found["max"].as_py()


def _joined(values: Values, dtype: type[np.number[Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, dtype), *(_numbers(chunk, dtype) for chunk in chunks(values))])


def _numbers(values: pa.Array, dtype: type[np.number[Any]]) -> np.ndarray[Any, Any]:
    """The numbers of an array as they stand in memory. Arrow's own way of this would import pandas."""
    data = values.buffers()[1]
    if not len(values) or data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(values), values.offset * np.dtype(dtype).itemsize)


def as_arrow(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """Numbers as an Arrow array, without a copy where they lie one after the other; this way too pandas stays out."""
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, data])


def chunks(values: Values) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def dictionary(domain: Domain, columns: Sequence[Values], workers: int = 1) -> Dictionary:
    """The dictionary of everything in these columns and the constants of the rules."""
    if domain.codes is not None:
        return Coded(_of_integers(columns, [code for _, code in domain.codes], workers), dict(domain.codes))
    if domain.type.kind == "number":
        constants = [int(value) for value in domain.constants]  # type: ignore[call-overload]
        return _of_integers(columns, constants, workers)
    type = _common_type([column.type for column in columns]) if columns else arrow_type(domain.type)
    extra = _constants(domain.constants, type)
    found = pc.unique(pa.concat_arrays([*(pc.unique(column.cast(type)) for column in columns), extra]))
    return Listed(found.take(pc.sort_indices(found)))


def _common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """A type for the values of all these; decimals may have different digits before and after the point."""
    if not all(pa.types.is_decimal(type) for type in types):
        return types[0]
    scale = max(type.scale for type in types)
    digits = max(type.precision - type.scale for type in types) + scale
    if digits > MOST_DIGITS:
        raise Unsuited(f"decimals of more than {MOST_DIGITS} digits together")
    return pa.decimal128(digits, scale)


def _constants(values: Sequence[object], type: pa.DataType) -> pa.Array:
    """Constants of rules, in which dates and times are texts, as values of a column."""
    made = pa.array(list(values), pa.string() if pa.types.is_temporal(type) else type)
    return made.cast(type)


def _of_integers(columns: Sequence[Values], constants: list[int], workers: int) -> Dictionary:
    rows = sum(len(column) for column in columns) + len(constants)
    if not rows:
        return Range(0, 0)
    ends = mapped(_ends, [column for column in columns if len(column)], workers)
    low = min([low for low, _ in ends] + constants)
    high = max([high for _, high in ends] + constants)
    if high - low < max(IDS_A_ROW * rows, IDS_ANYWAY):
        near = 0 <= low < IDS_ANYWAY
        return Range(0 if near else low, high - (0 if near else low) + 1)
    parts = [pc.unique(column.cast(pa.int64())) for column in columns] + [pa.array(constants, pa.int64())]
    found = np.unique(np.concatenate([_joined(part, np.int64) for part in parts]))
    return Listed(as_arrow(found))


class Encoder:
    """Encodes the rows of one program and decodes its results."""

    def __init__(
        self, program: KernelProgram, tables: Mapping[str, Sequence[Sequence[Values]]], workers: int = 1
    ) -> None:
        """`tables` has, for each relation, its columns from every place where rows come from."""
        self.program = program
        self.workers = workers
        self._encoded: dict[Any, np.ndarray[Any, Any]] = {}
        self.dictionaries = []
        for domain in program.domains:
            columns = [part[spot] for name, spot in domain.columns for part in tables.get(name, ())]
            found = dictionary(domain, _different(columns), workers)
            if found.size > MOST_IDS:
                raise Unsuited("more than two thousand million different values")
            self.dictionaries.append(found)

    @property
    def sizes(self) -> dict[int, int]:
        return {i: max(one.size, 1) for i, one in enumerate(self.dictionaries)}

    def column(self, values: Values, kind: Kind, narrow: bool = False) -> np.ndarray[Any, Any]:
        match kind:
            case Id(domain):
                return self.dictionaries[domain].encode(values)
            case "int":
                low, high = _ends(values) if len(values) else (0, INT32.max + 1)
                if low == INT64_MIN or high >= INT64_MAX:
                    raise Unsuited("a number at the end of what 64 bits hold")
                fits = narrow and low >= INT32.min and high <= INT32.max
                return _filled(values, np.dtype(np.int32 if fits else np.int64))
            case "float":
                found = _joined(values.cast(pa.float64()), np.float64)
                if not np.isfinite(found).all():
                    raise Unsuited("a float that is not finite")
                return found
            case "unread":
                return np.empty(0, np.uint32)

    def rows(self, relation: str, columns: Sequence[Values], narrow: bool = False) -> list[np.ndarray[Any, Any]]:
        """The columns of a relation as numbers; with `narrow`, integers in 32 bits where they fit: less to read."""
        kinds = self.program.kinds(relation)

        def encoded(spot: int) -> np.ndarray[Any, Any]:
            return self._once(columns[spot], kinds[spot], narrow)

        return mapped(encoded, range(len(kinds)), self.workers if len(columns[0]) > MANY else 1) if columns else []

    def distinct_rows(self, relation: str, columns: Sequence[Values]) -> list[np.ndarray[Any, Any]] | None:
        """The rows without duplicates, where all columns are one: `cc(X, min<X>) <- arc(X, _)`. None elsewhere."""
        kinds, places = self.program.kinds(relation), {_place(values) for values in columns}
        domain = next((kind for kind in kinds if isinstance(kind, Id)), None)
        if domain is None or len(places) != 1 or None in places or len(columns[0]) < self.sizes[domain.domain]:
            return None
        there = np.zeros(self.sizes[domain.domain], np.uint8)
        _mark(self._once(columns[0], domain, False), there)
        found = self.dictionaries[domain.domain].decode(np.flatnonzero(there).astype(np.uint32))
        # Not by `_once`: it knows columns by where they are, and these go; the next ones may come to be in their place.
        return [self.column(found, kind) for kind in kinds]

    def _once(self, values: Values, kind: Kind, narrow: bool) -> np.ndarray[Any, Any]:
        """An encoded column; one that stands in several relations is encoded once."""
        key, narrow = _place(values), narrow and kind == "int"
        if key is None or (key, kind, narrow) not in self._encoded:
            found = self.column(values, kind, narrow)
            # Arrow's memory must not be written to, and loops are compiled for arrays that may be: one kind is enough.
            found = found if found.flags.writeable else found.copy()
            if key is None:
                return found
            self._encoded[key, kind, narrow] = found
        return self._encoded[key, kind, narrow]

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
                case _:
                    found.append(as_arrow(values))
        return found


def _mark(slots: np.ndarray[Any, Any], there: np.ndarray[Any, Any]) -> None:
    """Sets the flag of each slot; of many by a loop, which is compiled once for all programs."""
    if len(slots) < MANY:
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
