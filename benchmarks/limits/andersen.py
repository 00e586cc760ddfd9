"""Points-to analysis:

    points(V, O) <- address(V, O).
    points(V, O) <- assign(V, W), points(W, O).
    points(V, O) <- load(V, P), points(P, Q), points(Q, O).
    points(Q, O) <- store(P, W), points(P, Q), points(W, O).

Rows of bits; a load or store that meets a new target makes an edge along which whole rows are or-ed from then on, and a
variable's new bits alone travel along the edges out of it. Variables wait in a bitmap that is swept in the order of
ids: what is numbered together is mostly used together.
"""

from __future__ import annotations

import numpy as np

from benchmarks.limits.bits import lowest, popcount
from benchmarks.limits.common import Columns, Inputs, Limit, Watch, csr, kernel, nodes, u32, u64
from benchmarks.limits.rows import enlarge, lacks, make_rows, or_word, take_delta

SLOTS = 128
"""Room in the pools for each variable: address space, not memory."""


@kernel
def flow(source, target, start, room, used, words, bits, done, top):  # type: ignore[no-untyped-def]
    """The row of `source` into that of `target`; returns bits if it grew."""
    grown = u64(0)
    if source != target:
        if lacks(used[target], room[target], used[source]):
            enlarge(target, used[source], start, room, used, words, bits, done, top)
        for at in range(start[source], start[source] + u64(room[source])):
            if words[at] != 0:
                grown |= or_word(target, words[at] - u32(1), bits[at], start, room, used, words, bits)
    return grown


@kernel
def solve(n, facts, loads_by, stores_by, points, edges):  # type: ignore[no-untyped-def]
    address_v, address_o, assign_v, assign_w = facts
    (load_at, load_v), (store_at, store_w) = loads_by, stores_by
    start, room, used, words, bits, done, top = points
    e_start, e_room, e_used, e_words, e_bits, e_done, e_top = edges
    waiting = np.zeros((n >> 6) + 1, np.uint64)
    new_words, new_bits = np.empty((n >> 6) + 1, np.uint32), np.empty((n >> 6) + 1, np.uint64)
    one, six, low6 = u64(1), u64(6), u64(63)
    for i in range(len(address_v)):
        v, o = u64(address_v[i]), u64(address_o[i])
        if lacks(used[v], room[v], u32(1)):
            enlarge(v, u32(1), start, room, used, words, bits, done, top)
        or_word(v, o >> six, one << (o & low6), start, room, used, words, bits)
        waiting[v >> six] |= one << (v & low6)
    for i in range(len(assign_v)):
        v, w = u64(assign_v[i]), u64(assign_w[i])
        if lacks(e_used[w], e_room[w], u32(1)):
            enlarge(w, u32(1), e_start, e_room, e_used, e_words, e_bits, e_done, e_top)
        or_word(w, v >> six, one << (v & low6), e_start, e_room, e_used, e_words, e_bits)
    active = True
    while active:
        active = False
        for block in range(len(waiting)):
            while waiting[block]:
                active = True
                x = (u64(block) << six) + lowest(waiting[block])
                waiting[block] &= waiting[block] - one
                fresh = take_delta(x, start, room, words, bits, done, new_words, new_bits)
                # New targets of x: what is loaded or stored through x flows along new edges.
                loads, stores = u64(load_at[x + one] - load_at[x]), u64(store_at[x + one] - store_at[x])
                for k in range(fresh if loads + stores else u64(0)):
                    left = new_bits[k]
                    while left:
                        q = (u64(new_words[k]) << six) + lowest(left)
                        left &= left - one
                        for e in range(loads + stores):
                            if e < loads:
                                a, b = q, u64(load_v[u64(load_at[x]) + e])
                            else:
                                a, b = u64(store_w[u64(store_at[x]) + e - loads]), q
                            bit = one << (b & low6)
                            if lacks(e_used[a], e_room[a], u32(1)):
                                enlarge(a, u32(1), e_start, e_room, e_used, e_words, e_bits, e_done, e_top)
                            if or_word(a, b >> six, bit, e_start, e_room, e_used, e_words, e_bits):
                                if flow(a, b, start, room, used, words, bits, done, top):
                                    waiting[b >> six] |= bit
                # New targets of x along the edges out of it.
                for at in range(e_start[x], e_start[x] + u64(e_room[x])):
                    left = e_bits[at]
                    while left:
                        y = (u64(e_words[at] - u32(1)) << six) + lowest(left)
                        left &= left - one
                        grown = u64(0)
                        if lacks(used[y], room[y], u32(fresh)):
                            enlarge(y, u32(fresh), start, room, used, words, bits, done, top)
                        for k in range(fresh):
                            grown |= or_word(y, new_words[k], new_bits[k], start, room, used, words, bits)
                        if grown:
                            waiting[y >> six] |= one << (y & low6)


@kernel
def count(start, room, bits):  # type: ignore[no-untyped-def]
    total = u64(0)
    for row in range(len(start)):
        for at in range(start[row], start[row] + u64(room[row])):
            total += popcount(bits[at])
    return total


@kernel
def listed(start, room, words, bits, total):  # type: ignore[no-untyped-def]
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    i = 0
    for row in range(len(start)):
        for at in range(start[row], start[row] + u64(room[row])):
            left = bits[at]
            while left:
                first[i], second[i] = row, np.int64((u64(words[at] - u32(1)) << u64(6)) + lowest(left))
                left &= left - u64(1)
                i += 1
    return first, second


def evaluate(inputs: Inputs) -> Limit:
    address, assign, load, store = (inputs[name] for name in ("address", "assign", "load", "store"))
    watch = Watch()
    n = nodes(*address, *assign, *load, *store)
    loads, stores = csr(load[1], load[0], n), csr(store[0], store[1], n)
    build = watch.lap()
    points, edges = make_rows(n, SLOTS * n + 2), make_rows(n, SLOTS * n + 2)
    solve(n, (*address, *assign), loads, stores, points, edges)
    start, room, _, words, bits, _, _ = points
    facts = int(count(start, room, bits))
    seconds = watch.lap()

    def answer() -> Columns:
        first, second = listed(start, room, words, bits, facts)
        return first, second

    return Limit(facts, None, build, seconds, answer)
