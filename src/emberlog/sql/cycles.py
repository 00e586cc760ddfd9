"""The cycle in the data along which a recursion grows, for the error that stops it.

The groups of a component and what feeds what among them (`plan.feeds`) are a graph, which is read from the relations as
they are when the evaluation stops. Sums, counts and sets: a cycle through a group that the last round changed. Minima
and maxima: a cycle of which every edge brings a value at least as good as the one that is there, and one a better one;
along such a cycle values get better for ever. Among several the one is taken that no other feeds.

Looking is bounded: so many edges, so many seconds. If nothing is found, nothing is said.

A sum of floats that grows becomes infinite sooner or later, and then stays as it is. Such sums have not come to an end
where they feed each other along a cycle; others have: the data may have infinite values, and a product may overflow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from emberlog.diagnostics import EmberlogError, ExecutionError, LimitError, counted
from emberlog.plan.feeds import Feed, Keys, feeds, infinite_groups, is_float_sum, keys_of
from emberlog.plan.logical import Distinct, Plan, keep
from emberlog.plan.names import position, stateless
from emberlog.plan.strata import Stratum
from emberlog.sql.fixpoint import split_all
from emberlog.stats import PERHAPS, Limits, Meter, RoundLimit, Silent, StratumStats

if TYPE_CHECKING:
    from emberlog.sql.evaluate import SqlEvaluator

MOST_EDGES = 200_000
MOST_INFINITE_EDGES = 2_000_000  # of these none may be missed
MOST_SECONDS = 3.0
MOST_SECONDS_OF_JOBS = 20.0  # on Spark, where a statement is a job
SHOWN = 6  # groups of a cycle
FIX = "break the cycle in the data, or bound the value by a condition in the rule"

Node: TypeAlias = tuple[str, tuple[Any, ...]]  # a relation, the keys of a group


@dataclass(frozen=True, slots=True)
class Cycle:
    """Groups, each of which feeds the next one and the last one the first."""

    groups: tuple[str, ...]

    def __str__(self) -> str:
        length = len(self.groups)
        if length <= SHOWN:
            return " -> ".join((*self.groups, self.groups[0]))
        return " -> ".join((*self.groups[:SHOWN], f"... ({length} in all)", self.groups[0]))


def find_cycle(run: SqlEvaluator, stratum: Stratum, stopped: StratumStats) -> Cycle | None:
    """The cycle along which a component grows, whose evaluation stopped on this engine: nothing grows, and there are no
    tables, before the first round is done."""
    left = run.meter.seconds_left
    most = MOST_SECONDS_OF_JOBS if run.engine.lazy else MOST_SECONDS
    seconds = most if left is None else min(most, left)
    if seconds <= 0 or not stopped.rounds or not may_grow(stratum):
        return None
    stats, meter = StratumStats(stratum.names), run.meter
    run.meter = Meter(Limits(seconds=seconds), Silent(), stop=run.meter.stop)
    try:
        with run.guarded(stats):
            graph = _read(run, stratum)
    except (LimitError, ExecutionError):  # what stopped the evaluation is told in any case
        return None
    finally:
        run.meter = meter
    return _told(graph.cycle(), stratum)


def _told(nodes: list[Node], stratum: Stratum) -> Cycle | None:
    """The groups of a cycle as they are shown, if there are some."""
    keys = {relation.name: (keys_of(stratum)[relation.name], relation) for relation in stratum.relations}
    groups = []
    for name, values in nodes:
        spots, relation = keys[name]
        shown = dict(zip(spots, map(_shown, values), strict=True))
        arguments = (shown.get(spot, "_") for spot in range(len(relation.signature.columns)))
        groups.append(f"{stateless(name)}({', '.join(arguments)})")
    first = groups.index(min(groups)) if groups else 0
    return Cycle((*groups[first:], *groups[:first])) if groups else None


def refuse_infinity(run: SqlEvaluator, stratum: Stratum, stats: StratumStats, *, is_done: bool = False) -> None:
    """Raises if sums of floats have grown to infinity along a cycle. `is_done` says that the component is evaluated:
    each relation is one table."""
    infinite = _infinite_groups(run, stratum)
    if not infinite:
        return
    graph = Graph()
    for source, target in _infinite_edges(run, stratum, is_done):
        if all(name not in infinite or keys in infinite[name] for name, keys in (source, target)):
            graph.add(source, target)
    graph.mark((name, keys) for name, groups in infinite.items() for keys in groups)
    cycle = _told(graph.cycle(), stratum)
    if cycle is not None:
        names = ", ".join(stratum.names)
        raise LimitError(
            f"stopped after {counted(stats.rounds, 'round')} while computing {names}: sums have grown to infinity; "
            f"a cycle in the data: {cycle}",
            fix=FIX,
        )


def _infinite_groups(run: SqlEvaluator, stratum: Stratum) -> dict[str, set[tuple[Any, ...]]]:
    """The groups of each sum of floats that are infinite; nothing where none of them is."""
    if stratum.indexed:  # its states are not a fixpoint
        return {}
    plans = {r.name: infinite_groups(r, keys_of(stratum)) for r in stratum.relations if is_float_sum(r)}
    if all(run.engine.first(run.statement(plan)) is None for plan in plans.values()):
        return {}
    return {name: set(_rows(run, plan, MOST_INFINITE_EDGES)) for name, plan in plans.items()}


def _infinite_edges(run: SqlEvaluator, stratum: Stratum, is_done: bool) -> Iterator[tuple[Node, Node]]:
    keys = keys_of(stratum)
    for feed in feeds(stratum, infinite=True):
        width, spots = len(keys[feed.source]), len(keys[feed.source]) + len(keys[feed.target])
        plan = feed.plan if is_done else _stored(feed.plan, stratum)
        for row in _rows(run, plan, MOST_INFINITE_EDGES):
            yield (feed.source, row[:width]), (feed.target, row[width:spots])


def may_grow(stratum: Stratum) -> bool:
    """True if a cycle can be why a component does not end. In an iteration over states cycles are everyday things;
    without sums and computed values rounds come to an end; and what computes all its columns grows by that alone."""
    totals = any(relation.state == "total" for relation in stratum.relations)
    endless = not stratum.indexed and stratum.evaluation != "once" and (totals or stratum.invents)
    return endless and bool(feeds(stratum))


def with_cycle(error: EmberlogError, cycle: Cycle | None) -> EmberlogError:
    """The error that also tells the cycle."""
    if cycle is None:
        return error
    fix = FIX
    if isinstance(error, RoundLimit) and error.fix is not None:
        fix = f"{fix}; {error.fix.partition(' if ')[0]} if it does end"
    return type(error)(f"{error.message.removesuffix(PERHAPS)}; a cycle in the data: {cycle}", span=error.span, fix=fix)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


# --- reading the graph -----------------------------------------------------------------------------------------------


def _read(run: SqlEvaluator, stratum: Stratum) -> Graph:
    graph = Graph()
    keys = keys_of(stratum)
    for feed in feeds(stratum):
        width, spots = len(keys[feed.source]), len(keys[feed.source]) + len(keys[feed.target])
        for row in _rows(run, _stored(feed.plan, stratum)):
            source, target = (feed.source, row[:width]), (feed.target, row[width:spots])
            brought = _is_better(feed, *row[spots:])
            if brought is not None:
                graph.add(source, target, marked=brought)
    if all(relation.state != "extremum" for relation in stratum.relations):
        graph.mark(_changed(run, stratum, keys))
    return graph


def _is_better(feed: Feed, value: Any = None, present: Any = None) -> bool | None:
    """True if an edge brings a better value than the one that is there, None if it brings a worse one or none."""
    if feed.function is None:
        return False
    if value is None or present is None:
        return None
    if feed.function == "max":
        value, present = present, value
    return bool(value < present) if value <= present else None


def _changed(run: SqlEvaluator, stratum: Stratum, keys: Keys) -> Iterator[Node] | None:
    """The groups that the last round changed; None where nobody knows."""
    if stratum.evaluation != "delta":
        return None
    return (
        (relation.name, row)
        for relation in stratum.relations
        if keys[relation.name]
        for row in _rows(
            run, Distinct(keep(run.scan(relation.signature, "recent"), tuple(map(position, keys[relation.name]))))
        )
    )


def _rows(run: SqlEvaluator, plan: Plan, most: int = MOST_EDGES) -> list[tuple[Any, ...]]:
    scratch = run.table("edges/scratch")
    run.engine.store(scratch, run.statement(plan), most)
    table = run.engine.fetch(scratch)
    run.engine.drop(scratch)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _stored(plan: Plan, stratum: Stratum) -> Plan:
    """The plan over the tables in which the way of evaluation keeps relations meanwhile."""
    if stratum.evaluation != "delta":
        return plan
    return split_all(plan, frozenset(relation.name for relation in stratum.relations if relation.state == "set"))


# --- the graph -------------------------------------------------------------------------------------------------------


@dataclass
class Graph:
    """Nodes and edges, some of them marked: the cycle that is looked for has a mark."""

    edges: dict[Hashable, list[Any]] = field(default_factory=dict)
    marked_nodes: set[Hashable] = field(default_factory=set)
    marked_edges: list[tuple[Any, Any]] = field(default_factory=list)

    def add(self, source: Hashable, target: Hashable, *, marked: bool = False) -> None:
        self.edges.setdefault(source, []).append(target)
        self.edges.setdefault(target, [])
        if marked:
            self.marked_edges.append((source, target))

    def mark(self, nodes: Iterable[Hashable] | None) -> None:
        """Marks these nodes (None: all)."""
        self.marked_nodes.update(self.edges if nodes is None else (node for node in nodes if node in self.edges))

    def cycle(self) -> list[Any]:
        """A shortest cycle through a mark, in a component that no other component with a mark leads to; or nothing."""
        number = self._components()
        best: tuple[int, Any, Any] | None = None
        for source, target in self._candidates():
            if number[source] == number[target] and (best is None or number[source] > best[0]):
                best = (number[source], source, target)
        if best is None:
            return []
        _, source, target = best
        return [source, *self._path(target, source, number)[:-1]]

    def _candidates(self) -> Iterator[tuple[Any, Any]]:
        yield from self.marked_edges
        for node in self.marked_nodes:
            yield from ((node, target) for target in self.edges[node])

    def _path(self, start: Any, end: Any, number: Mapping[Any, int]) -> list[Any]:
        """The nodes of a shortest path between two nodes of a component, both among them."""
        before: dict[Any, Any] = {start: None}
        queue = [start]
        for node in queue:
            if node == end:
                break
            for target in self.edges[node]:
                if target not in before and number[target] == number[start]:
                    before[target] = node
                    queue.append(target)
        path = [end]
        while before[path[-1]] is not None:
            path.append(before[path[-1]])
        return path[::-1]

    def _components(self) -> dict[Any, int]:
        """The strongly connected component of each node (Tarjan); those that lead to others have larger numbers."""
        order: dict[Any, int] = {}
        low: dict[Any, int] = {}
        found: dict[Any, int] = {}
        stack: list[Any] = []
        for root in self.edges:
            work = [(root, iter(self.edges[root]))] if root not in order else []
            for node, _ in work:
                order[node] = low[node] = len(order)
                stack.append(node)
            while work:
                node, targets = work[-1]
                for target in targets:
                    if target not in order:
                        order[target] = low[target] = len(order)
                        stack.append(target)
                        work.append((target, iter(self.edges[target])))
                        break
                    if target not in found:
                        low[node] = min(low[node], order[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == order[node]:
                        number = len(found)
                        while node not in found:
                            found[stack.pop()] = number
        return found
