"""The parts that all loops share, against plain Python twins."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.kernels import sorting
from emberlog.kernels.cache import call
from emberlog.kernels.encode import Lazy, is_unique
from emberlog.kernels.indexes import build
from emberlog.kernels.program import Id, Kind, Static
from emberlog.kernels.runtime import (
    bound_above,
    bound_below,
    find,
    find_key,
    grown,
    grown_rows,
    insert_rows,
    rehashed,
    remainder,
    truncated,
)
from emberlog.kernels.sorting import ALIGN, Owners, by_key, pairs_by_key
from emberlog.kernels.waiting import drained, outgoing, put_best, put_owned, put_set, put_sum, skip, turn_of
from emberlog.types import INT64_MAX, INT64_MIN

Array = np.ndarray[Any, Any]
SOME = settings(max_examples=60)

int64s = st.one_of(
    st.integers(-5, 5),
    st.sampled_from((INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX, 2**31, -(2**31), 2**62, 2**32)),
    st.integers(INT64_MIN, INT64_MAX),
)


def rows_of(width: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[int64s] * width), max_size=40)


some_rows = st.integers(1, 4).flatmap(lambda width: st.tuples(st.just(width), rows_of(width), rows_of(width)))


def matrix(rows: list[tuple[int, ...]], width: int) -> Array:
    return np.array(rows, np.int64).reshape(len(rows), width)


# --- hash tables -----------------------------------------------------------------------------------------------------


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


# --- arithmetic ------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(int64s, int64s.filter(bool))
def test_division_rounds_toward_zero(one: int, other: int) -> None:
    if (one, other) == (INT64_MIN, -1):
        return
    quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    assert int(call(truncated, np.int64(one), np.int64(other))) == quotient
    assert int(call(remainder, np.int64(one), np.int64(other))) == one - quotient * other


# --- sorted rows -----------------------------------------------------------------------------------------------------


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


# --- what goes into tables -------------------------------------------------------------------------------------------

SLOTS = 6
slots_and_values = st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(-4, 4)), max_size=30)


class Flags:
    """The state of a dense table: its flags, its facts in order, and what waits."""

    def __init__(self) -> None:
        self.seen = np.zeros(8, np.uint8)
        self.log = np.zeros(SLOTS + 1, np.uint32)
        self.waiting = np.zeros(2 * SLOTS + 1, np.uint32)
        self.counts = np.zeros(3, np.int64)

    def of(self, values: Array) -> tuple[Array, ...]:
        return np.zeros_like(values), self.seen, self.log, self.waiting, self.counts

    def check(self, known: list[int], waiting: list[int]) -> None:
        assert self.log[: self.counts[0]].tolist() == known
        assert self.waiting[: self.counts[2]].tolist() == waiting
        assert [int(slot) for slot in np.flatnonzero(self.seen & 2)] == sorted(waiting or known)


@SOME
@given(slots_and_values)
def test_put_set(pairs: list[tuple[int, int]]) -> None:
    state = Flags()
    call(put_set, state.seen, state.log, state.counts, np.array([slot for slot, _ in pairs], np.uint32))
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, [])


@SOME
@given(slots_and_values, st.booleans())
def test_put_best(pairs: list[tuple[int, int]], smallest: bool) -> None:
    state, best = Flags(), min if smallest else max
    values = np.full(SLOTS, INT64_MAX if smallest else INT64_MIN, np.int64)
    slots, given_values = np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs], np.int64)
    call(put_best, values, state.seen, state.log, state.waiting, state.counts, slots, given_values, smallest)
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, known)
    for slot in known:
        assert values[slot] == best(value for other, value in pairs if other == slot)


@SOME
@given(slots_and_values)
def test_put_sum(pairs: list[tuple[int, int]]) -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs], np.int64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, known)
    for slot in range(SLOTS):
        assert pending[slot] == sum(value for other, value in pairs if other == slot)


@pytest.mark.parametrize("pair", [(INT64_MAX, 1), (INT64_MIN, -1), (2**62, 2**62), (-(2**62), -(2**62) - 1)])
def test_a_sum_that_leaves_64_bits_is_told(pair: tuple[int, int]) -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.zeros(2, np.uint32), np.array(pair, np.int64)
    assert call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)


def test_a_sum_up_to_the_end_of_64_bits_is_one() -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.zeros(3, np.uint32), np.array((2**62, 2**62 - 1, -(2**63) + 1), np.int64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)
    assert pending[0] == 0


def test_floats_that_are_lost_in_a_sum_are_no_overflow() -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.float64)
    slots, values = np.zeros(2, np.uint32), np.array((1e300, 1.0), np.float64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, np.inf, 1e-12)


def test_small_changes_of_large_sums_wait_until_they_are_more() -> None:
    state, pending, val = Flags(), np.zeros(SLOTS, np.float64), np.full(SLOTS, 1.0)
    state.seen[:SLOTS] = 5  # known, and taken up before
    slots = np.array((0, 1, 2, 1), np.uint32)
    values = np.array((1e-13, 6e-13, 1e-3, 6e-13), np.float64)
    call(put_sum, pending, val, *state.of(pending)[1:], slots, values, np.inf, 1e-12)
    assert state.waiting[: state.counts[2]].tolist() == [2, 1]
    assert pending[0] == 1e-13 and pending[1] == 1.2e-12


@SOME
@given(st.lists(st.integers(0, SLOTS - 1), max_size=12), st.integers(2, 4))
def test_what_is_sent_is_sent_once(waiting: list[int], size: int) -> None:
    seen = np.zeros(8, np.uint8)
    seen[waiting] = 3
    queue, own = np.array(waiting, np.uint32), np.array([slot % size for slot in waiting], np.int64)
    kept, sent, ranges = call(outgoing, queue, len(waiting), seen, 0, size, own)
    assert queue[:kept].tolist() == [slot for slot in waiting if slot % size == 0]
    for other in range(1, size):
        wanted = list(dict.fromkeys(slot for slot in waiting if slot % size == other))
        assert sent[ranges[other] : ranges[other + 1]].tolist() == wanted
    assert [int(slot) for slot in np.flatnonzero(seen & 2)] == sorted({slot for slot in waiting if slot % size == 0})


# --- what owners share -----------------------------------------------------------------------------------------------

OWNED_SLOTS = 42
borders = st.lists(st.integers(0, OWNED_SLOTS // 8).map(lambda block: 8 * block), max_size=4).map(
    lambda inner: [0, *sorted(inner), OWNED_SLOTS]
)
owned_puts = st.lists(st.tuples(st.integers(0, OWNED_SLOTS - 1), st.integers(-4, 4)), max_size=60)


class Ranges:
    """The state of a table that owners share."""

    def __init__(self, own: list[int]) -> None:
        self.own, self.owners = np.array(own, np.int64), len(own) - 1
        self.seen = np.zeros(48, np.uint8)
        self.waiting = np.zeros(OWNED_SLOTS, np.uint32)
        self.tally = np.zeros((self.owners, 3), np.int64)

    def lists(self) -> list[list[int]]:
        """What waits, owner by owner."""
        return [self.waiting[low : low + n].tolist() for low, n in zip(self.own, self.tally[:, 1], strict=False)]

    def check(self, known: list[int], waiting: list[int]) -> None:
        ranges = [range(self.own[i], self.own[i + 1]) for i in range(self.owners)]
        assert self.lists() == [[slot for slot in waiting if slot in one] for one in ranges]
        assert self.tally[:, 0].tolist() == [sum(slot in one for slot in known) for one in ranges]
        assert [int(slot) for slot in np.flatnonzero(self.seen & 2)] == sorted(waiting)
        assert [int(slot) for slot in np.flatnonzero(self.seen & 1)] == sorted(known)

    def drain(self, sweep: int) -> list[list[int]]:
        taken = np.zeros(OWNED_SLOTS, np.uint32)
        found = []
        for i in range(self.owners):
            low, high = self.own[i], self.own[i + 1]
            lists = (self.seen, self.waiting, taken, low, high, self.tally[i, 1], sweep)
            found.append(taken[low : low + int(call(drained, *lists))].tolist())
            self.tally[i, 1] = 0
        return found


@SOME
@given(borders, owned_puts, owned_puts, st.integers(1, 64))
def test_put_owned_and_drained_of_a_set(
    own: list[int], first: list[tuple[int, int]], second: list[tuple[int, int]], sweep: int
) -> None:
    state, known = Ranges(own), list[int]()
    for puts in (first, second):
        slots = np.array([slot for slot, _ in puts], np.uint32)
        call(put_owned, None, state.seen, state.waiting, state.tally, state.own, slots, None, True)
        new = [slot for slot in dict.fromkeys(slots.tolist()) if slot not in known]
        known += new
        state.check(known, new)
        waits = state.lists()
        for one, other, low, high in zip(waits, state.drain(sweep), own[:-1], own[1:], strict=True):
            assert other == (one if len(one) * sweep <= high - low else sorted(one))
        assert state.seen[known].tolist() == [5] * len(known)


@SOME
@given(borders, owned_puts, owned_puts, st.booleans(), st.sampled_from((np.int32, np.int64, np.float64)))
def test_put_owned_of_extrema(
    own: list[int], first: list[tuple[int, int]], second: list[tuple[int, int]], smallest: bool, dtype: Any
) -> None:
    state, values = Ranges(own), np.full(OWNED_SLOTS, 100 if smallest else -100, dtype)
    best: dict[int, int] = {}
    for puts in (first, second):
        better = list[int]()
        for slot, value in puts:
            if slot not in best or (value < best[slot] if smallest else value > best[slot]):
                best[slot] = value
                better.append(slot)
        slots, given_values = np.array([p[0] for p in puts], np.uint32), np.array([p[1] for p in puts], dtype)
        call(put_owned, values, state.seen, state.waiting, state.tally, state.own, slots, given_values, smallest)
        state.check(list(best), list(dict.fromkeys(better)))
        assert {slot: values[slot] for slot in best} == best
        state.drain(1)


RING = 8


@SOME
@given(
    st.integers(0, 1000), st.lists(st.lists(st.integers(0, 3), min_size=RING, max_size=RING), min_size=1, max_size=4)
)
def test_the_turn_goes_on_to_the_next_bucket_that_holds_something(turn: int, inside: list[list[int]]) -> None:
    held, filled = np.array((turn, 3), np.int64), [sum(one[at] for one in inside) for at in range(RING)]
    found = int(call(turn_of, held, np.array(inside, np.int64)))
    following = next((t for t in range(turn, turn + RING) if filled[t % RING]), None)
    assert (int(held[0]), found) == ((turn, 0) if following is None else (following, filled[following % RING]))
    assert held[1] == 3


NONE = 1 << 61


@SOME
@given(
    st.integers(0, 10**6),
    st.integers(0, 6),
    st.integers(0, 2),
    st.lists(st.one_of(st.just(NONE), st.integers(1, 10**9), st.integers(1, 40)), min_size=1, max_size=4),
)
def test_turns_are_skipped_by_whole_rings(turn: int, idle: int, took: int, far: list[int]) -> None:
    held = np.array((turn, idle), np.int64)
    call(skip, held, took, np.array(far, np.int64), RING, 4, NONE)
    assert held[1] == (0 if took else idle + 1)
    leaps = not took and idle + 1 > 4 and min(far) < NONE
    assert held[0] == turn + (min(far) // RING * RING if leaps else 0)
