"""Keys and their rows, for loops that read shards: what is compiled into every such loop.

A directory has a table of places for each shard, `heads[shard]`, in which a row stands as its number plus one, and the
keys of all rows in `keys`. Rows are numbered in blocks that belong to one shard each, so that workers that fill
different shards do not write to the same lines of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit
from emberlog.kernels.prefetch import prefetch
from emberlog.kernels.runtime import grown_rows

BLOCK = 10  # a block has 2^10 rows


SEED = np.uint64(0x9E3779B97F4A7C15)


@jit
def with_column(code: Any, value: Any) -> Any:
    """The code of the columns so far, and of one more."""
    code = (code ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
    return code ^ (code >> np.uint64(32))


@jit
def finished(code: Any) -> Any:
    code *= np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(29))


@jit
def code_of(key: Any) -> Any:
    """A well-spread code of 64 bits. Its upper half says which shard a key belongs to, its lower half where."""
    code = SEED
    for i in range(len(key)):
        code = with_column(code, key[i])
    return finished(code)


@jit
def shard_of(code: Any, shards: Any) -> Any:
    return ((code >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)


@jit
def row_at(place: Any, shard: Any, shards: Any) -> Any:
    """The row of the key that came as number `place` into its shard."""
    return (((place >> BLOCK) * shards + shard) << BLOCK) + (place & ((1 << BLOCK) - 1))


@jit
def row_of(heads: Any, keys: Any, key: Any) -> Any:
    """The row of a key, -1 if it has none."""
    code = code_of(key)
    shard, mask = shard_of(code, heads.shape[0]), np.uint64(heads.shape[1] - 1)
    spot = code & mask
    while True:
        row = np.int64(heads[shard, spot]) - 1
        if row < 0:
            return row
        same = True
        for i in range(len(key)):
            if np.int64(keys[row, i]) != key[i]:
                same = False
        if same:
            return row
        spot = (spot + np.uint64(1)) & mask


@jit
def sift(near: Any, count: Any, heads: Any, keys: Any, found: Any, size: Any) -> Any:
    """Appends the facts of `near` that are not in the table to `found`, which has `size` of them; what it is then, and
    how many it has. Most of what rules find is known, and is dropped here: memory is asked for all places before the
    first of them is looked at."""
    shards, places, width = heads.shape[0], np.uint64(heads.shape[1]), keys.shape[1]
    mask = places - np.uint64(1)
    while size + count > found.shape[0]:
        found = grown_rows(found)
    for i in range(count):
        code = np.uint64(near[i, 0])
        prefetch(heads, shard_of(code, shards) * places + (code & mask))
    for i in range(count):
        code = np.uint64(near[i, 0])
        row = np.int64(heads[shard_of(code, shards), code & mask]) - 1
        if row >= 0:
            prefetch(keys, np.uint64(row * width))
    for i in range(count):
        code = np.uint64(near[i, 0])
        shard, spot = shard_of(code, shards), code & mask
        while True:
            row = np.int64(heads[shard, spot]) - 1
            if row < 0:
                for j in range(width + 1):
                    found[size, j] = near[i, j]
                size += 1
                break
            same = True
            for j in range(width):
                if np.int64(keys[row, j]) != near[i, j + 1]:
                    same = False
            if same:
                break
            spot = (spot + np.uint64(1)) & mask
    return found, size
