"""What can be registered, how it is read, and what is said of what cannot."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from emberlog.data.arrow import arrow_schema, rows
from emberlog.data.sources import (
    ArrowSource,
    DatasetSource,
    EmptySource,
    SparkSource,
    SparkTableSource,
    TextSource,
    load_table,
    schema_of,
    source_of,
    type_of_spark,
)
from emberlog.diagnostics import DataError, EmberlogError, UsageError
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Column, Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SRC = Path(__file__).parent.parent.parent / "src"
INT8 = Type("number", bits=8)
FLOAT32 = Type("float", bits=32)


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision=precision, scale=scale)


def types(source: object) -> list[Type] | None:
    found = schema_of("p", source_of("p", source))
    return None if found is None else [column.type for column in found]


def load(value: object, *wanted: Type, nulls: Any = "error") -> list[tuple[Any, ...]]:
    columns = tuple(Column(name, type) for name, type in zip("xyz", wanted, strict=False)) or None
    table = load_table("p", source_of("p", value), columns, nulls)
    if columns is not None:
        assert table.schema == arrow_schema(columns)
    return rows(table)


def refusal(value: object, *wanted: Type) -> str:
    with pytest.raises(EmberlogError) as caught:
        load(value, *wanted)
    return caught.value.message


class Color(IntEnum):
    RED = 1


LISTS: list[tuple[object, list[Type], list[tuple[Any, ...]]]] = [
    ([(1, "a"), (2, "b")], [NUMBER, SYMBOL], [(1, "a"), (2, "b")]),
    ([[1, 2]], [NUMBER, NUMBER], [(1, 2)]),
    ([1, 2], [NUMBER], [(1,), (2,)]),
    (["ab", "c"], [SYMBOL], [("ab",), ("c",)]),
    ({(1, 2)}, [NUMBER, NUMBER], [(1, 2)]),
    ([()], [], [()]),
    ([(True,)], [BOOL], [(True,)]),
    ([(1,), (2.5,)], [FLOAT], [(1.0,), (2.5,)]),
    ([(2**63,), (0,)], [UNSIGNED], [(2**63,), (0,)]),
    ([(date(2020, 1, 1),)], [DATE], [(date(2020, 1, 1),)]),
    ([(datetime(2020, 1, 1, 5),)], [TIMESTAMP], [(datetime(2020, 1, 1, 5),)]),
    ([(datetime(2020, 1, 1, 5, tzinfo=timezone(timedelta(hours=2))),)], [TIMESTAMP], [(datetime(2020, 1, 1, 3),)]),
    (
        [(Decimal("1.5"),), (Decimal("1E+3"),), (Decimal("0.001"),)],
        [decimal(7, 3)],
        [(Decimal("1.500"),), (Decimal("1000.000"),), (Decimal("0.001"),)],
    ),
    ([(Color.RED, np.int64(2), np.str_("x"))], [NUMBER, NUMBER, SYMBOL], [(1, 2, "x")]),
    ([(np.float32(0.5),), (1,)], [FLOAT], [(0.5,), (1.0,)]),
    (np.array([[1, 2], [3, 4]]), [NUMBER, NUMBER], [(1, 2), (3, 4)]),
    ([("a\0'\"\n\t; drop table", "é\U0001f600")], [SYMBOL, SYMBOL], [("a\0'\"\n\t; drop table", "é\U0001f600")]),
]


@pytest.mark.parametrize(("value", "expected", "found"), LISTS)
def test_lists(value: object, expected: list[Type], found: list[tuple[Any, ...]]) -> None:
    assert types(value) == expected
    assert repr(load(value)) == repr(found)


def test_a_generator_is_read_once() -> None:
    def pairs() -> Iterator[tuple[int, int]]:
        yield 1, 2

    source = source_of("p", pairs())
    columns = schema_of("p", source)
    assert columns == (Column("c0", NUMBER), Column("c1", NUMBER))
    assert rows(load_table("p", source, columns)) == rows(load_table("p", source, None)) == [(1, 2)]


def test_an_empty_list_takes_the_columns_of_the_program() -> None:
    assert source_of("p", []) == EmptySource()
    assert types([]) is None
    assert load([], NUMBER, SYMBOL) == []
    assert refusal([]) == "the source of `p` has no rows, so nothing tells its columns"


BAD_LISTS: list[tuple[object, str]] = [
    ([(1, 2), (1, 2, 3)], "`p`: row 2 has 3 values, row 1 has 2"),
    ([(1, 2), 3], "`p`: row 2 is 3, row 1 is (1, 2)"),
    ([3, (1, 2)], "`p`: row 2 is (1, 2), row 1 is 3"),
    ([(1, 2), (1, "a")], "`p`, row 2, column c1: 'a' is a symbol, but row 1 has 2, a number"),
    ([(None,), (1,), (2.5,), (True,)], "`p`, row 4, column c0: True is a bool, but row 2 has 1, a number"),
    ([(date(2020, 1, 1),), (datetime(2020, 1, 1),)], "`p`, row 2, column c0: datetime.datetime(2020, 1, 1, 0, 0) is"
     " a timestamp, but row 1 has datetime.date(2020, 1, 1), a date"),
    ([(2**64,)], "`p`, row 1, column c0: 18446744073709551616 is out of range for unsigned"),
    ([(1,), (-1,), (2**63,)], "`p`, row 3, column c0: 9223372036854775808 is out of range for number"),
    ([(-(2**63) - 1,)], "`p`, row 1, column c0: -9223372036854775809 is out of range for number"),
    ([(0.5,), (2**53 + 1,)],
     "`p`, row 2, column c0: 9007199254740993 is not a float without loss, and others are floats"),
    ([(0.5,), (10**400,)], f"`p`, row 2, column c0: 1{'0' * 59}... is not a float without loss, and others are floats"),
    ([(1, b"x")], "`p`, row 1, column c1: b'x' is of type bytes; no column holds that"),
    ([(1, (2, 3))], "`p`, row 1, column c1: (2, 3) is of type tuple; no column holds that"),
    ([("a",), ("\ud800",)], "`p`, row 2, column c0: '\\ud800' is not valid Unicode"),
    ([(Decimal("NaN"),)], "`p`, row 1, column c0: NaN is no decimal number; use floats for it"),
    ([(Decimal("1E+40"),)], "`p`, row 1, column c0: 1E+40 needs more than 38 digits"),
    ([(1, None), (None, None), (2, 3)], "`p` has nulls: 1 in column c0, 2 in column c1 (of 3 rows)"),
    ({"a": [1]}, "`p`: a value of type dict cannot be registered"),
    (b"arc.csv", "`p`: a value of type bytes cannot be registered"),
    (5, "`p`: a value of type int cannot be registered"),
    (None, "`p`: a value of type NoneType cannot be registered"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), BAD_LISTS)
def test_bad_lists(value: object, message: str) -> None:
    assert refusal(value) == message


def test_nulls_are_dropped_on_demand() -> None:
    warnings: list[str] = []
    source = source_of("p", [(1, None), (None, None), (2, 3)])
    assert rows(load_table("p", source, None, "drop", warnings.append)) == [(2, 3)]
    assert warnings == ["`p`: 2 rows with nulls dropped"]
    assert load([(None,)], NUMBER, nulls="drop") == []
    assert refusal([(None,)], NUMBER) == "`p` has nulls: 1 in column x (of 1 row)"


# --- frames ----------------------------------------------------------------------------------------------------------


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "i": np.array([1, 2], "int32"),
            "f": [0.5, 1.5],
            "s": ["a", "b"],
            "c": pd.Categorical(["u", "v"]),
            "b": [True, False],
            "t": pd.to_datetime(["2020-01-01", "2020-01-02"]),
            "z": pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("Europe/Berlin"),
            "d": [date(2020, 1, 1), date(2020, 1, 2)],
            "m": [Decimal("1.5"), Decimal("2")],
        },
        index=[7, 8],
    )
    columns = schema_of("p", source_of("p", frame))
    assert columns == tuple(
        Column(name, type)
        for name, type in zip(
            "ifscbtzdm",
            (NUMBER, FLOAT, SYMBOL, SYMBOL, BOOL, TIMESTAMP, TIMESTAMP, DATE, decimal(2, 1)),
            strict=True,
        )
    )
    first, second = load(frame)
    assert first == (
        *(1, 0.5, "a", "u", True, datetime(2020, 1, 1), datetime(2019, 12, 31, 23), date(2020, 1, 1)),
        Decimal("1.5"),
    )
    assert second[1] == 1.5


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        ["a", math.nan],
        [1.5, math.nan],
        pd.array([1, None], "Int64"),
        pd.Series([pd.Timestamp("2020-01-01"), pd.NaT]),
        [1.5, pd.NA],
    ],
    ids=str,
)
def test_nulls_of_pandas(values: Any) -> None:
    frame = pd.DataFrame({"x": values})
    assert refusal(frame) == "`p` has nulls: 1 in column x (of 2 rows)"
    assert len(load(frame, nulls="drop")) == 1


def test_pandas_with_nothing_in_it() -> None:
    assert types(pd.DataFrame({"x": [], "y": []}, dtype=object)) is None
    assert load(pd.DataFrame({"x": [], "y": []}, dtype=object), NUMBER, SYMBOL) == []
    assert types(pd.DataFrame({"x": pd.Series([], dtype="int64")})) == [NUMBER]


def test_objects_that_do_not_fit_are_found() -> None:
    message = refusal(pd.DataFrame({"x": [1, 2], "y": ["a", 3]}))
    assert message == "`p`, row 2, column y: 3 is a number, but row 1 has 'a', a symbol"
    assert refusal(pd.DataFrame({"x": [[1], [2]]})) == "`p`, row 1, column x: [1] is of type list; no column holds that"
    assert refusal(pd.DataFrame({"x": [pd.Timedelta(1)]})) == (
        "`p`, column x: values of type duration[ns] are not supported"
    )


def test_pandas_columns_without_names() -> None:
    assert schema_of("p", source_of("p", pd.DataFrame([[1, "a"]]))) == (Column("0", NUMBER), Column("1", SYMBOL))
    twice = pd.DataFrame([[1, "a"]], columns=["x", "x"])
    assert schema_of("p", source_of("p", twice)) == (Column("c0", NUMBER), Column("c1", SYMBOL))


def test_polars() -> None:
    frame = pl.DataFrame(
        {"i": [1], "s": ["a"], "c": pl.Series(["u"], dtype=pl.Categorical), "u": pl.Series([1], dtype=pl.UInt8)}
    )
    for value in (frame, frame.lazy()):
        assert types(value) == [NUMBER, SYMBOL, SYMBOL, UNSIGNED]
        assert load(value) == [(1, "a", "u", 1)]
    assert (
        refusal(pl.DataFrame({"x": [[1]]})) == "`p`, column x: values of type large_list<item: int64> are not supported"
    )
    assert refusal(pl.DataFrame({"x": [1, None]})) == "`p` has nulls: 1 in column x (of 2 rows)"


def test_arrow() -> None:
    table = pa.table({"x": [1, 2], "y": ["a", "b"]})
    [batch] = table.to_batches()
    dataset = pa.dataset.dataset(table)
    for value in (table, batch, batch.to_reader() if hasattr(batch, "to_reader") else table.to_reader(), dataset):
        source = source_of("p", value)
        assert isinstance(source, ArrowSource)
        assert schema_of("p", source) == (Column("x", NUMBER), Column("y", SYMBOL))
        assert rows(load_table("p", source, None)) == [(1, "a"), (2, "b")]
    assert refusal(pa.table({"x": [b"a"]})) == "`p`, column x: values of type binary are not supported"


CASTS: list[tuple[Any, Any, Type, Any]] = [
    (1, pa.int32(), NUMBER, 1),
    (1, pa.uint8(), NUMBER, 1),
    (1, pa.int64(), UNSIGNED, 1),
    (1, pa.int64(), FLOAT, 1.0),
    (1.0, pa.float64(), NUMBER, 1),
    (0.5, pa.float16(), FLOAT, 0.5),
    (0.1, pa.float64(), FLOAT32, 0.10000000149011612),
    (127, pa.int64(), INT8, 127),
    (Decimal("1.5"), pa.decimal128(5, 2), FLOAT, 1.5),
    (Decimal("2.00"), pa.decimal128(5, 2), NUMBER, 2),
    (Decimal("1.50"), pa.decimal128(5, 2), decimal(4, 1), Decimal("1.5")),
    (7, pa.int64(), decimal(4, 1), Decimal("7.0")),
    ("1.5", pa.string(), decimal(4, 1), Decimal("1.5")),
    ("2020-01-02", pa.large_string(), DATE, date(2020, 1, 2)),
    ("2020-01-02 03:04:05", pa.string_view(), TIMESTAMP, datetime(2020, 1, 2, 3, 4, 5)),
    ("2020-01-02", pa.dictionary(pa.int8(), pa.string()), DATE, date(2020, 1, 2)),
    (datetime(2020, 1, 2), pa.timestamp("ns"), DATE, date(2020, 1, 2)),
    (datetime(2020, 1, 2, tzinfo=UTC), pa.timestamp("s", tz="Asia/Tokyo"), TIMESTAMP, datetime(2020, 1, 2)),
    (date(2020, 1, 2), pa.date64(), TIMESTAMP, datetime(2020, 1, 2)),
]


@pytest.mark.parametrize(("value", "kind", "wanted", "expected"), CASTS)
def test_casts(value: Any, kind: pa.DataType, wanted: Type, expected: Any) -> None:
    assert repr(load(pa.table({"x": pa.array([value], kind)}), wanted)) == repr([(expected,)])


BAD_CASTS: list[tuple[Any, Any, Type, str]] = [
    (1, pa.int64(), SYMBOL, "`p`, column x: the program wants symbol, the source has number"),
    ("1", pa.string(), NUMBER, "`p`, column x: the program wants number, the source has symbol"),
    (True, pa.bool_(), NUMBER, "`p`, column x: the program wants number, the source has bool"),
    (1.5, pa.float64(), NUMBER, "`p`, row 3, column x: 1.5 does not fit number"),
    (math.nan, pa.float64(), NUMBER, "`p`, row 3, column x: nan does not fit number"),
    (2**63, pa.uint64(), NUMBER, "`p`, row 3, column x: 9223372036854775808 does not fit number"),
    (-1, pa.int64(), UNSIGNED, "`p`, row 3, column x: -1 does not fit unsigned"),
    (128, pa.int64(), INT8, "`p`, row 3, column x: 128 does not fit int8"),
    (2**53 + 1, pa.int64(), FLOAT, "`p`, row 3, column x: 9007199254740993 does not fit float"),
    (Decimal("1.25"), pa.decimal128(5, 2), decimal(4, 1),
     "`p`, row 3, column x: 1.25 does not fit decimal(4,1)"),
    ("x", pa.string(), DATE, "`p`, row 3, column x: 'x' is not a date (YYYY-MM-DD)"),
    (datetime(2020, 1, 1, 5), pa.timestamp("us"), DATE,
     "`p`, row 3, column x: 2020-01-01 05:00:00.000000 does not fit date"),
    (pd.Timestamp("2020-01-01 00:00:00.000000001"), pa.timestamp("ns"), TIMESTAMP,
     "`p`, row 3, column x: 2020-01-01 00:00:00.000000001 does not fit timestamp"),
]  # fmt: skip

GOOD = {pa.string(): "2020-01-01", pa.bool_(): True, pa.decimal128(5, 2): Decimal(1)}


@pytest.mark.parametrize(("value", "kind", "wanted", "message"), BAD_CASTS)
def test_the_first_value_that_does_not_fit_is_named(value: Any, kind: pa.DataType, wanted: Type, message: str) -> None:
    good = GOOD.get(kind, pd.Timestamp("2020-01-01") if pa.types.is_timestamp(kind) else 1)
    table = pa.table({"x": pa.array([good, good, value, good, value], kind)})
    assert refusal(table, wanted) == message


def test_columns_are_taken_by_position() -> None:
    table = pa.table({"y": [1], "x": ["a"]})
    warnings: list[str] = []
    columns = (Column("x", NUMBER), Column("y", SYMBOL))
    assert rows(load_table("p", source_of("p", table), columns, warn=warnings.append)) == [(1, "a")]
    assert warnings == [
        "`p`: the source's columns are y, x, the program's x, y; columns are taken by position, not by name"
    ]
    assert refusal(table, NUMBER) == "`p` has 1 column in the program and 2 in its source (y, x)"


# --- files -----------------------------------------------------------------------------------------------------------


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a.TSV", "a.facts", "a.parquet", "a.arrow", "b.xlsx"):
        Path(name).touch()
    assert source_of("p", "a.csv") == TextSource(Path("a.csv"), ",", None, True)
    assert source_of("p", Path("a.csv"), header=True, delimiter=";") == TextSource(Path("a.csv"), ";", True, True)
    assert source_of("p", "a.TSV") == TextSource(Path("a.TSV"), "\t", False, False)
    assert source_of("p", "a.facts", header=True) == TextSource(Path("a.facts"), "\t", True, False)
    assert source_of("p", "a.parquet") == DatasetSource("a.parquet", "parquet")
    assert source_of("p", "a.arrow") == DatasetSource("a.arrow", "feather")
    assert source_of("p", "s3://bucket/a.parquet") == DatasetSource("s3://bucket/a.parquet", "parquet")
    assert refusal("b.csv") == "cannot read `p`: b.csv does not exist"
    assert refusal("b.xlsx") == "`p`: cannot tell the format of b.xlsx"
    assert refusal("s3://bucket/a.csv") == "`p`: text files are read from paths only, not from s3://bucket/a.csv"
    for value in ("a.parquet", [(1,)]):
        with pytest.raises(UsageError, match="header and delimiter are for text files"):
            source_of("p", value, header=True)


def test_a_csv_with_a_header(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('id,name\n1,"a, b"\n')
    assert schema_of("p", source_of("p", path)) == (Column("id", NUMBER), Column("name", SYMBOL))
    assert load(path) == load(path, NUMBER, SYMBOL) == [(1, "a, b")]


def test_a_csv_whose_first_line_tells_nothing_is_data_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("ann,rome\nbob,oslo\n")
    warnings: list[str] = []
    assert rows(load_table("p", source_of("p", path), None, warn=warnings.append)) == [("ann", "rome"), ("bob", "oslo")]
    assert warnings == [
        f"{path}: cannot tell if the first line is a header; it is taken as data (header=True or False says)"
    ]
    assert rows(load_table("p", source_of("p", path, header=True), None)) == [("bob", "oslo")]


def test_a_file_removed_after_it_was_registered(tmp_path: Path) -> None:
    for name in ("p.csv", "p.facts", "p.parquet"):
        path = tmp_path / name
        pa.parquet.write_table(pa.table({"x": [1]}), path)
        source = source_of("p", path)
        path.unlink()
        for read in (lambda source=source: schema_of("p", source), lambda source=source: load_table("p", source, None)):
            with pytest.raises(DataError, match="does not exist"):
                read()


def test_parquet_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "p.parquet"
    for year in (2020, 2021):
        (folder / f"year={year}").mkdir(parents=True)
        pa.parquet.write_table(pa.table({"x": [year % 100]}), folder / f"year={year}" / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    assert schema_of("p", source_of("p", folder)) == (Column("x", NUMBER), Column("year", NUMBER))
    assert sorted(load(folder)) == [(20, 2020), (21, 2021)]
    assert load(folder / "year=2020" / "part-0.parquet") == [(20,)]


def test_files_that_are_not_parquet(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_text("1\t2\n")
    assert "is not a good Parquet file" in refusal(tmp_path / "p.parquet")
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").endswith("empty has no files in it")


# --- Spark -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "type"),
    [
        *((name, NUMBER) for name in ("tinyint", "smallint", "int", "bigint")),
        *((name, FLOAT) for name in ("float", "double")),
        *((name, SYMBOL) for name in ("string", "varchar(10)", "char(3)", "string collate UNICODE")),
        ("boolean", BOOL),
        ("date", DATE),
        *((name, TIMESTAMP) for name in ("timestamp", "timestamp_ntz")),
        ("decimal(10,2)", decimal(10, 2)),
        *((name, None) for name in ("binary", "array<int>", "struct<a:int>", "map<int,int>", "variant", "void")),
    ],
)
def test_type_of_spark(text: str, type: Type | None) -> None:
    assert type_of_spark(text) == type


def test_a_spark_frame(spark: SparkSession) -> None:
    frame = spark.sql("select 1 as i, 'a' as s, timestamp '2020-01-01 00:00:00' as t, cast(1.5 as decimal(5, 2)) as d")
    source = source_of("p", frame)
    assert isinstance(source, SparkSource) and source.frame is frame
    columns = schema_of("p", source)
    assert columns == (Column("i", NUMBER), Column("s", SYMBOL), Column("t", TIMESTAMP), Column("d", decimal(5, 2)))
    assert rows(load_table("p", source, columns)) == [(1, "a", datetime(2020, 1, 1), Decimal("1.50"))]
    with pytest.raises(DataError, match=r"`p`, column a: values of type array<int> are not supported"):
        schema_of("p", source_of("p", spark.sql("select array(1) as a")))


def test_catalog_tables_need_spark() -> None:
    source = SparkTableSource("db.arc")
    assert schema_of("p", source) is None
    with pytest.raises(UsageError, match='needs executor="spark"'):
        load_table("p", source, (Column("x", NUMBER),))


def test_the_package_imports_none_of_the_frames() -> None:
    code = (
        "import sys, emberlog.data.directives; "
        "print(sorted({'pyspark', 'duckdb', 'pandas', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SRC)}
    )
    assert done.stdout.strip() == "[]"
