"""Known programs on generated graphs, large enough for every form of rows, against other ways to the same answer."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from emberlog.components.compositions import Composition, RowRelation, RowsProgram, Side, StaticRelation, Storage
from emberlog.generate import dag, gnp, grid, heap, rmat, tree
from emberlog.generate.draw import Tables
from emberlog.kernels import crew
from emberlog.kernels.rows.evaluate import RowsRun
from emberlog.kernels.rows.relations import OverBudget
from emberlog.kernels.rows.values import OutOfRange

pytestmark = pytest.mark.apart

SG = RowsProgram(
    (RowRelation("sg", "n", "n"), RowRelation("half", "n", "n")),
    (StaticRelation("arc", "n", "n"),),
    (
        Composition("half", Side("sg"), Side("arc")),
        Composition("sg", Side("arc", True), Side("half")),
    ),
)
TC = RowsProgram((RowRelation("tc", "n", "n"),), (), (Composition("tc", Side("tc"), Side("tc")),))
LINEAR = RowsProgram(
    (RowRelation("tc", "n", "n"),),
    (StaticRelation("arc", "n", "n"),),
    (Composition("tc", Side("tc"), Side("arc")),),
)
APSP = RowsProgram(
    (RowRelation("path", "n", "n", "min"),), (), (Composition("path", Side("path"), Side("path"), value="+"),)
)
ANDERSEN = RowsProgram(
    (RowRelation("pt", "v", "v"), RowRelation("loaded", "v", "v"), RowRelation("stored", "v", "v")),
    (StaticRelation("assign", "v", "v"), StaticRelation("load", "v", "v"), StaticRelation("store", "v", "v")),
    (
        Composition("pt", Side("assign"), Side("pt")),
        Composition("loaded", Side("load"), Side("pt")),
        Composition("pt", Side("loaded"), Side("pt")),
        Composition("stored", Side("pt", True), Side("store")),
        Composition("pt", Side("stored"), Side("pt")),
    ),
)


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even small work is shared between workers."""
    monkeypatch.setattr(crew, "SHARED", 64)


def columns(tables: Tables, name: str) -> tuple[np.ndarray, ...]:
    return tuple(column.to_numpy() for column in tables[name].columns)


