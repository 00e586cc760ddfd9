"""The first rows of a relation: in order, and without the others."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import emberlog
from emberlog.executors.kernel import KernelResult
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
ROWS: dict[str, list[Any]] = {
    "integer": [5, -3, 2**63 - 1, 0],
    "natural": [5, 3, 2**64 - 1, 0],
    "real": [0.5, -1e300, 3.0, float("inf")],
    "text": ["b", "B", "é", "\U0001f600", "￿", ""],
    "truth": [True, False],
    "day": [datetime.date(2024, 2, 29), datetime.date(1900, 1, 1)],
    "exact": [Decimal("1.50"), Decimal("-2.25")],
}


def test_rows_come_in_order(place: Place) -> None:
    types = {"natural": pa.uint64()}
    tables = {f"e_{kind}": pa.table({"x": pa.array(values, types.get(kind))}) for kind, values in ROWS.items()}
    result = place.run("".join(f"{kind}(X,Y) <- e_{kind}(X), e_{kind}(Y).\n" for kind in ROWS), tables)
    for kind, values in ROWS.items():
        assert result[kind].head(3) == sorted((x, y) for x in values for y in values)[:3]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_there_may_be_fewer(count: int, local: Place) -> None:
    result = local.run("p(X) <- e(X).", {"e": [(2,), (1,)]})
    assert result["p"].head(count) == [(1,), (2,)][:count]


def test_what_the_kernels_computed(place: Place) -> None:
    engine = place.engine({"arc": [(i, i + 1) for i in range(50)]})
    found = engine.run(TC + "n(count<X>) <- tc(X,_).", evaluator="kernel", placement=place.placement)["tc"]
    assert found.head(3) == [(0, 1), (0, 2), (0, 3)]
    assert found.head(2) == [(0, 1), (0, 2)] and len(found.rows()) == len(found) == 1275


def test_after_the_engine_is_closed(tmp_path: Path, local: Place) -> None:
    engine = local.engine({"arc": [(i, i + 1) for i in range(50)]})
    result = engine.run(TC + "p() <- tc(0, 50).", persist=tmp_path)
    engine.close()
    assert result["tc"].head(2) == [(0, 1), (0, 2)]
    assert result["p"].head(1) == [()]


def test_others_are_not_made() -> None:
    """A result of eight million rows: of these, pieces are looked at."""
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", [(i, i + 1) for i in range(4000)])
        found = engine.run(TC, evaluator="kernel")["tc"]
        assert len(found) == 8_002_000
        tracemalloc.start()
        with mock.patch.object(KernelResult, "table", side_effect=AssertionError("every row is made")):
            assert found.head(2) == [(0, 1), (0, 2)]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8_002_000 * 2 * 8 / 2


@pytest.mark.parametrize("count", [-1, 2.5, None, True])
def test_a_number_of_rows(count: Any, local: Place) -> None:
    with pytest.raises(emberlog.UsageError, match="a number of rows"):
        local.run(TC, {"arc": [(1, 2)]})["tc"].head(count)
