"""Compiled loops maintain recursion over columns as `recursion` does over tuples.

A shape of loops takes seconds to compile: here few programs are; `test_without_compiler` runs all of them as Python.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import emberlog
from emberlog.kernels import cache
from maintain.graphs import GRAPHS, Graph, Row, by_networkx, evaluate

COMPILED = ("sssp", "cc", "texts")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is small, loops maintain it."""
    monkeypatch.setattr(cache, "INTERPRETS", False)


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        yield engine


def open_view(engine: emberlog.Engine, graph: Graph, edges: set[Row]) -> emberlog.View:
    engine.register("e", sorted(edges))
    view = engine.maintain(graph.program)
    assert "in columns" in view.explain()
    return view


def draw_change(graph: Graph, edges: set[Row], rnd: random.Random) -> tuple[list[Row], list[Row]]:
    """Rows that go and rows that come, some of them for nothing."""
    there = sorted(edges)
    gone = [rnd.choice(there) for _ in range(rnd.choice((0, 1, 1, 2, 4)))] if there else []
    return gone, [graph.draw(rnd) for _ in range(rnd.choice((0, 1, 1, 3)))]


def follow(engine: emberlog.Engine, name: str, seed: int, changes: int) -> None:
    """Random changes: after each of them the view is what a run gives, and the differences are exact."""
    graph, rnd = GRAPHS[name], random.Random(seed)
    edges = {graph.draw(rnd) for _ in range(rnd.randrange(1, 30))}
    view = open_view(engine, graph, edges)
    known = set(view[graph.asked].rows())
    assert known == evaluate(graph, edges), (name, seed)
    for step in range(changes):
        gone, come = draw_change(graph, edges, rnd)
        expected = view.what_if(delete={"e": gone}, insert={"e": come}) if step % 3 == 0 else None
        change = view.apply(delete={"e": gone}, insert={"e": come})
        edges = (edges - set(gone)) | set(come)
        found, right = set(view[graph.asked].rows()), by_networkx(name, edges)
        assert found == (evaluate(graph, edges) if right is None else right), (name, seed, step)
        difference = change[graph.asked]
        assert difference.inserted == found - known and difference.deleted == known - found, (name, seed, step)
        if expected is not None:
            assert expected[graph.asked].inserted == difference.inserted
        known = found


