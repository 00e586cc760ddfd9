"""Sets of ids, one for each row, as small hash tables in one pool: four bytes a slot.

Row r has its slots at `start[r] : start[r] + room[r]`, room a power of two; a slot holds an id and one more (0: free).
Tables that were outgrown are kept in a list for each size (`free`) and used again. `free[-1]` is where the pool was
never used.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import Column, inlined, kernel, u32, u64

MIXER = np.uint64(0x9E3779B97F4A7C15)
SMALLEST = 4
SIZES = 40


def make_sets(n: int, slots: int) -> tuple[Column, Column, Column, Column, Column]:
    """n empty sets: start, room, used; the pool; the lists of free tables.

    NumPy's zeros are address space until they are written (Numba's are not), so `slots` may be generous.
    """
    start, room, used = np.zeros(n, np.uint64), np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    free = np.zeros(SIZES + 1, np.uint64)
    free[-1] = 2  # so that 0 is no table; a link takes the first two slots of a free one
    return start, room, used, np.zeros(slots + 2, np.uint32), free


@kernel
def _take(size, pool, free):  # type: ignore[no-untyped-def]
    """A table of this size, all slots free."""
    kind = 0
    while u64(1) << u64(kind) < size:
        kind += 1
    at = free[kind]
    if at:
        free[kind] = u64(pool[at]) | u64(pool[at + u64(1)]) << u64(32)
        pool[at : at + size] = u32(0)
        return at
    at = free[SIZES]
    free[SIZES] = at + size
    if free[SIZES] > u64(len(pool)):
        raise MemoryError("the pool of sets is full")
    return at


@kernel
def _give(at, size, pool, free):  # type: ignore[no-untyped-def]
    kind = 0
    while u64(1) << u64(kind) < size:
        kind += 1
    pool[at] = u32(free[kind])
    pool[at + u64(1)] = u32(free[kind] >> u64(32))
    free[kind] = at


@inlined
def lacks(used, room, more):  # type: ignore[no-untyped-def]
    """Whether a set has no room for so many more members; one slot in four stays free."""
    return u64(4) * (u64(used) + u64(more)) > u64(3) * u64(room)


@kernel
def enlarge(row, more, start, room, used, pool, free):  # type: ignore[no-untyped-def]
    """Makes room for so many more members of a set.

    A call counts references to all arrays that it passes, so ask `lacks` first and put neither into the hot loop.
    """
    count = u64(room[row])
    size = max(count, u64(SMALLEST))
    while lacks(used[row], size, more):
        size *= u64(2)
    old, new = start[row], _take(size, pool, free)
    mask = size - u64(1)
    for i in range(old, old + count):
        key = pool[i]
        if key:
            at = (u64(key) * MIXER >> u64(40)) & mask
            while pool[new + at]:
                at = (at + u64(1)) & mask
            pool[new + at] = key
    if count:
        _give(old, count, pool, free)
    start[row] = new
    room[row] = u32(size)


@inlined
def add(key, base, mask, pool):  # type: ignore[no-untyped-def]
    """Puts an id (and one more: `key`) into the set at `base` with `mask + 1` slots; returns 1 if it is new, else 0."""
    at = (u64(key) * MIXER >> u64(40)) & mask
    while pool[base + at] != key and pool[base + at] != 0:
        at = (at + u64(1)) & mask
    new = u32(pool[base + at] == 0)
    pool[base + at] = key
    return new


@kernel
def listed(start, room, pool, total):  # type: ignore[no-untyped-def]
    """Row and value of every member."""
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    i = 0
    for row in range(len(start)):
        for at in range(start[row], start[row] + u64(room[row])):
            if pool[at]:
                first[i], second[i] = row, pool[at] - u32(1)
                i += 1
    return first, second
