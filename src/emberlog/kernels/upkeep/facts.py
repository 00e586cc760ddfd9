"""Facts of a recursion: what is derived is offered to them, and those that change wait to be taken up.

What waits stands in a heap: the best value first, and of equal ones the lowest rank, so that supports are shallow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit
from emberlog.kernels.upkeep.indexes import find_row
from emberlog.kernels.upkeep.layout import (
    COUNT,
    CYCLE,
    DEEP,
    DONE,
    FAIL,
    FALLEN,
    HEAPED,
    LEAST,
    LEAST_FLOAT,
    LIMIT,
    LOGGED,
    MOST,
    MOST_OF,
    NEW,
    NO_FALLEN,
    NO_HEAP,
    NO_ROOM,
    RANK,
    RULE,
    SET,
    TOP,
    WAITING,
    WIDTH,
)
from emberlog.kernels.upkeep.tables import is_full, link, remember, take_slot

TABLES = 8  # bits of the number of a table in an item of the heap


@jit
def order_of(word: Any, fold: Any) -> Any:
    """A number that is the smaller the better the value is."""
    if fold == SET:
        return np.int64(0)
    if fold == LEAST:
        return word
    if fold == MOST_OF:
        return ~word
    # The bits of floats are in their order, apart from the negative ones, which are in the opposite one.
    ordered = word ^ ((word >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
    return ordered if fold == LEAST_FLOAT else ~ordered


# --- the heap --------------------------------------------------------------------------------------------------------


@jit
def _before(heap: Any, one: Any, first: Any, second: Any) -> Any:
    """True if an entry comes before one with these two numbers."""
    return heap[one, 0] < first or (heap[one, 0] == first and heap[one, 1] < second)


@jit
def push(control: Any, heap: Any, first: Any, second: Any, item: Any) -> None:
    """Adds an item; there must be room."""
    spot = control[HEAPED]
    control[HEAPED] = spot + 1
    while spot > 0:
        parent = (spot - 1) >> 1
        if not (first < heap[parent, 0] or (first == heap[parent, 0] and second < heap[parent, 1])):
            break
        heap[spot, 0] = heap[parent, 0]
        heap[spot, 1] = heap[parent, 1]
        heap[spot, 2] = heap[parent, 2]
        spot = parent
    heap[spot, 0] = first
    heap[spot, 1] = second
    heap[spot, 2] = item


@jit
def pop(control: Any, heap: Any) -> Any:
    """The item with the smallest numbers, and these; there must be one."""
    size = control[HEAPED] - 1
    control[HEAPED] = size
    top, rank, item = heap[0, 0], heap[0, 1], heap[0, 2]
    first, second, moved = heap[size, 0], heap[size, 1], heap[size, 2]
    spot = np.int64(0)
    while True:
        child = 2 * spot + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap, child + 1, heap[child, 0], heap[child, 1]):
            child += 1
        if not _before(heap, child, first, second):
            break
        heap[spot, 0] = heap[child, 0]
        heap[spot, 1] = heap[child, 1]
        heap[spot, 2] = heap[child, 2]
        spot = child
    heap[spot, 0] = first
    heap[spot, 1] = second
    heap[spot, 2] = moved
    return top, rank, item


# --- deletes ---------------------------------------------------------------------------------------------------------


@jit
def _is_support(table: Any, slot: Any, buffer: Any, at: Any) -> Any:
    """True if a fact rests on this derivation."""
    rows, _, _, meta = table
    for i in range(meta[WIDTH] + RULE, rows.shape[1]):  # noqa: SIM110  (Numba compiles no generators here)
        if rows[slot, i] != buffer[at, i]:
            return False
    return True


@jit
def suspect(control: Any, heap: Any, buffer: Any, count: Any, table: Any, number: Any) -> Any:
    """Has the facts looked at that rest on one of these derivations, in the order of their ranks."""
    rows, _, _, meta = table
    flags = meta[WIDTH]
    for at in range(count):
        slot = find_row(table, buffer, at)
        if slot >= 0 and rows[slot, flags] & NEW and _is_support(table, slot, buffer, at):
            if control[HEAPED] + 1 == heap.shape[0]:  # one place is for the item that is under way
                return NO_HEAP
            push(control, heap, rows[slot, flags + RANK], np.int64(0), slot << TABLES | number)
    return DONE


@jit
def support(buffer: Any, table: Any, slot: Any, number: Any) -> Any:
    """Lets a fact rest on the first derivation of the buffer, which gives its value."""
    rows, _, log, meta = table
    if meta[LOGGED] == log.shape[0]:
        return NO_ROOM + number
    remember(table, slot)
    for i in range(meta[WIDTH] + RANK, rows.shape[1]):
        rows[slot, i] = buffer[0, i]
    return DONE


@jit
def fall(control: Any, fallen: Any, table: Any, slot: Any, number: Any) -> Any:
    """Lets go of a fact without support."""
    rows, _, log, meta = table
    if meta[LOGGED] == log.shape[0]:
        return NO_ROOM + number
    if control[FALLEN] == fallen.shape[0]:
        return NO_FALLEN
    remember(table, slot)
    rows[slot, meta[WIDTH]] &= ~NEW
    meta[COUNT] -= 1
    fallen[control[FALLEN]] = slot << TABLES | number
    control[FALLEN] += 1
    return DONE


# --- inserts ---------------------------------------------------------------------------------------------------------


@jit
def _write(control: Any, heap: Any, buffer: Any, at: Any, table: Any, slot: Any, item: Any, order: Any) -> None:
    """Gives a fact the value and the support of a derivation, and has it taken up."""
    rows, _, _, meta = table
    flags = meta[WIDTH]
    for i in range(flags):
        rows[slot, i] = buffer[at, i]
    for i in range(flags + RANK, rows.shape[1]):
        rows[slot, i] = buffer[at, i]
    rows[slot, flags] |= NEW | WAITING
    push(control, heap, order, buffer[at, flags + RANK], item)


@jit
def _check_rank(control: Any, rank: Any) -> None:
    """Notes a rank that no chain of facts has: they improve along a cycle, or invent values without end."""
    if rank > control[TOP]:
        control[TOP] = rank
        if control[MOST] >= 0 and rank > control[MOST]:
            control[FAIL] = DEEP
        if rank > control[LIMIT]:
            control[FAIL] = CYCLE


@jit
def offer(control: Any, heap: Any, buffer: Any, count: Any, table: Any, number: Any, fold: Any, value: Any) -> Any:
    """Takes in derivations of facts of one table. `value` is the column of the value, if there is one."""
    rows, _, log, meta = table
    flags = meta[WIDTH]
    for at in range(count):
        if control[HEAPED] + 1 == heap.shape[0]:
            return NO_HEAP
        rank = buffer[at, flags + RANK]
        slot = find_row(table, buffer, at)
        if slot < 0:
            if is_full(table, buffer, at):
                return NO_ROOM + number
            slot = take_slot(table)
            for i in range(flags):
                rows[slot, i] = buffer[at, i]
            rows[slot, flags] = 0
            remember(table, slot)
            link(table, slot)
            meta[COUNT] += 1
            control[LIMIT] += 1
        elif meta[LOGGED] == log.shape[0]:
            return NO_ROOM + number
        elif not rows[slot, flags] & NEW:
            remember(table, slot)
            meta[COUNT] += 1
        else:
            new, old = order_of(buffer[at, value], fold), order_of(rows[slot, value], fold)
            known = rows[slot, flags + RANK]
            if new > old or (new == old and rank == known):
                continue
            if new == old and rank < known:
                remember(table, slot)
                for i in range(flags + RANK, rows.shape[1]):
                    rows[slot, i] = buffer[at, i]
                continue
            if new == old and not _is_support(table, slot, buffer, at):
                continue
            remember(table, slot)
        _check_rank(control, rank)
        if control[FAIL]:
            return control[FAIL]
        _write(control, heap, buffer, at, table, slot, slot << TABLES | number, order_of(buffer[at, value], fold))
    return DONE
