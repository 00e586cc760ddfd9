"""Sorting rows by a key of small range: by counting, in parts side by side.

Where keys are many, rows would be written all over the memory, and each write would miss the caches. So rows go to
shards first, some hundreds of ranges of keys, and are sorted inside each shard. Rows of one key keep their order.

Keys and columns may be wider than what is made of them, and in several pieces: rows are read from where they came, and
narrowed on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from emberlog.kernels.cache import call, jit
from emberlog.kernels.crew import mapped

Column: TypeAlias = np.ndarray[Any, Any]
Pieces: TypeAlias = Column | Sequence[Column]  # a column in one piece or several

ROWS_A_PART = 1 << 18  # fewer are sorted sooner than a thread is started
SHARD_BITS = 8  # as many places to write to at once as a processor's tables of pages hold
FEW_KEYS = 1 << 15  # the counters of so many stay in the caches
ALIGN_BITS = 12
ALIGN = 1 << ALIGN_BITS  # what somebody owns begins at multiples of this


@dataclass(frozen=True)
class Owners:
    """Who owns a row: by one of the columns, an id, of which each block of `ALIGN` has one owner."""

    spot: int
    of_block: Column  # the owner of each block, in uint32
    number: int


def by_key(
    keys: Pieces,
    slots: int,
    columns: Sequence[Pieces],
    workers: int = 1,
    owners: Owners | None = None,
    dtypes: Sequence[Any] | None = None,
) -> tuple[Column, list[Column]]:
    """Offsets of the rows of each key, and the columns, as `dtypes`, sorted by key; with owners, by key and owner, and
    offsets of both: those of the first key come first.

    There is one key more than `slots`, without rows: for a key that is not there.
    """
    rows = _length(keys)
    kinds = [np.dtype(dtype) for dtype in dtypes or [_pieces(column)[0].dtype for column in columns]]
    wide = sum(kind.itemsize > 4 for kind in kinds)
    if owners is None and (len(columns) > 2 or wide == 2):
        offsets, (order,) = by_key(keys, slots, [np.arange(rows, dtype=np.uint32)], workers)
        whole = [np.concatenate(_pieces(column)) for column in columns]
        return offsets, [column[order].astype(kind, copy=False) for column, kind in zip(whole, kinds, strict=True)]
    found = [np.empty(rows, kind) for kind in kinds]
    return _sorted(keys, slots, columns, found, workers, owners), found


def pairs_by_key(
    keys: Pieces, slots: int, low: Pieces, high: Pieces, workers: int = 1, owners: Owners | None = None
) -> tuple[Column, Column]:
    """The same for two columns of 32 bits, which come back as words of 64: the first one in the low half."""
    words = np.empty(_length(keys), np.uint64)
    halves = words.view(np.uint32).reshape(-1, 2)
    return _sorted(keys, slots, [low, high], [halves[:, 0], halves[:, 1]], workers, owners), words


def _pieces(column: Pieces) -> Sequence[Column]:
    return [column] if isinstance(column, np.ndarray) else column


def _length(column: Pieces) -> int:
    return sum(len(piece) for piece in _pieces(column))


def _cut(columns: Sequence[Pieces], begin: int, end: int) -> Iterator[tuple[Column, ...]]:
    """The rows from `begin` on before `end` of all columns, cut where one of them has another piece."""
    starts = [np.cumsum([0, *(len(piece) for piece in _pieces(column))]) for column in columns]
    inner = [cut for cut in np.unique(np.concatenate(starts)).tolist() if begin < cut < end]
    for low, high in pairwise([begin, *inner, end] if begin < end else []):
        found = []
        for column, at in zip(columns, starts, strict=True):
            spot = int(np.searchsorted(at, low, side="right")) - 1
            found.append(_pieces(column)[spot][low - at[spot] : high - at[spot]])
        yield tuple(found)


def _sorted(
    keys: Pieces,
    slots: int,
    columns: Sequence[Pieces],
    found: Sequence[Column],
    workers: int,
    owners: Owners | None,
) -> Column:
    """Fills `found` with the columns, and returns the offsets."""
    rows = _length(keys)
    parts = workers if rows >= ROWS_A_PART * workers else 1
    # Words hold a key and a column of 32 bits, that by which rows are owned if they are.
    owned = -1 if owners is None else owners.spot
    order = sorted(range(len(found)), key=lambda spot: (spot != owned, found[spot].itemsize))
    pairs = [(columns[spot], found[spot]) for spot in order]
    ends = [rows * part // parts for part in range(parts + 1)]
    if owners is None and (not pairs or slots <= FEW_KEYS or rows < slots or pairs[0][1].itemsize > 4):
        return _straight(keys, slots, pairs, ends)
    return _sharded(keys, slots, pairs, ends, owners)


def _counted(keys: Pieces, slots: int, shift: int, ends: Sequence[int]) -> tuple[Column, Column]:
    """Where the rows of each part and key, shifted, begin; the offsets of all parts."""
    parts = len(ends) - 1
    counts = np.zeros((parts, slots), np.uint32)

    def count(part: int) -> None:
        for (piece,) in _cut([keys], ends[part], ends[part + 1]):
            call(count_keys, piece, np.uint32(shift), counts[part])

    mapped(count, range(parts), parts)
    return counts, call(starts, counts)


def _straight(keys: Pieces, slots: int, pairs: Sequence[tuple[Pieces, Column]], ends: Sequence[int]) -> Column:
    counts, offsets = _counted(keys, slots, 0, ends)

    def scatter(part: int) -> None:
        for column, out in pairs:
            following = counts[part].copy() if len(pairs) > 1 else counts[part]
            for piece in _cut([keys, column], ends[part], ends[part + 1]):
                call(scatter_column, following, *piece, out)

    mapped(scatter, range(len(ends) - 1), len(ends) - 1)
    return offsets


def _sharded(
    keys: Pieces, slots: int, pairs: Sequence[tuple[Pieces, Column]], ends: Sequence[int], owners: Owners | None
) -> Column:
    rows, parts = ends[-1], len(ends) - 1
    shift = max((slots - 1).bit_length() - SHARD_BITS, 0)
    shards = (slots - 1 >> shift) + 1
    counts, starts_of = _counted(keys, shards, shift, ends)
    number, of_block = (1, None) if owners is None else (owners.number, owners.of_block)
    words = np.empty(rows, np.uint64)
    out, beside = pairs[0][1], pairs[1][1] if len(pairs) > 1 else None
    aside = None if beside is None else np.empty(rows, beside.dtype)

    def to_shards(part: int) -> None:
        for piece in _cut([keys, *(column for column, _ in pairs)], ends[part], ends[part + 1]):
            given = (*piece, None)[:3]
            call(scatter_words, np.uint32(shift), counts[part], *given, np.uint32(number), of_block, words, aside)

    mapped(to_shards, range(parts), parts)
    offsets = np.empty((slots + 1) * number + 1, np.uint64)
    offsets[slots * number :] = rows
    borders = np.searchsorted(starts_of[: shards + 1], ends[:-1])
    limits = [0, *(int(border) for border in borders[1:]), shards]

    def inside(part: int) -> None:
        ranges = (limits[part], limits[part + 1], np.uint32(shift), slots, starts_of, np.uint32(number))
        call(sort_words, *ranges, words, aside, offsets, out.view(np.uint32), beside)

    mapped(inside, range(parts), parts)
    return offsets


# --- loops -----------------------------------------------------------------------------------------------------------
# What is None the compiler leaves out.


@jit
def count_keys(keys: Any, shift: Any, counts: Any) -> None:
    """How many rows each key, shifted, has."""
    for row in range(keys.size):
        counts[np.uint32(keys[row]) >> shift] += np.uint32(1)


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
def scatter_column(following: Any, keys: Any, column: Any, out: Any) -> None:
    for row in range(keys.size):
        key = np.uint32(keys[row])
        spot = following[key]
        following[key] = spot + np.uint32(1)
        out[spot] = column[row]


@jit
def scatter_words(
    shift: Any,
    following: Any,
    keys: Any,
    first: Any,
    second: Any,
    owners: Any,
    of_block: Any,
    words: Any,
    aside: Any,
) -> None:
    """Rows go to their shards: the key, with the owner, and a column in one word, so that there are fewer places to
    write to."""
    for row in range(keys.size):
        key, beside = np.uint32(keys[row]), np.uint32(first[row])
        place = key >> shift
        spot = following[place]
        following[place] = spot + np.uint32(1)
        code = key
        if of_block is not None:
            code = key * owners + of_block[beside >> np.uint32(ALIGN_BITS)]
        words[spot] = np.uint64(code) << np.uint64(32) | np.uint64(beside)
        if second is not None:
            aside[spot] = second[row]


@jit
def sort_words(
    low: Any,
    high: Any,
    shift: Any,
    slots: Any,
    starts: Any,
    owners: Any,
    words: Any,
    aside: Any,
    offsets: Any,
    out: Any,
    beside: Any,
) -> None:
    """Sorts the rows inside the shards from `low` to `high`, and finds the offsets of their keys."""
    following = np.empty((1 << shift) * owners, np.uint32)
    for shard in range(low, high):
        first = np.uint32((shard << shift) * owners)
        size = min((1 << shift) * owners, slots * owners - first)
        following[:size] = 0
        for row in range(starts[shard], starts[shard + 1]):
            following[np.uint32(words[row] >> np.uint64(32)) - first] += np.uint32(1)
        total = np.uint32(starts[shard])
        for code in range(size):
            offsets[first + code] = total
            amount = following[code]
            following[code] = total
            total += amount
        for row in range(starts[shard], starts[shard + 1]):
            place = np.uint32(words[row] >> np.uint64(32)) - first
            spot = following[place]
            following[place] = spot + np.uint32(1)
            out[spot] = np.uint32(words[row] & np.uint64(0xFFFFFFFF))
            if beside is not None:
                beside[spot] = aside[row]
