"""Indexes of a table, all in one arena: by the key, and by the values of other columns.

The first index has every row under its key. Others have a block of slots for each key: a row is added at the end, and
the last one takes the place of one that goes. Blocks have powers of two as sizes and are used again. A key of one
column with few gaps is a position (`DENSE`), any other is hashed. Keys are given as rows, of any matrix, that have them
in their columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit
from emberlog.kernels.runtime import mixed
from emberlog.kernels.upkeep.layout import (
    BLOCKS,
    COLUMNS,
    DENSE,
    FIRST,
    HEAD_ROOM,
    HEADS,
    KEY_ROOM,
    KEYS,
    KEYS_FREE,
    KEYS_USED,
    LISTS,
    LOW,
    NEXT,
    OUTSIDE,
    PLACES,
    POOL,
    POOL_ROOM,
    POOL_USED,
)


@jit
def head_of(meta: Any, base: Any, source: Any, at: Any) -> Any:
    """Where in the arena the entries of a key begin; -1 for a key outside of a dense index."""
    if meta[base + DENSE]:
        place = source[at, meta[base + COLUMNS]] - meta[base + LOW]
        if place < 0 or place >= meta[base + HEAD_ROOM]:
            return np.int64(-1)
        return meta[base + HEADS] + place
    code = np.uint64(0)
    for i in range(meta[base + KEYS]):
        word = source[at, meta[base + COLUMNS + i]]
        code = mixed(code + np.uint64(word) + np.uint64(0x9E3779B97F4A7C15))
    return meta[base + HEADS] + np.int64(code & np.uint64(meta[base + HEAD_ROOM] - 1))


@jit
def is_same(rows: Any, slot: Any, meta: Any, base: Any, source: Any, at: Any) -> Any:
    """True if a row has the key of another one."""
    for i in range(meta[base + KEYS]):
        column = meta[base + COLUMNS + i]
        if rows[slot, column] != source[at, column]:
            return False
    return True


# --- the index of keys -----------------------------------------------------------------------------------------------


@jit
def find_row(table: Any, source: Any, at: Any) -> Any:
    """The slot of the row with this key, or -1."""
    rows, arena, _, meta = table
    head = head_of(meta, FIRST, source, at)
    if head < 0:
        return np.int64(-1)
    slot = np.int64(arena[head]) - 1
    if meta[FIRST + DENSE]:
        return slot
    while slot >= 0 and not is_same(rows, slot, meta, FIRST, source, at):
        slot = np.int64(arena[meta[FIRST + NEXT] + slot]) - 1
    return slot


@jit
def link_row(table: Any, slot: Any) -> None:
    """Puts a row into the index of keys."""
    rows, arena, _, meta = table
    head = head_of(meta, FIRST, rows, slot)
    if not meta[FIRST + DENSE]:
        arena[meta[FIRST + NEXT] + slot] = arena[head]
    arena[head] = slot + 1


@jit
def unlink_row(table: Any, slot: Any) -> None:
    """Takes a row out of the index of keys."""
    rows, arena, _, meta = table
    head = head_of(meta, FIRST, rows, slot)
    _unchain(arena, meta, FIRST, head, slot)


@jit
def _unchain(arena: Any, meta: Any, base: Any, head: Any, entry: Any) -> None:
    """Takes an entry out of those that begin at a place of the arena."""
    if meta[base + DENSE]:
        arena[head] = 0
        return
    spot = head
    while arena[spot] != entry + 1:
        spot = meta[base + NEXT] + np.int64(arena[spot]) - 1
    arena[spot] = arena[meta[base + NEXT] + entry]


# --- indexes of blocks -----------------------------------------------------------------------------------------------


@jit
def _find_block(table: Any, base: Any, source: Any, at: Any) -> Any:
    """The number of a key, or -1."""
    rows, arena, _, meta = table
    head = head_of(meta, base, source, at)
    if head < 0:
        return np.int64(-1)
    entry = np.int64(arena[head]) - 1
    if meta[base + DENSE]:
        return entry
    while entry >= 0:
        first = arena[meta[base + POOL] + arena[meta[base + BLOCKS] + 3 * entry]]
        if is_same(rows, np.int64(first), meta, base, source, at):
            break
        entry = np.int64(arena[meta[base + NEXT] + entry]) - 1
    return entry


@jit
def block_of(table: Any, base: Any, source: Any, at: Any) -> Any:
    """From where to where in the arena the slots of a key are."""
    _, arena, _, meta = table
    entry = _find_block(table, base, source, at)
    if entry < 0:
        return np.int64(0), np.int64(0)
    block = meta[base + BLOCKS] + 3 * entry
    low = meta[base + POOL] + np.int64(arena[block])
    return low, low + np.int64(arena[block + 1])


@jit
def lacks_room(table: Any, base: Any, source: Any, at: Any) -> Any:
    """True if an index may have no place for one more row."""
    _, arena, _, meta = table
    head = head_of(meta, base, source, at)
    if head < 0:
        meta[OUTSIDE] = source[at, meta[base + COLUMNS]]
        return True
    if base == FIRST:
        return False
    entry = _find_block(table, base, source, at)
    if entry < 0:
        no_key = meta[base + KEYS_FREE] == 0 and meta[base + KEYS_USED] == meta[base + KEY_ROOM]
        return no_key or _no_block(meta, base, 0)
    block = meta[base + BLOCKS] + 3 * entry
    size = np.int64(arena[block + 2])
    return np.int64(arena[block + 1]) == np.int64(1) << size and _no_block(meta, base, size + 1)


@jit
def _no_block(meta: Any, base: Any, size: Any) -> Any:
    """True if there is no free block of a size class, and no room for one."""
    full = meta[base + POOL_USED] + (np.int64(1) << np.int64(size)) > meta[base + POOL_ROOM]
    return meta[base + LISTS + size] == 0 and full


@jit
def _take_block(arena: Any, meta: Any, base: Any, size: Any) -> Any:
    """The start of a free block of a size class."""
    start = meta[base + LISTS + size] - 1
    if start >= 0:
        meta[base + LISTS + size] = arena[meta[base + POOL] + start]
        return start
    start = meta[base + POOL_USED]
    meta[base + POOL_USED] += np.int64(1) << np.int64(size)
    return start


@jit
def _leave_block(arena: Any, meta: Any, base: Any, start: Any, size: Any) -> None:
    arena[meta[base + POOL] + start] = meta[base + LISTS + size]
    meta[base + LISTS + size] = start + 1


@jit
def _new_key(table: Any, base: Any, slot: Any) -> Any:
    """The number of a key that no row had, with an empty block."""
    rows, arena, _, meta = table
    head = head_of(meta, base, rows, slot)
    entry = meta[base + KEYS_FREE] - 1
    if entry >= 0:
        meta[base + KEYS_FREE] = arena[meta[base + BLOCKS] + 3 * entry]
    else:
        entry = meta[base + KEYS_USED]
        meta[base + KEYS_USED] += 1
    if not meta[base + DENSE]:
        arena[meta[base + NEXT] + entry] = arena[head]
    arena[head] = entry + 1
    block = meta[base + BLOCKS] + 3 * entry
    arena[block] = _take_block(arena, meta, base, np.int64(0))
    arena[block + 1] = 0
    arena[block + 2] = 0
    return entry


@jit
def link_slot(table: Any, base: Any, slot: Any) -> None:
    """Puts a row into the block of its key."""
    rows, arena, _, meta = table
    entry = _find_block(table, base, rows, slot)
    if entry < 0:
        entry = _new_key(table, base, slot)
    block, pool = meta[base + BLOCKS] + 3 * entry, meta[base + POOL]
    start, length = np.int64(arena[block]), np.int64(arena[block + 1])
    size = np.int64(arena[block + 2])
    if length == np.int64(1) << size:
        wider = _take_block(arena, meta, base, size + 1)
        for i in range(length):
            arena[pool + wider + i] = arena[pool + start + i]
        _leave_block(arena, meta, base, start, size)
        start = wider
        arena[block] = start
        arena[block + 2] = size + 1
    arena[pool + start + length] = slot
    arena[meta[base + PLACES] + slot] = length
    arena[block + 1] = length + 1


@jit
def unlink_slot(table: Any, base: Any, slot: Any) -> None:
    """Takes a row out of the block of its key; a key without rows goes."""
    rows, arena, _, meta = table
    entry = _find_block(table, base, rows, slot)
    block, pool, places = meta[base + BLOCKS] + 3 * entry, meta[base + POOL], meta[base + PLACES]
    start, length = np.int64(arena[block]), np.int64(arena[block + 1]) - 1
    if length == 0:
        _unchain(arena, meta, base, head_of(meta, base, rows, slot), entry)
        _leave_block(arena, meta, base, start, np.int64(arena[block + 2]))
        arena[block] = meta[base + KEYS_FREE]
        meta[base + KEYS_FREE] = entry + 1
        return
    place, last = np.int64(arena[places + slot]), np.int64(arena[pool + start + length])
    arena[pool + start + place] = last
    arena[places + last] = place
    arena[block + 1] = length
