"""The time limit holds while results are written. What was not written whole is not there, and what was there before
stays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import Any

import pytest

import emberlog
from emberlog.data import write
from emberlog.executors.spark import SparkExecutor
from emberlog.sql.spark import SparkEngine
from engine.places import Place

LATE = 2.0  # seconds after the limit
PAIRS = "p(X,Y) <- n(X), n(Y). q(X) <- n(X)."
OUTPUTS = ".output q\n.output p\n" + PAIRS
MANY = [(i,) for i in range(2500)]


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with more than a few rows take long, text piece by piece, and Parquet likewise."""
    lines, binary = write._lines, write._write_binary

    def lines_slowly(batch: Any, *rest: Any) -> Any:
        sleep(0.3)
        return lines(batch, *rest)

    def binary_slowly(rows: Any, columns: Any, file: Any, *rest: Any) -> None:
        for _ in range(600 * (rows.num_rows > 20)):
            file.write(b"")
            sleep(0.1)
        binary(rows, columns, file, *rest)

    monkeypatch.setattr(write, "_BATCH", 16)
    monkeypatch.setattr(write, "_lines", lines_slowly)
    monkeypatch.setattr(write, "_write_binary", binary_slowly)


@contextmanager
def in_time(seconds: float, doing: str) -> Iterator[None]:
    begin = monotonic()
    with pytest.raises(emberlog.LimitError, match=f"limit of {seconds:g} seconds? while {doing}") as raised:
        yield
    assert raised.value.exit_code == 3
    assert monotonic() - begin < seconds + LATE


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def outputs(engine: emberlog.Engine, folder: Path, text: str = OUTPUTS, **options: Any) -> None:
    program = folder.with_suffix(".dl")
    program.write_text(text)
    engine.run_file(program, output_dir=folder, **options)


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize(("kind", "ending"), [("file", "csv"), ("csv", "csv"), ("parquet", "parquet")])
def test_an_output(local: Place, tmp_path: Path, kind: str, ending: str) -> None:
    folder, text = tmp_path / "out", OUTPUTS.replace(".output p", f".output p(IO={kind})")
    outputs(local.engine({"n": MANY[:2]}), folder, text)
    before = (folder / f"p.{ending}").read_bytes()
    with in_time(1.5, "writing `p`"):
        outputs(local.engine({"n": MANY[:15]}), folder, text, limits={"seconds": 1.5})
    assert files(folder) == sorted([f"p.{ending}", "q.csv"])
    assert (folder / f"p.{ending}").read_bytes() == before
    assert len((folder / "q.csv").read_text().splitlines()) == 15  # it was written in time


@pytest.mark.usefixtures("slow_disk")
def test_a_result_that_is_kept(local: Place, tmp_path: Path) -> None:
    local.engine({"n": MANY[:2]}).run(PAIRS, persist=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with in_time(1.5, "writing the results"):
        local.engine({"n": MANY[:15]}).run(PAIRS, persist=tmp_path, limits={"seconds": 1.5})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_pipe_that_nobody_reads(local: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "q.csv")
    with in_time(1, "writing `q`"):
        outputs(local.engine({"n": MANY[:3]}), tmp_path / "out", limits={"seconds": 1})
    os.close(os.open(tmp_path / "out" / "q.csv", os.O_RDONLY | os.O_NONBLOCK))  # lets the writer end


def test_a_result_that_is_kept_in_time(place: Place, tmp_path: Path) -> None:
    """One that takes the place of another: of a file or of a folder, as executors write them."""
    for rows, placement in (([(1,)], "auto"), ([(1,), (2,)], place.placement), ([(1,), (2,), (3,)], "auto")):
        kept = place.engine({"n": rows}).run(PAIRS, persist=tmp_path, placement=placement, limits={"seconds": 60})
        assert len(kept["p"].rows()) == len(rows) ** 2
        assert files(tmp_path) == ["p.parquet", "q.parquet", "relations.json"]
        listed = json.loads((tmp_path / "relations.json").read_text())
        assert {name: entry["rows"] for name, entry in listed["relations"].items()} == {
            "p": len(rows) ** 2,
            "q": len(rows),
        }


@pytest.mark.parametrize("kept", [False, True])
def test_on_spark(on_spark: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """Jobs that write, or fetch what is to be written, are cancelled."""
    frame, folder = SparkEngine.frame, tmp_path / "out"

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:  # here, lest workers look for it in this file
        for batch in batches:
            sleep(60)
            yield batch

    def slow_frame(engine: SparkEngine, name: str) -> Any:
        found = frame(engine, name)
        return found.mapInArrow(slowly, found.schema)

    def run(rows: list[tuple[int]], **options: Any) -> None:
        engine = on_spark.engine({"n": rows})
        if kept:
            engine.run(PAIRS, placement="spark", persist=folder, **options)
        else:
            outputs(engine, folder, placement="spark", **options)

    run(MANY[:2])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(SparkEngine, "fetch", lambda engine, name: slow_frame(engine, name).toArrow())
    monkeypatch.setattr(SparkExecutor, "_frame", lambda self, name: slow_frame(self.engine, self._table_of(name)))
    with in_time(4, "writing"):
        run(MANY[:15], limits={"seconds": 4})
    assert all(path.read_bytes() == content for path, content in before.items() if path.name != "q.csv")
    assert files(folder) == (["p.parquet", "q.parquet", "relations.json"] if kept else ["p.csv", "q.csv"])
    monkeypatch.undo()
    run(MANY[:3])  # nothing is left that would end another run


def test_what_one_call_of_a_library_takes_long_for(
    local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing interrupts it: it goes on in its own thread, and what it made is not used."""
    ordered = write._sorted

    def slowly(table: Any) -> Any:
        sleep(6)
        return ordered(table)

    monkeypatch.setattr(write, "_sorted", slowly)
    with in_time(1, "writing `q`"):
        outputs(local.engine({"n": MANY[:3]}), tmp_path / "out", limits={"seconds": 1})
    assert files(tmp_path / "out") == []


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize("persist", [False, True])
def test_cancelling(local: Place, tmp_path: Path, persist: bool) -> None:
    engine, folder = local.engine({"n": MANY[:15]}), tmp_path / "out"
    Timer(1.5, engine.cancel).start()
    begin = monotonic()
    with pytest.raises(emberlog.CancelledError):
        if persist:
            engine.run(PAIRS, persist=folder)
        else:
            outputs(engine, folder)
    assert monotonic() - begin < 1.5 + LATE
    assert files(folder) == ([] if persist else ["q.csv"])
