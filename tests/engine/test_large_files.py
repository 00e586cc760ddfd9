"""Files of relations that are too large to be sorted first."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog.executors import base


def test_many_rows_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows, names and types as of a file that is sorted."""
    text = """
    .decl arc(x: int32, y: symbol)
    .decl next(y: symbol, x: int32)
    .decl tc(from: int32, to: symbol)
    .output tc
    tc(X, Y) <- arc(X, Y).
    tc(X, Z) <- tc(X, Y), next(Y, W), arc(W, Z).
    """
    files = []
    for most in (10**9, 10):
        monkeypatch.setattr(base, "SORTED_ROWS", most)
        with emberlog.Engine(executor="local", workers=2) as engine:
            engine.register("arc", [(x, f"n{x + 1}") for x in range(80)])
            engine.register("next", [(f"n{x}", x) for x in range(80)])
            result = engine.run(text, evaluator="kernel")
            result["tc"].write(tmp_path / f"{most}.parquet")
        files.append(pq.read_table(tmp_path / f"{most}.parquet"))
    whole, pieces = files
    assert pieces.schema == whole.schema and pieces.num_rows == 80 * 81 // 2
    assert pieces.sort_by([("from", "ascending"), ("to", "ascending")]) == whole
