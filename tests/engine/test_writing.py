"""Folders and tables: partitions, modes, and that a write is seen whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import emberlog
from emberlog.data import folders
from engine.places import Place

ROWS = [(1, "a/b", "x y"), (2, "c=d", "é"), (3, "a/b", "%"), (4, "z", "z")]
RULES = ".decl t(i: number, k: symbol, v: symbol)\np(I, K, V) <- t(I, K, V)."


def relation(place: Place, rows: list[tuple[Any, ...]]) -> emberlog.Relation:
    return place.run(RULES, {"t": rows})["p"]


def read(folder: Path) -> list[tuple[Any, ...]]:
    """The rows in a folder, by Arrow's own reader."""
    parts = ds.partitioning(pa.schema([("K", pa.string())]), flavor="hive")
    table = ds.dataset(folder, format="parquet", partitioning=parts).to_table(["I", "K", "V"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_folder_has_a_folder_for_each_value(place: Place, tmp_path: Path) -> None:
    target = tmp_path / "out" / "p"
    relation(place, ROWS).write(target, partition_by="K")
    assert read(target) == ROWS
    assert sorted(path.name for path in target.iterdir()) == ["K=a%2Fb", "K=c%3Dd", "K=z"]
    back = place.run("q(I, K) <- p(I=I, K=K).", {"p": target})["q"].rows()
    assert sorted(back) == [row[:2] for row in ROWS]


def test_modes_add_replace_or_refuse(local: Place, tmp_path: Path) -> None:
    target = tmp_path / "p"
    for partition_by in ("K", ()):
        relation(local, ROWS[:2]).write(target, partition_by=partition_by)
        relation(local, ROWS[2:]).write(target, partition_by=partition_by, mode="append")
        assert read(target) == ROWS
        with pytest.raises(emberlog.UsageError, match="is there already"):
            relation(local, ROWS).write(target, partition_by=partition_by, mode="error")
        relation(local, ROWS[3:]).write(target, partition_by=partition_by)
        assert read(target) == ROWS[3:]
        assert [path.name for path in tmp_path.iterdir()] == ["p"], "nothing else is left behind"
    relation(local, []).write(target)
    assert read(target) == []
    relation(local, ROWS).write(tmp_path / "new", mode="append")
    assert read(tmp_path / "new") == ROWS
    relation(local, ROWS).write(tmp_path / "p.csv", mode="error")
    with pytest.raises(emberlog.UsageError, match="is there already"):
        relation(local, ROWS).write(tmp_path / "p.csv", mode="error")


def test_a_write_that_fails_leaves_what_was_there(local: Place, tmp_path: Path) -> None:
    target = tmp_path / "p"
    relation(local, ROWS).write(target, partition_by="K")
    with pytest.raises(emberlog.DataError, match="an empty text in `K`"):
        relation(local, [(5, "n", "v"), (6, "", "v")]).write(target, partition_by="K")
    with pytest.raises(emberlog.DataError, match="is partitioned by K"):
        relation(local, ROWS).write(target, mode="append")
    other = local.run("q(V, K) <- t(_, K, V).", {"t": ROWS})["q"]
    with pytest.raises(emberlog.DataError, match="has other columns: I: int64, V: string"):
        other.write(target, partition_by="K", mode="append")
    assert read(target) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_folders_change_places_also_where_the_system_has_no_exchange(
    local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    target = tmp_path / "p"
    relation(local, ROWS).write(target)
    relation(local, ROWS[:1]).write(target, mode="append")
    assert read(target) == sorted([*ROWS, ROWS[0]])
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mode": "add"}, "there is no mode 'add'"),
        ({"partition_by": "L"}, "there is no column `L`"),
        ({"partition_by": ["K", "K"]}, "partitions once"),
        ({"partition_by": ["I", "K", "V"]}, "one at least stays"),
    ],
)
def test_what_cannot_be_written_is_told(options: Any, why: str, local: Place, tmp_path: Path) -> None:
    with pytest.raises(emberlog.UsageError, match=why):
        relation(local, ROWS).write(tmp_path / "p", **options)
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_not_overwritten(local: Place, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(emberlog.UsageError, match=r"other files than Parquet: letter\.txt"):
        relation(local, ROWS).write(tmp_path / "home")
    with pytest.raises(emberlog.UsageError, match="nothing can be added"):
        relation(local, ROWS).write(tmp_path / "p.csv", mode="append")
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"
    floats = local.run(".decl f(x: float, y: number)\np(X, Y) <- f(X, Y).", {"f": [(0.5, 1)]})["p"]
    with pytest.raises(emberlog.UsageError, match="a float cannot be the name of a folder"):
        floats.write(tmp_path / "p", partition_by="X")


def test_an_output_names_partitions_and_mode(tmp_path: Path) -> None:
    (tmp_path / "t.facts").write_text("1\ta/b\tx y\n")
    output = '.output p(IO=parquet, filename="p", partition_by="K", mode="append")'
    (tmp_path / "p.dl").write_text(f"{RULES}\n.input t\n{output}\n")
    with emberlog.Engine(executor="local") as engine:
        for _ in range(2):
            engine.run_file(tmp_path / "p.dl", facts_dir=tmp_path, output_dir=tmp_path / "out")
    assert read(tmp_path / "out" / "p") == [ROWS[0], ROWS[0]]


def test_tables_of_spark(on_spark: Place, spark: Any) -> None:
    name = "written_table"
    try:
        relation(on_spark, ROWS[:2]).save_as_table(name, mode="error")
        relation(on_spark, ROWS[2:]).save_as_table(name, mode="append")
        assert sorted(map(tuple, spark.table(name).collect())) == ROWS
        with pytest.raises(emberlog.UsageError, match="is there already"):
            relation(on_spark, ROWS).save_as_table(name, mode="error")
        relation(on_spark, ROWS[3:]).save_as_table(name)
        assert list(map(tuple, spark.table(name).collect())) == ROWS[3:]
        assert [table.name for table in spark.catalog.listTables() if table.name.startswith(name)] == [name]
        with pytest.raises(emberlog.ExecutionError, match="cannot write the table"):
            relation(on_spark, ROWS).save_as_table("nowhere.x; drop table written_table")
    finally:
        spark.sql("DROP TABLE IF EXISTS written_table")
