"""Recursion that grows for ever tells the cycle in the data along which it does; what nothing enters says so."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emberlog
import naive
from emberlog.source import Source
from emberlog.sql.cycles import SHOWN, Cycle, Graph
from emberlog.syntax.parser import parse
from engine.places import Place

COST = "cost(P, sum<C>) <- basic(P, C). cost(P, sum<C>) <- assbl(P,S,Q), cost(S,D), C = Q * D."
# A wheel has a hub, a hub spokes, and a spoke (this is the mistake) a wheel; the other parts are in order.
PARTS = {
    "basic": [("bolt", 10**15), ("tyre", 10**15)],
    "assbl": [
        ("frame", "bolt", 2),
        ("wheel", "tyre", 1),
        ("wheel", "hub", 1),
        ("hub", "spoke", 3),
        ("spoke", "wheel", 2),
        ("bike", "wheel", 2),
        ("bike", "frame", 1),
    ],
}
WHEEL = "a cycle in the data: cost('hub', _) -> cost('wheel', _) -> cost('spoke', _) -> cost('hub', _)"

SSSP = "d(X, min<C>) <- X = 1, C = 0. d(Y, min<C>) <- d(X, B), arc(X,Y,W), C = B + W."
# The cycle 1, 2, 3 costs 3, the cycle 4, 5, 6 costs -1.
ARC = [(1, 2, 1), (2, 3, 1), (3, 1, 1), (2, 4, 5), (4, 5, -3), (5, 6, 1), (6, 4, 1), (6, 7, 1), (7, 8, 1), (8, 7, 9)]
NEGATIVE = "a cycle in the data: d(4, _) -> d(5, _) -> d(6, _) -> d(4, _)"

WAYS = {
    "sql": {"evaluator": "sql"},
    "interpreted": {"evaluator": "kernel", "storage": "columns"},
    "loops": {"evaluator": "kernel", "storage": "loops"},
    "auto": {},
}
every_way = pytest.mark.parametrize("way", list(WAYS.values()), ids=list(WAYS))


def told(error: emberlog.EmberlogError) -> str:
    """The cycle in an error's message."""
    return error.message.partition("; ")[2]


@every_way
def test_a_sum_that_leaves_64_bits_tells_the_cycle_of_parts(way: dict[str, Any], local: Place) -> None:
    with pytest.raises(emberlog.DataError, match="does not fit in 64 bits") as raised:
        local.engine(PARTS).run(COST, **way)
    assert told(raised.value) == WHEEL
    assert raised.value.fix == "break the cycle in the data, or bound the value by a condition in the rule"
    assert raised.value.exit_code == 1 and raised.value.span is not None


@every_way
@pytest.mark.parametrize(("function", "sign"), [("min", 1), ("max", -1)])
def test_a_cycle_along_which_values_get_better_for_ever(
    way: dict[str, Any], function: str, sign: int, local: Place
) -> None:
    engine = local.engine({"arc": [(x, y, sign * w) for x, y, w in ARC]})
    with pytest.raises(emberlog.LimitError, match="limit of 60 rounds") as raised:
        engine.run(SSSP.replace("min", function), limits={"rounds": 60}, **way)
    assert told(raised.value) == NEGATIVE
    assert raised.value.fix is not None and raised.value.fix.endswith("raise limits={'rounds': ...} if it does end")
    assert raised.value.exit_code == 3


@every_way
@pytest.mark.parametrize("aggregate", ["sum<C>", "count<X>"])
def test_sums_and_counts_that_grow_by_little_stop_at_the_limit_on_rounds(
    way: dict[str, Any], aggregate: str, local: Place
) -> None:
    """A count of who comes in (its values are counts of counts) does not grow: there the answer is finite."""
    text = f"p(Y,{aggregate}) <- Y=1, C=1, X=1. p(Y,{aggregate}) <- p(X,C), arc(X,Y)."
    engine = local.engine({"arc": [(1, 2), (2, 3), (3, 2), (3, 4)]})
    if aggregate == "count<X>":
        assert sorted(engine.run(text, **way)["p"].rows()) == [(1, 1), (2, 2), (3, 1), (4, 1)]
        return
    with pytest.raises(emberlog.LimitError) as raised:
        engine.run(text, limits={"rounds": 40}, **way)
    assert told(raised.value) == "a cycle in the data: p(2, _) -> p(3, _) -> p(2, _)"


