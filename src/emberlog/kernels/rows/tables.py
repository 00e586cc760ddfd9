"""Minima over domains of any size: each row is an open-addressing table from ids to values.

A row is changed by one worker at a time, in place. A table that is three quarters full moves to a block of twice its
length: from a list of free blocks, or from the worker's own stretch of the pool. Before a row is begun the stretch
must have room for all that could happen to it, so the pool itself grows only between calls.
"""

from __future__ import annotations

from typing import Any

from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.expand import AT, DERIVED, ITEMS, ROWS
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, Values, decode, int64, slot_of
from emberlog.kernels.rows.store import log2_above
from emberlog.kernels.rows.values import TIMES, made

SMALLEST = 2

# Places in the state of a worker, after those of `expand`.
NEW, FAILED, NEED, ITEMS_NEED = 5, 6, 7, 8
# Places in a worker's stretch of the pool.
NEXT, END, LEFT_BEHIND = range(3)


@inlined
def block_for(size: int) -> int:
    """The length, as a power of two, of a table for `size` ids."""
    return max(SMALLEST, log2_above(size + size // 3 + 1))


@inlined
def moved(x: int, fmeta: Longs, fitems: Ids, fvals: Values, stretch: Longs, free: Longs, gone: Longs) -> None:
    """Move row x to a table of twice the length."""
    where, tag = fmeta[x, 0], fmeta[x, 1]
    form = tag & FORM
    block = form + 1 if tag != 0 else SMALLEST
    if free[block] >= 0:
        to = free[block]
        free[block] = int64(fitems[to]) << SMALLEST if fitems[to] >= 0 else -1
    else:
        to = stretch[NEXT]
        stretch[NEXT] += 1 << block
    mask = (1 << block) - 1
    for i in range(to, to + mask + 1):
        fitems[i] = -1
    if tag != 0:
        for i in range(where, where + (1 << form)):
            y = int64(fitems[i])
            if y >= 0:
                slot = slot_of(y, block)
                while fitems[to + slot] >= 0:
                    slot = (slot + 1) & mask
                fitems[to + slot] = y
                fvals[to + slot] = fvals[i]
        gone[gone[0] + 1] = where << 6 | form
        gone[0] += 1
    fmeta[x, 0] = to
    fmeta[x, 1] = tag >> SIZE << SIZE | block


@inlined
def find(y: int, where: int, form: int, fitems: Ids) -> int:
    """The slot of y, or the free one where it would be."""
    mask = (1 << form) - 1
    slot = slot_of(y, form)
    while fitems[where + slot] >= 0 and fitems[where + slot] != y:
        slot = (slot + 1) & mask
    return where + slot


@inlined
def offer(
    x: int, y: int, v: Any, fmeta: Longs, fitems: Ids, fvals: Values, stretch: Longs, free: Longs, gone: Longs,
    row: Longs, items: Ids, state: Longs,
) -> None:  # fmt: skip
    """Enter the value v for (x, y) if it is smaller; y goes to `items` once."""
    tag = fmeta[x, 1]
    if tag == 0 or 4 * ((tag >> SIZE) + 1) > 3 << (tag & FORM):
        moved(x, fmeta, fitems, fvals, stretch, free, gone)
    slot = find(y, fmeta[x, 0], fmeta[x, 1] & FORM, fitems)
    if fitems[slot] < 0:
        fitems[slot] = y
        fmeta[x, 1] += 1 << SIZE
        state[NEW] += 1
    elif not v < fvals[slot]:
        return
    fvals[slot] = v
    if (row[y >> 6] >> (y & 63)) & 1 == 0:
        row[y >> 6] |= 1 << (y & 63)
        items[state[ITEMS]] = y
        state[ITEMS] += 1


@inlined
def close_row(
    x: int, first: int, fmeta: Longs, fitems: Ids, fvals: Values, row: Longs, rows: Longs, items: Ids, values: Values,
    state: Longs,
) -> None:  # fmt: skip
    """Row x is done: write its part of the new delta, with values, and clear the marks."""
    where, form = fmeta[x, 0], fmeta[x, 1] & FORM
    for i in range(first, state[ITEMS]):
        y = int64(items[i])
        values[i] = fvals[find(y, where, form, fitems)]
        row[y >> 6] = 0
    if state[ITEMS] > first:
        rows[state[ROWS], 0] = x
        rows[state[ROWS], 1] = first
        rows[state[ROWS], 2] = (state[ITEMS] - first) << SIZE | LIST
        rows[state[ROWS], 3] = 1
        state[ROWS] += 1


@jit
def improve(
    xs: Ids, stop: int, op: int, copy: bool, irreflexive: bool, width: int, limit: Any, nothing: Any,
    lmeta: Longs, litems: Ids, lbits: Longs, lwords: int, lvals: Values,
    rmeta: Longs, ritems: Ids, rbits: Longs, rwords: int, rvals: Values,
    fmeta: Longs, fitems: Ids, fvals: Values, stretch: Longs, free: Longs, gone: Longs,
    zs: Ids, ys: Ids, row: Longs, rows: Longs, items: Ids, values: Values, state: Longs,
) -> bool:  # fmt: skip
    """Join the left rows of `xs[state[AT] : stop]` with right rows and keep the smallest values.

    False if there may be too little room for the next row, for what `state` says. `nothing` is the value of sides
    without values. A value beyond `limit` ends it all, with a note in `state`.
    """
    while state[AT] < stop:
        x = int64(xs[state[AT]])
        n = 1
        if copy:
            zs[0] = x
        elif lmeta[x, 1] & FORM == BITS:
            n = decode(x, lmeta, litems, lbits, lwords, zs, 0)
        else:
            tag = lmeta[x, 1]
            n = tag >> SIZE if tag & FORM == LIST else 1 << (tag & FORM)
        start = lmeta[x, 0]
        direct = copy or lmeta[x, 1] & FORM == BITS
        most = 0
        for k in range(n):
            z = zs[k] if direct else litems[start + k]
            if z >= 0:
                most += rmeta[z, 1] >> SIZE
        if most > 0:
            size = fmeta[x, 1] >> SIZE
            state[NEED] = 4 << block_for(min(width, size + most))
            state[ITEMS_NEED] = min(width, most)
            if state[ROWS] >= rows.shape[0] or state[ITEMS] + state[ITEMS_NEED] > items.size:
                return False
            if stretch[NEXT] + state[NEED] > stretch[END] or gone[0] + 64 > gone.size:
                return False
            state[DERIVED] += most
            first = state[ITEMS]
            for k in range(n):
                z = int64(zs[k] if direct else litems[start + k])
                if z < 0 or rmeta[z, 1] == 0:
                    continue
                a = lvals[start + k] if lvals.size > 0 and not direct else nothing
                where, tag = rmeta[z, 0], rmeta[z, 1]
                form = tag & FORM
                if form == BITS:
                    for i in range(decode(z, rmeta, ritems, rbits, rwords, ys, 0)):
                        y = int64(ys[i])
                        if not (irreflexive and x == y):
                            offer(x, y, a, fmeta, fitems, fvals, stretch, free, gone, row, items, state)
                    continue
                for i in range(where, where + (tag >> SIZE if form == LIST else 1 << form)):
                    y = int64(ritems[i])
                    if y < 0 or (irreflexive and x == y):
                        continue
                    b = rvals[i] if rvals.size > 0 else nothing
                    v = made(op, a, b)
                    if abs(v) > limit or (op >= TIMES and abs(float(a) * float(b)) > limit):
                        state[FAILED] = 1
                        return True
                    offer(x, y, v, fmeta, fitems, fvals, stretch, free, gone, row, items, state)
            close_row(x, first, fmeta, fitems, fvals, row, rows, items, values, state)
        state[AT] += 1
    return True


@jit
def recycle(gone: Longs, items: Ids, free: Longs) -> None:
    """Blocks that rows have left are free from now on."""
    for i in range(1, gone[0] + 1):
        where, block = gone[i] >> 6, gone[i] & 63
        items[where] = free[block] >> SMALLEST if free[block] >= 0 else -1
        free[block] = where
    gone[0] = 0


@jit
def unpack_values(begin: int, end: int, meta: Longs, items: Ids, values: Values, xs: Ids, ys: Ids, out: Values) -> None:
    """The triples of the tables of rows `begin` to `end`."""
    at = 0
    for x in range(begin, end):
        if meta[x, 1] != 0:
            for i in range(meta[x, 0], meta[x, 0] + (1 << (meta[x, 1] & FORM))):
                if items[i] >= 0:
                    xs[at] = x
                    ys[at] = items[i]
                    out[at] = values[i]
                    at += 1
