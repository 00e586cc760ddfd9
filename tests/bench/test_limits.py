"""The hand-written loops against plain Python, networkx and SciPy, on small data of every shape."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest
from benchmarks.limits import andersen, apsp, cc, cc_undirected, common, delivery, pagerank, reach, sg, sssp, tc
from benchmarks.limits.bits import transpose
from benchmarks.limits.common import Columns, Inputs, Limit

from emberlog import generate

pytestmark = pytest.mark.apart

Rows = set[tuple[int, ...]]


def columns(rows: Sequence[tuple[int, ...]], arity: int = 2) -> Columns:
    return tuple(np.array([row[i] for row in rows], np.int64) for i in range(arity))


def random_edges(n: int, count: int, seed: int) -> list[tuple[int, int, int]]:
    """Edges in no order, self loops among them; each pair once."""
    rng = np.random.default_rng(seed)
    pairs = {(int(x), int(y)) for x, y in rng.integers(0, n, (count, 2))}
    edges = [(x, y, int(rng.integers(0, 100))) for x, y in pairs]
    return [edges[i] for i in rng.permutation(len(edges))]


GRAPHS: dict[str, list[tuple[int, int, int]]] = {
    "none": [],
    "loop": [(0, 0, 3)],
    "path": [(i + 1, i, i % 7) for i in range(70)],
    "cycle": [(i, (i + 1) % 65, 1) for i in range(65)],
    "sparse": random_edges(200, 150, 1),
    "middle": random_edges(150, 450, 2),
    "dense": random_edges(130, 4000, 3),
    "flat": [(x, y, 0) for x, y, _ in random_edges(60, 150, 4)],
    "grid": [
        (int(x), int(y), 1) for x, y in zip(*(c.to_numpy() for c in generate.grid(12)["arc"].columns), strict=True)
    ],
}
graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
SOME = {name: GRAPHS[name] for name in ("loop", "path", "middle", "dense")}
some_graphs = pytest.mark.parametrize("edges", SOME.values(), ids=SOME.keys())


def inputs_of(edges: list[tuple[int, int, int]]) -> Inputs:
    x, y, d = columns(edges, 3)
    return {"arc": (x, y), "warc": (x, y, d)}


def digraph(edges: list[tuple[int, int, int]]) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_weighted_edges_from(edges)
    return graph


def rows_of(limit: Limit) -> Rows:
    found = limit.answer()
    rows = [tuple(row) for row in zip(*(column.tolist() for column in found), strict=True)]
    assert len(rows) == len(set(rows)) == limit.facts
    return set(rows)


def closure(edges: list[tuple[int, int, int]]) -> Rows:
    graph = digraph(edges)
    return {(x, y) for x in graph for z in graph[x] for y in nx.descendants(graph, z) | {z}}


@graphs
@pytest.mark.parametrize("evaluate", [tc.evaluate, tc.evaluate_kept, tc.evaluate_rows])
def test_closure(edges: list[tuple[int, int, int]], evaluate: object) -> None:
    assert callable(evaluate)
    limit = evaluate(inputs_of(edges))
    expected = closure(edges)
    assert rows_of(limit) == expected
    if limit.derivations is not None:
        degree = dict(digraph(edges).out_degree())
        assert limit.derivations == len(edges) + sum(degree[z] for _, z in expected)


@some_graphs
@pytest.mark.parametrize(("turn", "share"), [(False, 1), (True, 64), (False, 10**9)])
def test_same_generation(
    edges: list[tuple[int, int, int]], turn: bool, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sg, "DENSE", share)  # hash tables only, the usual change, bits almost from the start
    graph = digraph(edges)
    known: Rows = {(x, y) for p in graph for x in graph[p] for y in graph[p] if x != y}
    delta: Rows = known
    while delta:
        made: Rows = {(x, y) for a, b in delta for x in graph[a] for y in graph[b]}
        delta = made - known
        known |= delta
    assert rows_of(sg.evaluate(inputs_of(edges), turn)) == known


@graphs
def test_reach(edges: list[tuple[int, int, int]]) -> None:
    graph = digraph(edges)
    expected = {(y,) for y in nx.descendants(graph, 0)} | {(0,)} if 0 in graph else {(0,)}
    assert rows_of(reach.evaluate(inputs_of(edges))) == expected


def smallest_labels(edges: list[tuple[int, int, int]]) -> Rows:
    graph = digraph(edges)
    labels: dict[int, int] = {}
    for v in sorted(x for x in graph if graph[x]):
        for y in nx.descendants(graph, v) | {v}:
            labels.setdefault(y, v)
    return set(labels.items())


@graphs
def test_directed_components(edges: list[tuple[int, int, int]]) -> None:
    assert rows_of(cc.evaluate(inputs_of(edges))) == smallest_labels(edges)


@graphs
@pytest.mark.parametrize("evaluate", [cc_undirected.evaluate, cc_undirected.evaluate_union])
def test_undirected_components(edges: list[tuple[int, int, int]], evaluate: object) -> None:
    assert callable(evaluate)
    groups = nx.connected_components(digraph(edges).to_undirected())
    assert rows_of(evaluate(inputs_of(edges))) == {(x, min(group)) for group in groups for x in group}


@graphs
def test_shortest_paths(edges: list[tuple[int, int, int]]) -> None:
    graph = digraph(edges)
    graph.add_node(0)
    expected = set(nx.single_source_dijkstra_path_length(graph, 0).items())
    assert rows_of(sssp.evaluate(inputs_of(edges))) == expected


@graphs
@pytest.mark.parametrize("evaluate", [apsp.evaluate, apsp.evaluate_nonlinear])
def test_all_pairs(edges: list[tuple[int, int, int]], evaluate: object) -> None:
    assert callable(evaluate)
    graph = digraph(edges)
    length = dict(nx.all_pairs_dijkstra_path_length(graph))
    expected: dict[tuple[int, int], int] = {}
    for x in graph:
        for z, edge in graph[x].items():
            for y, rest in length[z].items():
                expected[x, y] = min(expected.get((x, y), 10**9), int(edge["weight"]) + int(rest))
    assert rows_of(evaluate(inputs_of(edges))) == {(x, y, d) for (x, y), d in expected.items()}


@graphs
@pytest.mark.parametrize("evaluate", [pagerank.evaluate, pagerank.evaluate_in_place])
def test_pagerank(edges: list[tuple[int, int, int]], evaluate: object) -> None:
    assert callable(evaluate)
    n = max((max(x, y) for x, y, _ in edges), default=0) + 1
    limit = evaluate({**inputs_of(edges), "node": (np.arange(n),)})
    matrix = np.zeros((n, n))
    for x, y, _ in edges:
        matrix[y, x] = 0.85 / sum(1 for edge in edges if edge[0] == x)
    exact = np.linalg.solve(np.eye(n) - matrix, np.full(n, 0.15 / n))
    assert np.abs(limit.answer()[1] - exact).sum() < 1e-4 * 0.85 / 0.15


@pytest.mark.parametrize("n", [1, 2, 60, 3000])
def test_delivery(n: int) -> None:
    tables = generate.bom(n)
    rng = np.random.default_rng(0)
    named = rng.permutation(n)  # ids that follow no order
    part, sub = (named[column.to_numpy()] for column in tables["assbl"].columns)
    leaf, days = (column.to_numpy() for column in tables["basic"].columns)
    expected = dict(zip(named[leaf].tolist(), days.tolist(), strict=True))
    for p, s in zip(part[::-1].tolist(), sub[::-1].tolist(), strict=True):  # the last parts are the deepest
        expected[p] = max(expected.get(p, 0), expected[s])
    limit = delivery.evaluate({"assbl": (part, sub), "basic": (named[leaf], days)})
    assert rows_of(limit) == set(expected.items())


def points_to(facts: dict[str, Rows]) -> Rows:
    known: Rows = set(facts["address"])
    while True:
        by: dict[int, set[int]] = {}
        for v, o in known:
            by.setdefault(v, set()).add(o)
        new = {(v, o) for v, w in facts["assign"] for o in by.get(w, ())}
        new |= {(v, o) for v, p in facts["load"] for q in by.get(p, ()) for o in by.get(q, ())}
        new |= {(q, o) for p, w in facts["store"] for q in by.get(p, ()) for o in by.get(w, ())}
        if new <= known:
            return known
        known |= new


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "count"), [(3, 4), (40, 12), (300, 60)])
def test_points_to(n: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    facts: dict[str, Rows] = {
        name: {(int(a), int(b)) for a, b in rng.integers(0, n, (size, 2))}
        for name, size in (("address", count), ("assign", count), ("load", count // 2), ("store", count // 2))
    }
    limit = andersen.evaluate({name: columns(sorted(rows)) for name, rows in facts.items()})
    assert rows_of(limit) == points_to(facts)


def test_points_to_of_a_generated_program() -> None:
    tables = generate.heap(200)
    inputs = {name: tuple(column.to_numpy() for column in table.columns) for name, table in tables.items()}
    facts = {name: set(zip(*(c.tolist() for c in inputs[name]), strict=True)) for name in inputs}
    assert rows_of(andersen.evaluate(inputs)) == points_to(facts)


@pytest.mark.parametrize("n", [1, 5, 255, 256, 1000, 70_000])
@pytest.mark.parametrize("ordered", [False, True])
def test_index(n: int, ordered: bool) -> None:
    rng = np.random.default_rng(n)
    keys, values = rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)
    if ordered:
        keys = np.sort(keys)
    weights = rng.integers(0, 100, 3 * n)
    by = np.argsort(keys, kind="stable")
    offsets, targets = common.csr(keys, values, n)
    assert offsets.tolist() == np.searchsorted(keys[by], np.arange(n + 1)).tolist()
    assert targets.tolist() == values[by].tolist()
    offsets, pairs = common.weighted_csr(keys, values, weights, n)
    assert pairs.reshape(-1, 2).tolist() == np.column_stack([values[by], weights[by]]).tolist()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_transposition(n: int) -> None:
    matrix = np.random.default_rng(n).random((n, n)) < 0.3
    width = (n + 63) // 64 * 64

    def packed(bits: np.ndarray) -> np.ndarray:
        padded = np.ascontiguousarray(np.pad(bits, ((0, 0), (0, width - n))))
        return np.packbits(padded, axis=1, bitorder="little").copy("C").view(np.uint64)

    turned = np.empty_like(packed(matrix))
    transpose(packed(matrix), turned)
    assert (turned == packed(matrix.T)).all()
