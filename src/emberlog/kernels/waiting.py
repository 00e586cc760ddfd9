"""Facts that wait, in loops that are the same for every program: how they get in, and how they are taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from emberlog.kernels.cache import jit


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
def drained(seen: Any, words: Any, waiting: Any, taken: Any, low: Any, high: Any, waits: Any, sweep: Any) -> Any:
    """Takes what waits between two slots, so many facts: in the order of slots, if they are one of `sweep` or more.
    Returns how many they are. `words` are the flags, eight in one."""
    if waits * sweep <= high - low:
        for i in range(low, low + waits):
            taken[i] = waiting[i]
            seen[waiting[i]] = 5
        return waits
    found = low
    for word in range(low >> 3, (high + 7) >> 3):
        if words[word] & np.uint64(0x0202020202020202) != 0:
            for slot in range(word << 3, (word << 3) + 8):
                if seen[slot] & 2 != 0:
                    seen[slot] = 5
                    taken[found] = slot
                    found += 1
    return found - low


@jit
def total(tallies: Any, column: Any) -> Any:
    """How much all owners have together."""
    found = tallies[0, column]
    for owner in range(1, tallies.shape[0]):
        found += tallies[owner, column]
    return found


@jit
def turn_of(held: Any, inside: Any) -> Any:
    """Goes on to the next bucket of the ring in which an owner has something, and returns how much; 0 if none has."""
    ring = inside.shape[1]
    for step in range(ring):
        waits = total(inside, (held[0] + step) & (ring - 1))
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
    nearest = far[0]
    for turn in far:
        nearest = min(nearest, turn)
    if held[1] > idle and nearest < last:
        held[0] += nearest & -ring


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
