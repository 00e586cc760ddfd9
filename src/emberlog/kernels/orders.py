"""Other ids for the values of domains, in an order along the edges, so that it does not matter how values are labelled.

Sweeps over masks do most in one pass where steps lead to larger ids, and 512 pivots have more in common if they begin
side by side. The ids that nests go from and to are the nodes of a graph. The order in which a depth-first search is
done with them, from the last to the first, is a topological one where there are no cycles, and elsewhere one in which
few steps lead back. Pivots that no nest steps to or from are in the order of the first ids that they begin with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberlog.components.nests import probes
from emberlog.components.program import Id, Kind
from emberlog.kernels.cache import call, jit
from emberlog.kernels.dictionaries import Dictionary, Renumbered
from emberlog.kernels.encode import Encoder, Lazy
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.sorting import by_key

Ids = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Edges:
    """Steps from ids of one domain to ids of another, row by row."""

    source: int
    sources: Ids
    target: int
    targets: Ids


@dataclass(frozen=True)
class Numbering:
    """New ids of domains: `new` by the old id, `old` by the new one."""

    new: Mapping[int, Ids]
    old: Mapping[int, Ids]

    def renumber(self, kinds: Sequence[Kind], columns: Arrays) -> list[Ids]:
        """Columns with new ids in place of the old ones."""
        return [_mapped(self.new, kind, column) for kind, column in zip(kinds, columns, strict=True)]

    def restore(self, kind: Kind, ids: Ids) -> Ids:
        """The old ids."""
        return _mapped(self.old, kind, ids)

    def encoder(self, encoder: Encoder) -> Encoder:
        """An encoder that gives new ids to the same values."""
        made: list[Dictionary] = [
            Renumbered(dictionary, self.new[domain], self.old[domain]) if domain in self.new else dictionary
            for domain, dictionary in enumerate(encoder.dictionaries)
        ]
        return encoder.with_dictionaries(made)


AS_THEY_ARE = Numbering({}, {})


def along_edges(
    prepared: Prepared, statics: Mapping[str, Lazy], exits: Mapping[str, Arrays], workers: int
) -> Numbering:
    """New ids for the domains that nests step between, and for the pivots."""
    old = _searched(list(_steps(prepared, statics)), prepared.sizes, workers)
    new = {domain: _inverse(ids) for domain, ids in old.items()}
    for start in _starts(prepared, exits):
        if start.source not in new and start.target in old:
            old[start.source] = _by_first(start, prepared.sizes[start.source], new[start.target])
    return Numbering({domain: _inverse(ids) for domain, ids in old.items()}, old)


def _searched(edges: Sequence[Edges], sizes: Mapping[int, int], workers: int) -> dict[int, Ids]:
    """The ids of each domain that the edges are between, in the order of a search along them."""
    domains = sorted({domain for each in edges for domain in (each.source, each.target)})
    ends = np.cumsum([0, *(sizes[domain] for domain in domains)]).tolist()
    bases = dict(zip(domains, ends[:-1], strict=True))
    sources = [each.sources + np.uint32(bases[each.source]) for each in edges]
    targets = [each.targets + np.uint32(bases[each.target]) for each in edges]
    offsets, (found,) = by_key(sources, ends[-1], [targets], workers, dtypes=[np.uint32])
    order = call(reverse_postorder, offsets, found, ends[-1])
    return {domain: _within(order, bases[domain], sizes[domain]) for domain in domains}


def _by_first(start: Edges, size: int, numbers: Ids) -> Ids:
    """Sources in the order of the least number of their targets; those without any come last."""
    first = np.full(size, len(numbers), np.uint32)
    call(lower_to_least, first, start.sources, start.targets, numbers)
    _, (order,) = by_key(first, len(numbers) + 1, [np.arange(size, dtype=np.uint32)])
    return order


def _steps(prepared: Prepared, statics: Mapping[str, Lazy]) -> Iterator[Edges]:
    """The rows of statics that lead from what a nest knows to what it finds."""
    found = {
        (probe.relation, source, target)
        for nest in prepared.way.nests
        for probe in probes(nest)
        if not nest.above and not probe.absent
        for source in probe.bound
        for target, _ in probe.binds
    }
    for relation, source, target in sorted(found):
        kinds = prepared.program.static(relation).kinds
        one, other = kinds[source], kinds[target]
        if isinstance(one, Id) and isinstance(other, Id):
            columns = statics[relation]
            yield Edges(one.domain, columns[source], other.domain, columns[target])


def _starts(prepared: Prepared, exits: Mapping[str, Arrays]) -> Iterator[Edges]:
    """The rows that pivots begin with, from a pivot to the keys of its slots."""
    for name in prepared.recursive:
        layout = prepared.layouts[name]
        kinds, columns = layout.table.kinds, exits[name]
        for spot in prepared.way.pivots[name]:
            for key in layout.keys:
                one, other = kinds[spot], kinds[key]
                if isinstance(one, Id) and isinstance(other, Id):
                    yield Edges(one.domain, columns[spot], other.domain, columns[key])


def _mapped(numbers: Mapping[int, Ids], kind: Kind, ids: Ids) -> Ids:
    return numbers[kind.domain][ids] if isinstance(kind, Id) and kind.domain in numbers else ids


def _within(order: Ids, base: int, size: int) -> Ids:
    """The ids of one domain, in their order."""
    mine = order[(order >= base) & (order < base + size)] if size < len(order) else order
    return mine - np.uint32(base)


def _inverse(order: Ids) -> Ids:
    found = np.empty_like(order)
    found[order] = np.arange(len(order), dtype=order.dtype)
    return found


@jit
def reverse_postorder(offsets: Any, targets: Any, nodes: Any) -> Any:
    """The nodes of a graph in the order in which a depth-first search is done with them, from the last to the first."""
    order = np.empty(nodes, np.uint32)
    path = np.empty(nodes, np.uint32)
    seen = np.zeros(nodes, np.uint8)
    following = offsets[:nodes].copy()
    left = nodes
    for root in range(nodes):
        if seen[root] != 0:
            continue
        seen[root] = 1
        path[0] = root
        depth = 1
        while depth > 0:
            node = path[depth - 1]
            edge = following[node]
            if edge == offsets[node + 1]:
                depth -= 1
                left -= 1
                order[left] = node
                continue
            following[node] = edge + 1
            target = targets[edge]
            if seen[target] == 0:
                seen[target] = 1
                path[depth] = target
                depth += 1
    return order


@jit
def lower_to_least(first: Any, sources: Any, targets: Any, numbers: Any) -> None:
    """Lowers `first` of each source to the least number of its targets."""
    for row in range(sources.size):
        number = numbers[targets[row]]
        if number < first[sources[row]]:
            first[sources[row]] = number