@pytest.mark.parametrize("way", [WAYS["interpreted"], WAYS["loops"]], ids=["interpreted", "loops"])
def test_the_default_limit_tells_it_too(way: dict[str, Any], local: Place) -> None:
    with pytest.raises(emberlog.LimitError, match="they seem to grow for ever; a cycle in the data") as raised:
        local.engine({"arc": ARC}).run(SSSP, **way)
    assert told(raised.value) == NEGATIVE
    assert raised.value.fix is not None and raised.value.fix.endswith("set limits={'rounds': ...} if it does end")


def test_naive_rounds_tell_it_too(local: Place) -> None:
    with pytest.raises(emberlog.DataError) as raised:
        local.engine(PARTS).run(COST, naive=True, evaluator="sql")
    assert told(raised.value) == WHEEL


@every_way
def test_lengths_of_paths_that_are_no_aggregate(way: dict[str, Any], local: Place) -> None:
    """The length is a column of its own, which is computed: the cycle is in the others."""
    text = "p(Y,0) <- Y=1. p(Y,N) <- p(X,M), arc(X,Y), N=M+1."
    with pytest.raises(emberlog.LimitError) as raised:
        local.engine({"arc": [(1, 2), (2, 3), (3, 2)]}).run(text, limits={"rounds": 30}, **way)
    assert told(raised.value) == "a cycle in the data: p(2, _) -> p(3, _) -> p(2, _)"


MUTUAL = """
up(X, sum<C>) <- seed(X, C). up(Y, sum<C>) <- down(X, D), a(X,Y), C = 2 * D.
down(Y, sum<C>) <- up(X, D), b(X,Y), C = D.
"""


@every_way
def test_a_cycle_through_two_predicates(way: dict[str, Any], local: Place) -> None:
    engine = local.engine({"seed": [(1, 10**15)], "a": [(7, 1), (8, 2)], "b": [(1, 7), (1, 8), (2, 9)]})
    with pytest.raises(emberlog.DataError) as raised:
        engine.run(MUTUAL, **way)
    assert told(raised.value) == "a cycle in the data: down(7, _) -> up(1, _) -> down(7, _)"


@every_way
def test_what_feeds_itself(way: dict[str, Any], local: Place) -> None:
    engine = local.engine({"basic": [("x", 10**17)], "assbl": [("y", "x", 1), ("y", "y", 3)]})
    with pytest.raises(emberlog.DataError) as raised:
        engine.run(COST, **way)
    assert told(raised.value) == "a cycle in the data: cost('y', _) -> cost('y', _)"


def test_a_cycle_behind_a_cycle_that_grows_is_not_to_blame(local: Place) -> None:
    """Everything behind the cycle x, y changes as well, the cycle u, v among it."""
    arcs = [("x", "s", 1), ("x", "y", 2), ("y", "x", 2), ("u", "y", 1), ("u", "v", 1), ("v", "u", 1)]
    with pytest.raises(emberlog.DataError) as raised:
        local.engine({"basic": [("s", 10**16)], "assbl": arcs}).run(COST, evaluator="sql")
    assert told(raised.value) == "a cycle in the data: cost('x', _) -> cost('y', _) -> cost('x', _)"


