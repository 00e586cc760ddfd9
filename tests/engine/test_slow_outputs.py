"""The time limit holds while results are written. What was not written whole is not there, and what was there before
stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import Any

import pytest

import emberlog
from emberlog.data import write
from engine.places import Place

LATE = 2.0  # seconds after the limit
# Some million rows, which are soon computed and take long to write.
PAIRS = "p(X,Y) <- n(X), n(Y). q(X) <- n(X)."
OUTPUTS = ".output q\n.output p\n" + PAIRS
# Spark computes it where it is read, which is where it is written. It would take minutes.
LONG = "q(X) <- n(X), X < 3. r(count(_)) <- n(A), n(B), n(C), A + B + C = 7."
MANY = [(i,) for i in range(2500)]


@contextmanager
def in_time(seconds: float, doing: str) -> Iterator[None]:
    begin = monotonic()
    with pytest.raises(emberlog.LimitError, match=f"limit of {seconds:g} seconds while {doing}") as raised:
        yield
    assert raised.value.exit_code == 3
    assert monotonic() - begin < seconds + LATE


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def outputs(engine: emberlog.Engine, folder: Path, text: str = OUTPUTS, **options: Any) -> None:
    program = folder.with_suffix(".dl")
    program.write_text(text)
    engine.run_file(program, output_dir=folder, **options)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_output(local: Place, tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "out"
    text = OUTPUTS.replace(".output p", f'.output p(IO={"file" if ending == "csv" else "parquet"})')
    outputs(local.engine({"n": [(1,), (2,)]}), folder, text)
    before = (folder / f"p.{ending}").read_bytes()
    with in_time(2, "writing `p`"):
        outputs(local.engine({"n": MANY}), folder, text, limits={"seconds": 2})
    assert files(folder) == sorted([f"p.{ending}", "q.csv"])
    assert (folder / f"p.{ending}").read_bytes() == before
    assert len((folder / "q.csv").read_text().splitlines()) == 2500  # it was written in time


def test_a_result_that_is_kept(local: Place, tmp_path: Path) -> None:
    local.engine({"n": [(1,), (2,)]}).run(PAIRS, persist=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with in_time(2, "writing the results"):
        local.engine({"n": MANY}).run(PAIRS, persist=tmp_path, limits={"seconds": 2})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


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
def test_on_spark(on_spark: Place, tmp_path: Path, kept: bool) -> None:
    folder = tmp_path / "out"
    few, many = on_spark.engine({"n": MANY[:10]}), on_spark.engine({"n": MANY * 4})

    def run(engine: emberlog.Engine, **options: Any) -> None:
        if kept:
            engine.run(LONG, placement="spark", persist=folder, **options)
        else:
            outputs(engine, folder, f".output q\n.output r\n{LONG}", placement="spark", **options)

    run(few)
    before = files(folder)
    with in_time(5, "writing"):
        run(many, limits={"seconds": 5})
    assert files(folder) == before
    if kept:
        listed = json.loads((folder / "relations.json").read_text())
        assert listed["relations"]["q"]["rows"] == 3
    else:
        assert (folder / "r.csv").read_text() == "36\n"
    assert set(many.run("s(X) <- n(X), X < 2.", placement="spark")["s"].rows()) == {(0,), (1,)}


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


@pytest.mark.parametrize("persist", [False, True])
def test_cancelling(local: Place, tmp_path: Path, persist: bool) -> None:
    engine, folder = local.engine({"n": MANY}), tmp_path / "out"
    Timer(1.5, engine.cancel).start()
    begin = monotonic()
    with pytest.raises(emberlog.CancelledError):
        if persist:
            engine.run(PAIRS, persist=folder)
        else:
            outputs(engine, folder)
    assert monotonic() - begin < 1.5 + LATE
    assert not persist or files(folder) == []
    assert persist or files(folder) in (["q.csv"], [])
