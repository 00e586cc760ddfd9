"""Random traces for schedulers: graphs without cycles, costs, and a change."""

from __future__ import annotations

from hypothesis import strategies as st

from emberlog.schedule.graph import Graph
from emberlog.schedule.trace import Trace


@st.composite
def edge_sets(draw: st.DrawFn, most: int = 14) -> tuple[int, list[tuple[int, int]]]:
    """Nodes and edges without a cycle; the order of numbers says nothing about the order of nodes."""
    size = draw(st.integers(1, most))
    order = draw(st.permutations(range(size)))
    pairs = [(order[one], order[two]) for one in range(size) for two in range(one + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=3 * size, unique=True)) if pairs else []
    return size, chosen


@st.composite
def traces(draw: st.DrawFn, kind: str = "any") -> Trace:
    """A trace. `kind` is `unit` (tasks of length one), `parallel` (span one), `sequential` (span is work) or `any`."""
    size, edges = draw(edge_sets())
    tasks = draw(st.lists(st.booleans(), min_size=size, max_size=size)) if kind == "any" else [True] * size
    works, spans = [], []
    for is_task in tasks:
        work = 1 if kind == "unit" else draw(st.integers(1, 12))
        span = {"unit": 1, "parallel": 1, "sequential": work}.get(kind) or draw(st.integers(1, work))
        works.append(work if is_task else 0)
        spans.append(span if is_task else 0)
    initial = draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size))
    changes = draw(st.lists(st.sampled_from(edges), unique=True)) if edges else []
    return Trace.of(Graph.of(size, edges), tasks, works, spans, initial, changes)
