"""A stream feeds a view, exactly once: a real file source, restarts and a killed process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import emberlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = "sales(P, sum(N)) <- sold(_, P, N)."
SCHEMA = "id long, product string, n long"
FED = Path(__file__).with_name("fed.py")


def write(folder: Path, number: int, rows: list[tuple[int, str, int]]) -> None:
    """A file of the source: it appears whole."""
    folder.mkdir(exist_ok=True)
    scratch = folder.parent / f"{number}.part"
    keys = ("id", "product", "n")
    scratch.write_text("\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows))
    scratch.rename(folder / f"{number:04}.json")


def frame_of(spark: SparkSession, folder: Path) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def fed(view: emberlog.View, frame: Any) -> None:
    query = view.stream(frame, "sold", availableNow=True)
    query.awaitTermination()


def test_a_stream_feeds_a_view_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    source, path = tmp_path / "in", tmp_path / "view"
    write(source, 0, [(1, "a", 2), (2, "b", 1)])
    write(source, 1, [(3, "a", 5)])
    declared = f".decl sold(id: number, product: symbol, n: number) {PROGRAM}"
    with emberlog.Engine(spark) as engine:
        view = engine.maintain(declared, path=path)
        fed(view, frame_of(spark, source))
        assert set(view["sales"].rows()) == {("a", 7), ("b", 1)}
        assert list(view.batches.values()) == [1]
    write(source, 2, [(4, "c", 9)])
    with emberlog.Engine(spark) as engine:
        view = engine.maintain(declared, path=path)
        fed(view, frame_of(spark, source))
        assert set(view["sales"].rows()) == {("a", 7), ("b", 1), ("c", 9)}
        # Spark gives a batch again that it does not know to be done: the view knows.
        (stream, number), *_ = view.batches.items()
        again = spark.createDataFrame([(9, "z", 9)], SCHEMA)
        view.batch("sold", name=stream)(again, number)
        assert ("z", 9) not in view["sales"].rows()
        view.batch("sold", name=stream)(again, number + 1)
        assert ("z", 9) in view["sales"].rows()


def test_what_is_no_stream_or_no_input_is_refused(spark: SparkSession) -> None:
    with emberlog.Engine(spark) as engine:
        view = engine.maintain(f".decl sold(id: number, product: symbol, n: number) {PROGRAM}")
        with pytest.raises(emberlog.UsageError, match="streaming frame"):
            view.stream(spark.range(1), "sold")
        with pytest.raises(emberlog.UsageError, match="derived by rules"):
            view.batch("sales")
        with pytest.raises(emberlog.UsageError, match="no batch of a streaming query"):
            view.batch("sold")(spark.createDataFrame([(9, "z", 9)], SCHEMA), 0)


@pytest.mark.slow
def test_a_killed_process_takes_no_batch_twice_and_leaves_none_out(tmp_path: Path) -> None:
    source = tmp_path / "in"
    for number in range(12):
        write(source, number, [(number, "a", 1)])
    line = [sys.executable, str(FED), str(source), str(tmp_path / "view")]
    for seconds in (9, 11, 13):
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout.splitlines()[-1]) == [["a", 12]], done.stderr
