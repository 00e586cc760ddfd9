"""Nodes that can be reached: `reach(Y) <- Y = $ID. reach(Y) <- reach(X), arc(X, Y).`"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import Inputs, Limit, Watch, csr, kernel, nodes
from benchmarks.limits.sweep import spread

SOURCE = 0


@kernel
def search(offsets, targets, source):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    seen = np.zeros(n, np.uint8)
    waiting, queue = np.zeros((n + 63) >> 6, np.uint64), np.empty(n + 1, np.uint32)
    facts, used = spread(offsets, targets, np.uint32(source), np.uint8(1), np.uint8(0), seen, waiting, queue)
    return seen, facts, used


def evaluate(inputs: Inputs, source: int = SOURCE) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    offsets, targets = csr(x, y, max(nodes(x, y), source + 1))
    build = watch.lap()
    seen, facts, used = search(offsets, targets, source)
    seconds = watch.lap()
    return Limit(int(facts), int(used) + 1, build, seconds, lambda: (np.flatnonzero(seen),))
