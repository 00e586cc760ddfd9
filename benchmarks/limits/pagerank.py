"""PageRank, ranks summing to 1 (less where nodes have no way out): each round

    rank(Y, sum(R)) <- node(Y), R = 0.15 / N.
    rank(Y, sum(R)) <- rank(X, Q), arc(X, Y), degree(X, D), R = 0.85 * Q / D.

until the ranks change by less than 0.0001 in all. `evaluate` gathers in rounds, as written. `evaluate_in_place` lets a
sum see what this sweep has already written: the same fixpoint in about half the sweeps.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import Column, Inputs, Limit, Watch, csr, kernel, nodes, u64

DAMPING = 0.85
EPSILON = 1e-4


@kernel
def degrees(x, n):  # type: ignore[no-untyped-def]
    out = np.zeros(n, np.uint32)
    for node in x:
        out[u64(node)] += np.uint32(1)
    return out


@kernel
def iterate(offsets, sources, out, in_place):  # type: ignore[no-untyped-def]
    n = len(out)
    base = (1 - DAMPING) / n
    rank = np.full(n, 1 / n)
    given = np.empty(n)  # what a node gives along each edge out of it
    part = np.empty(n)
    for x in range(n):
        part[x] = DAMPING / out[x] if out[x] else 0.0
        given[x] = part[x] / n
    rounds, change = 0, 1.0
    while change >= EPSILON:
        rounds += 1
        change = 0.0
        for y in range(n):
            total = base
            for e in range(u64(offsets[y]), u64(offsets[u64(y) + u64(1)])):
                total += given[sources[e]]
            change += abs(total - rank[y])
            rank[y] = total
            if in_place:
                given[y] = total * part[y]
        if not in_place:
            for x in range(n):
                given[x] = rank[x] * part[x]
    return rank, rounds


def evaluate(inputs: Inputs, in_place: bool = False) -> Limit:
    x, y = inputs["arc"]
    watch = Watch()
    n = max(nodes(x, y), nodes(*inputs.get("node", ())))
    offsets, sources = csr(y, x, n)
    out = degrees(x, n)
    build = watch.lap()
    rank, rounds = iterate(offsets, sources, out, in_place)
    seconds = watch.lap()

    def answer() -> tuple[Column, Column]:
        return np.arange(n), rank

    return Limit(n, rounds * (len(x) + n), build, seconds, answer, rounds)


def evaluate_in_place(inputs: Inputs) -> Limit:
    return evaluate(inputs, in_place=True)


VARIANTS = {"in_place": evaluate_in_place}
