"""The values of domains and their ids: numbers as they are, or any values in their order.

All encodings keep the order of values, so that ids compare as the values do; but for `Renumbered`, which stands for a
moment in the place of another where nothing is compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlog.components.program import Domain
from emberlog.data.arrow import Values, arrow_type, chunks, place_of
from emberlog.kernels.crew import mapped
from emberlog.kernels.watch import Unsuited
from emberlog.store.kept import Kept
from emberlog.thresholds import IDS_A_ROW, IDS_ANYWAY, ROWS_A_THREAD

# Integers whose range is not much larger than their number are ids as they are.
MOST_DIGITS = 38  # of a decimal

_NUMBERS = count()


class Dictionary(ABC):
    """The values of a domain, in order."""

    size: int

    @property
    def name(self) -> Hashable:
        """What tells its ids from those of other dictionaries."""
        return self._number

    def __init__(self) -> None:
        self._number = next(_NUMBERS)

    @abstractmethod
    def encode(self, values: Values) -> np.ndarray[Any, Any]: ...

    @abstractmethod
    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array: ...

    @abstractmethod
    def code(self, value: Any) -> int: ...

    @abstractmethod
    def has(self, values: Values) -> bool:
        """True if all these values are known to be among its own."""


class Range(Dictionary):
    """Integers from `low` on."""

    def __init__(self, low: int, size: int) -> None:
        super().__init__()
        self.low, self.size = low, size

    @property
    def name(self) -> Hashable:
        return ("from", self.low)

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        return filled(values, np.dtype(np.uint32), self.low)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        wide = ids.astype(np.int64)
        return as_arrow(wide + self.low if self.low else wide)

    def code(self, value: Any) -> int:
        return int(value) - self.low

    def has(self, values: Values) -> bool:
        low, high = _ends(values) if len(values) else (self.low, self.low)
        return self.low <= low and high < self.low + self.size


class Listed(Dictionary):
    """Any values, sorted."""

    def __init__(self, values: pa.Array) -> None:
        super().__init__()
        self.values = values
        self.size = len(values)

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        found = pc.index_in(values.cast(self.values.type), value_set=self.values)
        return joined(found, np.int32).astype(np.uint32)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        return self.values.take(as_arrow(ids))

    def code(self, value: Any) -> int:
        return int(pc.index(self.values, constant_array([value], self.values.type)[0]).as_py())

    def has(self, values: Values) -> bool:
        return values.type == self.values.type and not pc.index_in(values, value_set=self.values).null_count


class Coded(Dictionary):
    """Numbers that somebody else gave to values."""

    def __init__(self, numbers: Dictionary, codes: Mapping[object, int]) -> None:
        super().__init__()
        self.numbers, self.codes = numbers, codes
        self.size = numbers.size

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        return self.numbers.encode(values)

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        return self.numbers.decode(ids)

    def code(self, value: Any) -> int:
        return self.numbers.code(self.codes[value])

    def has(self, values: Values) -> bool:
        return self.numbers.has(values)


class Renumbered(Dictionary):
    """The values of another dictionary with other ids, which are in no order of the values: `new` by the old id, `old`
    by the new one."""

    def __init__(self, values: Dictionary, new: np.ndarray[Any, Any], old: np.ndarray[Any, Any]) -> None:
        super().__init__()
        self.values, self.new, self.old = values, new, old
        self.size = values.size

    def encode(self, values: Values) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.new[self.values.encode(values)]
        return found

    def decode(self, ids: np.ndarray[Any, Any]) -> pa.Array:
        return self.values.decode(self.old[ids])

    def code(self, value: Any) -> int:
        return int(self.new[self.values.code(value)])

    def has(self, values: Values) -> bool:
        return self.values.has(values)


def filled(values: Values, dtype: np.dtype[Any], low: int = 0) -> np.ndarray[Any, Any]:
    """Integers, less `low`, in one array of their own, chunk by chunk: one that has the whole column first is dear."""
    found = np.empty(len(values), dtype)
    end = 0
    for chunk in chunks(values):
        start, end = end, end + len(chunk)
        numbers = numbers_of(chunk.cast(pa.int64()), np.int64)
        found[start:end] = numbers - low if low else numbers
    return found


def different(columns: Sequence[Values]) -> list[Values]:
    """The columns, each one that stands in several relations once."""
    return list({place_of(column) or number: column for number, column in enumerate(columns)}.values())


class Ends:
    """The least and the greatest of some integers, looked for once in each place of memory."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._kept = kept or Kept({})
        # Values are held, so that no others come to be in their place.
        self._known: dict[Any, tuple[Values, tuple[int, int]]] = {}

    def __call__(self, values: Values) -> tuple[int, int]:
        key = place_of(values)
        if key is None or key not in self._known:
            ends = self._kept.made("ends", [values], lambda: _ends(values), lambda _: 0)
            if key is None:
                return ends
            self._known[key] = values, ends
        return self._known[key][1]


