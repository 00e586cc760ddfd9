"""Delivery: `delivery(P, max(D)) <- basic(P, D). delivery(P, max(D)) <- assbl(P, S), delivery(S, D).`

Parts whose value grew wait in a bitmap that is swept from large ids to small ones, and up again: a bill of materials is
numbered from the product down, or from the basic parts up, or not at all, and then a few sweeps more are needed.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.bits import highest, lowest
from benchmarks.limits.common import Columns, Inputs, Limit, Watch, csr, inlined, kernel, nodes, u64

NONE = np.iinfo(np.int64).min


@inlined
def expand(x, offsets, above, value, waiting):  # type: ignore[no-untyped-def]
    days = value[x]
    one = u64(1)
    for e in range(u64(offsets[x]), u64(offsets[x + one])):
        p = u64(above[e])
        if value[p] < days:
            value[p] = days
            waiting[p >> u64(6)] |= one << (p & u64(63))
    return u64(offsets[x + one] - offsets[x])


@kernel
def settle(offsets, above, part, days):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    one = u64(1)
    value = np.full(n, NONE, np.int64)
    waiting = np.zeros((n + 63) >> 6, np.uint64)
    for i in range(len(part)):
        p = u64(part[i])
        value[p] = max(value[p], days[i])
        waiting[p >> u64(6)] |= one << (p & u64(63))
    derivations, used, rounds = u64(len(part)), one, 0
    while used:
        used = u64(0)
        rounds += 1
        if rounds & 1:
            for w in range(len(waiting) - 1, -1, -1):
                while waiting[w]:
                    bit = u64(highest(waiting[w]))
                    waiting[w] ^= one << bit
                    used += expand((u64(w) << u64(6)) + bit, offsets, above, value, waiting)
        else:
            for w in range(len(waiting)):
                while waiting[w]:
                    bit = lowest(waiting[w])
                    waiting[w] ^= one << bit
                    used += expand((u64(w) << u64(6)) + bit, offsets, above, value, waiting)
        derivations += used
    return value, derivations, rounds


def evaluate(inputs: Inputs) -> Limit:
    part, sub = inputs["assbl"]
    leaf, days = inputs["basic"]
    watch = Watch()
    offsets, above = csr(sub, part, nodes(part, sub, leaf))
    build = watch.lap()
    value, derivations, rounds = settle(offsets, above, leaf, days)
    facts = int(np.count_nonzero(value != NONE))
    seconds = watch.lap()

    def answer() -> Columns:
        found = np.flatnonzero(value != NONE)
        return found, value[found]

    return Limit(facts, int(derivations), build, seconds, answer, rounds)
