"""Python values as Arrow tables: lists of tuples, and pandas frames.

The type of a column comes from all of its values: bool, int (number, or unsigned if one is beyond int64 and none is
negative), float (with whole numbers among them), str, date, datetime (with a time zone: its wall time in UTC), Decimal.
None is a null. Rows count from 1 in messages.

In a pandas frame a NaN of a float column is the value NaN; None, NaT and pandas.NA are nulls everywhere, and so is a
NaN among objects, where pandas itself means a missing value by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Any, TypeAlias

import pyarrow as pa

from emberlog.data.arrow import MAX_PRECISION, array_of, field_names, nullary_table
from emberlog.data.text import shown
from emberlog.diagnostics import DataError, counted
from emberlog.types import INT64_MAX, INT64_MIN, UINT64_MAX

# Order matters: a bool is an int, and a datetime a date, to Python.
_CLASSES = (bool, int, float, str, datetime, date, Decimal)
_NOUNS = {
    bool: "a bool",
    int: "a number",
    float: "a float",
    str: "a symbol",
    datetime: "a timestamp",
    date: "a date",
    Decimal: "a decimal",
}


Misfits: TypeAlias = dict[int, DataError]
"""The columns that no array can hold, and why. A table has nulls in their place."""


def table_of_rows(relation: str, rows: Iterable[object]) -> tuple[pa.Table, Misfits] | None:
    """A table of tuples (or lists), or of single values as rows of one column. None if there are no rows."""
    listed = list(rows)
    if not listed:
        return None
    tuples = [row for row in listed if isinstance(row, tuple | list)]
    if not tuples:
        return _table(relation, ["c0"], [listed])
    if len(tuples) < len(listed):
        first = isinstance(listed[0], tuple | list)
        odd = next(i for i, row in enumerate(listed) if isinstance(row, tuple | list) != first)
        raise DataError(f"`{relation}`: row {odd + 1} is {shown(listed[odd])}, row 1 is {shown(listed[0])}")
    width = len(tuples[0])
    if len(set(map(len, tuples))) > 1:
        odd = next(i for i, row in enumerate(tuples) if len(row) != width)
        raise DataError(f"`{relation}`: row {odd + 1} has {counted(len(tuples[odd]), 'value')}, row 1 has {width}")
    if width == 0:
        return nullary_table(True), {}
    return _table(relation, field_names(width), zip(*tuples, strict=True))


def _table(relation: str, names: list[str], columns: Iterable[Sequence[object]]) -> tuple[pa.Table, Misfits]:
    arrays: list[pa.Array] = []
    misfits: Misfits = {}
    for position, (name, values) in enumerate(zip(names, columns, strict=True)):
        try:
            arrays.append(array_of_values(relation, name, values))
        except DataError as error:
            arrays.append(pa.nulls(len(values)))
            misfits[position] = error
    return pa.table(arrays, names=names), misfits


def array_of_values(relation: str, column: str, values: Sequence[object]) -> pa.Array:
    """The values as one Arrow array. Raises DataError with row, column and value where they have no common type."""
    classes = {kind: _class_of(kind) for kind in set(map(type, values))}
    if any(kind.__module__ == "numpy" for kind in classes):
        values = [value.item() if type(value).__module__ == "numpy" else value for value in values]  # type: ignore[attr-defined]
        classes = {kind: _class_of(kind) for kind in set(map(type, values))}
    found = {known for known in classes.values() if known is not None}
    if object in found:
        row = next(i for i, value in enumerate(values) if classes[type(value)] is object)
        kind = type(values[row]).__name__
        raise DataError(
            f"{_place(relation, row, column)}: {shown(values[row])} is of type {kind}; no column holds that"
        )
    if found == {int, float}:
        return pa.array(_floats(relation, column, values), pa.float64())
    if len(found) > 1:
        raise _mixed(relation, column, values, classes)
    try:
        return _array(relation, column, values, found.pop() if found else None)
    except UnicodeEncodeError:
        row = next(i for i, value in enumerate(values) if isinstance(value, str) and not _is_unicode(value))
        raise DataError(f"{_place(relation, row, column)}: {shown(values[row])} is not valid Unicode") from None


def _class_of(kind: type) -> type | None:
    """Which of the known classes values of `kind` count as; None for nulls, object for what no column holds."""
    if kind is type(None):
        return None
    return next((known for known in _CLASSES if issubclass(kind, known)), object)


def _array(relation: str, column: str, values: Sequence[Any], kind: type | None) -> pa.Array:
    if kind is None:
        return pa.nulls(len(values))
    if kind is int:
        return _integers(relation, column, values)
    if kind is datetime:
        return pa.array([_utc(value) for value in values], pa.timestamp("us"))
    if kind is Decimal:
        return _decimals(relation, column, values)
    type = {bool: pa.bool_(), float: pa.float64(), str: pa.string(), date: pa.date32()}[kind]
    return pa.array(values, type) if None in values else array_of(values, type)


def _integers(relation: str, column: str, values: Sequence[Any]) -> pa.Array:
    known = [value for value in values if value is not None]
    try:
        return array_of(values, pa.int64()) if len(known) == len(values) else pa.array(values, pa.int64())
    except OverflowError:
        pass
    low, high = min(known), max(known)
    if low >= 0 and high <= UINT64_MAX:
        return pa.array(values, pa.uint64())
    bad = low if low < INT64_MIN else high
    reason = "number" if high <= INT64_MAX or low < 0 else "unsigned"
    raise DataError(f"{_place(relation, values.index(bad), column)}: {shown(bad)} is out of range for {reason}")


def _floats(relation: str, column: str, values: Sequence[Any]) -> list[float | None]:
    """Floats and integers as floats; every integer must be one."""
    floats: list[float | None] = []
    for row, value in enumerate(values):
        if isinstance(value, int) and abs(value) > 2**53 and not _is_float(value):
            raise DataError(
                f"{_place(relation, row, column)}: {shown(value)} is not a float without loss, and others are floats"
            )
        floats.append(None if value is None else float(value))
    return floats


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _decimals(relation: str, column: str, values: Sequence[Any]) -> pa.Array:
    """Decimals with the digits before and after the point that the longest ones need."""
    whole, scale = 1, 0
    for row, value in enumerate(values):
        if value is None:
            continue
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise DataError(f"{_place(relation, row, column)}: {value} is no decimal number; use floats for it")
        whole, scale = max(whole, len(digits) + exponent), max(scale, -exponent)
        if whole + scale > MAX_PRECISION:
            raise DataError(f"{_place(relation, row, column)}: {value} needs more than {MAX_PRECISION} digits")
    with localcontext(prec=MAX_PRECISION):
        return pa.array(values, pa.decimal128(whole + scale, scale))


def _utc(value: datetime | None) -> datetime | None:
    if value is None or value.tzinfo is None:
        return value
    return value.astimezone(UTC).replace(tzinfo=None)


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mixed(relation: str, column: str, values: Sequence[object], classes: dict[type, type | None]) -> DataError:
    start = next(i for i, value in enumerate(values) if value is not None)
    kind = classes[type(values[start])]
    allowed = {kind, None} | ({int, float} if kind in (int, float) else set())
    odd = next(i for i, value in enumerate(values) if classes[type(value)] not in allowed)
    return DataError(
        f"{_place(relation, odd, column)}: {shown(values[odd])} is {_noun(values[odd])}, "
        f"but row {start + 1} has {shown(values[start])}, {_noun(values[start])}"
    )


def _noun(value: object) -> str:
    return _NOUNS[next(known for known in _CLASSES if isinstance(value, known))]


def _place(relation: str, row: int, column: str) -> str:
    return f"`{relation}`, row {row + 1}, column {column}"


def table_of_pandas(relation: str, frame: Any) -> tuple[pa.Table, Misfits]:
    """A pandas frame's columns, without its index."""
    names = [str(name) for name in frame.columns]
    if not names:
        return nullary_table(len(frame) > 0), {}
    arrays: list[Any] = []
    misfits: Misfits = {}
    for position, name in enumerate(names):
        try:
            arrays.append(_pandas_array(relation, name, frame.iloc[:, position]))
        except DataError as error:
            arrays.append(pa.nulls(len(frame)))
            misfits[position] = error
    return pa.table(arrays, names=names), misfits


def _pandas_array(relation: str, column: str, series: Any) -> Any:
    if series.dtype == object:
        return array_of_values(relation, column, series.astype(object).where(series.notna(), None).tolist())
    # NaN is how pandas writes a missing number, so it is a null here. (Arrow tables tell the two apart.)
    try:
        return pa.array(series, from_pandas=True)
    except pa.ArrowException:
        raise DataError(f"`{relation}`, column {column}: values of type {series.dtype} are not supported") from None
