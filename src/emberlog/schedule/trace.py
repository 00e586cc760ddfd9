"""A trace: one change of a maintained program, as far as a scheduler sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emberlog.diagnostics import DataError
from emberlog.schedule.graph import Adjacency, Edges, Graph, Ints, distinct, edge_keys, edge_rows, is_in, reach

# No task is longer than so many units: sums over a trace stay exact.
LONGEST = 10**15


@dataclass(frozen=True, eq=False)
class Trace:
    """A graph, what each node costs, the nodes that a change activates at first, and the edges that carry a change.

    Nodes are tasks or collectors, which gather inputs and outputs of tasks at no cost. A task has work (unit
    subtasks) and span (the longest chain of them), both in units of `unit` seconds. A node is active if it is an
    initial one or an active predecessor sends it a change."""

    graph: Graph
    tasks: NDArray[np.bool_]
    work: Ints
    span: Ints
    initial: Ints
    changes: Adjacency
    unit: float

    @staticmethod
    def of(
        graph: Graph,
        tasks: Iterable[bool] | NDArray[np.bool_],
        work: Iterable[int] | Ints,
        span: Iterable[int] | Ints,
        initial: Iterable[int] | Ints,
        changes: Edges,
        unit: float = 1e-6,
    ) -> Trace:
        """A checked trace. Raises `DataError` with the first node or edge that makes no sense."""
        changed = edge_rows(changes)
        columns = [_numbers(column) for column in (tasks, work, span)]
        begun = distinct(_numbers(initial))
        for column, name in zip(columns, ("kinds", "works", "spans"), strict=True):
            if column.size != graph.size:
                raise DataError(f"there are {graph.size:,} nodes and {column.size:,} {name}")
        kinds, works, spans = columns[0] != 0, columns[1], columns[2]
        _check_costs(kinds, works, spans)
        if not (np.isfinite(unit) and unit > 0):
            raise DataError(f"a unit of {unit} seconds is no time")
        if begun.size and (begun[0] < 0 or begun[-1] >= graph.size):
            raise DataError("an initial node is no node of the graph", fix="nodes count from 0")
        _check_changes(graph, changed)
        sent = Adjacency.of(graph.size, changed[:, 0], changed[:, 1])
        return Trace(graph, kinds, works, spans, begun, sent, unit)

    def with_costs(self, work: Ints, span: Ints, unit: float) -> Trace:
        """The same change with other durations: those of its tasks, in order of their numbers."""
        works, spans = np.zeros(self.graph.size, np.int64), np.zeros(self.graph.size, np.int64)
        works[self.tasks], spans[self.tasks] = work, span
        _check_costs(self.tasks, works, spans)
        return replace(self, work=works, span=spans, unit=unit)

    @cached_property
    def active(self) -> Ints:
        """The nodes that the change reaches, in order."""
        return reach(self.changes, self.graph.size, self.initial)

    @property
    def figures(self) -> dict[str, int]:
        """The rows of the paper's Table I, and the tasks and descendants that Fig. 1 speaks of.

        Jobs are tasks; initial ones count as active and as descendants."""
        reached = self.graph.descendants(self.initial)
        return {
            "nodes": self.graph.size,
            "edges": self.graph.successors.targets.size,
            "initial tasks": int(self.tasks[self.initial].sum()),
            "active jobs": int(self.tasks[self.active].sum()),
            "levels": self.graph.depth,
            "tasks": int(self.tasks.sum()),
            "descendants": int(self.tasks[reached].sum()),
        }


def _numbers(column: Iterable[int] | NDArray[np.bool_] | Ints) -> Ints:
    return np.asarray(column if isinstance(column, np.ndarray) else list(column), np.int64)


def _check_costs(tasks: NDArray[np.bool_], work: Ints, span: Ints) -> None:
    rules = (
        ((work < 0) | (work > LONGEST), f"has a work that is not between 0 and {LONGEST:,}"),
        ((span < 0) | (span > work), "has a span that is not between 0 and its work"),
        ((span == 0) & (work > 0), "has work but no span"),
        (~tasks & (work > 0), "is a collector and has work"),
    )
    for wrong, why in rules:
        if wrong.any():
            raise DataError(f"node {int(np.flatnonzero(wrong)[0])} {why}")


def _check_changes(graph: Graph, changes: Ints) -> None:
    inside = ((changes >= 0) & (changes < graph.size)).all(axis=1)
    known = is_in(edge_keys(changes, graph.size), edge_keys(graph.edges(), graph.size))
    wrong = changes[~(inside & known)]
    if wrong.size:
        raise DataError(f"a change goes from {wrong[0, 0]} to {wrong[0, 1]}, where there is no edge")
