"""One join of rows: for each x, the union of the right rows of the z in its left row, less what is known of x.

`expand` is every form of the join at once, because deltas, static and full relations have the same layout:

    delta x static, delta x full     left is the delta
    static x delta, full x delta     right is the delta; z without a delta row are skipped
    copy                             the right row of x itself

A row of candidates is made in one of two ways. Few candidates are looked up and marked one by one; many are or-ed
into a bit row as wide as the domain (whole words where the right row is a bit set), and what is known is taken out at
the end.
"""

from __future__ import annotations

from emberlog.kernels.rows._jit import inlined, jit
from emberlog.kernels.rows.layout import BITS, FORM, LIST, SIZE, Ids, Longs, decode_bits, int64, ones, slot_of

# Places in the state of a worker: what `expand` takes up again after its buffers have grown.
AT, ROWS, ITEMS, WORDS, DERIVED = range(5)


@inlined
def gather(x: int, lmeta: Longs, litems: Ids, lbits: Longs, lwords: int, rmeta: Longs, zs: Ids) -> tuple[int, int, int]:
    """The z of left row x that have a right row, in `zs`: their number, the ids in their lists, the bit rows."""
    n, listed, dense = 0, 0, 0
    where, tag = lmeta[x, 0], lmeta[x, 1]
    form = tag & FORM
    if form == BITS:
        for w in range(lwords):
            word = lbits[where + w]
            while word != 0:
                z = (w << 6) + ones((word & -word) - 1)
                word &= word - 1
                other = rmeta[z, 1]
                if other != 0:
                    zs[n] = z
                    n += 1
                    if other & FORM == BITS:
                        dense += 1
                    else:
                        listed += other >> SIZE
        return n, listed, dense
    stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
    for i in range(where, stop):
        z = int64(litems[i])
        if z >= 0:
            other = rmeta[z, 1]
            if other != 0:
                zs[n] = z
                n += 1
                if other & FORM == BITS:
                    dense += 1
                else:
                    listed += other >> SIZE
    return n, listed, dense


@inlined
def collect(z: int, rmeta: Longs, ritems: Ids, rbits: Longs, row: Longs) -> None:
    """Or the right row of z into the bit row."""
    where, tag = rmeta[z, 0], rmeta[z, 1]
    form = tag & FORM
    if form == BITS:
        other = rbits[where : where + row.size]
        for w in range(row.size):
            row[w] |= other[w]
    elif form == LIST:
        for i in range(where, where + (tag >> SIZE)):
            y = int64(ritems[i])
            row[y >> 6] |= 1 << (y & 63)
    else:
        for i in range(where, where + (1 << form)):
            y = int64(ritems[i])
            if y >= 0:
                row[y >> 6] |= 1 << (y & 63)


@inlined
def covers(x: int, fmeta: Longs, fbits: Longs, row: Longs) -> int:
    """The ids in the bit row, and in row x if that is a bit row too."""
    count = 0
    if fmeta[x, 1] & FORM == BITS and fmeta[x, 1] != 0:
        known = fbits[fmeta[x, 0] : fmeta[x, 0] + row.size]
        for w in range(row.size):
            count += ones(row[w] | known[w])
    else:
        for w in range(row.size):
            count += ones(row[w])
    return count


@jit
def subtract(x: int, fmeta: Longs, fitems: Ids, fbits: Longs, row: Longs) -> int:
    """Take what is known of x out of the bit row; the number of ids that stay."""
    where, tag = fmeta[x, 0], fmeta[x, 1]
    form = tag & FORM
    left = 0
    if form == BITS:
        known = fbits[where : where + row.size]
        for w in range(row.size):
            row[w] &= ~known[w]
            left += ones(row[w])
        return left
    stop = where + (tag >> SIZE) if form == LIST else where + (1 << form)
    for i in range(where, stop):
        y = int64(fitems[i])
        if y >= 0:
            row[y >> 6] &= ~(1 << (y & 63))
    for w in range(row.size):
        left += ones(row[w])
    return left


