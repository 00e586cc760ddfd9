"""Shortest paths: `sssp(Y, min(D)) <- Y = $ID, D = 0. sssp(Y, min(D)) <- sssp(X, C), warc(X, Y, W), D = C + W.`

Small distances first: nodes wait in buckets of a few distances each, a bucket is a bitmap, and it is swept in the order
of ids until nothing waits in it. So nearly every edge is used once and memory is walked in order. Weights are whole and
not negative.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.bits import lowest
from benchmarks.limits.common import Columns, Inputs, Limit, Watch, inlined, kernel, largest, nodes, u64, weighted_csr

SOURCE = 0
FAR = np.iinfo(np.int32).max
SPLIT = 4
"""A bucket is as wide as the heaviest weight / 2^SPLIT, or a little less: measured, and flat around this."""


@kernel
def buckets_for(heaviest):  # type: ignore[no-untyped-def]
    """How far a distance is shifted to get its bucket, and how many buckets are used in turn: a power of two."""
    shift = 0
    while heaviest >> (shift + 1 + SPLIT):
        shift += 1
    buckets = 1
    while buckets < (heaviest >> shift) + 2:
        buckets *= 2
    return shift, buckets


@inlined
def relax(x, base, offsets, pairs, shift, distance, waiting, held):  # type: ignore[no-untyped-def]
    """Uses the edges out of x; returns how many nodes wait that did not, and how many edges there are."""
    one, mask = u64(1), u64(len(held) - 1)
    low, high = u64(offsets[x]), u64(offsets[x + one])
    more = 0
    for e in range(low, high):
        y = u64(pairs[u64(2) * e])
        d = base + pairs[u64(2) * e + one]
        if d < distance[y]:
            distance[y] = d
            at = u64(d >> shift) & mask
            bit = one << (y & u64(63))
            if not waiting[at, y >> u64(6)] & bit:
                waiting[at, y >> u64(6)] |= bit
                held[at] += 1
                more += 1
    return more, high - low


@kernel
def settle(offsets, pairs, shift, distance, waiting, held, total):  # type: ignore[no-untyped-def]
    """Expands what waits (`total` nodes, `held` a bucket) until nothing does; returns how many edges were used."""
    one, mask = u64(1), u64(len(held) - 1)
    now, derivations = u64(0), u64(0)
    while total:
        slot = now & mask
        if held[slot] == 0:
            now += one
            continue
        mine, least = waiting[slot], np.int32(now << u64(shift))
        for w in range(len(mine)):
            while mine[w]:
                x = (u64(w) << u64(6)) + lowest(mine[w])
                mine[w] &= mine[w] - one
                held[slot] -= 1
                total -= 1
                if distance[x] >= least:  # or else it was expanded from a smaller bucket since it was put here
                    more, used = relax(x, distance[x], offsets, pairs, shift, distance, waiting, held)
                    total += more
                    derivations += used
    return derivations


@kernel
def search(offsets, pairs, source, heaviest):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    shift, buckets = buckets_for(heaviest)
    waiting, held = np.zeros((buckets, (n + 63) >> 6), np.uint64), np.zeros(buckets, np.int64)
    distance = np.full(n, FAR, np.int32)
    distance[source] = 0
    total, used = relax(u64(source), np.int32(0), offsets, pairs, shift, distance, waiting, held)
    return distance, used + settle(offsets, pairs, shift, distance, waiting, held, total)


def evaluate(inputs: Inputs, source: int = SOURCE) -> Limit:
    x, y, d = inputs["warc"]
    watch = Watch()
    n = max(nodes(x, y), source + 1)
    heaviest = int(largest(d)) if len(d) else 0
    offsets, pairs = weighted_csr(x, y, d, n)
    build = watch.lap()
    distance, derivations = search(offsets, pairs, source, heaviest)
    facts = int(np.count_nonzero(distance != FAR))
    seconds = watch.lap()

    def answer() -> Columns:
        found = np.flatnonzero(distance != FAR)
        return found, distance[found].astype(np.int64)

    return Limit(facts, int(derivations) + 1, build, seconds, answer)
