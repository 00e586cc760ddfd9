"""`min<(D, X)>`: the least value and the least witness that reaches it, in recursion and outside."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place
from naive import evaluate

PROGRAM = """
.decl arc(x: number, y: number, w: number)
.decl name(x: number, n: symbol)
sp(Y, min<(D, X)>) <- Y = 1, D = 0, X = 1.
sp(Y, min<(D, X)>) <- sp(X, C, _), arc(X, Y, W), D = C + W.
first(Y, D, Y) <- arc(1, Y, D).
first(Y, mmin((C + W, F))) <- first(X, C, F), arc(X, Y, W).
wide(S, Y, min<(W, N)>) <- arc(S, Y, W), name(S, N); arc(S, _, W), name(Y, N), W > 3.
deep(1, 0, "root"). deep(2, 0, "leaf").
deep(Y, max<(D, N)>) <- deep(X, C, _), arc(X, Y, _), X < Y, name(X, N), D = C + 1.
near(X, arg_min<(W, Y)>) <- arc(X, Y, W).
far(arg_max<(W, N)>, X) <- arc(X, Y, W), name(Y, N).
two(X, top(2, (W, Y)), N) <- arc(X, Y, W), name(X, N).
two(X, W, Y, "all") <- arc(X, Y, W).
best(top(3, (W * 0.5, N))) <- arc(_, Y, W), name(Y, N).
path(Y, 0, Y) <- sp(Y, _, _).
path(Y, N + 1, P) <- path(Y, N, X), X != 1, sp(X, _, P), N < 20.
alone(X) <- name(X, _), !sp(X, _, _).
ends(Y, C) <- name(Y, _), C = count : { sp(_, _, Y) }.
reached(count(_)) <- sp(_, _, _).
"""
RELATIONS = ["sp", "first", "wide", "deep", "near", "far", "two", "best", "path", "alone", "ends", "reached"]
ARCS = [(1, 2, 7), (1, 3, 2), (3, 2, 3), (3, 2, 5), (2, 4, 1), (3, 4, 4), (4, 1, 1), (1, 5, 6), (4, 5, 0), (6, 6, 2)]
NAMES = [(1, "a"), (2, "b"), (3, "B"), (4, "é"), (5, ""), (6, "a"), (7, "z")]


def assert_same(found: emberlog.Result, sources: dict[str, list[tuple[Any, ...]]]) -> None:
    right = evaluate(parse(Source("witnesses.dl", PROGRAM)), sources)
    for name in RELATIONS:
        assert set(found[name].rows()) == right[name], name


def test_rows_are_those_of_the_reference(place: Place) -> None:
    sources: dict[str, list[tuple[Any, ...]]] = {"arc": ARCS, "name": NAMES}
    found = place.run(PROGRAM, sources)
    assert_same(found, sources)
    assert sorted(found) == sorted(RELATIONS)
    assert [column.name for column in found["near"].schema] == ["X", "Y"]
    assert [column.name for column in found["two"].schema] == ["X", "W", "Y", "N"]


arc_rows = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(0, 5)), max_size=14)
name_rows = st.lists(st.tuples(st.integers(1, 7), st.sampled_from(["a", "B", "é", ""])), max_size=8)
evaluators = st.sampled_from(["sql", "auto"])


@settings(max_examples=5, deadline=None)
@given(arc_rows, name_rows, evaluators)
def test_some_random_graphs_give_what_the_reference_gives(arcs: Any, names: Any, evaluator: str) -> None:
    assert_local_agrees(arcs, names, evaluator)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(arc_rows, name_rows, evaluators)
def test_many_random_graphs_give_what_the_reference_gives(arcs: Any, names: Any, evaluator: str) -> None:
    assert_local_agrees(arcs, names, evaluator)


def assert_local_agrees(arcs: Any, names: Any, evaluator: str) -> None:
    sources = {"arc": arcs, "name": names}
    with emberlog.Engine(executor="local", workers=1) as engine:
        for name, rows in sources.items():
            engine.register(name, rows)
        assert_same(engine.run(PROGRAM, evaluator=evaluator), sources)


@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_predecessors_make_shortest_paths(evaluator: str, local: Place) -> None:
    graph = nx.gnp_random_graph(60, 0.08, seed=3, directed=True)
    arcs = [(x, y, 1.0 + (7 * x + 3 * y) % 11 / 8) for x, y in graph.edges]
    rules = """
    sp(Y, min<(D, X)>) <- Y = 0, D = 0.0, X = 0.
    sp(Y, min<(D, X)>) <- sp(X, C, _), arc(X, Y, W), D = C + W.
    on_path(Y, Y) <- sp(Y, _, _).
    on_path(Y, P) <- on_path(Y, X), sp(X, _, P).
    """
    result = local.engine({"arc": arcs}).run(rules, evaluator=evaluator)
    graph.add_weighted_edges_from(arcs)
    lengths = nx.single_source_dijkstra_path_length(graph, 0)
    sp = {y: (d, x) for y, d, x in result["sp"].rows()}
    assert {y: d for y, (d, _) in sp.items()} == pytest.approx(lengths)
    for y, (d, x) in sp.items():
        assert y == 0 or lengths[x] + graph[x][y]["weight"] == pytest.approx(d)
    assert {y for y, x in result["on_path"].rows() if x == 0} == set(lengths)


def test_what_is_proved_is_proved_of_the_values(local: Place) -> None:
    rules = "p(Y, min<(D, X)>) <- s(Y, D, X). p(Y, min<(D, X)>) <- p(X, C, _), a(X, Y, W), D = C + W."
    (verdict,) = local.engine({}).check(
        ".decl s(y: number, d: number, x: number)\n.decl a(x: number, y: number, w: number)\n" + rules
    )
    assert verdict.status == "proved"
    result = local.run(
        "p(X, min<(V, Y)>) <- s(X, V, Y).", {"s": [(1, float("nan"), 2), (1, 2.0, 3), (2, float("nan"), 1)]}
    )
    assert result["p"].rows() == [(1, 2.0, 3)]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("p(Y, min<(D, X)>) <- s(Y, D, X). p(Y, min<(D, F)>) <- p(X, D, F), s(X, Y, F).", "about its value"),
        ("p(Y, min<(D, X)>, sum<D>) <- s(Y, D, X).", "stands alone in its head"),
        ("p(Y, min<(D, X)>) <- s(Y, D, X). p(Y, max<(D, X)>) <- s(Y, D, X).", "different aggregates"),
        ("p(Y, min<(D, X)>) <- s(Y, D, X). p(Y, min<D>) <- s(Y, D, X).", "different aggregates"),
        ("p(Y, min<(D, X)>) <- s(Y, D, X). p(min<(D, X)>, Y) <- s(Y, D, X).", "in two columns"),
        ("p(Y, min<(D, X)>) <- s(Y, D, X). p(Y, D) <- s(Y, D, _).", "`p` has 3 columns, not 2"),
        ("s(Y, min<(D, X)>) <- t(Y, D, X).", "has rows of a source"),
        (".decl p(y: number, d: float32, x: number)\np(Y, min<(D, X)>) <- f(Y, D, X).", "a rounded value"),
        ("p(i+1, Y, min<(D, X)>) <- p(i, X, D, _), s(X, Y, _). p(0, Y, D, X) <- s(Y, D, X).", "iteration has no"),
        ("p(X, top(2, Y)) <- s(X, Y, _).", "takes a value and what goes with it"),
        ("p(X, top(0, (Y, Z))) <- s(X, Y, Z).", "a whole number above 0"),
        ("p(X, top(2, (Y, Z)), count(_)) <- s(X, Y, Z).", "stands alone in its head"),
        ("p(X, top(2, (Y, Z))) <- s(X, Y, Z). p(X, top(2, (Y, Z))) <- p(X, Y, Z), s(X, Y, Z).", "through recursion"),
        ("p(X, arg_min<(W, Y)>) <- s(X, Y, W). p(X, arg_min<(W, Y)>) <- p(X, Z), s(Z, Y, W).", "p/arg_min"),
    ],
)  # fmt: skip
def test_a_witness_that_has_no_meaning_is_an_error(rules: str, why: str, local: Place) -> None:
    sources = {"s": [(1, 2, 3)], "t": [(1, 2, 3)], "f": [(1, 0.1, 3)]}
    with pytest.raises(emberlog.ProgramError, match=why):
        local.run(rules, sources)


TOPS = """
v("a", 5, 1). v("a", 4, 1). v("b", 3, 1).
first(G, top(2, (V, X))) <- v(X, V, G).
best(X, topk(2, V)) <- v(X, V, _).
"""


def test_a_sum_over_the_rows_that_top_keeps() -> None:
    """`top` and `topk` may keep rows that differ in the value alone."""
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        result = engine.run(TOPS + "s(G, X, sum(V)) <- first(G, V, X). t(X, sum(V)) <- best(X, V).")
        assert result["s"].rows() == [(1, "a", 9)]
        assert result["t"].rows() == [("a", 9)]


def test_a_goal_about_what_goes_with_a_top_value() -> None:
    """It selects from the rows that are kept, and does not restrict what is looked at."""
    with emberlog.Engine(executor="local", warnings="ignore") as engine:
        assert engine.query('first(G, V, "b")', program=TOPS).rows() == []
        assert sorted(engine.query("first(1, V, X)", program=TOPS).rows()) == [(1, 4, "a"), (1, 5, "a")]
