"""Sorting rows by a key of small range: by counting, in parts side by side.

Where keys are many, rows would be written all over the memory, and each write would miss the caches. So rows go to
shards first, some hundreds of ranges of keys, and are sorted inside each shard. Rows of one key keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from emberlog.kernels.cache import call, jit
from emberlog.kernels.crew import mapped

Column: TypeAlias = np.ndarray[Any, Any]

ROWS_A_PART = 1 << 18  # fewer are sorted sooner than a thread is started
SHARD_BITS = 8  # as many places to write to at once as a processor's tables of pages hold
FEW_KEYS = 1 << 15  # the counters of so many stay in the caches


def by_key(keys: Column, slots: int, columns: Sequence[Column], workers: int = 1) -> tuple[Column, list[Column]]:
    """Offsets of the rows of each key, and the columns sorted by key.

    There is one key more than `slots`, without rows: for a key that is not there.
    """
    parts = workers if len(keys) >= ROWS_A_PART * workers else 1
    if not columns:
        return _offsets(keys, slots, parts), []
    if len(columns) > 2:
        offsets, (order,) = by_key(keys, slots, [np.arange(len(keys), dtype=np.uint32)], workers)
        return offsets, [column[order] for column in columns]
    found = [np.empty_like(column) for column in columns]
    return _way(keys, slots)(keys, slots, columns, found, parts), found


def pairs_by_key(keys: Column, slots: int, low: Column, high: Column, workers: int = 1) -> tuple[Column, Column]:
    """The same for two columns of 32 bits, which come back as words of 64: the first one in the low half."""
    words = np.empty(len(keys), np.uint64)
    halves = words.view(np.uint32).reshape(-1, 2)
    sides = [low.view(np.uint32), high.view(np.uint32)]
    parts = workers if len(keys) >= ROWS_A_PART * workers else 1
    found = [halves[:, 0], halves[:, 1]]
    return _way(keys, slots)(keys, slots, sides, found, parts), words


def _way(keys: Column, slots: int) -> Callable[[Column, int, Sequence[Column], Sequence[Column], int], Column]:
    return _straight if slots <= FEW_KEYS or len(keys) < slots else _sharded


def _offsets(keys: Column, slots: int, parts: int) -> Column:
    return _counted(keys, slots, 0, parts)[1]


def _counted(keys: Column, slots: int, shift: int, parts: int) -> tuple[Column, Column, list[int]]:
    """Where the rows of each part and each key, shifted, begin; the offsets of all parts; where parts end."""
    ends = [len(keys) * part // parts for part in range(parts + 1)]
    counts = np.zeros((parts, slots), np.uint32)

    def count(part: int) -> None:
        call(count_keys, keys[ends[part] : ends[part + 1]], np.uint32(shift), counts[part])

    mapped(count, range(parts), parts)
    return counts, call(starts, counts), ends


def _straight(keys: Column, slots: int, columns: Sequence[Column], found: Sequence[Column], parts: int) -> Column:
    counts, offsets, ends = _counted(keys, slots, 0, parts)

    def scatter(part: int) -> None:
        rows = slice(ends[part], ends[part + 1])
        given = [column[rows] for column in columns]
        call(scatter1 if len(columns) == 1 else scatter2, keys[rows], np.uint32(0), counts[part], *given, *found)

    mapped(scatter, range(parts), parts)
    return offsets


def _sharded(keys: Column, slots: int, columns: Sequence[Column], found: Sequence[Column], parts: int) -> Column:
    shift = max((slots - 1).bit_length() - SHARD_BITS, 0)
    shards = (slots - 1 >> shift) + 1
    counts, starts_of, ends = _counted(keys, shards, shift, parts)
    there = np.empty_like(keys)
    between = [np.empty_like(column) for column in columns]

    def to_shards(part: int) -> None:
        rows = slice(ends[part], ends[part + 1])
        given = [keys[rows], *(column[rows] for column in columns)]
        scatter = scatter2 if len(columns) == 1 else scatter3
        call(scatter, keys[rows], np.uint32(shift), counts[part], *given, there, *between)

    mapped(to_shards, range(parts), parts)
    offsets = np.empty(slots + 2, np.uint64)
    offsets[slots:] = len(keys)
    borders = np.searchsorted(starts_of[: shards + 1], [len(keys) * part // parts for part in range(parts)])
    limits = [0, *(int(border) for border in borders[1:]), shards]

    def inside(part: int) -> None:
        ranges = (limits[part], limits[part + 1], shift, slots, starts_of, offsets)
        call(sort1 if len(columns) == 1 else sort2, *ranges, there, *between, *found)

    mapped(inside, range(parts), parts)
    return offsets


# --- loops -----------------------------------------------------------------------------------------------------------


@jit
def count_keys(keys: Any, shift: Any, counts: Any) -> None:
    """How many rows each key, shifted, has."""
    for row in range(keys.size):
        counts[keys[row] >> shift] += np.uint32(1)


@jit
def starts(counts: Any) -> Any:
    """From the rows of each key in each part to where they begin; the offsets of all parts together are returned."""
    parts, slots = counts.shape
    offsets = np.empty(slots + 2, np.uint64)
    total = np.uint64(0)
    for slot in range(slots):
        offsets[slot] = total
        for part in range(parts):
            amount = counts[part, slot]
            counts[part, slot] = total
            total += np.uint64(amount)
    offsets[slots] = offsets[slots + 1] = total
    return offsets


@jit
def scatter1(keys: Any, shift: Any, following: Any, column: Any, out: Any) -> None:
    for row in range(keys.size):
        key = keys[row] >> shift
        spot = following[key]
        following[key] = spot + np.uint32(1)
        out[spot] = column[row]


@jit
def scatter2(keys: Any, shift: Any, following: Any, one: Any, two: Any, out_one: Any, out_two: Any) -> None:
    for row in range(keys.size):
        key = keys[row] >> shift
        spot = following[key]
        following[key] = spot + np.uint32(1)
        out_one[spot] = one[row]
        out_two[spot] = two[row]


@jit
def scatter3(
    keys: Any, shift: Any, following: Any, one: Any, two: Any, three: Any, out_one: Any, out_two: Any, out_three: Any
) -> None:
    for row in range(keys.size):
        key = keys[row] >> shift
        spot = following[key]
        following[key] = spot + np.uint32(1)
        out_one[spot] = one[row]
        out_two[spot] = two[row]
        out_three[spot] = three[row]


@jit
def count_shard(shard: Any, shift: Any, slots: Any, starts: Any, offsets: Any, keys: Any, following: Any) -> Any:
    """The offsets of the keys of one shard, also in `following`; its first key is returned."""
    first = shard << shift
    last = min(first + (1 << shift), slots)
    following[: last - first] = 0
    for row in range(starts[shard], starts[shard + 1]):
        following[keys[row] - np.uint32(first)] += np.uint32(1)
    total = np.uint32(starts[shard])
    for key in range(first, last):
        offsets[key] = total
        amount = following[key - first]
        following[key - first] = total
        total += amount
    return np.uint32(first)


@jit
def sort1(
    low: Any, high: Any, shift: Any, slots: Any, starts: Any, offsets: Any, keys: Any, column: Any, out: Any
) -> None:
    """Sorts the rows inside the shards from `low` to `high`."""
    following = np.empty(1 << shift, np.uint32)
    for shard in range(low, high):
        first = count_shard(shard, shift, slots, starts, offsets, keys, following)
        for row in range(starts[shard], starts[shard + 1]):
            key = keys[row] - first
            spot = following[key]
            following[key] = spot + np.uint32(1)
            out[spot] = column[row]


@jit
def sort2(
    low: Any,
    high: Any,
    shift: Any,
    slots: Any,
    starts: Any,
    offsets: Any,
    keys: Any,
    one: Any,
    two: Any,
    out_one: Any,
    out_two: Any,
) -> None:
    following = np.empty(1 << shift, np.uint32)
    for shard in range(low, high):
        first = count_shard(shard, shift, slots, starts, offsets, keys, following)
        for row in range(starts[shard], starts[shard + 1]):
            key = keys[row] - first
            spot = following[key]
            following[key] = spot + np.uint32(1)
            out_one[spot] = one[row]
            out_two[spot] = two[row]
