"""Smallest label that reaches a node: `cc(X, min(X)) <- arc(X, _). cc(Y, min(V)) <- cc(X, V), arc(X, Y).`

A label is copied, never changed, so labels are settled in ascending order: the first label that arrives at a node is
its smallest, and every edge is used once.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import Column, Columns, Inputs, Limit, Watch, csr, kernel, nodes, u32, u64
from benchmarks.limits.sweep import spread


@kernel
def settle(offsets, targets):  # type: ignore[no-untyped-def]
    """The label of each node; where it has none, the number of nodes."""
    n = len(offsets) - 1
    none = u32(n)
    label = np.full(n, none, np.uint32)
    waiting, queue = np.zeros((n + 63) >> 6, np.uint64), np.empty(n + 1, np.uint32)
    facts, derivations = u64(0), u64(0)
    for v in range(n):
        if offsets[v] == offsets[v + 1]:
            continue
        derivations += u64(1)
        if label[v] == none:
            found, used = spread(offsets, targets, u32(v), u32(v), none, label, waiting, queue)
            facts += found
            derivations += used
    return label, facts, derivations


def labelled(label: Column) -> Columns:
    found = np.flatnonzero(label != len(label))
    return found, label[found].astype(np.int64)


def evaluate(inputs: Inputs) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    offsets, targets = csr(x, y, nodes(x, y))
    build = watch.lap()
    label, facts, derivations = settle(offsets, targets)
    seconds = watch.lap()
    return Limit(int(facts), int(derivations), build, seconds, lambda: labelled(label))
