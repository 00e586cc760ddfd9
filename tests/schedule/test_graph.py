"""Levels and interval lists against networkx, for graphs as they are made and as rules change them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlog.diagnostics import DataError
from emberlog.schedule.graph import Graph
from emberlog.schedule.intervals import build
from strategies.graphs import edge_sets


def as_networkx(size: int, edges: list[tuple[int, int]]) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(edges)
    return graph


def assert_right(graph: Graph, size: int, edges: list[tuple[int, int]]) -> None:
    """Edges, levels, reachability and interval lists are as networkx has them."""
    truth = as_networkx(size, edges)
    levels = {node: level for level, nodes in enumerate(nx.topological_generations(truth)) for node in nodes}
    assert graph.levels.tolist() == [levels[node] for node in range(size)]
    assert graph.depth == len(set(levels.values()))
    assert {(int(tail), int(head)) for tail, head in graph.edges()} == set(edges)
    for node in range(size):
        above = nx.ancestors(truth, node)
        assert {other for other in range(size) if graph.intervals.is_ancestor(other, of=node)} == above
        assert set(graph.ancestors(np.array([node])).tolist()) == above | {node}
        assert set(graph.descendants(np.array([node])).tolist()) == nx.descendants(truth, node) | {node}


@given(edge_sets())
def test_levels_and_interval_lists(graph: tuple[int, list[tuple[int, int]]]) -> None:
    size, edges = graph
    assert_right(Graph.of(size, [*edges, *edges]), size, edges)


@given(st.data(), edge_sets(), st.integers(0, 3))
def test_levels_and_interval_lists_follow_rule_changes(
    data: st.DataObject, graph: tuple[int, list[tuple[int, int]]], nodes: int
) -> None:
    size, edges = graph
    first = Graph.of(size, edges)
    order = [*nx.topological_sort(as_networkx(size, edges)), *range(size, size + nodes)]
    for _ in range(2):
        possible = [(one, two) for place, one in enumerate(order) for two in order[place + 1 :]]
        more = data.draw(st.lists(st.sampled_from(possible), max_size=4, unique=True)) if possible else []
        without = data.draw(st.lists(st.sampled_from(edges), max_size=4, unique=True)) if edges else []
        _ = first.intervals  # so that there are lists to bring up to date
        second = first.extended(len(order) - first.size, more, without)
        edges = [*({*edges} - {*without} | {*more})]
        assert "intervals" in vars(second)
        assert_right(second, len(order), edges)
        first = second


def test_a_cycle_is_named() -> None:
    with pytest.raises(DataError, match=r"1 -> 2 -> 3 -> 1|2 -> 3 -> 1 -> 2|3 -> 1 -> 2 -> 3"):
        Graph.of(4, [(0, 1), (1, 2), (2, 3), (3, 1)])
    with pytest.raises(DataError, match="0 -> 0"):
        Graph.of(1, [(0, 0)])
    with pytest.raises(DataError, match="cycle"):
        Graph.of(3, [(0, 1), (1, 2)]).extended(edges=[(2, 0)])


def test_numbers_that_are_no_nodes() -> None:
    for edge in ((0, 3), (-1, 0)):
        with pytest.raises(DataError, match="no node of a graph of 3 nodes"):
            Graph.of(3, [edge])


@given(edge_sets(), st.integers(0, 80))
def test_interval_lists_stay_inside_a_limit(graph: tuple[int, list[tuple[int, int]]], limit: int) -> None:
    made = Graph.of(*graph)
    lists, whole = build(made, limit), build(made)
    assert whole is not None
    assert (lists is not None) == (whole.memory <= limit)


def test_a_tree_has_one_interval_a_node_at_most() -> None:
    """Agrawal et al.: in a tree (of edges towards the root) all that lies above a node is one interval."""
    size = 63
    graph = Graph.of(size, [(node, (node - 1) // 2) for node in range(1, size)])
    assert np.diff(graph.intervals.offsets).max() == 1


def test_the_empty_graph() -> None:
    graph = Graph.of(0, [])
    assert (graph.depth, graph.intervals.lows.size) == (0, 0)
