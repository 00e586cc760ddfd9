"""Columns that stand in the names of folders (`day=2026-11-01/`), with the types that Spark gives them.

A text is the first of these that it can be: a whole number of 32 or 64 bits, one of up to 38 digits, a float, a
timestamp (`2026-11-01 10:00:00`), a date, text. The type of a column is one for all its folders; where two do not go
together it is text, and the values are as they are written (`n=01` is 1, or "01" where another folder is `n=a`).
`__HIVE_DEFAULT_PARTITION__` is null, and `%2F` stands for `/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?")
_FLOAT = re.compile(r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d)?", re.ASCII)
_MAX_DIGITS = 38
_DIGITS = {"int": 10, "long": 20}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the texts of a column can all be; `digits` is the size of a decimal."""

    name: Literal["null", "int", "long", "decimal", "double", "timestamp", "date", "text"]
    digits: int = 0


_NULL, _TEXT = _Kind("null"), _Kind("text")


@dataclass(frozen=True)
class PartitionedDataset:
    """An Arrow dataset whose folders give columns. In `data` they are texts, as they are written."""

    data: Any
    kinds: dict[str, _Kind]

    @property
    def files(self) -> list[str]:
        return list(self.data.files)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self._field(field) for field in self.data.schema])

    def _field(self, field: pa.Field) -> pa.Field:
        kind = self.kinds.get(field.name)
        return field if kind is None else pa.field(field.name, _arrow(kind))

    def to_table(self, columns: list[str] | None = None) -> pa.Table:
        table = self.data.to_table(columns=columns)
        arrays = [
            values if name not in self.kinds else _typed(values, self.kinds[name])
            for name, values in zip(table.column_names, table.columns, strict=True)
        ]
        return pa.table(arrays, names=table.column_names)


def open_folder(location: str, format: str) -> Any:
    """The dataset of a folder: with typed columns for its `key=value` folders, if it has some."""
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    where = location if "://" in location else str(Path(location).absolute())
    plain = ds.dataset(where, format=format)
    names = _keys(plain.files, fs.FileSystem.from_uri(where)[1])
    if not names:
        return plain
    texts = pa.schema([(name, pa.string()) for name in names])
    data = ds.dataset(where, format=format, partitioning=ds.HivePartitioning(texts, segment_encoding="none"))
    keys = [ds.get_partition_keys(fragment.partition_expression) for fragment in data.get_fragments()]
    return PartitionedDataset(data, {name: _kind_of_all(key.get(name) for key in keys) for name in names})


def _keys(files: Iterable[str], base: str) -> list[str]:
    """The keys of the folders between a folder and its files, in order."""
    folders = (part for file in files for part in file.removeprefix(base).split("/")[:-1])
    return list(dict.fromkeys(part.partition("=")[0] for part in folders if "=" in part))


def _kind_of_all(texts: Iterable[str | None]) -> _Kind:
    return reduce(_together, map(_kind, set(texts)), _NULL)


def _kind(text: str | None) -> _Kind:
    if text is None:
        return _NULL
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return _Kind("int" if -(2**31) <= int(text) < 2**31 else "long")
    if (digits := _decimal_digits(text)) is not None:
        return _Kind("decimal", digits)
    if _FLOAT.fullmatch(text.strip()):
        return _Kind("double")
    plain = unescape(text)
    if _TIMESTAMP.fullmatch(plain) and _is_time(plain):
        return _Kind("timestamp")
    if _DATE.fullmatch(text) and _is_time(text):
        return _Kind("date")
    return _TEXT


def _decimal_digits(text: str) -> int | None:
    """How many digits a whole number has that is written as a decimal (`1e5`); None if it is none, or has too many."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    fraction = found[2] or found[3] or ""
    exponent = int(found[4] or 0)
    if len(fraction) > exponent or exponent > 2 * _MAX_DIGITS:
        return None
    digits = len(str(abs(int(Decimal(text)))))
    return digits if digits <= _MAX_DIGITS else None


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _together(one: _Kind, other: _Kind) -> _Kind:
    """The kind of a column with texts of two kinds."""
    if one == other or other == _NULL:
        return one
    if one == _NULL:
        return other
    names = {one.name, other.name}
    if names == {"int", "long"}:
        return _Kind("long")
    if names == {"int", "double"}:
        return _Kind("double")
    if names <= {"int", "long", "decimal"}:
        return _Kind("decimal", max(_DIGITS.get(kind.name, kind.digits) for kind in (one, other)))
    if names == {"date", "timestamp"}:
        return _Kind("timestamp")
    return _TEXT


def _arrow(kind: _Kind) -> pa.DataType:
    match kind.name:
        case "null":
            return pa.null()
        case "int" | "long":
            return pa.int64()
        case "decimal":
            return pa.decimal128(kind.digits, 0)
        case "double":
            return pa.float64()
        case "timestamp":
            return pa.timestamp("us")
        case "date":
            return pa.date32()
        case "text":
            return pa.string()


def _typed(texts: pa.ChunkedArray, kind: _Kind) -> pa.Array:
    coded = texts.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    values = pa.array([_value(text, kind) for text in coded.dictionary.to_pylist()], _arrow(kind))
    return values.take(coded.indices)


def _value(text: str, kind: _Kind) -> object:
    match kind.name:
        case "null":
            return None
        case "int" | "long":
            return int(text)
        case "decimal":
            return Decimal(int(Decimal(text)))
        case "double":
            found = _FLOAT.fullmatch(text.strip())
            assert found is not None
            return float(found[1])
        case "timestamp":
            return datetime.fromisoformat(unescape(text))
        case "date":
            return date.fromisoformat(text)
        case "text":
            return unescape(text)


def unescape(text: str) -> str:
    """The name of a folder as it was before `%2F` and the like were put into it."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)
