"""What is told to be a set is one; duplicates, wherever they stand, are found."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.executors import local
from emberlog.kernels.distinct import is_known_set

numbers = st.one_of(st.integers(0, 4), st.integers(-(2**62), -(2**62) + 3), st.integers(-2, 2))


@settings(max_examples=100)
@given(st.lists(st.tuples(numbers, numbers), max_size=12), st.integers(1, 2), st.integers(0, 12))
def test_a_set_is_one(rows: list[tuple[int, int]], width: int, cut: int) -> None:
    parts = [rows[:cut], rows[cut:]]
    columns = [pa.chunked_array([[row[i] for row in part] for part in parts], pa.int64()) for i in range(width)]
    told = is_known_set(pa.table(columns, names=["x", "y"][:width]))
    same = len({row[:width] for row in rows}) == len(rows)
    spread = max((abs(a[i] - b[i]) for a in rows for b in rows for i in range(width)), default=0)
    assert told == same if spread < 2**15 else not told or same


@pytest.mark.parametrize("columns", [{"x": ["a"]}, {"x": [0.5]}, {"x": [1], "y": [1], "z": [1]}])
def test_what_is_not_easy_to_tell_is_not_told(columns: dict[str, list[object]]) -> None:
    assert not is_known_set(pa.table(columns))


@pytest.mark.parametrize("values", [[2**63, 2**63 + 1], [0, 2**64 - 1]])
def test_nor_is_what_64_bits_with_a_sign_do_not_hold(values: list[int]) -> None:
    assert not is_known_set(pa.table({"x": pa.array(values, pa.uint64())}))


@pytest.mark.parametrize(("extra", "warned"), [([], 0), [[(0, 1)], 1]])
def test_edges_count_once_either_way(extra: list[tuple[int, int]], warned: int) -> None:
    edges = [(i, j) for i in range(300) for j in range(i + 1, i + 200)] + extra
    with emberlog.Engine(executor="local") as engine, mock.patch.object(local, "SHARED_ROWS", 1000):
        engine.register("arc", pa.table({"x": [x for x, _ in edges], "y": [y for _, y in edges]}))
        result = engine.run("degree(X, count(Y)) <- arc(X, Y).")
        assert {row[1] for row in result["degree"].rows()} == {199}
        assert len(result.warnings) == warned
