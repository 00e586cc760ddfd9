"""Traces with the numbers of the paper's Table I.

The production traces are not public. What is known of them is five numbers each, and of the first that 20,134 of its
nodes are tasks and that 532 of 1,680 descendants become active. A generated trace has these numbers exactly; all else
is chosen plainly and named here:

- Nodes outside of the change stand in modules of some dozen nodes and a few levels, as programs are written in parts,
  and one chain goes through all levels. Edges stay inside their module. So a node has some dozen ancestors, not all
  of the lower levels, and interval lists are short: "usually but not always compact" (Section II-C).
- The change grows from initial tasks in the first quarter of the levels: a node is added below one of the latest,
  collectors below tasks and tasks below collectors; first what becomes active, then descendants that get no change.
- What is left of the edges is spread evenly over all nodes and goes from lower to higher levels between near ones.
  Half of those between active nodes carry a change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emberlog.diagnostics import UsageError
from emberlog.schedule.graph import Graph, Ints, distinct, edge_keys, is_in
from emberlog.schedule.trace import Trace


@dataclass(frozen=True, slots=True)
class Shape:
    """A column of Table I. `mean` is the seconds of a task if no processor of the paper's eight had ever been idle in
    the shortest run that Tables II and III report: 8 makespans, over the active jobs."""

    nodes: int
    edges: int
    initial: int
    active: int
    levels: int
    makespan: float

    @property
    def mean(self) -> float:
        return 8 * self.makespan / self.active

    @property
    def descendants(self) -> int:
        """Tasks at or below initial ones: of trace 1 there are 1,680 for 532 active ones; others in this proportion."""
        return self.initial + round((self.active - self.initial) * (1680 - 5) / (532 - 5))

    @property
    def tasks(self) -> int:
        """Of trace 1's 64,910 nodes 20,134 are tasks; others in this proportion, if it leaves room for descendants."""
        return max(round(self.nodes * 20134 / 64910), self.descendants + self.levels)


SHAPES: dict[int, Shape] = {
    1: Shape(64910, 101327, 5, 532, 171, 26.5),
    2: Shape(64903, 101319, 16, 1936, 171, 9736),
    3: Shape(29185, 41506, 76, 560, 149, 187),
    4: Shape(64507, 100779, 26, 1342, 171, 303),
    5: Shape(1719, 2430, 6, 296, 39, 23),
    6: Shape(379500, 557702, 125544, 126979, 11, 0.49),
    7: Shape(35283, 50511, 76, 645, 198, 155.77),
    8: Shape(35283, 50511, 9, 177, 198, 25.52),
    9: Shape(65541, 102219, 10, 111, 171, 0.037),
    10: Shape(65541, 102219, 16, 1936, 171, 9893.29),
    11: Shape(465127, 465158, 131104, 132162, 5, 630.01),
}

MODULE = 40  # nodes of a module
COLLECTORS = 0.6  # collectors for each task of a change
NEAR = 30  # an edge between nodes of a change leads over at most so many in the order in which they were added


def like(number: int, seed: int = 0) -> Trace:
    """A trace with the numbers of column `number` of Table I. Tasks have unit length; `durations` gives others."""
    if number not in SHAPES:
        raise UsageError(f"Table I has no trace {number}", fix=f"its traces are 1 to {len(SHAPES)}")
    return of_shape(SHAPES[number], seed)


def of_shape(shape: Shape, seed: int = 0) -> Trace:
    """A trace with these numbers, exactly."""
    draw = np.random.default_rng(seed)
    change = _Change(shape, draw)
    rest = shape.nodes - change.size
    levels = _rest_levels(rest, shape.levels, draw)
    below = change.edges(rest, levels, draw)
    edges = np.concatenate((_rest_edges(levels, shape.levels), below))
    levels = np.concatenate((levels, np.asarray(change.levels)))
    edges = _fill(edges, levels, shape, change.size, draw)
    tasks = np.concatenate(
        (_rest_tasks(levels[:rest], shape.tasks - shape.descendants, draw), np.asarray(change.tasks))
    )
    work = tasks.astype(np.int64)
    initial = np.arange(rest, rest + shape.initial)
    graph = Graph.of(shape.nodes, edges)
    return Trace.of(graph, tasks, work, work, initial, _changes(graph, below, rest, change.active, draw))


