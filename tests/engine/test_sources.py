"""What can be registered: values, frames and files of every kind, and what is said of those that do not fit."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import emberlog
from emberlog.executors import spark as spark_executor
from engine.places import Place

COPY = {n: f"p({v}) <- s({v})." for n, v in enumerate(("", "A", "A,B", "A,B,C", "A,B,C,D", "A,B,C,D,E"))}

# Name, value, rows of the relation that it is.
VALUES: list[tuple[str, object, list[tuple[Any, ...]]]] = [
    ("tuples", [(1, "x"), (2, "y")], [(1, "x"), (2, "y")]),
    ("lists", [[1, 2.5], [2, 3]], [(1, 2.5), (2, 3.0)]),
    ("set", {(1,), (2,)}, [(1,), (2,)]),
    ("generator", ((i, i + 1) for i in range(2)), [(0, 1), (1, 2)]),
    ("single values", [3, 1], [(1,), (3,)]),
    ("one row of no columns", [()], [()]),
    ("unsigned", [(2**64 - 1,)], [(2**64 - 1,)]),
    ("dates", [(date(2024, 2, 29), datetime(2024, 1, 1, 12, 30, 1, 5))],
     [(date(2024, 2, 29), datetime(2024, 1, 1, 12, 30, 1, 5))]),
    ("decimals", [(Decimal("1.5"),), (Decimal("12.125"),)], [(Decimal("1.500"),), (Decimal("12.125"),)]),
    ("pandas", pd.DataFrame({"a": pd.Series([1], dtype="int32"), "b": ["x"], "c": [True]}), [(1, "x", True)]),
    ("polars", pl.DataFrame({"a": [1], "b": ["x"]}), [(1, "x")]),
    ("lazy polars", pl.LazyFrame({"a": [1], "b": ["x"]}), [(1, "x")]),
    ("arrow", pa.table({"a": pa.array([1], pa.int16()), "b": pa.array([1.5], pa.float32())}), [(1, 1.5)]),
    ("arrow batch", pa.record_batch({"a": [1]}), [(1,)]),
    ("empty polars", pl.DataFrame({"a": []}, schema={"a": pl.String}), []),
    ("columns of one name", pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), [(1, 2)]),
    ("columns that SQL could trip over", pa.table({"select": [1], "a`b": [2], 'x"y': [3], "": [4], "c0": [5]}),
     [(1, 2, 3, 4, 5)]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "rows"), [pytest.param(*case[1:], id=case[0]) for case in VALUES])
def test_values(value: object, rows: list[tuple[Any, ...]], local: Place) -> None:
    width = 1 if not rows else len(rows[0])
    assert sorted(local.run(COPY[width] if width else "p() <- s().", {"s": value})["p"].rows()) == rows


def test_values_on_spark(on_spark: Place) -> None:
    """All of them in one program, so that it stays quick."""
    values = [(name, value, rows) for name, value, rows in VALUES if name != "generator"]
    sources = {f"s{number}": value for number, (_, value, _) in enumerate(values)}
    texts = []
    for number, (_, _, rows) in enumerate(values):
        columns = ",".join("ABCDE"[: 1 if not rows else len(rows[0])])
        texts.append(f"p{number}({columns}) <- s{number}({columns}).")
    result = on_spark.run("\n".join(texts), sources)
    for number, (name, _, rows) in enumerate(values):
        assert sorted(result[f"p{number}"].rows()) == rows, name


def test_a_spark_frame_of_every_type(place: Place, spark: Any) -> None:
    schema = "a byte, b short, c int, d long, e float, f double, g string, h boolean, i date, j decimal(10,2)"
    row = (1, 2, 3, 4, 0.5, 0.25, "x", True, date(2024, 2, 29), Decimal("1.50"))
    times = spark.createDataFrame([(datetime(2024, 1, 1, 12),) * 2], "a timestamp, b timestamp_ntz")
    columns = "A,B,C,D,E,F,G,H,I,J"
    result = place.run(
        f"p({columns}) <- s({columns}). q(A,B) <- t(A,B).", {"s": spark.createDataFrame([row], schema), "t": times}
    )
    assert result["p"].rows() == [row]
    assert result["q"].rows() == [(datetime(2024, 1, 1, 12),) * 2]
    kinds = [column.type.kind for column in result["p"].schema]
    assert kinds == ["number"] * 4 + ["float"] * 2 + ["symbol", "bool", "date", "decimal"]


def test_sized_columns_are_checked_and_rounded(place: Place) -> None:
    declared = ".decl s(x: int8, y: float32)\np(X,Y) <- s(X,Y)."
    frame = pa.table({"x": [1], "y": [0.1]})
    rounded = pa.array([0.1], pa.float32()).cast(pa.float64()).to_pylist()[0]
    assert place.run(declared, {"s": frame})["p"].rows() == [(1, rounded)]
    with pytest.raises(emberlog.DataError, match=r"column x: 200 does not fit int8"):
        place.run(declared, {"s": pa.table({"x": [200], "y": [0.1]})})


def test_sized_columns_of_a_spark_frame(on_spark: Place, spark: Any) -> None:
    declared = ".decl s(x: int8, y: float32)\np(X,Y) <- s(X,Y)."
    rounded = pa.array([0.1], pa.float32()).cast(pa.float64()).to_pylist()[0]
    frame = spark.createDataFrame([(1, 0.1)], "x int, y double")
    assert on_spark.run(declared, {"s": frame})["p"].rows() == [(1, rounded)]
    with pytest.raises(emberlog.DataError, match=r"column x: 200 does not fit int8 \(of 2 such values\)"):
        on_spark.run(declared, {"s": spark.createDataFrame([(200, 0.1), (200, 0.2)], "x int, y double")})


def test_a_type_that_no_column_has(on_spark: Place, spark: Any) -> None:
    frame = spark.createDataFrame([(1, [2])], "a long, b array<int>")
    with pytest.raises(emberlog.DataError, match=r"column b: values of type array<int> are not supported"):
        on_spark.run(COPY[2], {"s": frame})


def written(folder: Path) -> dict[str, Path]:
    """The rows (1, "a b") and (2, "c") as files of all endings."""
    table = pa.table({"x": [1, 2], "y": ["a b", "c"]})
    with emberlog.Engine(executor="local") as engine:
        engine.register("s", table)
        relation = engine.run(".decl p(x: number, y: symbol)\np(X,Y) <- s(X,Y).")["p"]
        for ending in ("csv", "tsv", "facts", "parquet", "arrow"):
            relation.write(folder / f"p.{ending}")
    return {path.suffix: path for path in folder.iterdir()}


def test_files(place: Place, tmp_path: Path) -> None:
    files = written(tmp_path)
    assert set(files) == {".csv", ".tsv", ".facts", ".parquet", ".arrow"}
    sources = {ending[1:]: path for ending, path in files.items()}
    text = " ".join(f"p_{name}(X,Y) <- {name}(X,Y)." for name in sources)
    result = place.run(text, sources)
    for name in sources:
        assert sorted(result[f"p_{name}"].rows()) == [(1, "a b"), (2, "c")], name


def test_a_relative_path_is_that_of_the_process(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's JVM stays in the folder in which it was started."""
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(place.run(COPY[2], {"s": "p.parquet"})["p"]) == 2


