"""The parts of the loops that are the same for every program, compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit


@jit
def mixed(value: Any) -> Any:
    """A well-spread hash of 64 bits (the finaliser of splitmix64)."""
    x = np.uint64(value)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def find(table: Any, keys: Any, key: Any) -> Any:
    """Where `key` is in an open-addressing table of slots, or the free place where it belongs."""
    mask = np.uint64(table.size - 1)
    code = np.uint64(0)
    for i in range(len(key)):
        code = mixed(code + np.uint64(key[i]) + np.uint64(0x9E3779B97F4A7C15))
    spot = code & mask
    while True:
        slot = table[spot]
        if slot == 0:
            return spot
        row = slot - 1
        same = True
        for i in range(len(key)):
            if keys[row, i] != key[i]:
                same = False
        if same:
            return spot
        spot = (spot + np.uint64(1)) & mask


@jit
def rehashed(keys: Any, count: Any) -> Any:
    """A table with twice as many places as `keys` has rows, with the first `count` of them in it."""
    table = np.zeros(2 * keys.shape[0], np.int32)
    mask = np.uint64(table.size - 1)
    for row in range(count):
        code = np.uint64(0)
        for i in range(keys.shape[1]):
            code = mixed(code + np.uint64(keys[row, i]) + np.uint64(0x9E3779B97F4A7C15))
        spot = code & mask
        while table[spot] != 0:
            spot = (spot + np.uint64(1)) & mask
        table[spot] = np.int32(row + 1)
    return table


@jit
def grown(array: Any, fill: Any) -> Any:
    """Twice as long, the new half filled."""
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    longer[array.size :] = fill
    return longer


@jit
def grown_rows(array: Any) -> Any:
    longer = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    longer[: array.shape[0]] = array
    return longer


@jit
def truncated(one: Any, other: Any) -> Any:
    """The quotient of two integers, rounded toward zero."""
    found = one // other
    if found * other != one and (one < 0) != (other < 0):
        found += 1
    return found


@jit
def remainder(one: Any, other: Any) -> Any:
    """What is left of a division that rounds toward zero: it has the sign of the dividend."""
    return one - truncated(one, other) * other


@jit
def find_key(keys: Any, key: Any) -> Any:
    """The place of a key among sorted ones; one past the end, where no rows are, if it is not there."""
    low, high = np.uint64(0), np.uint64(keys.size)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if keys[middle] < key:
            low = middle + np.uint64(1)
        else:
            high = middle
    if low < np.uint64(keys.size) and keys[low] == key:
        return low
    return np.uint64(keys.size)


@jit
def bound_below(column: Any, low: Any, high: Any, value: Any) -> Any:
    """The first row of a sorted range whose value is not below `value`."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if column[middle] < value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@jit
def bound_above(column: Any, low: Any, high: Any, value: Any) -> Any:
    """The first row of a sorted range whose value is above `value`."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if column[middle] <= value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@jit
def jump(column: Any, low: Any, high: Any, value: Any) -> Any:
    """The first row from `low` on whose value is not below `value`: by doubling steps, then by halving."""
    step = np.uint64(1)
    while low + step < high and column[low + step] < value:
        low += step
        step += step
    return bound_below(column, low, min(low + step + np.uint64(1), high), value)


@jit
def mark(slots: Any, there: Any) -> None:
    """Sets the flag of each slot."""
    for i in range(slots.size):
        there[slots[i]] = 1


@jit
def insert_rows(table: Any, keys: Any, count: Any, rows: Any, slots: Any) -> Any:
    """Puts rows into a hashed table that has room for them; `slots` gets the slot of each. Returns the new count."""
    mask = np.uint64(table.size - 1)
    for row in range(rows.shape[0]):
        code = np.uint64(0)
        for i in range(rows.shape[1]):
            code = mixed(code + np.uint64(rows[row, i]) + np.uint64(0x9E3779B97F4A7C15))
        spot = code & mask
        while True:
            slot = table[spot]
            if slot == 0:
                table[spot] = np.int32(count + 1)
                for i in range(rows.shape[1]):
                    keys[count, i] = rows[row, i]
                slots[row] = count
                count += 1
                break
            same = True
            for i in range(rows.shape[1]):
                if keys[slot - 1, i] != rows[row, i]:
                    same = False
            if same:
                slots[row] = slot - 1
                break
            spot = (spot + np.uint64(1)) & mask
    return count


@jit
def within(ids: Any, there: Any) -> Any:
    """Does every id have a flag?"""
    for row in range(ids.size):  # noqa: SIM110 - Numba knows loops
        if there[ids[row]] == 0:
            return False
    return True


@jit
def compared(val: Any, seen: Any, following: Any, new: Any, tolerance: Any) -> Any:
    """How two states differ: groups that changed, the sum and the largest of the changes, and the groups now."""
    changed, total, largest, present = 0, 0.0, 0.0, 0
    for slot in range(seen.size):
        if seen[slot] == 0 and new[slot] == 0:
            continue
        one = float(val[slot]) if seen[slot] != 0 else 0.0
        other = float(following[slot]) if new[slot] != 0 else 0.0
        if new[slot] != 0:
            present += 1
        size = abs(one - other)
        total += size
        largest = max(largest, size)
        # Infinite values, and what is no number, have changed always: such states come to no end.
        if seen[slot] != new[slot] or not size <= tolerance * min(max(abs(one), abs(other)), 1e300):
            changed += 1
    return changed, total, largest, present


@jit
def ones(word: Any) -> Any:
    """How many bits of a word are set."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit
def trailing(word: Any) -> Any:
    """The place of the lowest bit of a word that is set."""
    return ones((word & (~word + np.uint64(1))) - np.uint64(1))


@jit
def nearest(word: Any, down: Any) -> Any:
    """The place of the first bit of a word that is set, going up or `down`."""
    if not down:
        return trailing(word)
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return ones(word) - np.uint64(1)


@jit
def beyond(place: Any, down: Any) -> Any:
    """All places of a word that come after this one, going up or `down`, as bits."""
    bit = np.uint64(1) << place
    return bit - np.uint64(1) if down else ~(bit | (bit - np.uint64(1)))


@jit
def drain_masks(masks: Any, seen: Any, log: Any, count: Any, out: Any) -> Any:
    """Takes the masks of the slots in `log` out of a table, which is empty again. Returns how many bits they have."""
    total = np.int64(0)
    for i in range(count):
        slot = log[i]
        for word in range(masks.shape[1]):
            found = masks[slot, word]
            total += np.int64(ones(found))
            if out.size:
                out[i, word] = found
            masks[slot, word] = 0
        seen[slot] = 0
    return total


@jit
def expand_masks(slots: Any, masks: Any, begin: Any, first: Any, pivots: Any, found: Any) -> Any:
    """Pairs of pivot and slot from masks, beginning with row `begin`, as many whole rows as there is room for.

    Returns the next row and the number of pairs.
    """
    count = 0
    row = begin
    while row < slots.size and count + 64 * masks.shape[1] <= pivots.size:
        for word in range(masks.shape[1]):
            bits = masks[row, word]
            base = first + 64 * word
            while bits != 0:
                low = bits & (~bits + np.uint64(1))
                pivots[count] = base + np.int64(ones(low - np.uint64(1)))
                found[count] = slots[row]
                count += 1
                bits ^= low
        row += 1
    return row, count
