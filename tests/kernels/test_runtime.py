"""The parts of the loops that are the same for every program, against naive twins."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.kernels.cache import call
from emberlog.kernels.runtime import (
    find,
    grown,
    grown_rows,
    insert_rows,
    rehashed,
    remainder,
    truncated,
)
from emberlog.types import INT64_MIN
from kernels.wide import int64s

Array = np.ndarray[Any, Any]
SOME = settings(max_examples=60)


def rows_of(width: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[int64s] * width), max_size=40)


some_rows = st.integers(1, 4).flatmap(lambda width: st.tuples(st.just(width), rows_of(width), rows_of(width)))


def matrix(rows: list[tuple[int, ...]], width: int) -> Array:
    return np.array(rows, np.int64).reshape(len(rows), width)


# --- hash tables ------------------------------------------------------------------------------------------------------


@SOME
@given(some_rows)
def test_a_hashed_table_numbers_rows_as_they_come(
    drawn: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]],
) -> None:
    width, first, second = drawn
    keys, table = np.empty((64, width), np.int64), np.zeros(128, np.int32)
    numbers: dict[tuple[int, ...], int] = {}
    count = 0
    for rows in (first, second):
        slots = np.empty(len(rows), np.uint32)
        while len(keys) <= count + len(rows):
            keys = call(grown_rows, keys)
            table = call(rehashed, keys, count)
        count = int(call(insert_rows, table, keys, count, matrix(rows, width), slots))
        assert [numbers.setdefault(row, len(numbers)) for row in rows] == slots.tolist()
        assert count == len(numbers)
    for row, number in numbers.items():
        assert int(table[call(find, table, keys, tuple(np.int64(value) for value in row))]) == number + 1
    for row in ((7,) * width, (INT64_MIN,) * width):
        spot = call(find, table, keys, tuple(np.int64(value) for value in row))
        assert int(table[spot]) == (numbers[row] + 1 if row in numbers else 0)


@SOME
@given(some_rows)
def test_a_table_is_the_same_after_it_is_hashed_anew(
    drawn: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]],
) -> None:
    width, rows, _ = drawn
    keys, table = np.empty((64, width), np.int64), np.zeros(128, np.int32)
    count = int(call(insert_rows, table, keys, 0, matrix(rows, width), np.empty(len(rows), np.uint32)))
    larger = call(grown_rows, keys)
    again = call(rehashed, larger, count)
    assert len(larger) == 128 and len(again) == 256
    assert (larger[:64][:count] == keys[:count]).all()
    for number in range(count):
        key = tuple(keys[number])
        assert int(again[call(find, again, larger, key)]) == number + 1
    assert np.count_nonzero(again) == count


@SOME
@given(st.lists(int64s, min_size=1, max_size=9), int64s)
def test_grown_arrays_keep_what_they_had(values: list[int], fill: int) -> None:
    found = call(grown, np.array(values, np.int64), np.int64(fill))
    assert found.tolist() == values + [fill] * len(values)


# --- arithmetic -------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(int64s, int64s.filter(bool))
def test_division_rounds_toward_zero(one: int, other: int) -> None:
    if (one, other) == (INT64_MIN, -1):
        return
    quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    assert int(call(truncated, np.int64(one), np.int64(other))) == quotient
    assert int(call(remainder, np.int64(one), np.int64(other))) == one - quotient * other
