"""One value that spreads along the edges to every node that has none yet.

Nodes that wait to be expanded stand in a bitmap that is swept in the order of ids: neighbours in id order share cache
lines of every array that is indexed by node, so this is more than twice as fast as a queue. Where few nodes wait a
sweep would look at many words for nothing: then a queue is used.
"""

from __future__ import annotations

from benchmarks.limits.bits import lowest
from benchmarks.limits.common import kernel, u32, u64

FEW = 10
"""A frontier of less than n / 2^FEW nodes is worked off by a queue."""


@kernel
def spread(offsets, targets, start, value, none, values, waiting, queue):  # type: ignore[no-untyped-def]
    """Gives `value` to `start` and to all that it reaches over nodes whose value is `none`.

    `waiting` (a bit for each node) is empty before and after; `queue` has room for every node. Returns how many nodes
    got the value and how many edges were used.
    """
    one = u64(1)
    few = u64(len(offsets) >> FEW) + one
    values[start] = value
    queue[0] = start
    head, tail = u64(0), one
    found, used = one, u64(0)
    while head < tail:
        if tail - head > few:
            for i in range(head, tail):
                y = u64(queue[i])
                waiting[y >> u64(6)] |= one << (y & u64(63))
            more, edges, left = _sweeps(offsets, targets, value, none, values, waiting, queue)
            found += more
            used += edges
            head, tail = u64(0), left
            continue
        x = queue[head]
        head += one
        low, high = u64(offsets[x]), u64(offsets[x + one])
        used += high - low
        for e in range(low, high):
            y = targets[e]
            if values[y] == none:
                values[y] = value
                queue[tail] = y
                tail += one
                found += one
    return found, used


@kernel
def _sweeps(offsets, targets, value, none, values, waiting, queue):  # type: ignore[no-untyped-def]
    """Sweeps until a sweep finds few nodes; those still waiting then go to the queue. Nodes ahead that a sweep marks
    are expanded in the same sweep."""
    one = u64(1)
    few = u64(len(offsets) >> FEW) + one
    found, used, more = u64(0), u64(0), few + one
    while more > few:
        more = u64(0)
        for w in range(len(waiting)):
            while waiting[w]:
                x = (u64(w) << u64(6)) + lowest(waiting[w])
                waiting[w] &= waiting[w] - one
                low, high = u64(offsets[x]), u64(offsets[x + one])
                used += high - low
                for e in range(low, high):
                    y = u64(targets[e])
                    if values[y] == none:
                        values[y] = value
                        waiting[y >> u64(6)] |= one << (y & u64(63))
                        more += one
        found += more
    left = u64(0)
    for w in range(len(waiting)):
        while waiting[w]:
            queue[left] = u32((u64(w) << u64(6)) + lowest(waiting[w]))
            left += one
            waiting[w] &= waiting[w] - one
    return found, used, left