def siblings(xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exit rule of SG: two different children of one parent."""
    children: dict[int, list[int]] = {}
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        children.setdefault(x, []).append(y)
    pairs = [(a, b) for own in children.values() for a in own for b in own if a != b]
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def matrix(run: RowsRun, name: str, first: int, second: int) -> np.ndarray:
    """All facts as a matrix; every pair comes once."""
    while run.step():
        pass
    found = np.zeros((first, second), np.int64)
    for xs, ys, *_ in run.chunks(name, 1000):
        np.add.at(found, (xs, ys), 1)
    assert found.max(initial=0) <= 1
    assert found.sum() == run.facts(name)
    run.close()
    return found.astype(bool)


def same_generation(xs: np.ndarray, ys: np.ndarray, nodes: int) -> np.ndarray:
    """SG by products of matrices."""
    arc = np.zeros((nodes, nodes), np.float32)
    arc[xs, ys] = 1
    found = np.zeros((nodes, nodes), bool)
    found[siblings(xs, ys)] = True
    while True:
        more = found | (arc.T @ found.astype(np.float32) @ arc > 0)
        if (more == found).all():
            return found
        found = more


GRAPHS: dict[str, Any] = {
    "grid": (lambda: grid(12), 169),
    "gnp": (lambda: gnp(300, 0.012), 300),
    "thin": (lambda: gnp(700, 0.002), 700),
    "rmat": (lambda: rmat(200), 200),
    "dag": (lambda: dag(300), 300),
    "tree": (lambda: tree(5), 1),
}


ways = pytest.mark.parametrize(("storage", "workers"), [("auto", 3), ("bits", 1), ("sparse", 3)])


@ways
@pytest.mark.parametrize("kind", GRAPHS)
def test_same_generation(kind: str, storage: Storage, workers: int) -> None:
    make, nodes = GRAPHS[kind]
    xs, ys = columns(make(), "arc")
    nodes = max(nodes, int(max(xs.max(), ys.max())) + 1)
    run = RowsRun(SG, {"n": nodes}, {"arc": (xs, ys)}, {"sg": siblings(xs, ys)}, workers=workers, storage=storage)
    assert (matrix(run, "sg", nodes, nodes) == same_generation(xs, ys, nodes)).all()


@ways
@pytest.mark.parametrize("kind", GRAPHS)
def test_transitive_closure(kind: str, storage: Storage, workers: int) -> None:
    make, nodes = GRAPHS[kind]
    xs, ys = columns(make(), "arc")
    nodes = max(nodes, int(max(xs.max(), ys.max())) + 1)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(zip(xs.tolist(), ys.tolist(), strict=True))
    wanted = nx.to_numpy_array(nx.transitive_closure(graph, reflexive=False), nodelist=range(nodes)) > 0
    for program, statics in ((TC, {}), (LINEAR, {"arc": (xs, ys)})):
        run = RowsRun(program, {"n": nodes}, statics, {"tc": (xs, ys)}, workers=workers, storage=storage)
        assert (matrix(run, "tc", nodes, nodes) == wanted).all()


@pytest.mark.parametrize(("storage", "workers"), [("auto", 3), ("sparse", 1)])
@pytest.mark.parametrize("kind", ["grid", "rmat", "dag"])
def test_shortest_paths(kind: str, storage: Storage, workers: int) -> None:
    tables, nodes = {"grid": (grid(9), 100), "rmat": (rmat(90), 90), "dag": (dag(150), 150)}[kind]
    xs, ys, ds = columns(tables, "warc")
    run = RowsRun(APSP, {"n": nodes}, {}, {"path": (xs, ys, ds)}, workers=workers, storage=storage)
    while run.step():
        pass
    found = {(x, y): d for part in run.chunks("path") for x, y, d in zip(*(c.tolist() for c in part), strict=True)}
    run.close()
    dist = np.full((nodes, nodes), np.inf)
    np.minimum.at(dist, (xs, ys), ds)
    for z in range(nodes):
        dist = np.minimum(dist, dist[:, z : z + 1] + dist[z])
    wanted = {(int(x), int(y)): int(dist[x, y]) for x, y in zip(*np.nonzero(np.isfinite(dist)), strict=True)}
    assert found == wanted


@pytest.mark.parametrize(("storage", "workers"), [("auto", 4), ("sparse", 1)])
def test_points_to(storage: Storage, workers: int) -> None:
    nodes = 700
    tables = heap(nodes)
    pairs = {name: set(zip(*(c.tolist() for c in columns(tables, name)), strict=True)) for name in tables}
    points = set(pairs["address"])
    while True:
        of: dict[int, set[int]] = {}
        for v, o in points:
            of.setdefault(v, set()).add(o)
        more = set(points)
        more |= {(v, o) for v, w in pairs["assign"] for o in of.get(w, ())}
        more |= {(v, o) for v, p in pairs["load"] for q in of.get(p, ()) for o in of.get(q, ())}
        more |= {(q, o) for p, w in pairs["store"] for q in of.get(p, ()) for o in of.get(w, ())}
        if more == points:
            break
        points = more
    statics = {name: columns(tables, name) for name in ("assign", "load", "store")}
    exits = {"pt": columns(tables, "address")}
    run = RowsRun(ANDERSEN, {"v": nodes}, statics, exits, workers=workers, storage=storage)
    found = matrix(run, "pt", nodes, nodes)
    assert set(zip(*(c.tolist() for c in np.nonzero(found)), strict=True)) == points


def test_sparse_rows_over_a_large_domain_stay_small() -> None:
    nodes = 1_000_000
    xs = np.arange(nodes - 1, dtype=np.int64)[::1000]
    run = RowsRun(TC, {"n": nodes}, {}, {"tc": (xs, xs + 1)})
    while run.step():
        pass
    assert run.facts("tc") == len(xs)
    assert run.bytes < 200_000_000  # a bit for each pair would take 125 gigabytes


def test_over_budget() -> None:
    xs, ys = columns(gnp(400, 0.02), "arc")
    with pytest.raises(OverBudget, match=r"^the rows need [\d.]+ kB, and 50.0 kB may be used$"):
        run = RowsRun(TC, {"n": 400}, {}, {"tc": (xs, ys)}, budget=50_000)
        while run.step():
            pass


@pytest.mark.parametrize("storage", ["auto", "sparse"])
@pytest.mark.parametrize("operator", ["+", "*"])
def test_whole_numbers_do_not_wrap(storage: Storage, operator: Any) -> None:
    program = RowsProgram(
        (RowRelation("p", "n", "n", "min"),), (), (Composition("p", Side("p"), Side("p"), value=operator),)
    )
    ids, values = np.array([0, 1, 2]), np.array([1 << 59, 1 << 59, 1 << 59])
    with pytest.raises(OutOfRange):
        run = RowsRun(program, {"n": 4}, {}, {"p": (ids, ids + 1, values)}, storage=storage)
        while run.step():
            pass


@pytest.mark.parametrize("storage", ["auto", "sparse"])
def test_a_way_back_that_pays_has_no_end(storage: Storage) -> None:
    exits = {"path": (np.array([0, 1]), np.array([1, 0]), np.array([-1, 0]))}
    run = RowsRun(APSP, {"n": 2}, {}, exits, storage=storage)
    with pytest.raises(OutOfRange):
        while True:
            assert run.step()
