"""Ids that are numbered along the edges: the same rows, whatever the labels, and in an order that leads forward."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
import naive
from emberlog.components.program import KernelProgram
from emberlog.kernels import evaluate as module
from emberlog.kernels.cache import COMPILES, call
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.orders import reverse_postorder
from emberlog.kernels.sorting import by_key
from emberlog.kernels.watch import Watch
from emberlog.source import Source
from emberlog.syntax.parser import parse
from kernels.components import COMPONENTS
from kernels.variants import by_kernels, rows_of
from strategies import Case, assert_agrees

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
RENUMBERED = "ids in an order along the edges"

# A pivot of a domain of its own; constants and a relation that must not hold; keys of two columns; several tables, and
# another domain between two steps.
SHAPES = {
    "a pivot of another kind": "p(O, V) <- new(O, V). p(O, V) <- p(O, W), arc(W, V).",
    "conditions": """p(X, Y) <- arc(X, Y). p(X, 5) <- p(X, 6), arc(6, _).
                     p(X, Y) <- p(X, Z), arc(Z, Y), Y != 3, !gone(Z, Y).""",
    "two keys": "p(X, Y, Z) <- arc(X, Y), arc(Y, Z). p(X, Z, W) <- p(X, Y, Z), arc(Z, W).",
    "two tables": """p(X, Y) <- arc(X, Y). q(X, Y) <- gone(X, Y).
                     p(X, Y) <- q(X, Z), arc(Z, Y). q(X, Y) <- p(X, Z), new(O, Z), new(O, Y).""",
}


def some_facts(seed: int) -> dict[str, list[tuple[int, ...]]]:
    """A few paths with random edges between them."""
    random = Random(seed)
    names = random.sample(range(40), 24)
    arcs = [(names[i], names[i + 1]) for i in range(23) if i % 8]
    arcs += [(random.choice(names), random.choice(names)) for _ in range(6)]
    new = [(100 + i % 9, random.choice(names)) for i in range(14)]
    return {"arc": sorted({*arcs}), "new": sorted({*new}), "gone": sorted({*random.sample(arcs, 5)})}


def evaluated(text: str, facts: Mapping[str, Any], **options: Any) -> tuple[dict[str, set[Any]], list[str]]:
    """The rows of each derived relation, and the events of the run."""
    with emberlog.Engine(executor="local", workers=options.pop("workers", 1)) as engine:
        for name, rows in facts.items():
            if name in text:
                engine.register(name, rows)
        result = engine.run(text, evaluator="kernel", storage="loops", **options)
        return {name: set(result[name].rows()) for name in result}, [e.what for s in result.stats for e in s.events]


@pytest.mark.parametrize("shape", SHAPES)
def test_other_ids_give_the_same_rows(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.kernels.native.ORDER_STEPS", 0)
    text = SHAPES[shape]
    for seed in range(3):
        facts = some_facts(seed)
        rows, events = evaluated(text, facts, workers=2)
        given_rows = {name: found for name, found in facts.items() if name in text}
        expected = naive.evaluate(parse(Source("test.dl", text)), given_rows)
        assert RENUMBERED in events
        assert rows == {name: expected[name] for name in rows}


def test_text_is_decoded_from_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.kernels.native.ORDER_STEPS", 0)
    arcs = [(str(x), str(y)) for x, y in some_facts(1)["arc"]]
    rows, events = evaluated(TC, {"arc": arcs})
    assert events == [RENUMBERED]
    assert rows["tc"] == {(x, y) for x in dict(arcs) for y in reached(arcs, x)}


def test_ids_that_are_compared_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.kernels.native.ORDER_STEPS", 0)
    text = "p(X, Y) <- arc(X, Y). p(X, Y) <- p(X, Z), arc(Z, Y), Z < Y."
    arcs = some_facts(2)["arc"]
    rows, events = evaluated(text, {"arc": arcs})
    assert events == []
    assert rows["p"] == naive.evaluate(parse(Source("test.dl", text)), {"arc": arcs})["p"]


@pytest.mark.skipif(not COMPILES, reason="takes long as plain Python")
@pytest.mark.parametrize("memory", [None, "20MB"])
def test_a_graph_is_renumbered_where_its_labels_are_shuffled(memory: str | None) -> None:
    side = 50
    grid = [(side * i + j, side * i + j + step) for i in range(side - 1) for j in range(side - 1) for step in (1, side)]
    names = list(range(side * side))
    Random(3).shuffle(names)
    shuffled = [(names[x], names[y]) for x, y in grid]
    with emberlog.Engine(executor="local", workers=2, memory=memory) as engine:
        found = []
        for arcs in (grid, shuffled):
            engine.register("arc", arcs)
            result = engine.run(TC, evaluator="kernel")
            found.append(([e.what for s in result.stats for e in s.events], result["tc"].to_arrow()))
    (plain, rows), (events, others) = found
    assert (plain, events) == ([], [RENUMBERED])
    back = np.argsort(names)
    pairs = sorted(zip(*(back[column.to_numpy()].tolist() for column in others.columns), strict=True))
    assert pairs == sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def test_parts_of_the_pivots_are_the_same_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks share out pivots by the ids that all of them know, whichever of them renumber theirs."""
    real = module.evaluate
    whats: list[list[str]] = []

    def in_parts(
        program: KernelProgram, statics: Mapping[str, pa.Table], exits: Mapping[str, pa.Table], watch: Watch, *_: Any
    ) -> Evaluated:
        whole = real(program, statics, exits, watch, Choices(storage="loops"))
        parts = []
        for rank in range(3):
            with monkeypatch.context() as patch:
                patch.setattr("emberlog.kernels.native.ORDER_STEPS", 0 if rank == 1 else 4)
                part = real(program, statics, exits, watch, Choices(storage="loops", part=(rank, 3)))
            whats.append([event.what for event in part.events])
            parts += rows_of(part, "tc")
        assert sorted(parts) == sorted(rows_of(whole, "tc"))
        return whole

    with monkeypatch.context() as patch:
        patch.setattr(module, "evaluate", in_parts)
        evaluated(TC, {"arc": some_facts(4)["arc"]})
    assert whats == [[], [RENUMBERED], []]


@pytest.mark.slow
@settings(max_examples=30 if COMPILES else 500, suppress_health_check=list(HealthCheck), deadline=None)
@given(COMPONENTS["plain"])
def test_random_components_with_other_ids(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("emberlog.kernels.native.ORDER_STEPS", 0)
        assert_agrees(case, lambda case: by_kernels(case, storage="loops"))


# --- the order -------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=80), st.randoms(use_true_random=False))
def test_edges_of_a_graph_without_cycles_lead_forward(pairs: list[tuple[int, int]], random: Random) -> None:
    names = list(range(31))
    random.shuffle(names)
    arcs = [(names[min(x, y)], names[max(x, y)]) for x, y in pairs if x != y]
    sources, targets = (np.array([arc[i] for arc in arcs], np.uint32) for i in range(2))
    offsets, (found,) = by_key(sources, 31, [targets])
    order = call(reverse_postorder, offsets, found, 31).tolist()
    assert sorted(order) == list(range(31))
    assert all(order.index(x) < order.index(y) for x, y in arcs)


def reached(arcs: list[tuple[Any, Any]], start: Any) -> set[Any]:
    graph = nx.DiGraph(arcs)
    return {y for _, first in graph.out_edges(start) for y in {first, *nx.descendants(graph, first)}}
