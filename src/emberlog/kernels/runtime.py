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
def put_set(seen: Any, log: Any, counts: Any, slots: Any) -> Any:
    """Facts of a dense set; those that are new wait."""
    count = counts[0]
    for i in range(slots.size):
        slot = slots[i]
        if seen[slot] == 0:
            seen[slot] = 3
            log[count] = slot
            count += 1
    counts[0] = count
    return count


@jit
def put_best(val: Any, seen: Any, log: Any, waiting: Any, counts: Any, slots: Any, values: Any, smallest: Any) -> Any:
    """Values of groups; groups whose value became better wait."""
    count, following = counts[0], counts[2]
    for i in range(slots.size):
        slot, value = slots[i], values[i]
        if (value < val[slot]) if smallest else (value > val[slot]):
            val[slot] = value
            bits = seen[slot]
            if bits & 2 == 0:
                if bits == 0 and log.size:
                    log[count] = slot
                    count += 1
                seen[slot] = bits | 3
                waiting[following] = slot
                following += 1
    counts[0], counts[2] = count, following
    return following


@jit
def put_owned(val: Any, seen: Any, waiting: Any, tally: Any, own: Any, slots: Any, values: Any, smallest: Any) -> None:
    """Facts of a table that owners share, each a range of slots; without values those of a set. What is new or better
    waits in the list of its owner."""
    for i in range(slots.size):
        slot = slots[i]
        bits = seen[slot]
        if val is None:
            if bits != 0:
                continue
        else:
            if not ((values[i] < val[slot]) if smallest else (values[i] > val[slot])):
                continue
            val[slot] = values[i]
        owner = 0
        while slot >= own[owner + 1]:
            owner += 1
        if bits == 0:
            tally[owner, 0] += 1
        if bits & 2 == 0:
            seen[slot] = bits | 3
            waiting[own[owner] + tally[owner, 1]] = slot
            tally[owner, 1] += 1


@jit
def drained(seen: Any, waiting: Any, taken: Any, low: Any, high: Any, waits: Any, sweep: Any) -> Any:
    """Takes what waits between two slots, so many facts: in the order of slots, if they are one of `sweep` or more.
    Returns how many they are."""
    if waits * sweep <= high - low:
        for i in range(low, low + waits):
            taken[i] = waiting[i]
            seen[waiting[i]] = 5
        return waits
    words, found = seen.view(np.uint64), low
    for word in range(low >> 3, (high + 7) >> 3):
        if words[word] & np.uint64(0x0202020202020202) != 0:
            for slot in range(word << 3, (word << 3) + 8):
                if seen[slot] & 2 != 0:
                    seen[slot] = 5
                    taken[found] = slot
                    found += 1
    return found - low


@jit
def turn_of(held: Any, inside: Any) -> Any:
    """Goes on to the next bucket of the ring in which an owner has something, and returns how much; 0 if none has."""
    ring = inside.shape[1]
    for step in range(ring):
        waits = inside[:, (held[0] + step) & (ring - 1)].sum()
        if waits > 0:
            held[0] += step
            return waits
    return 0


@jit
def skip(held: Any, took: Any, far: Any, ring: Any, idle: Any, last: Any) -> None:
    """Counts rounds in which nothing was taken, since all of a bucket came from beyond the ring. After `idle` of them
    turns are left out, whole rings: that leaves everything in its bucket, and what falls behind is taken when its
    bucket has its turn. Where nobody found something from beyond it, all are `last` far: better values were taken
    before, and no turn is left out."""
    held[1] = 0 if took > 0 else held[1] + 1
    if held[1] > idle and far.min() < last:
        held[0] += far.min() & -ring


@jit
def put_sum(
    pending: Any,
    val: Any,
    seen: Any,
    log: Any,
    waiting: Any,
    counts: Any,
    slots: Any,
    values: Any,
    most: Any,
    tolerance: Any,
) -> Any:
    """What is added to groups; they wait if they are new, or if what is pending is more than a part `tolerance` of
    their values. True if the size of a sum would be above `most`."""
    count, following, failed = counts[0], counts[2], False
    for i in range(slots.size):
        slot, value = slots[i], values[i]
        # Looked at before it is done: the compiler takes it that sums of integers do not overflow.
        if (pending[slot] > most - value) if value > 0 else (pending[slot] < -most - value):
            failed = True
            continue
        pending[slot] += value
        bits = seen[slot]
        if bits == 0 or (bits & 2 == 0 and abs(pending[slot]) > tolerance * abs(val[slot])):
            if bits == 0 and log.size:
                log[count] = slot
                count += 1
            seen[slot] = bits | 3
            waiting[following] = slot
            following += 1
    counts[0], counts[2] = count, following
    return failed


@jit
def outgoing(waiting: Any, following: Any, seen: Any, rank: Any, size: Any, own: Any) -> Any:
    """Splits the groups that wait by their owner: own ones stay in front, the others are listed, owner by owner.

    `own` tells the owner of each place of the list; it is changed. Returns how many stay, and the others with their
    ranges. A group that stands in the list twice is listed once.
    """
    amounts = np.zeros(size + 1, np.int64)
    for i in range(following):
        if own[i] != rank:
            if seen[waiting[i]] & 2 == 0:
                own[i] = -1
            else:
                amounts[own[i] + 1] += 1
                seen[waiting[i]] = seen[waiting[i]] & np.uint8(0xFD)
    for i in range(size):
        amounts[i + 1] += amounts[i]
    fill = amounts.copy()
    sent = np.empty(amounts[size], np.uint32)
    kept = 0
    for i in range(following):
        slot = waiting[i]
        if own[i] == rank:
            waiting[kept] = slot
            kept += 1
        elif own[i] >= 0:
            sent[fill[own[i]]] = slot
            fill[own[i]] += 1
    return kept, sent, amounts


@jit
def within(ids: Any, there: Any) -> Any:
    """Does every id have a flag?"""
    for row in range(ids.size):  # noqa: SIM110 - Numba knows loops
        if there[ids[row]] == 0:
            return False
    return True


@jit
def pending(val: Any, waits: Any, seen: Any, cost: Any, need: Any, tolerance: Any) -> Any:
    """What sums have to hand on: the sum and the largest of all changes, how many groups are new, how many wait, and
    of those that wait and are not new what others would get of them and how many derivations that would take."""
    total, largest, new, waiting, handed, work = 0.0, 0.0, 0, 0, 0.0, 0.0
    for slot in range(waits.size):
        change = abs(waits[slot])
        total += change
        largest = max(largest, change)
        if seen[slot] != 0 and (seen[slot] & 4 == 0 or change > tolerance * abs(val[slot])):
            waiting += 1
            if seen[slot] & 4 == 0:
                new += 1
            if need[slot] != 0.0:
                handed += cost[slot] * change / need[slot]
                work += cost[slot]
    return total, largest, new, waiting, handed, work


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