@jit
def emit(x: int, count: int, row: Longs, rows: Longs, items: Ids, bits: Longs, state: Longs) -> None:
    """Write the bit row as row x of the new delta, as a list or as bits, whichever is shorter; clear it."""
    if count > 0:
        at = state[ROWS]
        rows[at, 0] = x
        rows[at, 3] = 0
        if count <= 2 * row.size:
            rows[at, 1] = state[ITEMS]
            rows[at, 2] = count << SIZE | LIST
            state[ITEMS] = decode_bits(row, items, state[ITEMS])
        else:
            rows[at, 1] = state[WORDS]
            rows[at, 2] = count << SIZE | BITS
            out = bits[state[WORDS] : state[WORDS] + row.size]
            for w in range(row.size):
                out[w] = row[w]
            state[WORDS] += row.size
        state[ROWS] += 1
    for w in range(row.size):
        row[w] = 0


@inlined
def known_to(y: int, where: int, form: int, fitems: Ids, fbits: Longs) -> bool:
    """Is y in the row, a table or a bit row?"""
    if form == BITS:
        return bool((fbits[where + (y >> 6)] >> (y & 63)) & 1)
    mask = (1 << form) - 1
    at = slot_of(y, form)
    while fitems[where + at] >= 0:
        if fitems[where + at] == y:
            return True
        at = (at + 1) & mask
    return False


@inlined
def mark(where: int, stop: int, items: Ids, row: Longs, on: bool) -> None:
    """Set or clear the bits of the ids in a list or table."""
    for i in range(where, stop):
        y = int64(items[i])
        if y >= 0:
            if on:
                row[y >> 6] |= 1 << (y & 63)
            else:
                row[y >> 6] &= ~(1 << (y & 63))


@inlined
def enter(
    x: int, zs: Ids, n: int, rmeta: Longs, ritems: Ids, where: int, form: int, irreflexive: bool, fitems: Ids,
    items: Ids, at: int,
) -> int:  # fmt: skip
    """Enter the candidates of x in its table; those that were not there go to `items`."""
    mask = (1 << form) - 1
    table = fitems[where : where + mask + 1]
    for k in range(n):
        z = int64(zs[k])
        start, other = rmeta[z, 0], rmeta[z, 1]
        end = start + (other >> SIZE) if other & FORM == LIST else start + (1 << (other & FORM))
        for i in range(start, end):
            y = int64(ritems[i])
            if y >= 0 and not (irreflexive and x == y):
                slot = slot_of(y, form)
                while table[slot] >= 0 and table[slot] != y:
                    slot = (slot + 1) & mask
                if table[slot] < 0:
                    table[slot] = y
                    items[at] = y
                    at += 1
    return at


@inlined
def probe(
    x: int, zs: Ids, n: int, rmeta: Longs, ritems: Ids, where: int, form: int, size: int, irreflexive: bool,
    fitems: Ids, fbits: Longs, row: Longs, items: Ids, at: int,
) -> int:  # fmt: skip
    """Write the candidates of x that are not in its row to `items`. `row` keeps account of those seen."""
    first = at
    if form == LIST:
        mark(where, where + size, fitems, row, True)
    if irreflexive:
        row[x >> 6] |= 1 << (x & 63)
    for k in range(n):
        z = int64(zs[k])
        start, other = rmeta[z, 0], rmeta[z, 1]
        end = start + (other >> SIZE) if other & FORM == LIST else start + (1 << (other & FORM))
        for i in range(start, end):
            y = int64(ritems[i])
            if y >= 0:
                word = row[y >> 6]
                bit = 1 << (y & 63)
                if word & bit == 0 and (form == LIST or not known_to(y, where, form, fitems, fbits)):
                    row[y >> 6] = word | bit
                    items[at] = y
                    at += 1
    if form == LIST:
        mark(where, where + size, fitems, row, False)
    if irreflexive:
        row[x >> 6] &= ~(1 << (x & 63))
    mark(first, at, items, row, False)
    return at


