"""The values of domains and their ids: numbers as they are, or any values in their order.

All encodings keep the order of values, so that ids compare as the values do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlog.data.arrow import arrow_type
from emberlog.kernels.crew import MANY, mapped
from emberlog.kernels.program import Domain
from emberlog.kernels.watch import Unsuited

Values: TypeAlias = pa.Array | pa.ChunkedArray

# Integers whose range is not much larger than their number are ids as they are.
IDS_A_ROW = 4
IDS_ANYWAY = 1 << 16
MOST_DIGITS = 38  # of a decimal


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
        return filled(values, np.dtype(np.uint32), self.low)

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
        return joined(found, np.int32).astype(np.uint32)

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


def filled(values: Values, dtype: np.dtype[Any], low: int = 0) -> np.ndarray[Any, Any]:
    """Integers, less `low`, in one array of their own, chunk by chunk: one that has the whole column first is dear."""
    found = np.empty(len(values), dtype)
    end = 0
    for chunk in chunks(values):
        start, end = end, end + len(chunk)
        numbers = numbers_of(chunk.cast(pa.int64()), np.int64)
        found[start:end] = numbers - low if low else numbers
    return found


def place_of(values: Values) -> tuple[tuple[int, int, int], ...] | None:
    """Where values are in memory; None for values of which this is not known."""
    if values.type.num_buffers != 2:
        return None
    places = [(chunk.buffers()[1], chunk.offset, len(chunk)) for chunk in chunks(values)]
    return tuple((data.address if data is not None else 0, offset, size) for data, offset, size in places)


def different(columns: Sequence[Values]) -> list[Values]:
    """The columns, each one that stands in several relations once."""
    return list({place_of(column) or number: column for number, column in enumerate(columns)}.values())


class Ends:
    """The least and the greatest of some integers, looked for once in each place of memory."""

    def __init__(self) -> None:
        # Values are held, so that no others come to be in their place.
        self._known: dict[Any, tuple[Values, tuple[int, int]]] = {}

    def __call__(self, values: Values) -> tuple[int, int]:
        key = place_of(values)
        if key is None or key not in self._known:
            found = pc.min_max(values)
            ends = found["min"].as_py(), found["max"].as_py()
            if key is None:
                return ends
            self._known[key] = values, ends
        return self._known[key][1]


def joined(values: Values, dtype: type[np.number[Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, dtype), *(numbers_of(chunk, dtype) for chunk in chunks(values))])


def numbers_of(values: pa.Array, dtype: type[np.number[Any]]) -> np.ndarray[Any, Any]:
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


def dictionary(domain: Domain, columns: Sequence[Values], ends: Ends | None = None, workers: int = 1) -> Dictionary:
    """The dictionary of everything in these columns and the constants of the rules."""
    ends = ends or Ends()
    if domain.codes is not None:
        return Coded(_of_integers(columns, [code for _, code in domain.codes], ends, workers), dict(domain.codes))
    if domain.type.kind == "number":
        constants = [int(value) for value in domain.constants]  # type: ignore[call-overload]
        return _of_integers(columns, constants, ends, workers)
    types = [column.type for column in columns] or [arrow_type(domain.type)]
    if domain.type.kind == "decimal":
        types += [pa.scalar(Decimal(str(value))).type for value in domain.constants]
    type = _common_type(types)
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
    """Constants of rules, in which dates, times and decimals are texts, as values of a column."""
    is_text = pa.types.is_temporal(type) or pa.types.is_decimal(type)
    return pa.array(list(values), pa.string() if is_text else type).cast(type)


def _of_integers(columns: Sequence[Values], constants: list[int], ends: Ends, workers: int) -> Dictionary:
    rows = sum(len(column) for column in columns) + len(constants)
    if not rows:
        return Range(0, 0)
    both = mapped(ends, [column for column in columns if len(column)], workers if rows > MANY else 1)
    low = min([low for low, _ in both] + constants)
    high = max([high for _, high in both] + constants)
    if high - low < max(IDS_A_ROW * rows, IDS_ANYWAY):
        near = 0 <= low < IDS_ANYWAY
        return Range(0 if near else low, high - (0 if near else low) + 1)
    parts = [pc.unique(column.cast(pa.int64())) for column in columns] + [pa.array(constants, pa.int64())]
    found = np.unique(np.concatenate([joined(part, np.int64) for part in parts]))
    return Listed(as_arrow(found))
