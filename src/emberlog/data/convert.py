"""An Arrow table made to fit the columns of a relation: nulls, casts, and the first value that does not fit.

A cast changes how a value is kept, not what it is: integers between widths, integers and decimals to float where exact
or declared so, floats to integers where whole, texts to dates, timestamps and decimals. A number is never made a text
or a text a number: a source that needs that says so itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from emberlog.data.arrow import array_of, arrow_type, nullary_table, table_of, type_of_arrow
from emberlog.data.text import describe, shown
from emberlog.diagnostics import DataError, counted
from emberlog.types import INT64_MIN, SYMBOL, Column, Kind, Type

Nulls: TypeAlias = Literal["error", "drop"]
Warn: TypeAlias = Callable[[str], None]

_FROM: dict[Kind, tuple[Kind, ...]] = {
    "number": ("number", "unsigned", "float", "decimal"),
    "unsigned": ("number", "unsigned", "float", "decimal"),
    "float": ("number", "unsigned", "float", "decimal"),
    "symbol": ("symbol",),
    "bool": ("bool",),
    "date": ("date", "timestamp", "symbol"),
    "timestamp": ("date", "timestamp", "symbol"),
    "decimal": ("number", "unsigned", "decimal", "symbol"),
}

_NARROW = {
    ("number", 8): pa.int8(),
    ("number", 16): pa.int16(),
    ("number", 32): pa.int32(),
    ("unsigned", 8): pa.uint8(),
    ("unsigned", 16): pa.uint16(),
    ("unsigned", 32): pa.uint32(),
    ("float", 32): pa.float32(),
}


def ignore(warning: str) -> None:
    """The `warn` of callers that do not ask for warnings."""


def columns_of_schema(relation: str, schema: pa.Schema, unread: Container[int] = ()) -> tuple[Column, ...] | None:
    """Names and types of a source's columns; None if some column has nothing but nulls, and so no type.

    Raises DataError for a type that the language does not have. Names that occur twice give way to c0..ck. Columns at
    the positions `unread` are symbols if they have no type that the language has: nobody will look.
    """
    if any(pt.is_null(field.type) for i, field in enumerate(schema) if i not in unread):
        return None
    distinct = len(set(schema.names)) == len(schema.names)
    return tuple(
        Column(
            field.name if distinct else f"c{i}",
            (type_of_arrow(field.type) or SYMBOL) if i in unread else _known_type(relation, field),
        )
        for i, field in enumerate(schema)
    )


def _known_type(relation: str, field: pa.Field) -> Type:
    type = type_of_arrow(field.type)
    if type is None:
        raise unsupported(relation, field.name, str(field.type))
    return type


def unsupported(relation: str, column: str, type: str) -> DataError:
    """The error for a column whose type the language does not have."""
    return DataError(
        f"`{relation}`, column {column}: values of type {type} are not supported",
        fix="leave the column out of the source, or turn it into numbers or text first",
    )


def conform(
    relation: str,
    table: pa.Table,
    columns: Sequence[Column],
    nulls: Nulls,
    warn: Warn,
    positions: Sequence[int] | None = None,
) -> pa.Table:
    """The table with the columns c0..ck, taken by position, of exactly the Arrow types of `columns`.

    With `positions` it has only those at these positions; what stands in the others does not matter.
    """
    if table.num_columns != len(columns):
        raise DataError(
            f"`{relation}` has {counted(len(columns), 'column')} in the program and {table.num_columns} in its source"
            f" ({', '.join(table.column_names)})"
        )
    _warn_of_order(relation, table.column_names, columns, warn)
    if positions is not None:
        columns = [columns[i] for i in positions]
    if not columns:
        return nullary_table(table.num_rows > 0)
    if positions is not None:
        table = table.select(list(positions))
    table = _without_nulls(relation, table, columns, nulls, warn)
    return table_of([_cast(relation, values, column) for values, column in zip(table.columns, columns, strict=True)])


def _warn_of_order(relation: str, names: list[str], columns: Sequence[Column], warn: Warn) -> None:
    wanted = [column.name for column in columns]
    if names != wanted and sorted(names) == sorted(wanted):
        warn(
            f"`{relation}`: the source's columns are {', '.join(names)}, the program's {', '.join(wanted)}; "
            "columns are taken by position, not by name"
        )


def _without_nulls(relation: str, table: pa.Table, columns: Sequence[Column], nulls: Nulls, warn: Warn) -> pa.Table:
    counts = {c.name: values.null_count for c, values in zip(columns, table.columns, strict=True) if values.null_count}
    if not counts:
        return table
    if nulls == "error":
        listed = ", ".join(f"{count} in column {name}" for name, count in counts.items())
        raise DataError(
            f"`{relation}` has nulls: {listed} (of {counted(table.num_rows, 'row')})",
            fix='nulls="drop" leaves such rows out',
        )
    kept = table.drop_null()
    warn(f"`{relation}`: {counted(table.num_rows - kept.num_rows, 'row')} with nulls dropped")
    return kept


def _cast(relation: str, values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if len(values) == 0:
        return pa.chunked_array([], arrow_type(column.type))
    found = _known_type(relation, pa.field(column.name, values.type))
    if found.kind not in _FROM[column.type.kind]:
        raise DataError(
            f"`{relation}`, column {column.name}: the program wants {column.type}, the source has {found}",
            fix=f"declare the column as {found}, or convert it in the source",
        )
    try:
        return fit(values, column.type)
    except (pa.ArrowException, ValueError) as error:
        row = _first_bad(values, column.type)
        problem = _problem(values[row], column.type)
        raise DataError(f"`{relation}`, row {row + 1}, column {column.name}: {problem}") from error


def _problem(value: pa.Scalar, type: Type) -> str:
    if pt.is_timestamp(value.type):  # not all of them have a Python value
        return f"{value.cast(pa.string()).as_py()} does not fit {type}"
    known = value.as_py()
    if isinstance(known, str):
        return f"{shown(known)} is not {describe(type)}"
    return f"{known} does not fit {type}"


def fit(values: Any, type: Type) -> Any:
    """The values in the Arrow type of `type`. Raises ArrowInvalid or ValueError if one changes on the way."""
    target = arrow_type(type)
    source = values.type
    if pt.is_dictionary(source):
        values = pa.chunked_array([_viewless(chunk.dictionary).take(chunk.indices) for chunk in values.chunks])
    values = _viewless(values)
    if pt.is_timestamp(source):
        # Dropping the zone keeps the instant: its wall time in UTC.
        values = values.cast(pa.timestamp(source.unit))
    if type.kind == "decimal" and pt.is_integer(values.type):
        # Straight to a decimal, Arrow wants room for every value of the integer type, not only for those here.
        values = values.cast(pa.decimal256(76, type.scale))
    result = without_signs(narrow(values.cast(target), type))
    if type.kind == "date" and pt.is_timestamp(source):
        if not pc.all(pc.equal(result.cast(values.type), values)).as_py():
            raise ValueError("a timestamp with a time of day")
    return result


def without_signs(values: Any) -> Any:
    """The values with 0.0 in place of -0.0, which no value of a program is. Others are not copied."""
    if not pt.is_float64(values.type):
        return values
    chunks = [_without_signs(chunk) for chunk in (values.chunks if isinstance(values, pa.ChunkedArray) else [values])]
    return pa.chunked_array(chunks, pa.float64()) if isinstance(values, pa.ChunkedArray) else chunks[0]


def _without_signs(values: pa.Array) -> pa.Array:
    negative_zero = array_of([INT64_MIN], pa.int64())[0]  # as 64 bits
    if not pc.any(pc.equal(values.view(pa.int64()), negative_zero)).as_py():
        return values
    return pc.add(values, array_of([0.0], pa.float64())[0])


def _viewless(values: Any) -> Any:
    """Arrow does little with string views but to make them strings."""
    return values.cast(pa.string()) if pt.is_string_view(values.type) else values


def narrow(values: Any, type: Type) -> Any:
    """Values of 64 bits checked against, or rounded to, the width of `type`; kept in 64 bits."""
    if type.bits == 64:
        return values
    small = _NARROW[type.kind, type.bits]
    if type.kind == "float":
        return values.cast(small, safe=False).cast(values.type)
    values.cast(small)
    return values


def _first_bad(values: pa.ChunkedArray, type: Type) -> int:
    """Position of the first value that does not fit; by halving, as only whole arrays are checked fast."""
    start, length = 0, len(values)
    while length > 1:
        half = length // 2
        try:
            fit(values.slice(start, half), type)
        except (pa.ArrowException, ValueError):
            length = half
        else:
            start, length = start + half, length - half
    return start
