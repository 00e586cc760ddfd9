"""Types of the language as Arrow types and back; the tables that relations are."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Column, Type

Values: TypeAlias = pa.Array | pa.ChunkedArray
Place: TypeAlias = tuple[tuple[int, ...], ...]  # of each chunk: where its buffers begin, its offset and its length

MAX_PRECISION = 38
_MANY = 1_000_000


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type that values of `type` are kept in. Narrow numbers are kept in 64 bits."""
    match type.kind:
        case "number":
            return pa.int64()
        case "unsigned":
            return pa.uint64()
        case "float":
            return pa.float64()
        case "symbol":
            return pa.string()
        case "bool":
            return pa.bool_()
        case "date":
            return pa.date32()
        case "timestamp":
            return pa.timestamp("us")
        case "decimal":
            return pa.decimal128(type.precision, type.scale)
        case _:
            assert_never(type.kind)


_KINDS = (
    (pt.is_signed_integer, NUMBER),
    (pt.is_unsigned_integer, UNSIGNED),
    (pt.is_floating, FLOAT),
    (pt.is_string, SYMBOL),
    (pt.is_large_string, SYMBOL),
    (pt.is_string_view, SYMBOL),
    (pt.is_boolean, BOOL),
    (pt.is_date, DATE),
    (pt.is_timestamp, TIMESTAMP),
)


def type_of_arrow(type: pa.DataType) -> Type | None:
    """The type of the language for values of an Arrow type, None if there is none.

    Integers and floats of all widths are the 64-bit types; a dictionary is what its values are. A timestamp may have
    any unit; one with a time zone is read as its wall time in UTC.
    """
    if pt.is_dictionary(type):
        return type_of_arrow(type.value_type)
    if pt.is_decimal(type):
        # A negative scale (no SQL engine has one) is written out as zeros.
        precision, scale = type.precision - min(type.scale, 0), max(type.scale, 0)
        return Type("decimal", precision=precision, scale=scale) if precision <= MAX_PRECISION else None
    return next((found for test, found in _KINDS if test(type)), None)


def row_bytes(columns: Sequence[Column]) -> int:
    """About how many bytes a row takes in Arrow; of text, a guess."""
    widths = {"symbol": 24, "decimal": 16, "date": 4, "bool": 1}
    return sum(widths.get(column.type.kind, 8) for column in columns) or 1


def field_names(width: int) -> list[str]:
    """c0, c1, ...: the names that a relation's columns have inside Emberlog, whatever users call them."""
    return [f"c{i}" for i in range(width)]


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The schema of a relation's table."""
    return pa.schema(
        [(name, arrow_type(column.type)) for name, column in zip(field_names(len(columns)), columns, strict=True)]
    )


def empty_table(columns: Sequence[Column]) -> pa.Table:
    """A relation of these columns that has no rows."""
    return arrow_schema(columns).empty_table()


def nullary_table(holds: bool) -> pa.Table:
    """A relation without columns. Mind that `pyarrow.concat_tables` loses the rows of such tables."""
    rows = pa.Array.from_buffers(pa.struct([]), int(holds), [None])
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


def array_of(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """The values, none of them None, as an Arrow array.

    `pyarrow.array` first of all imports pandas, which takes longer than a small program: it is kept for types that are
    rare, for when pandas is there anyway, and for many values, where it is faster even so. Raises OverflowError and
    UnicodeEncodeError as that does.
    """
    if "pandas" not in sys.modules and len(values) < _MANY:
        if code := {pa.int64(): "q", pa.uint64(): "Q", pa.float64(): "d"}.get(type):
            return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(array(code, values))])
        if pt.is_string(type) or pt.is_large_string(type):
            encoded = [value.encode() for value in values]
            code = "i" if pt.is_string(type) else "q"
            offsets = array(code, accumulate(map(len, encoded), initial=0))
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
            return pa.Array.from_buffers(type, len(values), buffers)
    return pa.array(values, type)


def text_scalar(text: str) -> pa.Scalar:
    """`text` as a large string."""
    return array_of([text], pa.large_string())[0]


def table_of(arrays: Sequence[Any]) -> pa.Table:
    """The table c0..ck of these columns; there must be one."""
    return pa.table(list(arrays), names=field_names(len(arrays)))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples of Python values: int, float, str, bool, date, datetime, Decimal."""
    if table.num_columns == 0:
        return [()] * min(table.num_rows, 1)
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    return [value for chunk in column.chunks for value in values_of(chunk)]


def values_of(array: pa.Array) -> list[Any]:
    """The values of an array as Python values."""
    kind = {pa.int64(): np.int64, pa.uint64(): np.uint64, pa.float64(): np.float64}.get(array.type)
    values: list[Any]
    if kind is None or array.null_count or not len(array):
        values = array.to_pylist()
    else:
        # Ten times faster than `to_pylist`, which makes an Arrow scalar for each value; `to_numpy` imports pandas.
        values = np.frombuffer(array.buffers()[1], kind, len(array), 8 * array.offset).tolist()
    return values


def chunks(values: Values) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def place_of(values: Values) -> Place | None:
    """Where values are in memory; None for values of which this is not known."""
    plain = values.type.num_buffers in (2, 3) and not values.type.num_fields and not pt.is_dictionary(values.type)
    if not plain:
        return None
    return tuple(
        (*(data.address if data is not None else 0 for data in chunk.buffers()[1:]), chunk.offset, len(chunk))
        for chunk in chunks(values)
    )