def test_registered_twice_and_registered_for_nothing(local: Place) -> None:
    engine = local.engine({"s": [(1,)], "unused": [("x", None)]})
    first = engine.run(COPY[1])["p"]
    engine.register("s", [("new",), ("rows",)])
    assert sorted(engine.run(COPY[1])["p"].rows()) == [("new",), ("rows",)]
    assert first.rows() == [(1,)]


def test_what_is_registered_is_told_to_who_misspells_it(local: Place) -> None:
    with pytest.raises(emberlog.ProgramError) as raised:
        local.run("p(X) <- fligth(X).", {"flight": [(1,)], "other": []})
    assert raised.value.fix == "did you mean `flight`? (registered: flight, other)"


WRONG: list[tuple[object, type[emberlog.EmberlogError], str]] = [
    (5, emberlog.UsageError, "a value of type int cannot be registered"),
    (None, emberlog.UsageError, "NoneType"),
    ({"a": [1]}, emberlog.UsageError, "a value of type dict"),
    ("nowhere.csv", emberlog.DataError, "nowhere.csv does not exist"),
    ("nowhere", emberlog.DataError, "nowhere does not exist"),
    ([(1, 2), (1,)], emberlog.DataError, "row 2 has 1 value, row 1 has 2"),
    ([(1,), ("a",)], emberlog.DataError, "row 2, column c0"),
    ([(object(),)], emberlog.DataError, "no column holds that"),
    ([(2**64,)], emberlog.DataError, "out of range"),
    ([("\ud800",)], emberlog.DataError, "not valid Unicode"),
]