@pytest.mark.apart
@pytest.mark.parametrize("name", GRAPHS)
def test_views_in_columns_follow_every_change(engine: emberlog.Engine, name: str) -> None:
    if cache.COMPILES and name not in COMPILED:
        pytest.skip("runs without a compiler")
    for seed in range(2):
        follow(engine, name, seed, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_thousands_of_sequences_in_columns(name: str) -> None:
    for seed in range(100, 100 + 5000 // len(GRAPHS)):
        with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
            follow(engine, name, seed, 6)


@pytest.mark.apart
@pytest.mark.parametrize("name", ["sssp", "cc", "texts"])
def test_a_sequence_is_its_changes_one_after_another(engine: emberlog.Engine, name: str) -> None:
    graph, rnd = GRAPHS[name], random.Random(5)
    edges = {graph.draw(rnd) for _ in range(20)}
    view = open_view(engine, graph, edges)
    changes = []
    for _ in range(60):
        gone, come = draw_change(graph, edges, rnd)
        changes.append({"delete": {"e": gone}, "insert": {"e": come}})
        edges = (edges - set(gone)) | set(come)
    assert view.apply_each(changes) == []
    assert set(view[graph.asked].rows()) == evaluate(graph, edges)
    assert set(view["e"].rows()) == edges
    told = view.apply_each([{"delete": {"e": sorted(edges)}}], differences=True)
    assert told[0]["e"].deleted == edges


@pytest.mark.apart
def test_a_change_of_a_sequence_that_fails_is_not_applied_nor_those_after_it(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["sssp"], {(0, 1, 1)})
    with pytest.raises(emberlog.DataError):
        view.apply_each(
            [{"insert": {"e": [(1, 2, 1)]}}, {"insert": {"e": [(1, "x", 1)]}}, {"insert": {"e": [(2, 3, 1)]}}]
        )
    assert set(view["d"].rows()) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.apart
def test_a_sum_that_leaves_64_bits_fails_and_changes_nothing(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["sssp"], {(0, 1, 2**62)})
    for change in (view.apply, lambda **given: view.apply_each([given])):
        with pytest.raises(emberlog.EmberlogError):
            change(insert={"e": [(1, 2, 2**62), (2, 3, 2**62)]})
        assert set(view["d"].rows()) == {(0, 0), (1, 2**62)} and len(view["e"]) == 1
    assert view.apply(insert={"e": [(1, 2, 3)]})["d"].inserted == {(2, 2**62 + 3)}


@pytest.mark.apart
def test_values_that_improve_along_a_cycle_are_an_error_as_in_a_run(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["sssp"], {(0, 1, 1), (1, 2, 1)})
    with pytest.raises(emberlog.EmberlogError):
        view.apply(insert={"e": [(2, 1, -5)]})
    assert set(view["d"].rows()) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.apart
def test_a_nan_ends_the_columns_and_nothing_else(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["floats"], {(0, 1, 0.5)})
    with pytest.raises(emberlog.DataError):
        view.apply(insert={"e": [(0, 1, float("nan"))]}, delete={"e": [("x", 1, 1.0)]})
    change = view.apply(insert={"e": [(1, 2, float("nan")), (1, 3, 0.25)]})
    assert (3, 0.75) in change["d"].inserted and len(view["e"]) == 3
    view.apply(delete={"e": [(1, 2, float("nan"))]})
    assert set(view["d"].rows()) == {(0, 0.0), (1, 0.5), (3, 0.75)}


@pytest.mark.apart
def test_limits_hold_for_views_in_columns(engine: emberlog.Engine) -> None:
    engine.register("e", [(0, 1, 1)])
    view = engine.maintain(GRAPHS["sssp"].program, limits={"rows": 3})
    for change in (view.apply, lambda **given: view.apply_each([given])):
        with pytest.raises(emberlog.LimitError):
            change(insert={"e": [(1, 2, 1), (2, 3, 1)]})
        assert len(view["d"]) == 2 and len(view["e"]) == 1


@pytest.mark.apart
def test_duplicates_of_a_source_are_one_row(engine: emberlog.Engine) -> None:
    engine.register("e", pa.table({"x": [0, 0, 1], "y": [1, 1, 2], "w": [1, 1, 1]}))
    view = engine.maintain(GRAPHS["sssp"].program)
    assert len(view["e"]) == 2
    assert view.apply(delete={"e": [(0, 1, 1)]})["d"].deleted == {(1, 1), (2, 2)}


@pytest.mark.apart
def test_goals_and_heads_read_columns(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["sssp"], {(0, 3, 1), (3, 1, 5), (1, 2, 0)})
    before = view["d"]
    assert view.query("d(X, 6)").rows() == [(1, 6), (2, 6)] and before.head(2) == [(0, 0), (1, 6)]
    view.apply(delete={"e": [(0, 3, 1)]})
    assert len(before.rows()) == 4 and view["d"].rows() == [(0, 0)]


@pytest.mark.apart
def test_rules_change_over_columns(engine: emberlog.Engine) -> None:
    view = open_view(engine, GRAPHS["sssp"], {(0, 1, 1), (5, 6, 1)})
    change = view.add_rule("d(Y, min(D)) <- Y = 5, D = 7.")
    assert change["d"].inserted == {(5, 7), (6, 8)} and not change["d"].deleted
    assert view.apply(insert={"e": [(1, 6, 1)]})["d"].inserted == {(6, 2)}
    assert view.remove_rule("d(Y, min(D)) <- Y = 5, D = 7.")["d"].deleted == {(5, 7)}
    assert set(view["d"].rows()) == {(0, 0), (1, 1), (6, 2)}


@pytest.mark.apart
def test_without_compiler() -> None:
    """All of the above, and all other tests of changes, by the same loops as plain Python."""
    if not cache.COMPILES:
        pytest.skip("this is the process without a compiler")
    files = [str(Path(__file__).parent / name) for name in ("test_columns.py", "test_views.py", "test_changes.py")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *files],
        env={**os.environ, "EMBERLOG_JIT": "off"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]
