"""Iterations in both evaluators, by changes and naively: the same answers, and they stop where and as they should."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import emberlog
from emberlog import LimitError
from emberlog.result import Result
from emberlog.stats import StratumStats

WAYS: dict[str, dict[str, Any]] = {
    "sql": {"evaluator": "sql"},
    "sql, naive": {"evaluator": "sql", "naive": True},
    "kernel": {"evaluator": "kernel"},  # sums gather where they can
    "kernel, changes": {"evaluator": "kernel", "storage": "loops"},
    "kernel, naive": {"evaluator": "kernel", "naive": True},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)

RANKS = """
.output rank
degree(X, count(Y)) :- edge(X, Y).
rank(0, X, r) :- node(X), r = {start}.
rank(i+1, Y, sum[r]) :- node(Y), r = 0.15;
                     :- rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d{until}.
"""
EDGES = sorted({(i % 50, (i * i * 7 + 3 * i) % 50) for i in range(170)})
CHANGES = "changes of sums are handed on (MRA)"
GATHERS = "sums gather what others give them (MRA)"


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("edge", EDGES)
        engine.register("node", [(x,) for x in range(50)])
        yield engine


def ranks(until: str = "", start: float = 0.0) -> str:
    return RANKS.format(until=until and f";\n  {until}", start=start)


def last(result: Result) -> StratumStats:
    return next(entry for entry in result.stats if entry.rounds)


def solved() -> dict[int, float]:
    degree = np.bincount([x for x, _ in EDGES], minlength=50)
    matrix = np.zeros((50, 50))
    for x, y in EDGES:
        matrix[y, x] = 0.85 / degree[x]
    return dict(enumerate(np.linalg.solve(np.eye(50) - matrix, np.full(50, 0.15)).tolist()))


def distances(result: Result) -> list[float]:
    want, got = solved(), dict(result["rank"].rows())
    assert got.keys() == want.keys()
    return [abs(got[x] - want[x]) for x in want]


# --- how they stop ---------------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize("until", ["{sum[delta r] < 0.001}", "{sum[Δ r] < 0.001}", "{sum[Δr] <= 0.001}"])
def test_a_bound_on_the_sum(engine: emberlog.Engine, way: dict[str, Any], until: str, start: float) -> None:
    result = engine.run(ranks(until, start), **way)
    stats = last(result)
    assert stats.evaluator == way["evaluator"]
    assert stats.how == (GATHERS if way == WAYS["kernel"] else stats.how if "naive" in way else CHANGES)
    assert "naive" not in way or stats.how not in (CHANGES, GATHERS)
    assert stats.residual is not None and 0 < stats.residual < 0.001
    assert stats.stopped == f"sum[delta r] = {stats.residual:.3g}"
    assert sum(distances(result)) <= 0.001 * 0.85 / 0.15


@every_way
def test_a_bound_on_the_largest_change(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    small = last(engine.run(ranks("{max[delta r] < 0.001}"), **way))
    result = engine.run(ranks("{sum[delta r] < 0.001}"), **way)
    assert small.residual is not None and 0 < small.residual < 0.001
    assert small.stopped == f"max[delta r] = {small.residual:.3g}"
    assert small.rounds < last(result).rounds


@every_way
def test_a_bound_that_is_met_exactly(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    """Each round halves the change: 1, 0.5, 0.25, .."""
    engine.register("edge", [(1, 1)])
    text = "k(i+1, Y, sum[v]) :- Y = 1, v = 1.0; :- k(i, X, u), edge(X, Y), v = 0.5 * u; {{sum[delta v] {} 0.25}}."
    met = engine.run(text.format("<="), **way)
    below = engine.run(text.format("<"), **way)
    assert (last(met).residual, met["k"].rows()) == (0.25, [(1, 1.75)])
    assert (last(below).residual, below["k"].rows()) == (0.125, [(1, 1.875)])


@every_way
def test_a_fixpoint(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    result = engine.run(ranks(), **way)
    stats = last(result)
    assert (stats.stopped, stats.residual) == ("fixpoint", None)
    assert max(distances(result)) < 1e-10


@every_way
def test_a_fixpoint_before_the_bound(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    engine.register("edge", [(1, 2), (2, 3)])
    result = engine.run(ranks("{sum[delta r] <= 0}"), **way)
    assert (last(result).stopped, last(result).residual) == ("fixpoint", 0.0)


@every_way
def test_a_limit_on_rounds(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    with pytest.raises(LimitError, match="limit of 4 rounds"):
        engine.run(ranks("{sum[delta r] < 0.001}"), **way, limits={"rounds": 4})
    rounds = last(engine.run(ranks("{sum[delta r] < 0.001}"), **way)).rounds
    engine.run(ranks("{sum[delta r] < 0.001}"), **way, limits={"rounds": rounds + 1})


@every_way
def test_an_iteration_that_grows_for_ever(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    engine.register("edge", [(1, 2), (2, 1)])
    text = "k(i+1, Y, sum[v]) :- Y = 1, v = 1.0; :- k(i, X, u), edge(X, Y), v = 20 * u; {sum[delta v] < 0.1}."
    with pytest.raises(LimitError):
        engine.run(text, **way)


# --- what they give --------------------------------------------------------------------------------------------------


@every_way
def test_a_start_that_nothing_keeps(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    """Groups of the start are gone when nothing contributes to them: changes alone would not tell."""
    engine.register("edge", [(1, 2), (2, 3), (7, 7)])
    text = "p(0, X, v) :- edge(X, _), v = 1.0. p(i+1, Y, sum[v]) :- p(i, X, u), edge(X, Y), v = 1.0 * u."
    result = engine.run(text, **way)
    assert result["p"].rows() == [(7, 1.0)]
    assert last(result).how not in (CHANGES, GATHERS)


@every_way
def test_groups_come_to_be_by_contributions_of_nothing(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    engine.register("edge", [(1, 2), (2, 3), (3, 4), (4, 2)])
    text = "k(i+1, Y, sum[v]) :- Y = 1, v = {}; :- k(i, X, u), edge(X, Y), v = 0.001 * u{}."
    found = engine.run(text.format("0.0", ""), **way)["k"].rows()
    assert sorted(found) == [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]
    if "naive" not in way:  # a state that ends it may lack groups that are still to come
        found = engine.run(text.format("1.0", "; {sum[delta v] < 0.1}"), **way)["k"].rows()
        assert sorted(x for x, _ in found) == [1, 2, 3, 4]


@every_way
def test_two_sums_at_once(engine: emberlog.Engine, way: dict[str, Any]) -> None:
    text = """
    degree(X, count(Y)) :- edge(X, Y).
    hub(i+1, X, sum[v]) :- node(X), v = 1.0;
                        :- rank(i, Y, u), edge(X, Y), degree(X, d), v = 0.05 * u / d;
                        {sum[delta v] < 1e-9}.
    rank(i+1, Y, sum[v]) :- node(Y), v = 0.5;
                         :- hub(i, X, u), edge(X, Y), degree(X, d), v = 0.4 * u / d.
    """
    result = engine.run(text, **way)
    base = engine.run(text, evaluator="sql", naive=True)
    for name in ("hub", "rank"):
        got, want = dict(result[name].rows()), dict(base[name].rows())
        assert got.keys() == want.keys()
        assert all(math.isclose(got[x], want[x], abs_tol=1e-8) for x in want)
    assert (last(result).how == CHANGES) == ("naive" not in way)


@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_integers_and_refuted_sums_are_recomputed(engine: emberlog.Engine, evaluator: str) -> None:
    engine.register("edge", [(1, 2), (2, 3)])
    for step in ("v = 2 * u", "v = 0.5 * relu(u)"):
        base = "1.0" if "." in step else "1"
        text = f"k(i+1, Y, sum[v]) :- Y = 1, v = {base}; :- k(i, X, u), edge(X, Y), {step}."
        assert last(engine.run(text, evaluator=evaluator)).how not in (CHANGES, GATHERS)


# --- work ------------------------------------------------------------------------------------------------------------


def test_changes_take_less_work(engine: emberlog.Engine) -> None:
    text = ranks("{sum[delta r] < 0.0001}")

    def work(**options: Any) -> int:
        made = last(engine.run(text, evaluator="kernel", **options)).derivations
        assert made is not None
        return made

    naive, changes, best = work(naive=True), work(ordered=False, storage="loops"), work(storage="loops")
    assert naive > 1.5 * changes
    assert naive >= work()
    assert naive > 1.8 * best


def test_naive_minima_and_sums_without_an_index(engine: emberlog.Engine) -> None:
    engine.register("arc", [(x, y, 1 + (x * y) % 5) for x, y in EDGES])
    for text in (
        "p(X, min<D>) <- X = 1, D = 0. p(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C + W.",
        "p(X, max<D>) <- X = 1, D = 9. p(Y, max<D>) <- p(X, C), arc(X, Y, W), D = min(C, W).",
    ):
        rows = [sorted(engine.run(text, **way)["p"].rows()) for way in WAYS.values()]
        assert all(found == rows[0] for found in rows)
        slow = last(engine.run(text, evaluator="kernel", naive=True))
        fast = last(engine.run(text, evaluator="kernel"))
        assert slow.how == "each round replaces the state"
        assert (slow.derivations or 0) > (fast.derivations or 0)


# --- floating point --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_sums_do_not_depend_on_workers(evaluator: str) -> None:
    """Fixpoints to 1e-12 of the value and of what travels round; ends by a bound to eps * q / (1 - q)."""
    rng = np.random.default_rng(3)
    pairs = np.unique(rng.integers(0, 300, (3000, 2)), axis=0)
    table = pa.table({"x": pairs[:, 0], "y": pairs[:, 1]})
    found: dict[str, list[dict[int, float]]] = {"": [], "{sum[delta r] < 1e-6}": []}
    for workers in (1, 2, 3):
        with emberlog.Engine(executor="local", workers=workers) as engine:
            engine.register("edge", table)
            engine.register("node", pa.table({"x": np.arange(300)}))
            for until, answers in found.items():
                answers.append(dict(engine.run(ranks(until), evaluator=evaluator)["rank"].rows()))
    exact, bounded = found.values()
    for other in exact[1:]:
        assert all(math.isclose(other[x], exact[0][x], rel_tol=1e-12 / 0.15) for x in exact[0])
    for other in bounded[1:]:
        assert sum(abs(other[x] - bounded[0][x]) for x in bounded[0]) <= 2 * 1e-6 * 0.85 / 0.15


def test_sums_do_not_depend_on_workers_that_swap() -> None:
    rng = np.random.default_rng(4)
    arcs = [(int(x), int(x + d), float(w)) for x, d, w in zip(*rng.integers(1, 60, (3, 800)), strict=True)]
    text = "p(X, sum<D>) <- X = 1, D = 0.1. p(Y, sum<D>) <- p(X, C), arc(X, Y, W), D = C / W."
    answers = []
    for workers in (1, 2, 3):
        with emberlog.Engine(executor="local", workers=workers) as engine:
            engine.register("arc", arcs)
            answers.append(dict(engine.run(text, evaluator="kernel", exchange=workers > 1)["p"].rows()))
    for other in answers[1:]:
        assert other.keys() == answers[0].keys()
        assert all(math.isclose(other[x], answers[0][x], rel_tol=1e-11) for x in other)