@pytest.mark.parametrize(("value", "error", "text"), WRONG, ids=lambda value: str(value)[:20])
def test_values_that_are_no_source(value: object, error: type[emberlog.EmberlogError], text: str, local: Place) -> None:
    with pytest.raises(error, match=text):
        local.engine({"s": value})


def test_another_number_of_columns(place: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match="`s` has 3 arguments, not 2"):
        place.run(COPY[2], {"s": [(1, 2, 3)]})
    with pytest.raises(emberlog.ProgramError, match="declared with 2 columns, its source has 3"):
        place.run(f".decl s(a: number, b: number)\n{COPY[2]}", {"s": [(1, 2, 3)]})


@pytest.mark.parametrize("kind", ["list", "arrow", "spark"])
def test_nulls(kind: str, on_spark: Place, spark: Any) -> None:
    rows = [(1, "a", 0.5), (None, "b", float("nan")), (2, None, 0.5), (None, None, 0.5), (3, "c", float("nan"))]
    frames: dict[str, Any] = {
        "list": rows,
        "arrow": pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in rows]),
        "spark": spark.createDataFrame(rows, "a long, b string, c double"),
    }
    with pytest.raises(emberlog.DataError) as raised:
        on_spark.run("p(A,B) <- s(A,B,_).", {"s": frames[kind]})
    first, second = ("c0", "c1") if kind == "list" else ("a", "b")
    assert f"`s` has nulls: 2 in column {first}, 2 in column {second} (of 5 rows)" in str(raised.value)
    assert 'nulls="drop"' in (raised.value.fix or "")
    engine = on_spark.engine({"s": frames[kind]}, nulls="drop")
    result = engine.run("p(A,B) <- s(A,B,_). n(count(_)) <- s(_,_,_).", placement="spark")
    assert sorted(result["p"].rows()) == [(1, "a"), (3, "c")]  # NaN is a value
    assert result["n"].rows() == [(2,)]
    assert result.warnings == ["`s`: 3 rows with nulls dropped"]


DUPLICATES = [
    ("p(sum(B)) <- s(_,B).", [(12,)], 2),
    ("p(avg(B)) <- s(_,B).", [(6.0,)], 2),
    ("p(c) :- c = count : { s(_,_) }.", [(2,)], 2),
    ("p(X,sum(B)) <- s(X,B). p(Y,sum(C)) <- p(X,C), s(X,Y).", [(1, 5), (2, 7), (5, 5), (7, 7)], 2),
    ("p(max(B)) <- s(_,B).", [(7,)], 0),
    ("p(A,B) <- s(A,B).", [(1, 5), (2, 7)], 0),
    ("p(countd(A)) <- s(A,_).", [(2,)], 0),
]


@pytest.mark.parametrize(("text", "rows", "told"), DUPLICATES, ids=lambda value: str(value)[:25])
def test_duplicates(text: str, rows: list[tuple[Any, ...]], told: int, local: Place) -> None:
    result = local.run(text, {"s": [(1, 5), (2, 7), (1, 5), (1, 5)]})
    assert sorted(result["p"].rows()) == rows
    assert [warning[:30] for warning in result.warnings] == [f"{told} duplicate rows of `s` collaps"[:30]] * bool(told)


def test_duplicates_on_spark(on_spark: Place, spark: Any) -> None:
    frame = spark.createDataFrame([(1, 5), (2, 7), (1, 5), (1, 5)], "a long, b int")
    counted = on_spark.run("p(sum(B)) <- s(_,B).\ns(1, 5).", {"s": frame})
    assert counted["p"].rows() == [(12,)]
    assert [warning for warning in counted.warnings if "duplicate" in warning] == [
        "3 duplicate rows of `s` collapsed: relations are sets, and a sum, count or average reads this one"
    ]
    plain = on_spark.run("p(B) <- s(_,B).", {"s": frame})
    assert (sorted(plain["p"].rows()), plain.warnings) == ([(5,), (7,)], [])


def test_a_source_that_is_not_small_stays_on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 2)
    with emberlog.Engine(spark) as engine:
        engine.register("s", spark.range(3).toDF("x"))
        engine.register("t", [(1,)])
        result = engine.run("p(X) <- s(X). q(X) <- t(X).")
        assert (sorted(result["p"].rows()), result["q"].rows()) == ([(0,), (1,), (2,)], [(1,)])
        where = {entry.predicates: (entry.placement, entry.why) for entry in result.stats}
        assert where == {("p",): ("spark", "s has 3 rows"), ("q",): ("driver (duckdb)", "its inputs have 1 row")}