class _Change:
    """The part of a trace that lies at or below initial tasks: level, kind and parent of each node, in order of growth.

    The first `active` nodes become active."""

    def __init__(self, shape: Shape, draw: np.random.Generator) -> None:
        self.levels: list[int] = draw.integers(1, max(1, shape.levels // 4) + 1, shape.initial).tolist()
        self.tasks = [True] * shape.initial
        self.parents = [-1] * shape.initial
        self._deepest = shape.levels - 1
        self._draw = draw
        follow = shape.active - shape.initial
        window = max(1, round(2 * follow * (1 + COLLECTORS) / shape.levels))
        self._grow(follow, window)
        self.active = self.size
        self._grow(shape.descendants - shape.active, self.size)

    @property
    def size(self) -> int:
        return len(self.levels)

    def edges(self, rest: int, levels: Ints, draw: np.random.Generator) -> Ints:
        """From each node's parent to it, and from a node outside where the parent is not one level above it."""
        own, parents = np.asarray(self.levels), np.asarray(self.parents)
        outside = np.ones(own.size, np.bool_)
        outside[parents >= 0] = own[parents[parents >= 0]] < own[parents >= 0] - 1
        order = np.argsort(levels, kind="stable")
        first = np.searchsorted(levels[order], own[outside] - 1)
        last = np.searchsorted(levels[order], own[outside] - 1, side="right")
        above = order[first + (draw.random(first.size) * (last - first)).astype(np.int64)]
        nodes = np.arange(own.size)
        inside = np.column_stack((parents + rest, nodes + rest))[parents >= 0]
        return np.concatenate((inside, np.column_stack((above, nodes[outside] + rest))))

    def _grow(self, tasks: int, window: int) -> None:
        """Adds so many tasks, and collectors for them, each below one of the latest `window` nodes."""
        collectors = round(tasks * COLLECTORS)
        while tasks or collectors:
            parent = self._parent(window)
            is_task = tasks > 0 and (not self.tasks[parent] or not collectors)
            skipped = int(self._draw.integers(0, 3)) if self._draw.random() < 0.2 else 0
            self.levels.append(min(self.levels[parent] + 1 + skipped, self._deepest))
            self.tasks.append(is_task)
            self.parents.append(parent)
            tasks, collectors = (tasks - 1, collectors) if is_task else (tasks, collectors - 1)

    def _parent(self, window: int) -> int:
        """One of the latest nodes; if it is at the lowest level of all, any node above that."""
        first = max(0, self.size - window)
        while self.levels[parent := int(self._draw.integers(first, self.size))] == self._deepest:
            first = 0
        return parent


def _rest_levels(count: int, levels: int, draw: np.random.Generator) -> Ints:
    """Levels of the nodes outside: a chain through all of them, then modules. The first nodes of a module are its own
    chain, the others stand anywhere in it, more of them high."""
    place = np.arange(count - levels)
    depths = np.minimum(1 + draw.geometric(1 / 6, count // MODULE + 1), min(MODULE, levels))
    depth, inside = depths[place // MODULE], place % MODULE
    anywhere = (draw.random(place.size) ** 2 * depth).astype(np.int64)
    return np.concatenate((np.arange(levels), np.where(inside < depth, inside, anywhere)))


def _rest_edges(levels: Ints, chain: int) -> Ints:
    """To each node outside that is no source, from the node of its module's chain one level above it."""
    nodes = np.arange(levels.size)
    starts = np.where(nodes < chain, 0, (nodes - chain) // MODULE * MODULE + chain)
    return np.column_stack((starts + levels - 1, nodes))[levels > 0]


def _rest_tasks(levels: Ints, count: int, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Which nodes outside are tasks: `count` of those that are no sources."""
    tasks = np.zeros(levels.size, np.bool_)
    tasks[draw.choice(np.flatnonzero(levels > 0), count, replace=False)] = True
    return tasks


def _fill(edges: Ints, levels: Ints, shape: Shape, change: int, draw: np.random.Generator) -> Ints:
    """The edges, and as many more as the shape has: into the change by its share of the nodes, the others in
    modules."""
    more, rest = shape.edges - len(edges), shape.nodes - change
    into = round(more * change / shape.nodes)
    found = distinct(edge_keys(edges, shape.nodes))
    pools: tuple[tuple[int, Callable[[int], tuple[Ints, Ints]]], ...] = (
        (found.size + into, lambda count: _near(count, rest, change, draw)),
        (shape.edges, lambda count: _inside(count, rest, shape.levels, draw)),
    )
    for goal, pairs in pools:
        while found.size < goal:
            tails, heads = pairs(2 * (goal - found.size))
            drawn = distinct(edge_keys(np.column_stack((tails, heads))[levels[tails] < levels[heads]], shape.nodes))
            fresh = drawn[~is_in(drawn, found)]
            found = np.sort(np.concatenate((found, draw.permutation(fresh)[: goal - found.size])))
    return np.column_stack(np.divmod(found, shape.nodes))


def _near(count: int, rest: int, change: int, draw: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs that end inside of the change, and begin near before it or, half of them, outside."""
    heads = draw.integers(0, change, count)
    tails = np.maximum(heads - draw.integers(1, NEAR, count), 0) + rest
    return np.where(draw.random(count) < 0.5, tails, draw.integers(0, rest, count)), heads + rest


def _inside(count: int, rest: int, chain: int, draw: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs of nodes of one module."""
    tails = draw.integers(chain, rest, count)
    starts = (tails - chain) // MODULE * MODULE + chain
    return tails, np.minimum(starts + draw.integers(0, MODULE, count), rest - 1)


def _changes(graph: Graph, grown: Ints, rest: int, active: int, draw: np.random.Generator) -> Ints:
    """The edges that carry a change: those by which active nodes grew, and half of the others between them."""
    edges = graph.edges()
    among = edges[((edges >= rest) & (edges < rest + active)).all(axis=1)]
    by_growth = is_in(edge_keys(among, graph.size), distinct(edge_keys(grown, graph.size)))
    return among[by_growth | (draw.random(len(among)) < 0.5)]
