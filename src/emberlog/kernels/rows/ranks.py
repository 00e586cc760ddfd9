"""Rows in an order in which each is evaluated once: those that it depends on come before it.

Row x depends on row z if a rule joins a static left(X, Z) with a recursive right(Z, Y). Rows that are on no cycle, nor
behind one, have a rank: the length of the longest way to them. A sweep through the ranks finds all their facts, with
no deltas; the other rows are then evaluated in rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import numpy.typing as npt

from emberlog.components.compositions import RowsProgram, Side
from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.layout import SIZE, Ids, Longs, grouped
from emberlog.kernels.rows.relations import StaticRows

WIDE = 16
"""Rows that a rank has on average, at least, for a sweep to pay: a rank costs as much as a round."""


@jit
def levels(meta: Longs, items: Ids, degrees: Longs, queue: Ids, ranks: Ids) -> int:
    """The length of the longest way to each node from those that depend on none; the number of nodes that have one.

    `degrees` are the numbers of edges that lead to a node, and are used up.
    """
    last = 0
    for node in range(degrees.size):
        if degrees[node] == 0:
            queue[last] = node
            last += 1
    first = 0
    while first < last:
        node = queue[first]
        first += 1
        for i in range(meta[node, 0], meta[node, 0] + (meta[node, 1] >> SIZE)):
            other = items[i]
            ranks[other] = max(ranks[other], ranks[node] + 1)
            degrees[other] -= 1
            if degrees[other] == 0:
                queue[last] = other
                last += 1
    return last


@dataclass(frozen=True, slots=True)
class Sweep:
    """How to sweep: relations in this order, at each rank; the rows of each rank, and the rows without, by domain."""

    order: tuple[str, ...]
    ranks: int
    rows: Mapping[str, tuple[Ids, ...]]
    rest: Mapping[str, npt.NDArray[np.bool_]]


def sweep_of(program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, StaticRows]) -> Sweep | None:
    """The sweep for a program, or None if its rows depend on facts or if rounds are as good."""
    order, edges = _order(program), _edges(program)
    if order is None or not edges:
        return None
    names = sorted({relation.first for relation in program.recursive})
    starts = np.cumsum([0, *(domains[name] for name in names)])
    offsets = dict(zip(names, starts.tolist(), strict=False))
    nodes = int(starts[-1])
    pairs = [(statics[side.relation].columns(side.flipped), before, after) for before, after, side in edges]
    before = np.concatenate([zs + np.int32(offsets[one]) for (_, zs), one, _ in pairs])
    after = np.concatenate([xs + np.int32(offsets[other]) for (xs, _), _, other in pairs])
    view = grouped(before, after, nodes, nodes, distinct=False)
    ranks, queue = np.zeros(nodes, np.int32), np.empty(nodes, np.int32)
    ranked = levels(view.meta, view.items, np.bincount(after, minlength=nodes), queue, ranks)
    count = int(ranks[queue[:ranked]].max(initial=0)) + 1
    if 2 * ranked < nodes or not 3 <= count <= ranked // WIDE:
        return None
    rest = np.ones(nodes, np.bool_)
    rest[queue[:ranked]] = False
    ranks[rest] = count
    parts = {name: slice(offsets[name], offsets[name] + domains[name]) for name in names}
    return Sweep(
        order, count, {name: _by_rank(ranks[part], count) for name, part in parts.items()},
        {name: rest[part] for name, part in parts.items()},
    )  # fmt: skip


def _by_rank(ranks: Ids, count: int) -> tuple[Ids, ...]:
    order = np.argsort(ranks, kind="stable").astype(np.int32)
    return tuple(np.split(order, np.searchsorted(ranks[order], np.arange(1, count + 1)))[:count])


def _edges(program: RowsProgram) -> list[tuple[str, str, Side]]:
    """(domain before, domain after, static side from after to before) of the dependences between rows."""
    recursive = {relation.name: relation for relation in program.recursive}
    return [
        (recursive[rule.right.relation].first, recursive[rule.head].first, rule.left)
        for rule in program.rules
        if rule.right is not None and rule.right.relation in recursive
    ]


def _order(program: RowsProgram) -> tuple[str, ...] | None:
    """The relations in an order in which row x of each can be evaluated after row x of those that it reads.

    None if there is none, or if a rule has two recursive sides or one that is flipped.
    """
    names = {relation.name for relation in program.recursive}
    before: dict[str, set[str]] = {name: set() for name in names}
    for rule in program.rules:
        read = [side for side in rule.sides() if side.relation in names]
        if len(read) > 1 or any(side.flipped for side in read):
            return None
        if read and read[0] is rule.left:
            before[rule.head].add(rule.left.relation)
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError:
        return None
