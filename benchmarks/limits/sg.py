"""Same generation: `sg(X, Y) <- arc(P, X), arc(P, Y), X != Y. sg(X, Y) <- arc(A, X), sg(A, B), arc(B, Y).`

Both ways split the rule into half joins, `half(A, Y) <- sg(A, B), arc(B, Y)` and `sg(X, Y) <- arc(A, X), half(A, Y)`,
so that duplicates die in the middle. Rows are small hash tables as long as few pairs are known, then rows of bits.

`evaluate` makes the row `half(A, _)` by going through the new B of A. `evaluate_turned` never enumerates a pair once
rows are bits: it ors whole rows for both halves and transposes the matrix of bits between them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.bits import LARGEST, count_bits, lowest, or_row, positions, transpose
from benchmarks.limits.common import Column, Columns, Inputs, Limit, Watch, csr, kernel, nodes, u32, u64
from benchmarks.limits.sets import add, enlarge, lacks, listed, make_sets

DENSE = 64
"""More than one pair in so many known: bits take less memory than hash tables, and less time."""

SLOTS = 1 << 28


@kernel
def siblings(offsets, targets, most, xs, ys, start, room, used, pool, free):  # type: ignore[no-untyped-def]
    """The exit rule: pairs of targets of one node, as delta. It stops when there are more than `most`."""
    count = u64(0)
    for p in range(len(offsets) - 1):
        low, high = u64(offsets[p]), u64(offsets[p + 1])
        if count + (high - low) * (high - low) >= u64(len(xs)):
            xs, ys = grown(xs, count + (high - low) * (high - low)), grown(ys, count + (high - low) * (high - low))
        for i in range(low, high):
            x = targets[i]
            if lacks(used[x], room[x], high - low):
                enlarge(x, high - low, start, room, used, pool, free)
            base, mask = start[x], u64(room[x]) - u64(1)
            before = count
            for j in range(low, high):
                y = targets[j]
                if x != y:
                    xs[count], ys[count] = x, y
                    count += u64(add(y + u32(1), base, mask, pool))
            used[x] += u32(count - before)
        if count > u64(most):
            break
    return xs, ys, count


@kernel
def grown(array, need):  # type: ignore[no-untyped-def]
    larger = np.empty(max(u64(2 * len(array)), need + u64(1)), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def grouped(xs, ys, count, starts, out):  # type: ignore[no-untyped-def]
    """Sorts the delta by x: the y of x stand at `out[starts[x] : starts[x + 1]]`."""
    n = len(starts) - 2
    starts[:] = 0
    for i in range(count):
        starts[u64(xs[i]) + u64(2)] += u32(1)
    for x in range(2, n + 2):
        starts[x] += starts[x - 1]
    for i in range(count):
        at = u64(xs[i]) + u64(1)
        out[starts[at]] = ys[i]
        starts[at] += u32(1)


@kernel
def sparse(offsets, targets, most, start, room, used, pool, free):  # type: ignore[no-untyped-def]
    """Rounds until nothing is new or more than `most` pairs are known; returns how many are, and the derivations."""
    n = len(offsets) - 1
    xs, ys = np.empty(4 * n + 64, np.uint32), np.empty(4 * n + 64, np.uint32)
    xs, ys, count = siblings(offsets, targets, most, xs, ys, start, room, used, pool, free)
    facts, derivations = count, count
    starts, half, seen, stamp = np.zeros(n + 2, np.uint32), np.empty(n + 1, np.uint32), np.zeros(n, np.uint32), u32(0)
    news = np.empty(len(xs), np.uint32)
    while count and facts <= u64(most):
        if count > u64(len(news)):
            news = np.empty(len(xs), np.uint32)
        grouped(xs, ys, count, starts, news)
        count = u64(0)
        for a in range(n):
            low, high = u64(offsets[a]), u64(offsets[a + 1])
            if starts[a] == starts[a + 1] or low == high:
                continue
            stamp += u32(1)
            halves = u64(0)
            for i in range(u64(starts[a]), u64(starts[a + 1])):
                b = news[i]
                for e in range(u64(offsets[b]), u64(offsets[b + u32(1)])):
                    y = targets[e]
                    derivations += u64(1)
                    half[halves] = y
                    halves += u64(seen[y] != stamp)
                    seen[y] = stamp
            if count + halves * (high - low) >= u64(len(xs)):
                xs, ys = grown(xs, count + halves * (high - low)), grown(ys, count + halves * (high - low))
            derivations += halves * (high - low)
            for e in range(low, high):
                x = targets[e]
                if lacks(used[x], room[x], halves):
                    enlarge(x, halves, start, room, used, pool, free)
                base, mask = start[x], u64(room[x]) - u64(1)
                before = count
                for k in range(halves):
                    xs[count], ys[count] = x, half[k]
                    count += u64(add(half[k] + u32(1), base, mask, pool))
                used[x] += u32(count - before)
            if facts + count > u64(most):
                break
        facts += count
    return facts, derivations


@kernel
def as_bits(start, room, pool, offsets, targets):  # type: ignore[no-untyped-def]
    """The sets so far as a matrix of bits, with the whole exit rule."""
    n = len(start)
    one, six, low6 = u64(1), u64(6), u64(63)
    rows = np.zeros((n, (n + 63) >> 6), np.uint64)
    for row in range(n):
        for at in range(start[row], start[row] + u64(room[row])):
            if pool[at]:
                y = u64(pool[at]) - one
                rows[row, y >> six] |= one << (y & low6)
    for p in range(n):
        for i in range(u64(offsets[p]), u64(offsets[p + 1])):
            for j in range(u64(offsets[p]), u64(offsets[p + 1])):
                if targets[i] != targets[j]:
                    y = u64(targets[j])
                    rows[targets[i], y >> six] |= one << (y & low6)
    return rows


@kernel
def dense(rows, offsets, targets):  # type: ignore[no-untyped-def]
    """Half joins, the first by enumeration: rows that grew wait, and only their new bits are gone through."""
    n, width = rows.shape
    one, six, low6 = u64(1), u64(6), u64(63)
    done, half = np.zeros_like(rows), np.zeros(width, np.uint64)
    waiting = np.ones(n, np.uint8)
    derivations, active = u64(0), True
    while active:
        active = False
        for a in range(n):
            if not waiting[a] or offsets[a] == offsets[a + 1]:
                continue
            waiting[a] = 0
            active = True
            half[:] = u64(0)
            for w in range(width):
                left = rows[a, w] & ~done[a, w]
                done[a, w] = rows[a, w]
                while left:
                    b = (u64(w) << six) + lowest(left)
                    left &= left - one
                    derivations += u64(offsets[b + one] - offsets[b])
                    for e in range(u64(offsets[b]), u64(offsets[b + one])):
                        y = u64(targets[e])
                        half[y >> six] |= one << (y & low6)
            for e in range(u64(offsets[a]), u64(offsets[u64(a) + one])):
                x = u64(targets[e])
                if or_row(rows[x], half):
                    waiting[x] = 1
    return derivations


@kernel
def or_along(offsets, targets, rows, out):  # type: ignore[no-untyped-def]
    """out[y] = all rows[b] with arc(b, y), or-ed."""
    out[:] = u64(0)
    for b in range(len(rows)):
        if not rows[b].any():
            continue
        for e in range(u64(offsets[b]), u64(offsets[b + 1])):
            or_row(out[targets[e]], rows[b])


@kernel
def turned(rows, offsets, targets):  # type: ignore[no-untyped-def]
    """Rounds of: or along the edges, transpose, or along the edges, transpose; the delta alone goes through them."""
    delta, other = rows.copy(), np.empty_like(rows)
    rounds, grown = 0, u64(1)
    while grown:
        rounds += 1
        or_along(offsets, targets, delta, other)
        transpose(other, delta)
        or_along(offsets, targets, delta, other)
        transpose(other, delta)
        grown = u64(0)
        for a in range(len(rows)):
            row, new = rows[a], delta[a]
            for w in range(len(row)):
                fresh = new[w] & ~row[w]
                new[w] = fresh
                row[w] |= fresh
                grown |= fresh
    return rounds


def evaluate(inputs: Inputs, turn: bool = False) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    n = nodes(x, y)
    offsets, targets = csr(x, y, n)
    build = watch.lap()
    most = n * n // DENSE if n <= LARGEST else n * n
    sets = make_sets(n, min(8 * (most + n), SLOTS) + 64 * n)
    start, room, _, pool, _ = sets
    facts, derivations = sparse(offsets, targets, most, *sets)
    rows: Column | None = None
    rounds, full = None, facts > most
    if full:
        rows = as_bits(start, room, pool, offsets, targets)
        if turn:
            rounds = turned(rows, offsets, targets)
        else:
            derivations += dense(rows, offsets, targets)
        facts = count_bits(rows)
    seconds = watch.lap()

    def answer() -> Columns:
        first, second = positions(rows, facts) if rows is not None else listed(start, room, pool, facts)
        return first, second

    return Limit(int(facts), None if full and turn else int(derivations), build, seconds, answer, rounds)


def evaluate_turned(inputs: Inputs) -> Limit:
    return evaluate(inputs, turn=True)


VARIANTS = {"turned": evaluate_turned}
