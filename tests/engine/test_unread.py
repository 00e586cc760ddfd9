"""Columns that a program does not use are not read: their nulls and types do not matter, whatever the source is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from engine.places import Place

# Two columns that can be used, one with nulls, one of a type that the language does not have.
TABLE = pa.table(
    {
        "x": [1, 2, 2],
        "name": ["a", "b", "b"],
        "gap": pa.array([None, 5, 6], pa.int64()),
        "list": pa.array([[1], None, [2]]),
    }
)
ROWS = [(1, "a", None, [1]), (2, "b", 5, None), (2, "b", 6, {"a": 1})]


def parquet(folder: Path) -> object:
    pq.write_table(TABLE, folder / "s.parquet")
    return folder / "s.parquet"


def parquet_folder(folder: Path) -> object:
    (folder / "s.parquet").mkdir()
    pq.write_table(TABLE, folder / "s.parquet" / "one.parquet")
    return folder / "s.parquet"


def dataset(folder: Path) -> object:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(parquet(folder))


SOURCES: dict[str, Callable[[Path], object]] = {
    "list": lambda folder: ROWS,
    "arrow": lambda folder: TABLE,
    "pandas": lambda folder: pd.DataFrame(ROWS, columns=["x", "name", "gap", "list"]),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "parquet": parquet,
    "parquet folder": parquet_folder,
    "dataset": dataset,
}


@pytest.fixture(params=list(SOURCES.values()), ids=list(SOURCES))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    made: object = request.param(tmp_path)
    return made


@pytest.mark.spark_sample(4)
def test_nulls_and_types_of_columns_that_are_not_used(source: object, place: Place) -> None:
    result = place.run("p(X, N) <- s(X, N, _, _). q(X) <- s(X, _, _, _), !s(_, 'x', _, _).", {"s": source})
    assert sorted(result["p"].rows()) == [(1, "a"), (2, "b")]
    assert sorted(result["q"].rows()) == [(1,), (2,)]


@pytest.mark.spark_sample(4)
def test_no_column_is_used(source: object, place: Place) -> None:
    assert place.run("p(1) <- s(_, _, _, _).", {"s": source})["p"].rows() == [(1,)]
    assert place.run("p(1) <- !s(_, _, _, _).", {"s": source})["p"].rows() == []


@pytest.mark.spark_sample(4)
def test_columns_that_are_used_are_checked(source: object, place: Place) -> None:
    with pytest.raises(emberlog.DataError, match=r"nulls: 1 in column (gap|c2)"):
        place.run("p(X, G) <- s(X, _, G, _).", {"s": source})
    with pytest.raises(emberlog.DataError, match=r"column (list|c3)|type"):
        place.run("p(X, L) <- s(X, _, _, L).", {"s": source})


@pytest.mark.spark_sample(4)
def test_a_rule_that_counts_uses_all_columns(source: object, place: Place) -> None:
    with pytest.raises(emberlog.DataError):
        place.run("p(X, count(N)) <- s(X, N, _, _).", {"s": source})


@pytest.mark.spark_sample(4)
def test_dropped_are_rows_with_nulls_in_columns_that_are_used(source: object, place: Place) -> None:
    engine = place.engine({"s": source}, nulls="drop")
    found = engine.run("p(X, N) <- s(X, N, _, _).", placement=place.placement)
    assert (sorted(found["p"].rows()), found.warnings) == ([(1, "a"), (2, "b")], [])
    found = engine.run("p(X, G) <- s(X, _, G, _).", placement=place.placement)
    assert sorted(found["p"].rows()) == [(2, 5), (2, 6)]
    assert any("1 row with nulls dropped" in warning for warning in found.warnings)


@pytest.mark.parametrize("ending", ["csv", "facts"])
def test_text_that_is_not_used_may_be_anything(place: Place, tmp_path: Path, ending: str) -> None:
    between = "," if ending == "csv" else "\t"
    (tmp_path / f"s.{ending}").write_text("".join(between.join(row) + "\n" for row in ("1x3", "2y?", "2yz")))
    text = f'.decl s(a: number, b: symbol, c: number)\n.input s(filename="s.{ending}", delimiter={between!r})\n'
    for rules, rows in (("p(A, B) :- s(A, B, _).", [(1, "x"), (2, "y")]), ("p(A, A) :- s(A, _, _).", [(1, 1), (2, 2)])):
        (tmp_path / "p.dl").write_text(text.replace("'", '"') + f".decl p(a: number, b: symbol)\n{rules}\n".replace(
            "b: symbol)\np(A, A)", "b: number)\np(A, A)"))  # fmt: skip
        found = place.engine().run_file(tmp_path / "p.dl", tmp_path, placement=place.placement)
        assert sorted(found["p"].rows()) == rows
    (tmp_path / "p.dl").write_text(text.replace("'", '"') + ".decl p(a: number)\np(A) :- s(_, _, A).\n")
    with pytest.raises(emberlog.DataError, match=r":2: column c"):
        place.engine().run_file(tmp_path / "p.dl", tmp_path, placement=place.placement)


def test_the_number_of_columns_still_counts(place: Place, tmp_path: Path) -> None:
    with pytest.raises(emberlog.ProgramError, match="has 3 arguments, not 2"):
        place.run("p(X) <- s(X, _).", {"s": TABLE.select([0, 1, 2])})
    with pytest.raises(emberlog.ProgramError, match="declared with 2 columns, its source has 3"):
        place.run(".decl s(x: number, y: symbol)\n.decl p(x: number)\np(X) :- s(X, _).", {"s": TABLE.select([0, 1, 2])})


def test_a_column_without_a_type_that_is_not_used(place: Place) -> None:
    assert sorted(place.run("p(X) <- s(X, _).", {"s": [(1, None), (2, None)]})["p"].rows()) == [(1,), (2,)]


def test_declared_types_of_columns_that_are_not_used(place: Place) -> None:
    text = ".decl s(x: number, name: number, gap: symbol, list: float)\n.decl p(x: number)\np(X) :- s(X, _, _, _)."
    assert sorted(place.run(text, {"s": TABLE})["p"].rows()) == [(1,), (2,)]


def test_a_declared_condition_is_a_use(place: Place) -> None:
    text = ".decl s(a: symbol, x: number where x > 0, b: symbol)\n.decl p(a: symbol)\np(A) :- s(A, _, _)."
    with pytest.raises(emberlog.DataError, match=r"`s\('u', -1, _\)` breaks `x > 0`"):
        place.run(text, {"s": [("u", -1, "v")]})
    with pytest.raises(emberlog.DataError, match="nulls: 1 in column x"):
        place.run(text, {"s": [("u", None, "v"), ("u", 1, None)]})
    assert place.run(text, {"s": [("u", 1, None)]})["p"].rows() == [("u",)]


def test_duplicates_are_told_of_whole_rows_only(place: Place) -> None:
    """Rows that differ in a column that is not used are no duplicates, whoever counts what follows from them."""
    rows = [(1, 1), (1, 2), (2, 1)]
    found = place.run("n(count(X)) <- p(X). p(X) <- s(X, _).", {"s": rows})
    assert (found["n"].rows(), found.warnings) == ([(2,)], [])
    found = place.run("n(count(X)) <- s(X, _).", {"s": [*rows, (1, 1)]})
    assert found["n"].rows() == [(3,)]
    assert any("1 duplicate row of `s` collapsed" in warning for warning in found.warnings)


TC = "tc(X,Y) <- arc(_,X,Y,_). tc(X,Y) <- tc(X,Z), arc(_,Z,Y,_)."


@pytest.mark.parametrize("evaluator", ["auto", "sql", "kernel"])
def test_recursion_over_narrower_tables(place: Place, evaluator: str, tmp_path: Path) -> None:
    arcs = pa.table({"a": [None, "x"], "x": [1, 2], "y": [2, 3], "b": pa.array([[1], [2]])})
    pq.write_table(arcs, tmp_path / "arc.parquet")
    for source in (arcs, tmp_path / "arc.parquet"):
        found = place.engine({"arc": source}).run(TC, placement=place.placement, evaluator=evaluator)
        assert sorted(found["tc"].rows()) == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.spark
def test_workers_read_the_columns_of_files_that_are_used(on_spark: Place, tmp_path: Path) -> None:
    """Numbers alone, so that workers take them out of the user's own files."""
    pq.write_table(pa.table({"a": [7, 7], "x": [1, 2], "y": [2, 3], "b": [0.5, 1.5]}), tmp_path / "arc.parquet")
    engine = on_spark.engine({"arc": tmp_path / "arc.parquet"})
    found = engine.run(TC, placement="spark", evaluator="kernel")
    assert sorted(found["tc"].rows()) == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["frame", "table"])
