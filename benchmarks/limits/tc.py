"""Transitive closure: `tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y).`

`evaluate` counts, X by X: a queue of the nodes found and a mark on each, nothing is kept. `evaluate_kept` keeps all
rows. `evaluate_rows` never enumerates: Y's row is the set of X from which it is reached, as bits, and an edge (Z, Y)
ors Z's row into Y's. It needs a bit for each pair of nodes, so it is for small or dense domains.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.bits import LARGEST, count_bits, or_row, positions
from benchmarks.limits.common import Column, Columns, Inputs, Limit, Watch, csr, kernel, nodes, u32, u64


@kernel
def search(offsets, targets, x, fresh, queue):  # type: ignore[no-untyped-def]
    """The nodes that x reaches, in `queue`; how many, and from how many derivations.

    `fresh` has a 1 for each node before and after: a byte each, so that for ten thousand nodes it stays in the
    first-level cache.
    """
    one = u64(1)
    head, tail, derivations = u64(0), u64(0), u64(0)
    z = u32(x)
    while True:
        low, high = u64(offsets[z]), u64(offsets[z + one])
        derivations += high - low
        for e in range(low, high):
            y = targets[e]
            # No branch: what is not new is overwritten by the next, and nothing has to be predicted.
            queue[tail] = y
            tail += u64(fresh[y])
            fresh[y] = 0
        if head == tail:
            break
        z = queue[head]
        head += one
    for i in range(tail):
        fresh[queue[u64(i)]] = 1
    return tail, derivations


@kernel
def count(offsets, targets):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    fresh, queue = np.ones(n, np.uint8), np.empty(n + 1, np.uint32)
    facts, derivations = u64(0), u64(0)
    for x in range(n):
        if offsets[x] != offsets[x + 1]:
            found, made = search(offsets, targets, x, fresh, queue)
            facts += found
            derivations += made
    return facts, derivations


@kernel
def keep(offsets, targets):  # type: ignore[no-untyped-def]
    """All rows: the second column, and where the rows of each x start in it."""
    n = len(offsets) - 1
    fresh = np.ones(n, np.uint8)
    starts = np.zeros(n + 1, np.int64)
    found = np.empty(max(4 * n, len(targets)) + n + 1, np.uint32)
    derivations = u64(0)
    for x in range(n):
        at = starts[x]
        starts[x + 1] = at
        if offsets[x] == offsets[x + 1]:
            continue
        if at + n + 1 > len(found):
            larger = np.empty(2 * len(found) + n, np.uint32)
            larger[:at] = found[:at]
            found = larger
        count, made = search(offsets, targets, x, fresh, found[at:])
        starts[x + 1] = at + np.int64(count)
        derivations += made
    return starts, found[: starts[n]], derivations


def _rows(starts: Column, found: Column) -> Columns:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), found.astype(np.int64)


def evaluate(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    offsets, targets = csr(x, y, nodes(x, y))
    build = watch.lap()
    facts, derivations = count(offsets, targets)
    seconds = watch.lap()

    def answer() -> Columns:
        starts, found, _ = keep(offsets, targets)
        return _rows(starts, found)

    return Limit(int(facts), int(derivations), build, seconds, answer)


def evaluate_kept(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    offsets, targets = csr(x, y, nodes(x, y))
    build = watch.lap()
    starts, found, derivations = keep(offsets, targets)
    seconds = watch.lap()
    return Limit(len(found), int(derivations), build, seconds, lambda: _rows(starts, found))


@kernel
def flood(offsets, targets):  # type: ignore[no-untyped-def]
    """Rows of bits, keyed by the second column. A row that grew is or-ed along the edges out of it, first in first out.

    Its new bits alone would do, but they would have to be kept apart and wiped: more memory is moved then, not less.
    """
    n = len(offsets) - 1
    rows = np.zeros((n, (n + 63) >> 6), np.uint64)
    for x in range(n):
        for e in range(u64(offsets[x]), u64(offsets[x + 1])):
            rows[targets[e], u64(x) >> u64(6)] |= u64(1) << (u64(x) & u64(63))
    waiting, ring = np.ones(n, np.uint8), np.arange(n).astype(np.uint32)
    head, held = 0, n
    while held:
        z = ring[head]
        head = head + 1 if head + 1 < n else 0
        held -= 1
        waiting[z] = 0
        source = rows[z]
        for e in range(u64(offsets[z]), u64(offsets[z + u64(1)])):
            y = targets[e]
            if or_row(rows[y], source) and not waiting[y]:
                waiting[y] = 1
                ring[(head + held) % n] = y
                held += 1
    return rows


def evaluate_rows(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    n = nodes(x, y)
    if n > LARGEST:
        raise MemoryError(f"a bit for each pair of {n:,} nodes is too much")
    offsets, targets = csr(x, y, n)
    build = watch.lap()
    rows = flood(offsets, targets)
    facts = count_bits(rows)
    seconds = watch.lap()

    def answer() -> Columns:
        second, first = positions(rows, facts)
        return first, second

    return Limit(facts, None, build, seconds, answer)


VARIANTS = {"kept": evaluate_kept, "rows": evaluate_rows}
