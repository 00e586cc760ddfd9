"""Folders named `key=value`: the types that Spark gives them, on both executors."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog.data.sources import schema_of, source_of
from engine.places import Place

NULL = "__HIVE_DEFAULT_PARTITION__"

# Folders, the type of the column, its values.
CASES: list[tuple[list[str], str, list[object]]] = [
    (["2026-11-01", "2026-11-02"], "date", [date(2026, 11, 1), date(2026, 11, 2)]),
    (["01"], "number", [1]),
    (["+5", "-3"], "number", [5, -3]),
    (["٣"], "number", [3]),
    (["1", "2147483648"], "number", [1, 2**31]),
    (["9223372036854775808"], "decimal(19,0)", [Decimal(2**63)]),
    (["1", "9223372036854775808"], "decimal(19,0)", [Decimal(1), Decimal(2**63)]),
    (["2147483648", "9223372036854775808"], "decimal(20,0)", [Decimal(2**31), Decimal(2**63)]),
    (["1e5"], "decimal(6,0)", [Decimal(100000)]),
    (["1.5e3"], "decimal(4,0)", [Decimal(1500)]),
    (["1."], "decimal(1,0)", [Decimal(1)]),
    (["1e40"], "float", [1e40]),
    (["1", "1.5"], "float", [1.0, 1.5]),
    (["1d", " 1", ".5", "1e-2"], "float", [1.0, 1.0, 0.5, 0.01]),
    (["2147483648", "1.5"], "symbol", ["2147483648", "1.5"]),
    (["9223372036854775808", "1.5"], "symbol", ["9223372036854775808", "1.5"]),
    (["2026-11-01 10%3A00%3A00"], "timestamp", [datetime(2026, 11, 1, 10)]),
    (["2026-11-01 10:00:00.5"], "timestamp", [datetime(2026, 11, 1, 10, 0, 0, 500000)]),
    (["2026-11-01", "2026-11-01 10:00:00"], "timestamp", [datetime(2026, 11, 1), datetime(2026, 11, 1, 10)]),
    (["2026-11-01", "1"], "symbol", ["2026-11-01", "1"]),
    (["01", "a"], "symbol", ["01", "a"]),
    (["1.50", "a"], "symbol", ["1.50", "a"]),
    (["2026-11-31"], "symbol", ["2026-11-31"]),
    (["2026-1-1"], "symbol", ["2026-1-1"]),
    (["2026-11-01T10:00:00"], "symbol", ["2026-11-01T10:00:00"]),
    (["2026-11-01 10:00:00.123"], "symbol", ["2026-11-01 10:00:00.123"]),
    (["true"], "symbol", ["true"]),
    (["0x10", "1_000", "inf", "1L"], "symbol", ["0x10", "1_000", "inf", "1L"]),
    (["a%2Fb", "a b", "a%20b", "%31", "100%", "%zz", "é"], "symbol", ["a/b", "a b", "a b", "1", "100%", "%zz", "é"]),
]  # fmt: skip
SPARK = {"int": "number", "bigint": "number", "double": "float", "string": "symbol"}


def write(folder: Path, texts: list[str], key: str = "k") -> Path:
    for number, text in enumerate(texts):
        place = folder / f"{key}={text}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"x": [number]}), place / "part.parquet")
    return folder


@pytest.mark.parametrize(("texts", "type", "values"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_types_and_values(tmp_path: Path, local: Place, texts: list[str], type: str, values: list[object]) -> None:
    folder = write(tmp_path / "s.parquet", texts)
    found = local.run("p(X, K) <- s(X, K).", {"s": folder})["p"]
    assert str(found.schema[1].type) == type
    assert [value for _, value in sorted(found.rows())] == values


@pytest.mark.parametrize("cases", [CASES[::4], pytest.param(CASES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_spark_sees_the_same(tmp_path: Path, on_spark: Place, spark: Any, cases: list[Any]) -> None:
    """Spark's own types and values, and those that a run on Spark gives; all in one program, so that it stays quick."""
    sources, rules = {}, []
    for number, (texts, type, values) in enumerate(cases):
        folder = write(tmp_path / f"s{number}", texts)
        frame = spark.read.parquet(str(folder))
        name = frame.schema["k"].dataType.simpleString()
        assert SPARK.get(name, name) == type, texts
        assert [row["k"] for row in frame.orderBy("x").collect()] == values
        sources[f"s{number}"] = folder
        rules.append(f"p{number}(X, K) <- s{number}(X, K).")
    result = on_spark.run("\n".join(rules), sources)
    for number, (_, type, values) in enumerate(cases):
        found = result[f"p{number}"]
        assert str(found.schema[1].type) == type
        assert [value for _, value in sorted(found.rows())] == values


def test_a_date_is_compared_as_one(place: Place, tmp_path: Path) -> None:
    folder = write(tmp_path / "s", ["2026-11-01", "2026-11-02"], "day")
    assert place.run("p(X) <- s(X, D), s(Y, E), D > E.", {"s": folder})["p"].rows() == [(1,)]
    assert place.run(".decl s(x: number, day: date)\np(X) :- s(X, D), s(_, E), D > E.", {"s": folder})["p"].rows() == [
        (1,)
    ]


def test_a_default_partition_is_null(place: Place, tmp_path: Path) -> None:
    folder = write(tmp_path / "s", ["1", NULL])
    with pytest.raises(emberlog.DataError, match="1 in column k"):
        place.run("p(X, K) <- s(X, K).", {"s": folder})
    engine = place.engine({"s": folder}, nulls="drop")
    assert engine.run("p(X, K) <- s(X, K).", placement=place.placement)["p"].rows() == [(0, 1)]


def test_folders_in_folders(place: Place, tmp_path: Path) -> None:
    for day in ("2026-11-01", "2026-11-02"):
        write(tmp_path / "s" / f"day={day}", ["1", "b"], "part")
    found = place.run("p(X, D, P) <- s(X, D, P).", {"s": tmp_path / "s"})["p"]
    assert [str(column.type) for column in found.schema] == ["number", "date", "symbol"]
    assert len(found) == 4


def test_a_column_of_nulls_alone_has_no_type(tmp_path: Path) -> None:
    assert schema_of("s", source_of("s", write(tmp_path / "s", [NULL]))) is None


def test_characters_that_could_be_a_pattern(place: Place, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "s[1]{a,b}*?.parquet")
    assert place.run("p(X) <- s(X).", {"s": tmp_path / "s[1]{a,b}*?.parquet"})["p"].rows() == [(1,)]