@pytest.mark.parametrize("seed", range(5))
def test_the_cycle_under_a_minimum_is_negative(seed: int, local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs with many cycles, one of them negative: by arithmetic, the one that is told costs less than nothing."""
    monkeypatch.setattr("emberlog.sql.cycles.SHOWN", 100)
    draw = random.Random(seed)
    weights = {(i, i + 1): draw.randint(1, 5) for i in range(1, 15)}
    for _ in range(25):
        x, y = draw.randint(1, 15), draw.randint(1, 15)
        weights.setdefault((x, y), draw.randint(1, 9))
    graph: Any = nx.DiGraph()
    graph.add_weighted_edges_from((x, y, w) for (x, y), w in weights.items())
    cycle = max(nx.simple_cycles(graph, length_bound=5), key=len)
    total = sum(weights[edge] for edge in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    weights[cycle[0], [*cycle[1:], cycle[0]][0]] -= total + draw.randint(1, 3)
    arcs = [(x, y, w) for (x, y), w in weights.items()]
    with pytest.raises(emberlog.LimitError) as raised:
        local.engine({"arc": arcs}).run(SSSP, evaluator="sql", limits={"rounds": 100})
    shown = [int(found) for found in re.findall(r"d\((\d+), _\)", told(raised.value))]
    assert shown[0] == shown[-1]
    assert sum(weights[edge] for edge in pairwise(shown)) < 0


NO_CYCLE: list[tuple[str, dict[str, Any], int]] = [
    ("n(0). n(X+1) <- n(X).", {}, 30),  # growth by arithmetic alone
    ("d(X, min<C>) <- X = 1, C = 0. d(Y, min<C>) <- d(X, B), arc(X,Y,W), C = B + W.", {"arc": ARC[:4]}, 2),
    ("tc(X,Y) <- arc(X,Y,_). tc(X,Y) <- tc(X,Z), arc(Z,Y,_).", {"arc": ARC}, 2),  # ends, in more rounds than these
    ("p(X, sum<C>) <- v(X, C). p(Y, sum<C>) <- p(X, C), arc(X,Y,_).", {"v": [(1, 1)], "arc": ARC[3:5]}, 1),
]


@every_way
@pytest.mark.parametrize(("text", "sources", "rounds"), NO_CYCLE, ids=["arithmetic", "minimum", "closure", "sum"])
def test_nothing_is_said_of_cycles_where_none_is_to_blame(
    text: str, sources: dict[str, Any], rounds: int, way: dict[str, Any], local: Place
) -> None:
    with pytest.raises(emberlog.LimitError) as raised:
        local.engine(sources).run(text, limits={"rounds": rounds}, **way)
    assert "a cycle in the data" not in raised.value.message


def test_a_value_that_is_too_large_without_a_cycle_keeps_its_error(local: Place) -> None:
    engine = local.engine({"basic": [("x", 2**62)], "assbl": [("y", "x", 4)]})
    with pytest.raises(emberlog.DataError, match="does not fit in 64 bits") as raised:
        engine.run(COST)
    assert raised.value.message.endswith("does not fit in 64 bits")
    assert raised.value.fix == "add a condition that keeps such facts out of the rule"


# By statements the same is told from DuckDB's tables, in less time.
ON_SPARK = [pytest.param(WAYS["sql"], id="sql", marks=pytest.mark.slow), pytest.param(WAYS["auto"], id="tasks")]


@pytest.mark.spark
@pytest.mark.parametrize("way", ON_SPARK)
def test_spark_tells_cycles_too(way: dict[str, Any], spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        for name, rows in {**PARTS, "arc": ARC}.items():
            engine.register(name, rows)
        with pytest.raises(emberlog.DataError) as too_large:
            engine.run(COST, placement="spark", **way)
        assert told(too_large.value) == WHEEL
        with pytest.raises(emberlog.LimitError) as stopped:
            engine.run(SSSP, placement="spark", limits={"rounds": 14}, **way)
        assert told(stopped.value) == NEGATIVE


# --- sums of floats that become infinite ---------------------------------------------------------------------------

HUGE = 1e200
FLOW = "p(Y, sum<C>) <- s(Y, C). p(Y, sum<C>) <- p(X, V), e(X, Y, W), C = V * W."
KEYED = "p(Y, sum<(X,C)>) <- s(Y, C), X = Y. p(Y, sum<(X,C)>) <- p(X, V), e(X, Y, W), C = V * W."
FROM = "p(Z, Y, sum<C>) <- s(Y, C), Z = Y. p(Z, Y, sum<C>) <- p(Z, X, V), e(X, Y, W), C = V * W."
IN_TWO = """
p(X, sum<C>) <- s(X, C). p(Y, sum<C>) <- q(X, D), e(X, Y, W), C = D * W.
q(Y, sum<C>) <- p(X, D), e(X, Y, W), C = D * W.
"""
RING = [(1, 2, HUGE), (2, 3, HUGE), (3, 1, HUGE), (3, 4, 1.0)]
GROWN = {
    "sum": (FLOW, RING, "p(1, _) -> p(2, _) -> p(3, _) -> p(1, _)"),
    "by contributors": (KEYED, RING, "p(1, _) -> p(2, _) -> p(3, _) -> p(1, _)"),
    "pivots": (FROM, RING, "p(1, 1, _) -> p(1, 2, _) -> p(1, 3, _) -> p(1, 1, _)"),
    "two sums": (IN_TWO, [(1, 2, HUGE), (2, 1, HUGE)], "p(1, _) -> q(2, _) -> p(1, _)"),
    "negative": (FLOW, [(1, 2, -HUGE), (2, 1, -HUGE)], "p(1, _) -> p(2, _) -> p(1, _)"),
    "both signs": (FLOW, [(1, 2, -HUGE), (2, 1, HUGE)], "p(1, _) -> p(2, _) -> p(1, _)"),
    "itself": (FLOW, [(1, 1, HUGE)], "p(1, _) -> p(1, _)"),
    "behind an end": (FLOW, [(1, 2, HUGE), (2, 3, HUGE), (3, 4, 1.0), (4, 3, 1.0)], "p(3, _) -> p(4, _) -> p(3, _)"),
}
WIDER = {**WAYS, "hashed": {"evaluator": "kernel", "storage": "hash"}, "naive": {"naive": True, "evaluator": "sql"}}


def reference(text: str, facts: dict[str, list[tuple[Any, ...]]]) -> dict[str, set[Any]]:
    return naive.evaluate(parse(Source("<test>", text)), facts)


# Each program in every way; other data of the first one by statements, and as the planner chooses.
GROWN_BY = [
    pytest.param(*GROWN[name], WIDER[way], id=f"{name}-{way}")
    for name in GROWN
    for way in (WIDER if name in ("sum", "by contributors", "pivots", "two sums") else ("sql", "auto"))
]


@pytest.mark.parametrize(("text", "edges", "cycle", "way"), GROWN_BY)
def test_a_sum_that_grows_to_infinity(
    text: str, edges: list[Any], cycle: str, way: dict[str, Any], local: Place
) -> None:
    sources = {"s": [(1, 1.0)], "e": edges}
    with pytest.raises(emberlog.LimitError, match="sums have grown to infinity") as raised:
        local.engine(sources).run(text, **way)
    assert told(raised.value) == f"a cycle in the data: {cycle}"
    assert raised.value.fix == "break the cycle in the data, or bound the value by a condition in the rule"
    assert raised.value.exit_code == 3
    with pytest.raises(naive.LimitReached):
        reference(text, sources)


@pytest.mark.parametrize("way", [WAYS["interpreted"], WAYS["loops"]], ids=["interpreted", "loops"])
def test_a_sum_that_grows_by_a_factor_of_two(way: dict[str, Any], local: Place) -> None:
    """It takes a thousand rounds to become infinite, which may be more than the default limit allows."""
    engine = local.engine({"s": [(1, 1.0)], "e": [(1, 2, 2.0), (2, 1, 2.0)]})
    with pytest.raises(emberlog.LimitError) as raised:
        engine.run(FLOW, **way)
    assert told(raised.value) == "a cycle in the data: p(1, _) -> p(2, _) -> p(1, _)"


def test_infinite_sums_of_which_only_the_number_is_asked(local: Place) -> None:
    with pytest.raises(emberlog.LimitError, match="sums have grown to infinity"):
        local.engine({"s": [(1, 1.0)], "e": RING}).run(f"{FROM}\n.printsize p", evaluator="kernel")


INF = float("inf")
ENDS: dict[str, tuple[str, list[Any], list[Any], list[Any]]] = {
    "an infinite value in the data": (FLOW, [(1, INF)], [(1, 2, 2.0), (2, 3, 2.0)], [(1, INF), (2, INF), (3, INF)]),
    "an infinite factor": (FLOW, [(1, 1.0)], [(1, 2, INF), (2, 3, -1.0)], [(1, 1.0), (2, INF), (3, -INF)]),
    "an overflow": (FLOW, [(1, HUGE)], [(1, 2, HUGE), (2, 3, 1.0)], [(1, HUGE), (2, INF), (3, INF)]),
    "an overflow beside a cycle": (
        FLOW,
        [(1, HUGE), (4, 1.0)],
        [(1, 2, HUGE), (2, 3, 1.0), (4, 5, 0.5), (5, 4, 0.0)],
        [(1, HUGE), (2, INF), (3, INF), (4, 1.0), (5, 0.5)],
    ),
    "a cycle that hands on no infinite value": (
        "p(Y, sum<C>) <- s(Y, C). p(Y, sum<C>) <- p(X, V), e(X, Y, W), V > 5.0, C = W.",
        [(1, INF)],
        [(1, 2, 7.0), (2, 1, 7.0)],
        [(1, INF), (2, 7.0)],
    ),
    "a maximum": (FLOW.replace("sum", "max"), [(1, 1.0)], [(1, 2, HUGE), (2, 1, HUGE)], [(1, INF), (2, INF)]),
}


@pytest.mark.parametrize("way", [{"evaluator": "sql"}, {}], ids=["sql", "auto"])
@pytest.mark.parametrize(("text", "seeds", "edges", "rows"), ENDS.values(), ids=list(ENDS))
def test_infinite_values_that_are_an_end(
    text: str, seeds: list[Any], edges: list[Any], rows: list[Any], way: dict[str, Any], local: Place
) -> None:
    sources = {"s": seeds, "e": edges}
    assert sorted(local.engine(sources).run(text, **way)["p"].rows()) == rows
    assert sorted(reference(text, sources)["p"]) == rows


@pytest.mark.spark
@pytest.mark.parametrize("way", ON_SPARK)
def test_infinite_sums_on_spark(way: dict[str, Any], spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("s", [(1, 1.0)])
        engine.register("e", RING)
        for text, cycle in ((FLOW, GROWN["sum"][2]), (FROM, GROWN["pivots"][2])):
            with pytest.raises(emberlog.LimitError, match="sums have grown to infinity") as raised:
                engine.run(text, placement="spark", **way)
            assert told(raised.value) == f"a cycle in the data: {cycle}"
        _, seeds, edges, rows = ENDS["an overflow"]
        engine.register("s", seeds)
        engine.register("e", edges)
        assert sorted(engine.run(FLOW, placement="spark", **way)["p"].rows()) == rows


@pytest.mark.slow  # the number alone is asked of this process in every run
def test_infinite_sums_on_spark_of_which_only_the_number_is_asked(on_spark: Place) -> None:
    engine = on_spark.engine({"s": [(1, 1.0)], "e": RING})
    with pytest.raises(emberlog.LimitError, match="sums have grown to infinity"):
        engine.run(f"{FROM}\n.printsize p", placement="spark")


# --- what comes to an end all the same -----------------------------------------------------------------------------

CHAIN = [(1, 2), (2, 3), (1, 3), (3, 4), (4, 2)]


@every_way
def test_a_count_with_a_condition_on_what_it_counts_ends_on_a_cycle(way: dict[str, Any], local: Place) -> None:
    """A contribution counts one, whatever the count that it reads has become: nothing is handed on for ever."""
    text = "p(X, count<C>) <- v(X, C). p(Y, count<D>) <- p(X, D), arc(X, Y), D > 0."
    rows = local.engine({"v": [(1, 5), (2, 1)], "arc": CHAIN}).run(text, **way)["p"].rows()
    assert sorted(rows) == [(1, 1), (2, 3), (3, 2), (4, 1)]


@every_way
def test_groups_that_recursive_atoms_name_by_constants(way: dict[str, Any], local: Place) -> None:
    text = """p(X, sum<C>) <- v(X, C). p(2, sum<C>) <- p(3, D), C = D * 3. p(Y, sum<C>) <- p(X, C), arc(X, Y).
    q(X, Y, sum<C>) <- p(X, C), Y = X. q(X, Y, sum<C>) <- q(X, X, C), arc(X, Y)."""
    result = local.engine({"v": [(1, 5), (2, 1)], "arc": [(1, 2), (1, 3), (3, 4)]}).run(text, **way)
    assert sorted(result["p"].rows()) == [(1, 5), (2, 21), (3, 5), (4, 5)]
    own = [(1, 1, 5), (2, 2, 21), (3, 3, 5), (4, 4, 5)]
    assert sorted(result["q"].rows()) == sorted([*own, (1, 2, 5), (1, 3, 5), (3, 4, 5)])


# --- the graph -----------------------------------------------------------------------------------------------------

EDGES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.booleans()), max_size=25)


@given(EDGES)
def test_a_cycle_has_a_mark_and_there_is_one_if_it_is_found(edges: list[tuple[int, int, bool]]) -> None:
    graph = Graph()
    other: Any = nx.DiGraph()
    for source, target, mark in edges:
        graph.add(source, target, marked=mark)
        other.add_edge(source, target)
    parts = {node: number for number, part in enumerate(nx.strongly_connected_components(other)) for node in part}
    marked = {(source, target) for source, target, mark in edges if mark}
    inside = {(source, target) for source, target in marked if parts[source] == parts[target]}
    cycle = graph.cycle()
    pairs = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    assert all(other.has_edge(*pair) for pair in pairs)
    assert len(set(cycle)) == len(cycle)
    assert bool(cycle) == bool(inside)
    if cycle:
        assert not inside.isdisjoint(pairs)
        upstream = nx.ancestors(other, cycle[0])
        assert all(parts[source] == parts[cycle[0]] for source, _ in inside if source in upstream)


def test_of_a_long_cycle_a_few_groups_are_shown() -> None:
    groups = tuple(f"p({number})" for number in range(40))
    assert str(Cycle(groups)) == " -> ".join([*groups[:SHOWN], "... (40 in all)", "p(0)"])


# --- what nothing enters -------------------------------------------------------------------------------------------

BASIC = ".decl basic(p: symbol, c: number)\n"


def test_a_recursion_that_nothing_enters_is_a_warning(place: Place) -> None:
    result = place.run(BASIC + COST, {"basic": [], "assbl": PARTS["assbl"]})
    assert result.warnings == ["nothing enters the recursion of `cost`: no rows in `basic`"]
    assert result["cost"].rows() == []


NO_EXIT = [
    ("p(X) <- p(Y), arc(Y,X,_).", "`p`"),
    ("p(X) <- q(X), arc(X,_,_). q(X) <- p(X).", "`p`, `q`"),
    ("p(X, min<C>) <- p(Y, B), arc(Y,X,W), C = B + W.", "`p`"),
]


@pytest.mark.parametrize(("text", "names"), NO_EXIT)
@pytest.mark.parametrize("arc", [ARC, []], ids=["rows", "no rows"])
def test_a_recursion_without_an_exit_rule_is_a_warning_and_a_note(
    text: str, names: str, arc: list[Any], local: Place
) -> None:
    engine = local.engine({"arc": arc})
    message = f"nothing enters the recursion of {names}: there is no rule outside of it, no fact and no source"
    assert engine.run(".decl arc(x: number, y: number, w: number)\n" + text).warnings == [message]
    shown = " ".join(str(engine.explain(".decl arc(x: number, y: number, w: number)\n" + text)).split())
    assert f"note {message}" in shown


@pytest.mark.parametrize("between", ["", "given(P,C) <- basic(P,C), C > 0.\n"], ids=["source", "derived"])
def test_explain_notes_what_registered_sources_without_rows_leave_empty(between: str, local: Place) -> None:
    text = BASIC + between + (COST.replace("basic", "given") if between else COST)
    empty = local.engine({"basic": [], "assbl": PARTS["assbl"]})
    shown = " ".join(str(empty.explain(text)).split())
    assert f"note nothing enters the recursion of `cost`: no rows in `{'given' if between else 'basic'}`" in shown
    assert "nothing enters" not in str(local.engine(PARTS).explain(text))
    assert "nothing enters" not in str(local.engine().explain(text))


def test_empty_inputs_alone_are_no_warning(place: Place) -> None:
    """An empty graph has an empty closure: nothing is odd about that."""
    result = place.run("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y).", {"arc": []})
    assert result.warnings == []
    entered = place.run(COST, {"basic": [("x", 1)], "assbl": [("y", "x", 1)]})
    assert entered.warnings == []