def _ends(values: Values) -> tuple[int, int]:
    found = pc.min_max(values)
    return found["min"].as_py(), found["max"].as_py()


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


def kept_dictionary(
    domain: Domain, columns: Sequence[Values], kept: Kept, ends: Ends | None = None, workers: int = 1
) -> Dictionary:
    """The same as `dictionary`. What is kept of sources serves if it has the values of the other columns, too."""
    old = [column for column in columns if kept.has(column)]
    if old and domain.codes is None and domain.type.kind != "decimal":
        found = kept.made(
            ("dictionary", domain.type), old, lambda: dictionary(Domain(domain.type, ()), old, ends, workers), _bytes
        )
        others = [column for column in columns if not kept.has(column)]
        if domain.constants:
            others.append(constant_array(domain.constants, arrow_type(domain.type)))
        if all(map(found.has, others)):
            return found
    return dictionary(domain, columns, ends, workers)


def _bytes(found: Dictionary) -> int:
    return found.values.nbytes if isinstance(found, Listed) else 0


def dictionary(domain: Domain, columns: Sequence[Values], ends: Ends | None = None, workers: int = 1) -> Dictionary:
    """The dictionary of everything in these columns and the constants of the rules."""
    ends = ends or Ends()
    if domain.codes is not None:
        return Coded(_of_integers(columns, [code for _, code in domain.codes], ends, workers), dict(domain.codes))
    if domain.type.kind == "number":
        constants = [int(value) for value in domain.constants]  # type: ignore[call-overload]
        return _of_integers(columns, constants, ends, workers)
    type = type_of_values(domain, [column.type for column in columns])
    extra = constant_array(domain.constants, type)
    found = pc.unique(pa.concat_arrays([*(pc.unique(column.cast(type)) for column in columns), extra]))
    return Listed(found.take(pc.sort_indices(found)))


def type_of_values(domain: Domain, columns: Sequence[pa.DataType]) -> pa.DataType:
    """A type for the values of columns of these types, and for constants; decimals may have different digits before and
    after the point. Raises `Unsuited` where no type has room for all of them."""
    types = list(columns) or [arrow_type(domain.type)]
    if domain.type.kind != "decimal":
        return types[0]
    types += [pa.scalar(Decimal(str(value))).type for value in domain.constants]
    scale = max(type.scale for type in types)
    digits = max(type.precision - type.scale for type in types) + scale
    if digits > MOST_DIGITS:
        raise Unsuited(f"decimals of more than {MOST_DIGITS} digits together")
    return pa.decimal128(digits, scale)


def constant_array(values: Sequence[object], type: pa.DataType) -> pa.Array:
    """Constants of rules, in which dates, times and decimals are texts, as values of a column."""
    is_text = pa.types.is_temporal(type) or pa.types.is_decimal(type)
    return pa.array(list(values), pa.string() if is_text else type).cast(type)


def _of_integers(columns: Sequence[Values], constants: list[int], ends: Ends, workers: int) -> Dictionary:
    rows = sum(len(column) for column in columns) + len(constants)
    if not rows:
        return Range(0, 0)
    both = mapped(ends, [column for column in columns if len(column)], workers if rows > ROWS_A_THREAD else 1)
    low = min([low for low, _ in both] + constants)
    high = max([high for _, high in both] + constants)
    if high - low < max(IDS_A_ROW * rows, IDS_ANYWAY):
        near = 0 <= low < IDS_ANYWAY
        return Range(0 if near else low, high - (0 if near else low) + 1)
    parts = [pc.unique(column.cast(pa.int64())) for column in columns] + [pa.array(constants, pa.int64())]
    found = np.unique(np.concatenate([joined(part, np.int64) for part in parts]))
    return Listed(as_arrow(found))
