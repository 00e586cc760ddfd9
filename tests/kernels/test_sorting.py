"""Sorted rows and indexes, against naive twins."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.components.program import Id, Kind, Static
from emberlog.kernels import sorting
from emberlog.kernels.cache import call
from emberlog.kernels.encode import Lazy, is_unique
from emberlog.kernels.indexes import build
from emberlog.kernels.runtime import (
    bound_above,
    bound_below,
    find_key,
)
from emberlog.kernels.sorting import ALIGN, Owners, by_key, pairs_by_key
from kernels.wide import int64s

Array = np.ndarray[Any, Any]
SOME = settings(max_examples=60)


@SOME
@given(st.lists(int64s, max_size=30).map(sorted), int64s)
def test_bounds_are_those_of_bisection(values: list[int], value: int) -> None:
    from bisect import bisect_left, bisect_right

    column, ends = np.array(values, np.int64), (np.uint64(0), np.uint64(len(values)))
    assert int(call(bound_below, column, *ends, np.int64(value))) == bisect_left(values, value)
    assert int(call(bound_above, column, *ends, np.int64(value))) == bisect_right(values, value)


@SOME
@given(st.lists(int64s, max_size=30, unique=True).map(sorted), int64s)
def test_a_key_that_is_not_there_is_one_past_the_end(keys: list[int], key: int) -> None:
    found = int(call(find_key, np.array(keys, np.int64), np.int64(key)))
    assert found == (keys.index(key) if key in keys else len(keys))


@SOME
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 4), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_a_counting_sort_keeps_the_order_of_equal_keys(
    keys: list[int], workers: int, width: int, bits: int, sharded: bool
) -> None:
    column = np.arange(len(keys), dtype=np.int64)
    columns = [column * (i + 1) for i in range(width)]
    order = sorted(range(len(keys)), key=lambda row: keys[row])
    with (
        mock.patch.object(sorting, "ROWS_A_PART", 1),
        mock.patch.object(sorting, "SHARD_BITS", bits),
        mock.patch.object(sorting, "FEW_KEYS", 0 if sharded else 10),
    ):
        offsets, found = by_key(np.array(keys, np.uint32), 10, columns, workers)
        low, high = column.astype(np.int32), -column.astype(np.int32)
        same, words = pairs_by_key(np.array(keys, np.uint32), 10, low, high, workers)
    assert offsets.tolist() == [sum(key < slot for key in keys) for slot in range(11)] + [len(keys)]
    for i, sorted_column in enumerate(found):
        assert sorted_column.tolist() == [row * (i + 1) for row in order]
    assert same.tolist() == offsets.tolist()
    assert words.view(np.int32).tolist() == [number for row in order for number in (row, -row)]


SLOTS_OF_KEYS = 10
OWNED_BLOCKS = 6
FEW_TYPES = ("id", "int", "float")
DTYPES = {"id": np.uint32, "int": np.int32, "float": np.float64}


@st.composite
def owned_rows(draw: st.DrawFn) -> tuple[list[int], list[tuple[str, list[Any], bool]], list[int]]:
    """Keys; columns, with their kinds and whether they come in 64 bits, an id first; and who owns each block."""
    rows = draw(st.integers(0, 40))
    keys = draw(st.lists(st.integers(0, SLOTS_OF_KEYS - 1), min_size=rows, max_size=rows))
    values = {
        "id": st.builds(
            lambda block, small: block * ALIGN + small, st.integers(0, OWNED_BLOCKS - 1), st.integers(0, 9)
        ),
        "int": st.sampled_from((-(2**31), -1, 0, 1, 2**31 - 1)),
        "float": st.sampled_from((-0.5, 0.0, 1e300)),
    }
    kinds = [*draw(st.sampled_from(([], ["id"]))), *draw(st.lists(st.sampled_from(FEW_TYPES), max_size=2))]
    columns = [
        (kind, draw(st.lists(values[kind], min_size=rows, max_size=rows)), draw(st.booleans())) for kind in kinds
    ]
    owners = sorted(draw(st.lists(st.integers(0, 4), min_size=OWNED_BLOCKS, max_size=OWNED_BLOCKS)))
    return keys, columns, owners


def cut(column: Array, cuts: list[int]) -> list[Array]:
    """The column in pieces, some of them empty."""
    ends = sorted(min(spot, len(column)) for spot in cuts)
    return [column[low:high] for low, high in zip([0, *ends], [*ends, len(column)], strict=True)]


cuts = st.lists(st.integers(0, 40), max_size=4)


@settings(max_examples=120)
@given(owned_rows(), st.lists(cuts, min_size=4, max_size=4), st.integers(1, 4), st.integers(0, 4), st.booleans())
def test_rows_in_pieces_are_sorted_by_key_and_owner(
    drawn: tuple[list[int], list[tuple[str, list[Any], bool]], list[int]],
    ends: list[list[int]],
    workers: int,
    bits: int,
    sharded: bool,
) -> None:
    """Whatever pieces the columns come in, however wide; without owners, and with them if the first two columns are
    all there are and the first one is an id."""
    keys, columns, of_block = drawn
    given_keys = cut(np.array(keys, np.int64), ends[0])
    pieces, dtypes = [], []
    for (kind, values, wide), spots in zip(columns, ends[1:], strict=False):
        dtypes.append(np.dtype(DTYPES[kind]))
        pieces.append(cut(np.array(values, np.int64 if wide and kind != "float" else DTYPES[kind]), spots))
    with (
        mock.patch.object(sorting, "ROWS_A_PART", 1),
        mock.patch.object(sorting, "SHARD_BITS", bits),
        mock.patch.object(sorting, "FEW_KEYS", 0 if sharded else SLOTS_OF_KEYS),
    ):
        for number in (0, 5) if columns and columns[0][0] == "id" and len(columns) <= 2 else (0,):
            owners = Owners(0, np.array(of_block, np.uint32), number) if number else None
            code = [
                key * max(number, 1) + (of_block[columns[0][1][row] // ALIGN] if number else 0)
                for row, key in enumerate(keys)
            ]
            order = sorted(range(len(keys)), key=lambda row: code[row])
            codes = (SLOTS_OF_KEYS + 1) * max(number, 1)
            wanted = [sum(one < place for one in code) for place in range(codes + 1)]
            offsets, found = by_key(given_keys, SLOTS_OF_KEYS, pieces, workers, owners, dtypes)
            assert offsets.tolist() == wanted and offsets.dtype == np.uint64
            for (_, values, _), dtype, column in zip(columns, dtypes, found, strict=True):
                assert column.dtype == dtype and column.tolist() == [values[row] for row in order]
            if len(columns) == 2 and all(dtype.itemsize == 4 for dtype in dtypes):
                for spot in (0, 1) if columns[1][0] == "id" or not number else (0,):
                    # The owner's column may be in either half.
                    halves = (0, 1) if spot == 0 else (1, 0)
                    low, high = (pieces[half] for half in halves)
                    place = None if owners is None else Owners(spot, owners.of_block, number)
                    same, words = pairs_by_key(given_keys, SLOTS_OF_KEYS, low, high, workers, place)
                    assert same.tolist() == wanted
                    for at, half in enumerate(halves):
                        got = words.view(dtypes[half])[at::2].tolist()
                        assert got == [columns[half][1][row] for row in order]


@pytest.mark.parametrize("slots", [1, 2, 255, 256, 257, 70_000])
@pytest.mark.parametrize("workers", [1, 3])
def test_keys_at_the_ends_of_shards(slots: int, workers: int) -> None:
    """As many keys as there are, with the sizes that are used: the first ones, the last ones, and around shards."""
    some = sorted({key % slots for key in (0, 1, 127, 128, 255, 256, 257, 511, 512, slots // 2, slots - 2, slots - 1)})
    keys = np.array(some * 5, np.int64)[::-1]
    ids = (np.arange(len(keys)) % 5) * ALIGN + np.arange(len(keys))
    owners = Owners(0, np.array((0, 0, 1, 3, 3), np.uint32), 4)
    code = keys * 4 + owners.of_block[ids >> 12]
    order = np.argsort(code, kind="stable")
    with mock.patch.object(sorting, "ROWS_A_PART", 1):
        offsets, (found, weights) = by_key(
            [keys[:7], keys[7:]], slots, [[ids], keys * 0.5], workers, owners, [np.uint32, np.float64]
        )
    assert found.tolist() == ids[order].tolist() and weights.tolist() == (keys[order] * 0.5).tolist()
    assert offsets.tolist() == np.searchsorted(np.sort(code), np.arange((slots + 1) * 4 + 1)).tolist()


KINDS: tuple[Kind, ...] = (Id(0), "int", "float")
kinds: st.SearchStrategy[list[Kind]] = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)


@st.composite
def indexed(draw: st.DrawFn) -> tuple[Static, tuple[int, ...], list[tuple[int, ...]]]:
    drawn = draw(kinds)
    keys = [i for i, kind in enumerate(drawn) if kind != "float"]
    bound = draw(st.permutations(keys))[: draw(st.integers(0, len(keys)))] if keys else []
    values = {"int": st.sampled_from((-(2**40), -1, 0, 1, 2**31, 2**40)), "float": st.integers(0, 3)}
    row = st.tuples(*(values[kind] if isinstance(kind, str) else st.integers(0, 4) for kind in drawn))
    return Static("e", tuple(drawn)), tuple(bound), draw(st.lists(row, max_size=25, unique=True))


class Held(Lazy):
    """Columns that are numbers already."""

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, spot: Any) -> Any:
        return self._arrays[spot]

    @property
    def rows(self) -> int:
        return len(self._arrays[0])

    def dtype(self, spot: int) -> np.dtype[Any]:
        return np.dtype(self._arrays[spot].dtype)

    def pieces(self, spot: int) -> list[Array]:
        return [self._arrays[spot]]


@settings(max_examples=150)
@given(indexed())
def test_an_index_finds_the_rows_that_match(drawn: tuple[Static, tuple[int, ...], list[tuple[int, ...]]]) -> None:
    static, bound, rows = drawn
    dtypes = {"int": np.int64, "float": np.float64}
    columns = [
        np.array([row[i] for row in rows], dtypes[kind] if isinstance(kind, str) else np.uint32)
        for i, kind in enumerate(static.kinds)
    ]
    index = build(static, bound, Held(columns), set(range(len(columns))), 5)
    wanted = defaultdict(list)
    for row in rows:
        wanted[tuple(row[i] for i in bound)].append(row)
    for key in [*wanted, (3,) * len(bound), (-7,) * len(bound)]:
        if any(isinstance(static.kinds[i], Id) and not 0 <= value < 5 for i, value in zip(bound, key, strict=True)):
            continue
        assert sorted(matching(static, index, bound, key)) == sorted(wanted.get(key, []))


def matching(static: Static, index: Any, bound: tuple[int, ...], key: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """The rows under a key, found as the loops find them."""
    low, high = np.uint64(0), np.uint64(index.rows)
    for number, (position, value) in enumerate(zip(bound, key, strict=True)):
        if number == 0:
            spot = value if index.keys is None else int(call(find_key, index.keys, np.int64(value)))
            low, high = index.offsets[spot], index.offsets[spot + 1]
        else:
            column = index.columns[position]
            low = np.uint64(call(bound_below, column, low, high, np.int64(value)))
            high = np.uint64(call(bound_above, column, low, high, np.int64(value)))
    columns = [index.columns[i][int(low) : int(high)].tolist() for i in range(len(static.kinds))]
    return list(zip(*columns, strict=True))


@SOME
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_unique_rows_are_told(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], np.uint32) for i in range(2)]
    for width in (0, 1, 2):
        assert is_unique(columns[:width], len(rows)) == (len({row[:width] for row in rows}) == len(rows))
