"""Sets of ids, one for each row: words of 64 ids in a small hash table a row.

A row takes memory for the words that it has bits in, so sparse sets over a large domain stay small, and sets of
neighbouring ids are or-ed 64 at a time. All rows lie in one pool of slots. Row r has its slots at
`start[r] : start[r] + room[r]`, room a power of two; slot s has the bits of word `words[s] - 1` (0: the slot is free).
`done` has the bits that were looked at already: what is in `bits` and not in `done` is the row's delta.

The arrays are passed one by one: Numba counts references to every array of a tuple whenever it is taken apart.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import Column, inlined, kernel, u32, u64

MIXER = np.uint64(0x9E3779B97F4A7C15)


def make_rows(n: int, slots: int) -> tuple[Column, ...]:
    """n rows without room: start, room, used; words, bits, done; and where the pool is free.

    NumPy's zeros are address space until they are written (Numba's are not), so `slots` may be generous.
    """
    start, room, used = np.zeros(n, np.uint64), np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    words, bits, done = np.zeros(slots, np.uint32), np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
    return start, room, used, words, bits, done, np.zeros(1, np.uint64)


@inlined
def slot_of(words, start, room, key):  # type: ignore[no-untyped-def]
    """Where a row has the word, or would have it. A row with room has a free slot."""
    mask = u64(room) - u64(1)
    at = (u64(key) * MIXER >> u64(40)) & mask
    while words[start + at] != key and words[start + at] != 0:
        at = (at + u64(1)) & mask
    return start + at


@inlined
def lacks(used, room, more):  # type: ignore[no-untyped-def]
    """Whether a row has no room for so many more words; one slot in four stays free, in the smallest one in two."""
    need = u64(used) + u64(more)
    return u64(4) * need > u64(3) * u64(room) and (room == 0 or need > u64(1))


@kernel
def enlarge(row, more, start, room, used, words, bits, done, top):  # type: ignore[no-untyped-def]
    """Makes room for so many more words of a row.

    A call counts references to all arrays that it passes, so ask `lacks` first and put neither into a hot loop.
    """
    old, count = start[row], u64(room[row])
    size = max(count, u64(2))
    while lacks(used[row], size, more):
        size *= u64(2)
    new = top[0]
    top[0] = new + size
    if top[0] > u64(len(words)):
        raise MemoryError("the pool of rows is full")
    for at in range(old, old + count):
        if words[at] != 0:
            to = slot_of(words, new, size, words[at])
            words[to] = words[at]
            bits[to] = bits[at]
            done[to] = done[at]
    start[row] = new
    room[row] = u32(size)


@inlined
def or_word(row, word, mask, start, room, used, words, bits):  # type: ignore[no-untyped-def]
    """Adds the bits of a mask to a word of a row that has room; returns those that are new."""
    key = u32(word) + u32(1)
    at = slot_of(words, start[row], room[row], key)
    used[row] += u32(words[at] == 0)
    words[at] = key
    new = mask & ~bits[at]
    bits[at] |= mask
    return new


@inlined
def take_delta(row, start, room, words, bits, done, words_out, bits_out):  # type: ignore[no-untyped-def]
    """Writes the words with bits that were not looked at, marks them as looked at, and returns how many there are."""
    count = u64(0)
    for at in range(start[row], start[row] + u64(room[row])):
        new = bits[at] & ~done[at]
        if new:
            done[at] = bits[at]
            words_out[count] = words[at] - u32(1)
            bits_out[count] = new
            count += u64(1)
    return count
