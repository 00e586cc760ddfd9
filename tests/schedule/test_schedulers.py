"""Every scheduler hands out each active node once, and none before an active ancestor is done."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlog.diagnostics import InternalError, UsageError
from emberlog.schedule.finders import Queued
from emberlog.schedule.graph import Graph
from emberlog.schedule.interface import Scheduler, scheduler
from emberlog.schedule.level import Level
from emberlog.schedule.logicblox import LogicBlox
from emberlog.schedule.signals import Signals
from emberlog.schedule.trace import Trace
from strategies.graphs import traces

SPECS = ["level", "lookahead:0", "lookahead:2", "lookahead:50", "logicblox", "signal", "hybrid", "meta:20", "meta:100"]
SPECS += ["meta:100000"]


def drive(chosen: Scheduler, trace: Trace, processors: int, data: st.DataObject) -> list[int]:
    """Runs a change on so many processors, tasks ending in any order; returns nodes as they were handed out.

    Asserts, with networkx, that no node is handed out twice, inactive or below an active, unfinished one."""
    truth: nx.DiGraph[int] = nx.DiGraph()
    truth.add_nodes_from(range(trace.graph.size))
    truth.add_edges_from((int(tail), int(head)) for tail, head in trace.graph.edges())
    chosen.start(trace.graph, trace.initial.tolist())
    active, finished, running, order = set(trace.initial.tolist()), set[int](), list[int](), list[int]()
    while not chosen.done():
        while len(running) < processors and (node := chosen.ready()) is not None:
            assert node in active
            assert node not in order
            assert not nx.ancestors(truth, node) & (active - finished)
            order.append(node)
            running.append(node)
        assert running, "nothing is ready although nothing is running"
        node = running.pop(data.draw(st.integers(0, len(running) - 1)))
        changed = trace.changes[node].tolist()
        active.update(changed)
        finished.add(node)
        chosen.finish(node, changed)
    assert not running
    assert active == finished == set(order)
    assert chosen.ready() is None
    return order


@pytest.mark.parametrize("spec", SPECS)
@given(traces(), st.integers(1, 4), st.data())
def test_no_node_runs_twice_or_before_an_active_ancestor(
    spec: str, trace: Trace, processors: int, data: st.DataObject
) -> None:
    chosen = scheduler(spec)
    first = drive(chosen, trace, processors, data)
    assert set(drive(chosen, trace, processors, data)) == set(first) == set(trace.active.tolist())


@given(traces(), st.integers(1, 4), st.data())
def test_any_finders_work_over_one_queue(trace: Trace, processors: int, data: st.DataObject) -> None:
    drive(Queued(Signals(), Level()), trace, processors, data)
    drive(Queued(LogicBlox(), Signals(), Level()), trace, processors, data)


@given(traces(), st.integers(1, 4), st.data())
def test_theorem_2_level_takes_steps_by_active_nodes_and_levels(
    trace: Trace, processors: int, data: st.DataObject
) -> None:
    """O(n + L) steps, counted: each node is activated, handed out and finished; an empty queue is looked into at most
    twice for each; the levels. O(n) space beside one number a node. Nothing depends on the edges."""
    chosen = scheduler("level")
    n = len(drive(chosen, trace, processors, data))
    assert chosen.operations <= 5 * n + 2 + trace.graph.depth
    assert chosen.memory <= trace.graph.size + 2 * n


@given(traces(), st.data())
def test_lemma_1_active_nodes_of_the_lowest_level_are_ready(trace: Trace, data: st.DataObject) -> None:
    """At any time: of ready and running nodes the lowest level; every other active node there is ready as well."""
    ready = Queued(LogicBlox())  # knows ancestors, not levels
    ready.start(trace.graph, trace.initial.tolist())
    levels, active, finished, running = trace.graph.levels, set(trace.initial.tolist()), set[int](), list[int]()
    while not ready.done():
        while (node := ready.ready()) is not None:
            running.append(node)
        lowest = min(levels[node] for node in running)
        assert {node for node in active - finished if levels[node] == lowest} <= set(running)
        node = running.pop(data.draw(st.integers(0, len(running) - 1)))
        changed = trace.changes[node].tolist()
        active.update(changed)
        finished.add(node)
        ready.finish(node, changed)


@given(traces())
def test_signals_are_sent_along_every_edge(trace: Trace) -> None:
    chosen = scheduler("signal")
    chosen.start(trace.graph, trace.initial.tolist())
    while not chosen.done():
        node = chosen.ready()
        assert node is not None
        chosen.finish(node, trace.changes[node].tolist())
    assert chosen.operations <= 3 * trace.graph.size + trace.graph.successors.targets.size + 2 * trace.active.size
    if not trace.initial.size:
        chosen.ready()
        assert chosen.operations == 2 * trace.graph.size + trace.graph.successors.targets.size


def test_one_processor_never_needs_interval_queries() -> None:
    """Alone, LevelBased always has work, so Hybrid costs the two bookkeepings and no scan."""
    size = 400
    graph = Graph.of(2 * size, [(node, size + node) for node in range(size)])
    for spec, most in (("hybrid", 10 * size), ("level", 5 * size)):
        chosen = scheduler(spec)
        chosen.start(graph, range(size, 2 * size))
        while (node := chosen.ready()) is not None:
            chosen.finish(node, ())
        assert chosen.done()
        assert chosen.operations <= most


def test_compiled_and_interpreted_scans_agree() -> None:
    """The same change with few and with many comparisons: a wide graph is above the bound for compiled loops."""
    for size in (10, 300):
        edges = [(node, size + node) for node in range(size)] + [(size, size + node) for node in range(1, size)]
        graph = Graph.of(2 * size, edges)
        chosen = scheduler("logicblox")
        chosen.start(graph, range(size, 2 * size))
        assert chosen.ready() == size
        assert chosen.ready() is None
        chosen.finish(size, ())
        assert sorted(node for node in iter(chosen.ready, None)) == [*range(size + 1, 2 * size)]


def test_wrong_names_say_what_there_is() -> None:
    with pytest.raises(UsageError, match="there is no scheduler 'levle'") as wrong:
        scheduler("levle")
    assert wrong.value.fix == "did you mean `level`?"
    with pytest.raises(UsageError) as wrong:
        scheduler("zzz")
    assert wrong.value.fix == "there are level, lookahead:K, logicblox, signal, hybrid, meta:BUDGET"
    for spec in ("lookahead", "lookahead:", "lookahead:-1", "lookahead:x", "meta:1.5", "level:3", f"meta:{'9' * 30}"):
        with pytest.raises(UsageError):
            scheduler(spec)


def test_finishing_what_does_not_run_is_an_error() -> None:
    chosen = scheduler("hybrid")
    chosen.start(Graph.of(2, [(0, 1)]), [0])
    with pytest.raises(InternalError, match="node 1 is finished and was not running"):
        chosen.finish(1, ())
