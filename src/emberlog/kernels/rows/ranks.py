"""The order of work among rows. Where the rows of a component depend on each other without cycles, a row that waits
for those it depends on is joined once with all its facts, and not again and again with a few.

Row x depends on row z if a rule joins a static left(X, Z) with a recursive right(Z, Y). Rows on cycles, and those
behind them, share the last rank: they are evaluated in plain rounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.layout import SIZE, Ids, Longs, View, grouped
from emberlog.kernels.rows.program import RowsProgram, Side
from emberlog.kernels.rows.relations import StaticRows


@jit
def levels(meta: Longs, items: Ids, degrees: Ids, queue: Ids, ranks: Ids) -> int:
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


def ranks_of(
    program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, StaticRows]
) -> dict[str, Ids] | None:
    """The ranks of the rows of each domain, or None if waiting would be of no use."""
    edges = _edges(program)
    if not edges:
        return None
    names = sorted({domain for before, after, _ in edges for domain in (before, after)})
    offsets = dict(zip(names, np.cumsum([0, *(domains[name] for name in names)]).tolist(), strict=False))
    nodes = sum(domains[name] for name in names)
    pairs = [(statics[side.relation].columns(side.flipped), before, after) for before, after, side in edges]
    before = np.concatenate([zs + np.int32(offsets[one]) for (_, zs), one, _ in pairs])
    after = np.concatenate([xs + np.int32(offsets[other]) for (xs, _), _, other in pairs])
    view: View = grouped(before, after, nodes, nodes, distinct=False)
    ranks, queue = np.zeros(nodes, np.int32), np.empty(nodes, np.int32)
    degrees = np.bincount(after, minlength=nodes).astype(np.int32)
    ranked = levels(view.meta, view.items, degrees, queue, ranks)
    if 2 * ranked < nodes or ranks.max(initial=0) < 2:
        return None
    cyclic = np.ones(nodes, np.bool_)
    cyclic[queue[:ranked]] = False
    ranks[cyclic] = ranks.max() + 1
    return {name: ranks[offsets[name] : offsets[name] + domains[name]] for name in names}


def _edges(program: RowsProgram) -> list[tuple[str, str, Side]]:
    """(domain before, domain after, static side from after to before) of the dependences between rows.

    None where rows depend on facts: through rules with two recursive sides, or with one that is flipped.
    """
    recursive = {relation.name: relation for relation in program.recursive}
    edges = []
    for rule in program.rules:
        read = [side for side in rule.sides() if side.relation in recursive]
        if len(read) > 1 or any(side.flipped for side in read):
            return []
        if read and rule.right is read[0]:
            edges.append((recursive[read[0].relation].first, recursive[rule.head].first, rule.left))
    covered = {domain for edge in edges for domain in edge[:2]}
    return edges if all(relation.first in covered for relation in program.recursive) else []
