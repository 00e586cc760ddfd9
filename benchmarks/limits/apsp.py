"""Shortest paths between all pairs, linear and non-linear:

    path(X, Y, min(D)) <- arc(X, Y, D).
    path(X, Y, min(D)) <- path(X, Z, D1), arc(Z, Y, D2), D = D1 + D2.       `evaluate`: for each X, buckets
    path(X, Y, min(D)) <- path(X, Z, D1), path(Z, Y, D2), D = D1 + D2.      `evaluate_nonlinear`: for each Z, whole rows

A node has a path to itself only where there is a cycle. Weights are whole and not negative, paths shorter than 2^30.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.common import (
    Column,
    Columns,
    Inputs,
    Limit,
    Watch,
    inlined,
    kernel,
    largest,
    nodes,
    u64,
    weighted_csr,
)
from benchmarks.limits.sssp import FAR, buckets_for, relax, settle

NEVER = 1 << 30
GROUP = 8
"""So many middle nodes at a time: a row of distances is read once for all of them."""
CHUNK = 512


@kernel
def from_each(offsets, pairs, heaviest):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    shift, buckets = buckets_for(heaviest)
    distance = np.full((n, n), FAR, np.int32)
    waiting, held = np.zeros((buckets, (n + 63) >> 6), np.uint64), np.zeros(buckets, np.int64)
    derivations = u64(0)
    for x in range(n):
        mine = distance[x]
        total, used = relax(u64(x), np.int32(0), offsets, pairs, shift, mine, waiting, held)
        derivations += used + settle(offsets, pairs, shift, mine, waiting, held, total)
    return distance, derivations


@kernel
def through_each(distance):  # type: ignore[no-untyped-def]
    """Floyd and Warshall, some middle nodes at a time."""
    n = len(distance)
    for first in range(0, n, GROUP):
        last = min(first + GROUP, n)
        for z in range(first, last):
            for x in range(first, last):
                _shorten(distance[x], distance[x, z], distance[z], 0, n)
        for x in range(n):
            if first <= x < last:
                continue
            row = distance[x]
            for z in range(first, last):
                _shorten(row, row[z], distance[z], first, last)
            for low in range(0, n, CHUNK):
                high = min(low + CHUNK, n)
                for z in range(first, last):
                    if row[z] < NEVER:
                        _shorten(row, row[z], distance[z], low, high)


@inlined
def _shorten(row, base, other, low, high):  # type: ignore[no-untyped-def]
    for y in range(u64(low), u64(high)):
        row[y] = min(row[y], base + other[y])


@kernel
def matrix(x, y, d, n):  # type: ignore[no-untyped-def]
    distance = np.full((n, n), NEVER, np.int32)
    for e in range(len(x)):
        distance[u64(x[e]), u64(y[e])] = min(distance[u64(x[e]), u64(y[e])], d[e])
    return distance


def _listed(distance: Column, never: int) -> Columns:
    first, second = np.nonzero(distance < never)
    return first, second, distance[first, second].astype(np.int64)


def evaluate(inputs: Inputs) -> Limit:
    x, y, d = inputs["warc"]
    watch = Watch()
    offsets, pairs = weighted_csr(x, y, d, nodes(x, y))
    build = watch.lap()
    distance, derivations = from_each(offsets, pairs, int(largest(d)) if len(d) else 0)
    facts = int(np.count_nonzero(distance != FAR))
    seconds = watch.lap()
    return Limit(facts, int(derivations), build, seconds, lambda: _listed(distance, FAR))


def evaluate_nonlinear(inputs: Inputs) -> Limit:
    x, y, d = inputs["warc"]
    watch = Watch()
    distance = matrix(x, y, d, nodes(x, y))
    build = watch.lap()
    through_each(distance)
    facts = int(np.count_nonzero(distance < NEVER))
    seconds = watch.lap()
    known = distance < NEVER
    derivations = int(known.sum(0) @ known.sum(1)) + len(x)
    return Limit(facts, derivations, build, seconds, lambda: _listed(distance, NEVER))


VARIANTS = {"nonlinear": evaluate_nonlinear}
