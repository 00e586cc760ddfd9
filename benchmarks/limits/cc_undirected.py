"""Connected components: label propagation over `uarc`, which has both directions of every edge.

`evaluate` is what the rules say, with an index over both directions. `evaluate_union` is the other way to do it, which
needs no index: sets of nodes that are merged edge by edge.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.cc import labelled, settle
from benchmarks.limits.common import Columns, Inputs, Limit, Watch, csr, kernel, nodes, u32, u64


@kernel
def reversed_too(x, y):  # type: ignore[no-untyped-def]
    m = len(x)
    first, second = np.empty(2 * m, np.uint32), np.empty(2 * m, np.uint32)
    for e in range(m):
        first[e] = second[e + m] = x[e]
        second[e] = first[e + m] = y[e]
    return first, second


def evaluate(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    n = nodes(x, y)
    first, second = reversed_too(x, y)
    offsets, targets = csr(first, second, n)
    build = watch.lap()
    label, facts, derivations = settle(offsets, targets)
    seconds = watch.lap()
    return Limit(int(facts), int(derivations), build, seconds, lambda: labelled(label))


@kernel
def merge(x, y, n):  # type: ignore[no-untyped-def]
    """Rem's algorithm: both paths to a root are walked at once, and each node on the way is hung below the smaller."""
    above = np.arange(n).astype(np.uint32)
    used = np.zeros(n, np.uint8)
    for e in range(len(x)):
        a, b = u32(x[e]), u32(y[e])
        used[a] = used[b] = 1
        while above[a] != above[b]:
            if above[a] > above[b]:
                a, b = b, a
            higher = above[b]
            above[b] = above[a]
            if higher == b:
                break
            b = higher
    facts = u64(0)
    for node in range(n):
        above[node] = above[above[node]]  # ids only grow downwards, so what is above is a root already
        facts += u64(used[node])
    return above, used, facts


def evaluate_union(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    n = nodes(x, y)
    build = watch.lap()
    root, used, facts = merge(x, y, n)
    seconds = watch.lap()

    def answer() -> Columns:
        found = np.flatnonzero(used)
        return found, root[found].astype(np.int64)

    return Limit(int(facts), len(x), build, seconds, answer)


VARIANTS = {"union": evaluate_union}
