"""What the loops share: the record that they return, and the indexes that they build.

All loops index with unsigned integers: Numba checks signed ones for wrapping round on every access, which takes as long
as the access itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[Any]
Columns: TypeAlias = tuple[Column, ...]
Inputs: TypeAlias = dict[str, Columns]
"""The columns of each input relation, 64-bit integers as they stand in the file."""

# Caching on disk: the loops are compiled once a checkout, not once a run.
kernel: Callable[..., Any] = numba.njit(cache=True, nogil=True)
# For small functions inside hot loops: a call would count references to every array that it passes.
inlined: Callable[..., Any] = numba.njit(inline="always", nogil=True)

u64 = np.uint64
u32 = np.uint32

SHARDS = 256
"""Into so many parts rows are split before they are sorted, so that what is written at random fits the cache."""


@dataclass(frozen=True)
class Limit:
    """What an evaluation found and what it took.

    `derivations` counts the bindings that satisfied a rule body, where they were enumerated; None where they were not
    (whole rows were or-ed). `answer` makes the rows of the result as columns, outside the clock.
    """

    facts: int
    derivations: int | None
    build: float
    seconds: float
    answer: Callable[[], Columns]
    rounds: int | None = None
    wall: float | None = None
    """From the files to the number of rows, where the contestant reads the files itself."""

    @property
    def total(self) -> float:
        return self.build + self.seconds


class Watch:
    """Seconds between calls of `lap`."""

    def __init__(self) -> None:
        self._at = perf_counter()

    def lap(self) -> float:
        now = perf_counter()
        passed, self._at = now - self._at, now
        return passed


def nodes(*columns: Column) -> int:
    """The size of a domain that holds all ids: the largest one and one more."""
    return max((int(largest(column)) for column in columns if len(column)), default=-1) + 1


@kernel
def largest(column):  # type: ignore[no-untyped-def]
    top = column[0]
    for value in column:
        top = max(top, value)
    return top


def csr(keys: Column, values: Column, n: int) -> tuple[Column, Column]:
    """The values of each key together: `targets[offsets[k] : offsets[k + 1]]`, 32-bit both."""
    offsets, targets = _csr_sorted(keys, values, n) if ordered(keys) else _csr(keys, values, n)
    return offsets, targets


def weighted_csr(keys: Column, values: Column, weights: Column, n: int) -> tuple[Column, Column]:
    """The same with a weight beside each value: `pairs[2 * e]` and `pairs[2 * e + 1]` share a cache line."""
    offsets, pairs = (_weighted_sorted if ordered(keys) else _weighted)(keys, values, weights, n)
    return offsets, pairs


@kernel
def ordered(keys):  # type: ignore[no-untyped-def]
    """Whether keys ascend; the first that does not ends the search."""
    for e in range(1, len(keys)):  # noqa: SIM110
        if keys[e] < keys[e - 1]:
            return False
    return True


@kernel
def _starts(keys, n):  # type: ignore[no-untyped-def]
    offsets = np.zeros(n + 1, np.uint32)
    for key in keys:
        offsets[u64(key) + u64(1)] += u32(1)
    for k in range(n):
        offsets[k + 1] += offsets[k]
    return offsets


@kernel
def _csr_sorted(keys, values, n):  # type: ignore[no-untyped-def]
    return _starts(keys, n), values.astype(np.uint32)


@kernel
def _weighted_sorted(keys, values, weights, n):  # type: ignore[no-untyped-def]
    pairs = np.empty(2 * len(keys), np.int32)
    for e in range(len(keys)):
        pairs[u64(2 * e)] = values[e]
        pairs[u64(2 * e + 1)] = weights[e]
    return _starts(keys, n), pairs


@kernel
def _shards(keys, n):  # type: ignore[no-untyped-def]
    """How far keys are shifted to get their shard, and where each shard starts."""
    shift = u64(0)
    while n >> shift >= SHARDS:
        shift += u64(1)
    starts = np.zeros((n >> shift) + 2, np.uint64)
    for key in keys:
        starts[(u64(key) >> shift) + u64(1)] += u64(1)
    for s in range(1, len(starts)):
        starts[s] += starts[s - 1]
    return shift, starts


@kernel
def _count_shard(offsets, rows, shift, shard, n):  # type: ignore[no-untyped-def]
    """Counts the keys of a shard's rows into `offsets`, two places up, and adds them to what stands before."""
    for row in rows:
        offsets[(row >> u64(32)) + u64(2)] += u32(1)
    first = u64(shard) << shift
    for k in range(first + u64(2), min(first + (u64(1) << shift), u64(n)) + u64(2)):
        offsets[k] += offsets[k - u64(1)]


@kernel
def _csr(keys, values, n):  # type: ignore[no-untyped-def]
    """Rows are packed into shards first, and a shard's rows then sorted by counting."""
    shift, starts = _shards(keys, n)
    at = starts.copy()
    rows = np.empty(len(keys), np.uint64)
    for e in range(len(keys)):
        key = u64(keys[e])
        rows[at[key >> shift]] = key << u64(32) | u64(values[e])
        at[key >> shift] += u64(1)
    offsets = np.zeros(n + 2, np.uint32)
    targets = np.empty(len(keys), np.uint32)
    for shard in range(len(starts) - 1):
        mine = rows[starts[shard] : starts[shard + 1]]
        _count_shard(offsets, mine, shift, shard, n)
        for row in mine:
            key = (row >> u64(32)) + u64(1)
            targets[offsets[key]] = u32(row)
            offsets[key] += u32(1)
    return offsets[: n + 1], targets


@kernel
def _weighted(keys, values, weights, n):  # type: ignore[no-untyped-def]
    shift, starts = _shards(keys, n)
    at = starts.copy()
    rows = np.empty(len(keys), np.uint64)
    heavy = np.empty(len(keys), np.int32)
    for e in range(len(keys)):
        key = u64(keys[e])
        place = at[key >> shift]
        rows[place] = key << u64(32) | u64(values[e])
        heavy[place] = weights[e]
        at[key >> shift] = place + u64(1)
    offsets = np.zeros(n + 2, np.uint32)
    pairs = np.empty(2 * len(keys), np.int32)
    for shard in range(len(starts) - 1):
        low, high = starts[shard], starts[shard + 1]
        _count_shard(offsets, rows[low:high], shift, shard, n)
        for e in range(low, high):
            key = (rows[e] >> u64(32)) + u64(1)
            place = u64(offsets[key])
            pairs[u64(2) * place] = np.int32(rows[e])
            pairs[u64(2) * place + u64(1)] = heavy[e]
            offsets[key] += u32(1)
    return offsets[: n + 1], pairs