def test_frames_and_tables_of_spark(spark: Any, place: Place, kind: str) -> None:
    frame = spark.createDataFrame(
        [(1, "a", None, [1]), (2, "b", 5, [2])], "x int, name string, gap int, list array<int>"
    )
    text = "p(X, N) <- s(X, N, _, _)."
    if kind == "table":
        if place.executor == "local":
            return
        frame.createOrReplaceTempView("unread_columns")
        text = '.input s(IO=table, name="unread_columns")\n' + text
    engine = place.engine({} if kind == "table" else {"s": frame})
    try:
        assert sorted(engine.run(text, placement=place.placement)["p"].rows()) == [(1, "a"), (2, "b")]
        assert engine.run(text.replace("p(X, N) <- s(X, N, _, _)", "p(1) <- s(_, _, _, _)"))["p"].rows() == [(1,)]
        with pytest.raises(emberlog.DataError, match="nulls: 1 in column gap"):
            engine.run(text.replace("s(X, N, _, _)", "s(X, _, N, _)"))
        with pytest.raises(emberlog.DataError, match="column list"):
            engine.run(text.replace("s(X, N, _, _)", "s(X, _, _, N)"))
    finally:
        spark.catalog.dropTempView("unread_columns")


def test_goals_and_outputs_use_all_columns(local: Place) -> None:
    rows = [(1, None)]
    with pytest.raises(emberlog.DataError, match="nulls"):
        local.engine({"s": rows}).query("s(1, _)", program=".decl s(x: number, y: number)\n").rows()
    with pytest.raises(emberlog.DataError, match="nulls"):
        local.run(".decl s(x: number, y: number)\n.output s\n.decl p(x: number)\np(X) :- s(X, _).", {"s": rows})


def test_a_relation_of_an_earlier_run(place: Place) -> None:
    engine = place.engine({"arc": [(1, 2), (1, 3)]})
    engine.register("t", engine.run("t(X, Y, Z) <- arc(X, Y), arc(_, Z).", placement=place.placement)["t"])
    assert engine.run("p(X) <- t(X, _, _).", placement=place.placement)["p"].rows() == [(1,)]
