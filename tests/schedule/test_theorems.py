"""The paper's bounds on makespans, on random traces."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.schedule.examples import fig2
from emberlog.schedule.graph import Graph
from emberlog.schedule.interface import scheduler
from emberlog.schedule.meta import Meta
from emberlog.schedule.simulate import simulate
from emberlog.schedule.slopes import makespans, slope
from emberlog.schedule.trace import Trace
from strategies.graphs import traces

EVERY = ("level", "lookahead:2", "logicblox", "signal", "hybrid")
AMPLE = 10**9  # numbers: more than any of these traces needs


def work(trace: Trace) -> int:
    return int(trace.work[trace.active].sum())


def spans(trace: Trace) -> int:
    """The sum, over levels, of the longest span of an active task (Definition 6)."""
    longest = np.zeros(trace.graph.depth, np.int64)
    np.maximum.at(longest, trace.graph.levels[trace.active], trace.span[trace.active])
    return int(longest.sum())


def makespan(trace: Trace, spec: str, processors: int) -> int:
    return simulate(trace, scheduler(spec), processors).makespan


@given(traces("unit"), st.integers(1, 6))
def test_lemma_3_unit_tasks(trace: Trace, processors: int) -> None:
    assert makespan(trace, "level", processors) <= work(trace) / processors + trace.graph.depth


@given(traces("parallel"), st.integers(1, 6))
def test_lemma_5_fully_parallel_tasks(trace: Trace, processors: int) -> None:
    assert makespan(trace, "level", processors) <= work(trace) / processors + trace.graph.depth


@given(traces(), st.integers(1, 6))
def test_lemma_7_any_work_and_span(trace: Trace, processors: int) -> None:
    assert makespan(trace, "level", processors) <= work(trace) / processors + spans(trace)


@given(traces(), st.integers(1, 6))
def test_no_schedule_is_shorter_than_its_work_and_its_longest_path(trace: Trace, processors: int) -> None:
    """On one processor every scheduler does the work and nothing else; on many, no less than a chain of changes."""
    longest = dict.fromkeys(trace.active.tolist(), 0)
    for node in sorted(longest, key=lambda node: int(trace.graph.levels[node])):
        longest[node] += int(trace.span[node])
        for child in trace.changes[node].tolist():
            longest[child] = max(longest[child], longest[node])
    for spec in EVERY:
        assert makespan(trace, spec, 1) == work(trace)
        assert makespan(trace, spec, processors) >= max(work(trace) / processors, *longest.values(), 0)
        assert simulate(trace, scheduler(spec), processors).runs == trace.active.size


def test_theorem_9_the_bound_is_tight() -> None:
    """Fig. 2: LevelBased's makespan is the sum of the spans, Theta(ML), and others need Theta(M + L)."""
    for levels in (3, 5, 20):
        trace = fig2(levels)
        assert makespan(trace, "level", levels - 1) == spans(trace) == 1 + levels * (levels - 1) // 2
        assert makespan(trace, "hybrid", levels - 1) <= levels + 1
    found = makespans()
    assert slope(found["level"]) > 1.9
    assert slope(found["lookahead:8"]) > 1.9
    for name in ("lookahead:L", "logicblox", "signal", "hybrid", "meta"):
        assert slope(found[name]) < 1.1


@given(traces(), st.integers(2, 8))
def test_theorem_10_meta_is_the_better_side_on_half_of_the_processors(trace: Trace, processors: int) -> None:
    better = min(makespan(trace, side, processors // 2) for side in ("level", "logicblox"))
    assert simulate(trace, Meta(AMPLE), processors, cost=0).makespan == better


@settings(derandomize=True)  # it is proved for LevelBased; that of two greedy schedules is only what is seen
@given(traces("parallel"), st.integers(1, 4))
def test_theorem_10_twice_the_better_one_where_tasks_are_parallel(trace: Trace, half: int) -> None:
    """Each level of w units takes at most twice as long on half of the processors."""
    assert makespan(trace, "level", half) <= 2 * makespan(trace, "level", 2 * half)
    better = min(makespan(trace, side, 2 * half) for side in ("level", "logicblox"))
    assert simulate(trace, Meta(AMPLE), 2 * half, cost=0).makespan <= 2 * better


def test_twice_the_better_one_does_not_hold_for_all_tasks() -> None:
    """One level of tasks 6, 2, 2, 2, 4, 4, 4 without inner parallelism: 6 on four processors, 14 on two."""
    lengths = [6, 2, 2, 2, 4, 4, 4]
    trace = Trace.of(Graph.of(7, []), [True] * 7, lengths, lengths, range(7), [])
    counted = Counter((spec, processors, makespan(trace, spec, processors)) for spec in EVERY for processors in (4, 2))
    assert counted["level", 4, 6] == counted["logicblox", 4, 6] == 1
    assert makespan(trace, "level", 2) > 2 * 6 - 1


@given(traces(), st.integers(2, 8), st.integers(0, 200))
def test_theorem_10_memory_stays_inside_the_budget(trace: Trace, processors: int, budget: int) -> None:
    """O(zeta): half for the heuristic, which is stopped when it reaches it, and O(V) for LevelBased."""
    found = simulate(trace, Meta(budget), processors, cost=0)
    most = trace.graph.size + 2 * trace.active.size
    # The step that reaches the half may add the successors of one node, three numbers each.
    assert found.memory <= max(budget // 2 + 3 * trace.graph.size, 0) + most
    if not Meta(budget).admits(trace.graph):
        assert found.makespan == makespan(trace, "level", processors)


@given(traces(), st.integers(2, 8))
def test_corollary_11_without_a_budget_only_levels_are_added(trace: Trace, processors: int) -> None:
    found = simulate(trace, Meta(AMPLE), processors, cost=0)
    alone = simulate(trace, scheduler("logicblox"), processors // 2)
    assert found.memory <= alone.memory + trace.graph.size + 2 * trace.active.size
