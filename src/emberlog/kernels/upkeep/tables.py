"""Rows come and go. Until the change is committed, the log can take it back, and rows that went are still read as old.

A row that goes loses its flag `NEW` and leaves the indexes with the commit. One that comes has no flag `OLD` before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit
from emberlog.kernels.upkeep.indexes import (
    block_of,
    find_row,
    lacks_room,
    link_row,
    link_slot,
    unlink_row,
    unlink_slot,
)
from emberlog.kernels.upkeep.layout import COUNT, FIRST, FREE, IN_LOG, INDEX, INDEXES, LOGGED, NEW, OLD, USED, WIDTH


@jit
def is_full(table: Any, source: Any, at: Any) -> Any:
    """True if there may be no room for one more row."""
    rows, _, log, meta = table
    if meta[LOGGED] == log.shape[0] or (meta[FREE] == 0 and meta[USED] == rows.shape[0]):
        return True
    for i in range(meta[INDEXES]):  # noqa: SIM110  (Numba has no generators inside of functions)
        if lacks_room(table, FIRST + i * INDEX, source, at):
            return True
    return False


@jit
def take_slot(table: Any) -> Any:
    rows, _, _, meta = table
    slot = meta[FREE] - 1
    if slot >= 0:
        meta[FREE] = rows[slot, 0]
        return slot
    slot = meta[USED]
    meta[USED] += 1
    return slot


@jit
def link(table: Any, slot: Any) -> None:
    """Puts a row into all indexes."""
    meta = table[3]
    link_row(table, slot)
    for i in range(1, meta[INDEXES]):
        link_slot(table, FIRST + i * INDEX, slot)


@jit
def let_go(table: Any, slot: Any) -> None:
    """Takes a row out of all indexes; its slot is free."""
    rows, _, _, meta = table
    unlink_row(table, slot)
    for i in range(1, meta[INDEXES]):
        unlink_slot(table, FIRST + i * INDEX, slot)
    rows[slot, meta[WIDTH]] = 0
    rows[slot, 0] = meta[FREE]
    meta[FREE] = slot + 1


@jit
def remember(table: Any, slot: Any) -> None:
    """Copies a row to the log, which must have room, unless it is there."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    if rows[slot, flags] & IN_LOG:
        return
    entry = meta[LOGGED]
    log[entry, 0] = slot
    for i in range(rows.shape[1]):
        log[entry, i + 1] = rows[slot, i]
    rows[slot, flags] |= IN_LOG
    meta[LOGGED] = entry + 1


@jit
def add_row(table: Any, source: Any, at: Any) -> Any:
    """Takes in a row; 1 if it was not there, 0 if it was, -1 if there is no room."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    slot = find_row(table, source, at)
    if slot >= 0:
        if rows[slot, flags] & NEW:
            return 0
        if meta[LOGGED] == log.shape[0]:
            return -1
        remember(table, slot)
        rows[slot, flags] |= NEW
        meta[COUNT] += 1
        return 1
    if is_full(table, source, at):
        return -1
    slot = take_slot(table)
    for i in range(flags):
        rows[slot, i] = source[at, i]
    rows[slot, flags] = 0
    remember(table, slot)
    rows[slot, flags] |= NEW
    link(table, slot)
    meta[COUNT] += 1
    return 1


@jit
def remove_row(table: Any, source: Any, at: Any) -> Any:
    """Lets go of a row; 1 if it was there, 0 if not, -1 if the log is full."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    slot = find_row(table, source, at)
    if slot < 0 or not rows[slot, flags] & NEW:
        return 0
    if meta[LOGGED] == log.shape[0]:
        return -1
    remember(table, slot)
    rows[slot, flags] &= ~NEW
    meta[COUNT] -= 1
    return 1


@jit
def has_row(table: Any, source: Any, at: Any) -> Any:
    slot = find_row(table, source, at)
    return slot >= 0 and table[0][slot, table[3][WIDTH]] & NEW != 0


@jit
def has_any(table: Any, base: Any, source: Any, at: Any, mask: Any) -> Any:
    """True if a row with the key of an index has one of these flags."""
    rows, arena, _, meta = table
    low, high = block_of(table, base, source, at)
    for i in range(low, high):  # noqa: SIM110
        if rows[arena[i], meta[WIDTH]] & mask:
            return True
    return False


@jit
def commit(table: Any) -> None:
    """Makes the change final."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    for entry in range(meta[LOGGED]):
        slot = log[entry, 0]
        if rows[slot, flags] & NEW:
            rows[slot, flags] = NEW | OLD
        else:
            let_go(table, slot)
    meta[LOGGED] = 0


@jit
def undo(table: Any) -> None:
    """Takes the change back."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    for entry in range(meta[LOGGED] - 1, -1, -1):
        slot = log[entry, 0]
        is_there = rows[slot, flags] & NEW != 0
        was_there = log[entry, flags + 1] & OLD != 0
        meta[COUNT] += np.int64(was_there) - np.int64(is_there)
        if was_there:
            for i in range(rows.shape[1]):
                rows[slot, i] = log[entry, i + 1]
        else:
            let_go(table, slot)
    meta[LOGGED] = 0


@jit
def link_all(table: Any) -> Any:
    """Puts all rows of a table into its indexes, which are empty; a row that stands twice goes. Returns the slot of a
    row for which there is no room, or -1."""
    rows, _, _, meta = table
    flags = meta[WIDTH]
    meta[FREE] = 0
    for slot in range(meta[USED] - 1, -1, -1):
        if rows[slot, flags] == 0:
            rows[slot, 0] = meta[FREE]
            meta[FREE] = slot + 1
    for slot in range(meta[USED]):
        if rows[slot, flags] == 0:
            continue
        if find_row(table, rows, slot) >= 0:
            rows[slot, flags] = 0
            rows[slot, 0] = meta[FREE]
            meta[FREE] = slot + 1
            meta[COUNT] -= 1
            continue
        for i in range(meta[INDEXES]):
            if lacks_room(table, FIRST + i * INDEX, rows, slot):
                return slot
        link(table, slot)
    return -1
