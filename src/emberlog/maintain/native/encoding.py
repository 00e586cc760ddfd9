"""Values as words of 64 bits: whole numbers as they are, floats by their bits, all else by ids of a dictionary.

Dictionaries grow with what is inserted and never renumber: a word stays valid for the life of a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlog.data.arrow import array_of, arrow_type, values_of
from emberlog.kernels.dictionaries import as_arrow, joined
from emberlog.maintain.nests import Unsupported
from emberlog.maintain.store import Row, Unheld
from emberlog.types import Column, Type

Kind: TypeAlias = Literal["int", "float", "id"]
Words: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def kind_of(type_: Type) -> Kind:
    """What the words of a type are. Raises `Unsupported` for types that loops do not compute with."""
    match type_.kind:
        case "number":
            return "int"
        case "float" if type_.bits == 64:
            return "float"
        case "unsigned" | "float":
            raise Unsupported(f"values of type {type_}")
        case _:
            return "id"


class Encoding:
    """The dictionaries of a view, one for each type of values."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[Any, int]] = {}
        self._values: dict[str, list[Any]] = {}

    # --- single values -------------------------------------------------------------------------------------------

    def word(self, value: Any, type_: Type) -> int:
        """The word of a value, which gets an id if it has none."""
        match kind_of(type_):
            case "int":
                return int(value)
            case "float":
                if value != value:
                    raise Unheld
                return int(np.float64(value + 0.0).view(np.int64))
            case _:
                return self._id(value, type_)

    def _id(self, value: Any, type_: Type) -> int:
        ids = self._ids.setdefault(type_.kind, {})
        found = ids.get(value)
        if found is None:
            found = ids[value] = len(ids)
            self._values.setdefault(type_.kind, []).append(value)
        return found

    def known(self, value: Any, type_: Type) -> int | None:
        """The word of a value; None if it has none, so that no row has it."""
        if kind_of(type_) != "id":
            return None if value != value else self.word(value, type_)
        return self._ids.get(type_.kind, {}).get(value)

    def rows(self, words: Words, columns: Sequence[Column]) -> set[Row]:
        """The rows that some words stand for."""
        if not len(words):
            return set()
        decoded = [self._decoded(words[:, i], column.type) for i, column in enumerate(columns)]
        return set(zip(*decoded, strict=True))

    def _decoded(self, words: Words, type_: Type) -> list[Any]:
        kind = kind_of(type_)
        numbers: list[Any] = (np.ascontiguousarray(words).view(np.float64) if kind == "float" else words).tolist()
        if kind != "id":
            return numbers
        values = self._values.get(type_.kind, [])
        return [values[word] for word in numbers]

    # --- columns -------------------------------------------------------------------------------------------------

    def words(self, values: pa.ChunkedArray, type_: Type) -> Words:
        """The words of a column of Arrow."""
        match kind_of(type_):
            case "int":
                return joined(values.cast(pa.int64()), np.int64)
            case "float":
                numbers = joined(values.cast(pa.float64()), np.float64) + 0.0
                if np.isnan(numbers).any():
                    raise Unheld
                return numbers.view(np.int64)
            case _:
                return self._ids_of(values, type_)

    def _ids_of(self, values: pa.ChunkedArray, type_: Type) -> Words:
        distinct = pc.unique(values)
        ids = self.words_of(values_of(distinct), type_)
        found: Words = ids[joined(pc.index_in(values, value_set=distinct), np.int32)]
        return found

    def words_of(self, values: Iterable[Any], type_: Type) -> Words:
        """The words of values of Python."""
        return np.fromiter((self.word(value, type_) for value in values), np.int64)

    def array(self, words: Words, type_: Type) -> pa.Array:
        """The values of words as an array of Arrow."""
        match kind_of(type_):
            case "int":
                return as_arrow(words).cast(arrow_type(type_))
            case "float":
                return as_arrow(words.view(np.float64))
            case _:
                return array_of(self._decoded(words, type_), arrow_type(type_))
