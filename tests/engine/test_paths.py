"""Names of files that cannot be, files that are not there, and tables that no catalog has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import emberlog
from engine.places import Place

ROWS = "p(1). .output p\n"
NO_NAME = ["a\0b.csv", "a\ud800b.csv"]

CALLS: dict[str, Callable[[emberlog.Engine, Path, str], object]] = {
    "register": lambda engine, folder, name: engine.register("s", name),
    "register a path": lambda engine, folder, name: engine.register("s", Path(name)),
    "the program": lambda engine, folder, name: engine.run_file(name),
    "the facts": lambda engine, folder, name: engine.run_file(folder / "p.dl", facts_dir=name),
    "the outputs": lambda engine, folder, name: engine.run_file(folder / "p.dl", output_dir=name),
    "persist": lambda engine, folder, name: engine.run(ROWS, persist=name),
    "the scratch folder": lambda engine, folder, name: emberlog.Engine(executor="local", run_dir=name),
    "write": lambda engine, folder, name: engine.run(ROWS)["p"].write(folder / name),
}


@pytest.mark.parametrize("name", NO_NAME, ids=["NUL", "half a character"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_name_that_no_file_can_have(
    tmp_path: Path, local: Place, call: Callable[[emberlog.Engine, Path, str], object], name: str
) -> None:
    (tmp_path / "p.dl").write_text(ROWS)
    with pytest.raises(emberlog.UsageError, match="the name of a file cannot hold"):
        call(local.engine(), tmp_path, name)


@pytest.mark.parametrize("directive", ["input", "output"])
@pytest.mark.parametrize("kind", ["file", "csv", "parquet"])
def test_a_directive_with_nul(tmp_path: Path, local: Place, directive: str, kind: str) -> None:
    text = f'.decl s(x: number)\n.{directive} s(IO={kind}, filename="a\0b")\n.decl p(x: number)\np(X) :- s(X).\n'
    (tmp_path / "p.dl").write_text(text)
    engine = local.engine({"s": [(1,)]} if directive == "output" else {})
    with pytest.raises(emberlog.DataError, match="the name of a file cannot hold the character NUL") as raised:
        engine.run_file(tmp_path / "p.dl", tmp_path, tmp_path)
    assert raised.value.span is not None and raised.value.span.line == 2


@pytest.mark.parametrize("name", ["arcs", "arcs.xyz", "arcs.csv", "no/arcs", "a" * 300, "s" * 300 + ".csv"])
def test_a_path_that_does_not_exist_says_so(tmp_path: Path, local: Place, name: str) -> None:
    with pytest.raises(emberlog.DataError, match="does not exist"):
        local.engine({"arc": tmp_path / name})


def test_a_file_of_another_ending_is_of_no_known_format(tmp_path: Path, local: Place) -> None:
    (tmp_path / "arcs.xyz").touch()
    with pytest.raises(emberlog.UsageError, match="cannot tell the format"):
        local.engine({"arc": tmp_path / "arcs.xyz"})


@pytest.mark.spark
@pytest.mark.parametrize("declared", ["", ".decl arc(x: number, y: number)\n"])
def test_a_table_that_is_not_there(on_spark: Place, declared: str, spark: Any) -> None:
    spark.createDataFrame([(1, 2)], "x long, y long").createOrReplaceTempView("arcs_of_test_paths")
    try:
        text = f'{declared}.input arc(IO=table, name="arcs_of_test_path")\np(X) <- arc(X, _).'
        with pytest.raises(emberlog.DataError, match="has no table `arcs_of_test_path`") as raised:
            on_spark.run(text)
    finally:
        spark.catalog.dropTempView("arcs_of_test_paths")
    assert raised.value.span is not None
    assert raised.value.fix == "did you mean `arcs_of_test_paths`?"


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a b", "", "x.y.z.w", "1; drop"])
def test_a_name_that_no_table_has(on_spark: Place, name: str) -> None:
    with pytest.raises(emberlog.DataError, match="`arc`") as raised:
        on_spark.run(f'.input arc(IO=table, name="{name}")\np(X) <- arc(X, _).')
    assert raised.value.span is not None


@pytest.mark.spark
def test_a_database_that_cannot_be_reached(on_spark: Place) -> None:
    text = '.input arc(IO=jdbc, url="jdbc:nothing://host", dbtable="t", password="hidden")\np(X) <- arc(X, _).'
    with pytest.raises(emberlog.ExecutionError, match="cannot read `arc` from its database") as raised:
        on_spark.run(text)
    assert raised.value.span is not None
    assert "hidden" not in str(raised.value).replace('password="hidden"', "")


@pytest.mark.parametrize("below", ["", "below"], ids=["a file", "below a file"])
def test_a_folder_that_cannot_be_one(tmp_path: Path, local: Place, below: str) -> None:
    (tmp_path / "taken").write_text("kept")
    folder = tmp_path / "taken" / below
    with pytest.raises(emberlog.UsageError, match=r"persist .* cannot be a folder"):
        local.engine().run(ROWS, persist=folder)
    with (
        emberlog.Engine(executor="local", run_dir=folder) as engine,
        pytest.raises(emberlog.UsageError, match=r"run_dir .* cannot be a folder"),
    ):
        engine.run(ROWS)
    assert (tmp_path / "taken").read_text() == "kept"