@jit
def pick(
    x: int, zs: Ids, n: int, candidates: int, rmeta: Longs, ritems: Ids, fmeta: Longs, fitems: Ids, fbits: Longs,
    irreflexive: bool, in_place: bool, row: Longs, rows: Longs, items: Ids, state: Longs,
) -> None:  # fmt: skip
    """Look up the candidates of x one by one and write those that are new as row x of the new delta.

    Short known rows are marked in `row` beforehand, so that one bit answers for known and for seen. In a table, what
    is new is entered at once if that is allowed and the table has room for all candidates. All right rows are lists or
    tables.
    """
    where, tag = fmeta[x, 0], fmeta[x, 1]
    form, size = tag & FORM, tag >> SIZE
    first = at = state[ITEMS]
    done = in_place and form != BITS and form != LIST and 4 * (size + candidates) < 3 << form
    if done:
        at = enter(x, zs, n, rmeta, ritems, where, form, irreflexive, fitems, items, at)
    else:
        at = probe(x, zs, n, rmeta, ritems, where, form, size, irreflexive, fitems, fbits, row, items, at)
    if at > first:
        rows[state[ROWS], 0] = x
        rows[state[ROWS], 1] = first
        rows[state[ROWS], 2] = (at - first) << SIZE | LIST
        rows[state[ROWS], 3] = done
        state[ROWS] += 1
        state[ITEMS] = at
        if done:
            fmeta[x, 1] += (at - first) << SIZE


@jit
def expand(
    xs: Ids, stop: int, copy: bool, irreflexive: bool, in_place: bool, width: int,
    lmeta: Longs, litems: Ids, lbits: Longs, lwords: int,
    rmeta: Longs, ritems: Ids, rbits: Longs,
    fmeta: Longs, fitems: Ids, fbits: Longs,
    zs: Ids, row: Longs, rows: Longs, items: Ids, bits: Longs, state: Longs,
) -> bool:  # fmt: skip
    """Join the left rows of `xs[state[AT] : stop]` with right rows; what is new goes to `rows`, `items`, `bits`.

    Rows have at most `width` ids. False if a buffer may not hold the next row: grow it and call again. `in_place`
    allows to enter what is new in full rows that are tables: nobody else reads them meanwhile. `row` is a bit row of
    zeros, and is left so.
    """
    words = row.size
    while state[AT] < stop:
        x = int64(xs[state[AT]])
        if fmeta[x, 1] >> SIZE >= width:
            state[AT] += 1
            continue
        if copy:
            zs[0] = x
            n = 1
            dense = 1 if rmeta[x, 1] & FORM == BITS else 0
            listed = 0 if dense else rmeta[x, 1] >> SIZE
        else:
            n, listed, dense = gather(x, lmeta, litems, lbits, lwords, rmeta, zs)
        if n > 0:
            if state[ROWS] >= rows.shape[0] or state[ITEMS] + 2 * words > items.size:
                return False
            if state[WORDS] + words > bits.size:
                return False
            if dense > 0 or 2 * listed >= words:
                for k in range(n):
                    collect(zs[k], rmeta, ritems, rbits, row)
                    tag = rmeta[zs[k], 1]
                    state[DERIVED] += words if tag & FORM == BITS else tag >> SIZE
                    if k & 31 == 31 and covers(x, fmeta, fbits, row) >= width:
                        break
                if irreflexive:
                    row[x >> 6] &= ~(1 << (x & 63))
                emit(x, subtract(x, fmeta, fitems, fbits, row), row, rows, items, bits, state)
            else:
                state[DERIVED] += listed
                pick(
                    x, zs, n, listed, rmeta, ritems, fmeta, fitems, fbits, irreflexive, in_place, row, rows, items,
                    state,
                )  # fmt: skip
        state[AT] += 1
    return True
