"""Keys and the rows that they have, in shards: what was found is taken in by all workers, each into its own shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.diagnostics import sized
from emberlog.kernels.cache import call, jit
from emberlog.kernels.crew import Crew
from emberlog.kernels.prefetch import prefetch
from emberlog.kernels.shards.keys import BLOCK, SEED, finished, row_at, shard_of, with_column
from emberlog.kernels.watch import Unsuited

Matrix = np.ndarray[Any, Any]

AHEAD = 64  # keys whose places are fetched before the first of them is looked up
SIDE_BY_SIDE = 1 << 13  # keys from which on workers take them in side by side
MOST_ROWS = (1 << 31) - 1


@jit
def write_codes(found: Any, width: Any, begin: Any, end: Any) -> None:
    """Column 0 gets the code of the `width` columns after it, as `code_of` makes it of a tuple."""
    for i in range(begin, end):
        code = SEED
        for j in range(1, width + 1):
            code = with_column(code, found[i, j])
        found[i, 0] = np.int64(finished(code))


@jit
def tally(found: Any, count: Any, totals: Any) -> None:
    """Adds up how many of the keys belong to each shard."""
    for i in range(count):
        totals[shard_of(np.uint64(found[i, 0]), totals.size)] += 1


@jit
def absorb(heads: Any, keys: Any, counts: Any, shard: Any, found: Any, count: Any, rows: Any) -> None:
    """Takes in the keys that belong to a shard; `rows` gets the row of each. `found` has the code of a key and then its
    columns. There is room for all."""
    shards, width = heads.shape[0], keys.shape[1]
    mask = np.uint64(heads.shape[1] - 1)
    near = np.empty(AHEAD, np.int64)
    at, own, known = 0, np.uint64(shard), counts[shard]
    while at < count:
        some = 0
        while at < count and some < AHEAD:
            code = np.uint64(found[at, 0])
            if shard_of(code, shards) == own:
                prefetch(heads, own * np.uint64(heads.shape[1]) + (code & mask))
                near[some] = at
                some += 1
            at += 1
        for k in range(some):
            row = np.int64(heads[own, np.uint64(found[near[k], 0]) & mask]) - 1
            if row >= 0:
                prefetch(keys, np.uint64(row * width))
        for k in range(some):
            i = near[k]
            spot = np.uint64(found[i, 0]) & mask
            while True:
                row = np.int64(heads[own, spot]) - 1
                if row < 0:
                    row = row_at(known, np.int64(shard), np.int64(shards))
                    heads[own, spot] = np.int32(row + 1)
                    for j in range(width):
                        keys[row, j] = found[i, j + 1]
                    known += 1
                    break
                same = True
                for j in range(width):
                    if np.int64(keys[row, j]) != found[i, j + 1]:
                        same = False
                if same:
                    break
                spot = (spot + np.uint64(1)) & mask
            rows[i] = row
    counts[shard] = known


@jit
def replace_heads(heads: Any, keys: Any, counts: Any, shard: Any, longer: Any) -> None:
    """Enters the rows of a shard in a longer table."""
    shards, width = heads.shape[0], keys.shape[1]
    mask, own = np.uint64(longer.shape[1] - 1), np.uint64(shard)
    for place in range(counts[shard]):
        row = row_at(np.int64(place), np.int64(shard), np.int64(shards))
        code = SEED
        for j in range(width):
            code = with_column(code, np.int64(keys[row, j]))
        spot = finished(code) & mask
        while longer[own, spot] != 0:
            spot = (spot + np.uint64(1)) & mask
        longer[own, spot] = np.int32(row + 1)


@jit
def rows_since(before: Any, counts: Any, rows: Any) -> None:
    """The rows that came into each shard after its first `before` ones, one shard after the other."""
    at, shards = 0, counts.size
    for shard in range(shards):
        for place in range(before[shard], counts[shard]):
            rows[at] = row_at(np.int64(place), np.int64(shard), np.int64(shards))
            at += 1


class Directory:
    """Keys of `width` columns, in a shard for each worker of the crew."""

    def __init__(self, width: int, dtype: str, crew: Crew) -> None:
        self.crew = crew
        self.heads = np.zeros((crew.size, 2 << BLOCK), np.int32)
        self.keys: Matrix = np.empty((crew.size << BLOCK, width), dtype)
        self.counts = np.zeros(crew.size, np.int64)

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    @property
    def room(self) -> int:
        """The number of rows that there is room for: every row has a lower number."""
        return len(self.keys)

    @property
    def bytes(self) -> int:
        return self.heads.nbytes + self.keys.nbytes

    def take(self, found: Matrix, count: int) -> Matrix:
        """Takes in the keys of the first `count` rows of `found`, whose column 0 has their codes; the row of each."""
        totals = np.zeros_like(self.counts)
        call(tally, found, count, totals)
        self._reserve(int((self.counts + totals).max()))
        rows = np.empty(count, np.int64)
        self.each_shard(
            lambda shard: call(absorb, self.heads, self.keys, self.counts, shard, found, count, rows), count
        )
        return rows

    def since(self, before: Matrix) -> Matrix:
        """The rows that were made after there were `before` of them in each shard."""
        rows = np.empty(int((self.counts - before).sum()), np.int64)
        call(rows_since, before, self.counts, rows)
        return rows

    def each_shard(self, work: Any, count: int) -> None:
        """Does `work` on every shard; side by side where there are so many keys that it pays."""
        if count >= SIDE_BY_SIDE:
            self.crew.mapped(work, range(len(self.counts)))
        else:
            for shard in range(len(self.counts)):
                work(shard)

    def _reserve(self, most: int) -> None:
        """Makes room for `most` keys in each shard."""
        shards, places = self.heads.shape
        room = len(self.keys) // shards
        if most > room:
            while room < most:
                room *= 2
            if room * shards > MOST_ROWS:
                raise Unsuited(f"a table has more than {MOST_ROWS:,} keys ({sized(self.bytes)})")
            keys = np.empty((room * shards, self.keys.shape[1]), self.keys.dtype)
            keys[: len(self.keys)] = self.keys
            self.keys = keys
        if 2 * most > places:
            while places < 2 * most:
                places *= 2
            longer = np.zeros((shards, places), np.int32)
            self.each_shard(
                lambda shard: call(replace_heads, self.heads, self.keys, self.counts, shard, longer), self.size
            )
            self.heads = longer
