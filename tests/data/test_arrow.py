"""Types as Arrow types and back; rows as Python values."""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from emberlog.data.arrow import array_of, arrow_schema, arrow_type, empty_table, nullary_table, rows, type_of_arrow
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Column, Type

DECIMAL = Type("decimal", precision=10, scale=2)

THERE = [
    (NUMBER, pa.int64()),
    (Type("number", bits=8), pa.int64()),
    (UNSIGNED, pa.uint64()),
    (Type("unsigned", bits=16), pa.uint64()),
    (FLOAT, pa.float64()),
    (Type("float", bits=32), pa.float64()),
    (SYMBOL, pa.string()),
    (BOOL, pa.bool_()),
    (DATE, pa.date32()),
    (TIMESTAMP, pa.timestamp("us")),
    (DECIMAL, pa.decimal128(10, 2)),
]

BACK = [
    *((kind, NUMBER) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, UNSIGNED) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    *((kind, FLOAT) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *((kind, SYMBOL) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.dictionary(pa.int32(), pa.large_string()), SYMBOL),
    (pa.dictionary(pa.int8(), pa.int16()), NUMBER),
    (pa.bool_(), BOOL),
    (pa.date32(), DATE),
    (pa.date64(), DATE),
    *((pa.timestamp(unit), TIMESTAMP) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("ns", tz="Europe/Berlin"), TIMESTAMP),
    (pa.decimal128(10, 2), DECIMAL),
    (pa.decimal256(10, 2), DECIMAL),
    (pa.decimal128(8, -2), Type("decimal", precision=10, scale=0)),
    (pa.decimal256(50, 2), None),
    (pa.list_(pa.int64()), None),
    (pa.struct([]), None),
    (pa.binary(), None),
    (pa.time64("us"), None),
    (pa.duration("s"), None),
]


@pytest.mark.parametrize(("type", "expected"), THERE, ids=str)
def test_arrow_type(type: Type, expected: pa.DataType) -> None:
    assert arrow_type(type) == expected


@pytest.mark.parametrize(("type", "expected"), BACK, ids=str)
def test_type_of_arrow(type: pa.DataType, expected: Type | None) -> None:
    assert type_of_arrow(type) == expected


def test_every_type_comes_back_from_arrow() -> None:
    for type, _ in THERE:
        assert type_of_arrow(arrow_type(type)) == type.wide


def test_columns_are_named_by_position() -> None:
    columns = (Column("X", NUMBER), Column("x", SYMBOL))
    assert arrow_schema(columns) == pa.schema([("c0", pa.int64()), ("c1", pa.string())])
    assert empty_table(columns).schema == arrow_schema(columns)
    assert rows(empty_table(columns)) == []


@pytest.mark.parametrize("holds", [True, False])
def test_nullary(holds: bool) -> None:
    assert rows(nullary_table(holds)) == [()] * holds


def test_rows_are_python_values() -> None:
    row = (1, 2**64 - 1, 0.5, "a\0'\"é", True, date(2020, 2, 29), datetime(2020, 2, 29, 1, 2, 3, 4), Decimal("1.50"))
    types = [arrow_type(type) for type in (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP, DECIMAL)]
    table = pa.table([pa.array([value], type) for value, type in zip(row, types, strict=True)], names=list("abcdefgh"))
    [found] = rows(table)
    assert found == row
    assert [type(value) for value in found] == [type(value) for value in row]


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([1, -(2**63), 2**63 - 1], pa.int64()),
        ((0, 2**64 - 1), pa.uint64()),
        ([1, 0.5, float("inf"), -0.0], pa.float64()),
        (["a", "", "é\0", "\U0001f600"], pa.string()),
        (["a", "", "é\0"], pa.large_string()),
        ([True, False], pa.bool_()),
        ([date(2020, 1, 1)], pa.date32()),
        ([], pa.string()),
        ([], pa.int64()),
    ],
)
def test_arrays_without_pandas(values: Any, type: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pa.array(values, type)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    found = array_of(values, type)
    found.validate(full=True)
    assert found.equals(expected)
    with pytest.raises(OverflowError):
        array_of([2**63], pa.int64())
    with pytest.raises(UnicodeEncodeError):
        array_of(["\ud800"], pa.string())
