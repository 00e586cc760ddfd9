"""Rows of Spark that a run fetched are kept for the next one, as long as the frame still has the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import emberlog
from emberlog.executors.spark import SparkExecutor

pytestmark = pytest.mark.spark

REACH = "r(1). r(Y) <- r(X), arc(X, Y)."
ROWS = 150_000  # more than stay in the driver anyway


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations that executors fetched from Spark, in order."""
    names: list[str] = []
    fetch = SparkExecutor.fetch

    def counting(self: SparkExecutor, relation: str) -> Any:
        names.append(relation)
        return fetch(self, relation)

    monkeypatch.setattr(SparkExecutor, "fetch", counting)
    return names


@pytest.fixture
def engine(spark: Any) -> Iterator[emberlog.Engine]:
    with emberlog.Engine(spark) as one:
        yield one


def chain(spark: Any, length: int) -> Any:
    """A frame with the edges of a chain, the last `length` to `ROWS` of which lead nowhere new."""
    return spark.range(1, ROWS).selectExpr("id as x", f"if(id <= {length}, id + 1, 1) as y")


def reached(engine: emberlog.Engine) -> int:
    result = engine.run(REACH)
    assert "driver" in str(result.stats)
    return result["r"].count()


def test_a_frame_is_fetched_once(spark: Any, engine: emberlog.Engine, fetched: list[str]) -> None:
    engine.register("arc", chain(spark, 10))
    assert [reached(engine) for _ in range(3)] == [11, 11, 11]
    assert fetched == ["arc"]
    engine.forget("arc")
    assert reached(engine) == 11
    assert fetched == ["arc", "arc"]
    engine.register("arc", chain(spark, 20))
    assert reached(engine) == 21


def test_a_frame_whose_rows_changed_is_fetched_again(
    spark: Any, engine: emberlog.Engine, fetched: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "length"
    file.write_text("10")

    def edges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        length = int(file.read_text())
        for batch in batches:
            x = batch.column(0)
            y = pc.if_else(pc.less_equal(x, length), pc.add(x, 1), 1)
            yield pa.RecordBatch.from_arrays([x, y], names=["x", "y"])

    engine.register("arc", spark.range(1, ROWS).mapInArrow(edges, "x long, y long"))
    assert (reached(engine), reached(engine)) == (11, 11)
    file.write_text("30")
    assert (reached(engine), reached(engine)) == (31, 31)
    assert fetched == ["arc", "arc"]


def test_what_was_fetched_is_not_used_where_spark_is_asked_for(spark: Any, engine: emberlog.Engine) -> None:
    engine.register("arc", chain(spark, 10))
    assert reached(engine) == 11
    result = engine.run(REACH, placement="spark")
    assert result["r"].count() == 11
    assert "driver" not in str(result.stats)
