"""Facts of a growing table by some of their columns: what a key leads to lies side by side, in a vector of its own.

A vector that is full moves to a place of twice the length. Workers fill the shards of the directory side by side: first
each finds out how much room its vectors need, then all get a stretch of the pool, then they move and fill.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import call, jit
from emberlog.kernels.crew import Crew
from emberlog.kernels.shards.directory import Directory, Matrix, write_codes
from emberlog.kernels.shards.keys import shard_of


@jit
def longest(size: Any) -> Any:
    """The length of the place of a vector."""
    if size == 0:
        return 0
    place = 2
    while place < size:
        place *= 2
    return place


@jit
def demand(found: Any, count: Any, shard: Any, shards: Any, rows: Any, sizes: Any, more: Any) -> Any:
    """How much room the vectors of a shard need in the pool; `more` gets what comes to each, as a negative number."""
    own, room = np.uint64(shard), 0
    for i in range(count):
        if shard_of(np.uint64(found[i, 0]), shards) == own:
            more[rows[i]] += 1
    for i in range(count):
        if shard_of(np.uint64(found[i, 0]), shards) == own and more[rows[i]] > 0:
            row = rows[i]
            if sizes[row] + more[row] > longest(sizes[row]):
                room += longest(sizes[row] + more[row])
            more[row] = -more[row]
    return room


@jit
def push(
    found: Any, count: Any, shard: Any, shards: Any, rows: Any, wheres: Any, sizes: Any, more: Any, pool: Any,
    free: Any, items: Any,
) -> None:  # fmt: skip
    """Appends the items of a shard to the vectors of their keys; those that are too short move to the pool's `free`
    stretch."""
    own, width = np.uint64(shard), pool.shape[1]
    for i in range(count):
        if shard_of(np.uint64(found[i, 0]), shards) != own:
            continue
        row = rows[i]
        size = sizes[row]
        if more[row] < 0:
            if size - more[row] > longest(size):
                for k in range(size):
                    for j in range(width):
                        pool[free + k, j] = pool[wheres[row] + k, j]
                wheres[row] = free
                free += longest(size - more[row])
            more[row] = 0
        for j in range(width):
            pool[wheres[row] + size, j] = items[i, j]
        sizes[row] = size + 1


class Vectors:
    """What `columns` of a table lead to: vectors of items of `width` numbers."""

    def __init__(self, columns: int, width: int, dtype: str, crew: Crew) -> None:
        self.directory = Directory(columns, dtype, crew)
        self.crew = crew
        self.wheres = np.zeros(self.directory.room, np.int64)
        self.sizes = np.zeros(self.directory.room, np.int32)
        self.pool: Matrix = np.empty((1 << 10, width), dtype)
        self._more = np.zeros(self.directory.room, np.int32)
        self._used = 0

    @property
    def bytes(self) -> int:
        return self.directory.bytes + self.wheres.nbytes + 2 * self.sizes.nbytes + self.pool.nbytes

    def append(self, keys: Matrix, items: Matrix) -> None:
        """Appends each of the items to the vector of its key."""
        count, shards = len(keys), len(self.directory.counts)
        if not count:
            return
        found = np.empty((count, keys.shape[1] + 1), np.int64)
        found[:, 1:] = keys
        call(write_codes, found, keys.shape[1], 0, count)
        rows = self.directory.take(found, count)
        self._follow()
        needs = np.zeros(shards, np.int64)

        def ask(shard: int) -> None:
            needs[shard] = call(demand, found, count, shard, shards, rows, self.sizes, self._more)

        self.directory.each_shard(ask, count)
        begins = self._used + np.cumsum(needs) - needs
        self._reserve(int(needs.sum()))

        def fill(shard: int) -> None:
            own = (self.wheres, self.sizes, self._more, self.pool)
            call(push, found, count, shard, shards, rows, *own, int(begins[shard]), items)

        self.directory.each_shard(fill, count)

    def _follow(self) -> None:
        """Makes room for the vectors of new keys."""
        if len(self.sizes) < self.directory.room:
            for name in ("wheres", "sizes", "_more"):
                array = getattr(self, name)
                longer = np.zeros(self.directory.room, array.dtype)
                longer[: len(array)] = array
                setattr(self, name, longer)

    def _reserve(self, more: int) -> None:
        if self._used + more > len(self.pool):
            longer = np.empty((max(self._used + more, 2 * len(self.pool)), self.pool.shape[1]), self.pool.dtype)
            longer[: self._used] = self.pool[: self._used]
            self.pool = longer
        self._used += more
