"""Iterations that workers share out: sums that hand on changes in every mode, and states that rounds replace."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import pytest

import emberlog
from emberlog.diagnostics import UsageError
from workers.programs import MODES, Row

RANK = """
    degree(X, count(Y)) :- edge(X, Y).
    rank(0, X, r) :- node(X), r = 0.
    rank(i+1, Y, sum[r]) :- node(Y), r = 0.15;
                         :- rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d;
                         {sum[delta r] < 0.0001}.
    .output rank
"""
KATZ = """
    K(i+1, y, sum[k1]) :- node(y), y = 0, k1 = 1000.0;
                       :- K(i, x, k), edge(x, y), k1 = 0.1 * k;
                       {sum[delta k] < 0.001}.
    .output K
"""
# The explicit beliefs are the start, and stand in every round.
BELIEF = """
    B(0, v, c, b) :- I(v, c, b).
    B(j+1, t, c2, sum[b1]) :- I(t, c2, e), b1 = e;
                           :- B(j, s, c1, b), edge(s, t), H(c1, c2, h), b1 = 0.1 * b * h;
                           {sum[delta b] < 0.0001}.
    .output B
"""
# Here they are the start alone: groups of it that nothing contributes to are gone after a round.
BELIEF_ONCE = """
    B(0, v, c, b) :- I(v, c, b).
    B(j+1, t, c2, sum[b1]) :- B(j, s, c1, b), edge(s, t), H(c1, c2, h), b1 = 0.1 * b * h; {sum[delta b] < 0.0001}.
    .output B
"""
SIMRANK = """
    indegree(Y, count(X)) :- edge(X, Y).
    sim(0, A, B, s) :- node(A), B = A, s = 1.
    sim(i+1, A, B, sum[s]) :- node(A), B = A, s = 1;
                           :- sim(i, X, Y, q), edge(X, A), edge(Y, B), A != B, indegree(A, da), indegree(B, db),
                              s = 0.8 * q / (da * db);
                           {sum[delta s] < 0.0001}.
    .output sim
"""
LARGEST = RANK.replace("sum[delta", "max[delta")
# A step that is not linear is refuted, and computed by rounds.
RELU = """
    g(0, X, v) :- node(X), v = 1.0 * X - 2.0.
    g(i+1, Y, sum[v1]) :- node(Y), v1 = 0.5; :- g(i, X, v), edge(X, Y), v1 = 0.1 * max(v, 0.0); {sum[delta v] < 0.0001}.
    .output g
"""
ACCUMULATING = {"rank": RANK, "largest": LARGEST, "katz": KATZ, "belief": BELIEF, "simrank": SIMRANK}
REPLACING = {"relu": RELU, "belief once": BELIEF_ONCE}


def sources(seed: int) -> dict[str, list[Row]]:
    random = Random(seed)
    size = random.randint(3, 12)
    edges = {(random.randrange(size), random.randrange(size)) for _ in range(3 * size)}
    beliefs = [(v, c, round(random.uniform(-1, 1), 3)) for v in range(0, size, 2) for c in (0, 1)]
    return {
        "node": [(node,) for node in range(size)],
        "edge": sorted(edges),
        "I": beliefs,
        "H": [(0, 0, 0.9), (0, 1, 0.1), (1, 0, 0.2), (1, 1, 0.8)],
    }


def run(text: str, seed: int, workers: int, **options: Any) -> tuple[dict[Row, float], Any]:
    """The groups of the program's output and their values, and the stats of the iteration."""
    rows = sources(seed)
    with emberlog.Engine(executor="local", workers=workers, warnings="ignore") as engine:
        for name in rows.keys() & {"node", "edge", "I", "H"}:
            if f"{name}(" in text:
                engine.register(name, rows[name])
        result = engine.run(text, **options)
        (name,) = result
        return {row[:-1]: row[-1] for row in result[name].rows()}, result.stats[-1]


@cache
def by_statements(text: str, seed: int) -> tuple[dict[Row, float], Any]:
    return run(text, seed, 1, evaluator="sql")


@pytest.mark.parametrize("name", ACCUMULATING)
def test_every_mode_gives_what_one_process_gives(name: str) -> None:
    text = ACCUMULATING[name]
    for number, mode in enumerate(MODES):
        seed, workers = number % 2, number % 4 + 1
        right, alone = by_statements(text, seed)
        found, stats = run(text, seed, workers, coordination=mode, simulate=f"seed={seed},jitter=2")
        assert found.keys() == right.keys()
        assert found == pytest.approx(right, abs=2e-3)
        assert stats.coordination is not None and len(stats.coordination.lanes) == workers
        assert stats.residual < 1e-3, "what is pending in all parts is below the bound"
        assert stats.stopped == "fixpoint" or stats.stopped.startswith(alone.stopped.partition(" = ")[0])


@pytest.mark.parametrize("name", REPLACING)
def test_rounds_replace_the_state_where_changes_may_not_be_handed_on(name: str) -> None:
    for seed, workers in enumerate((1, 2, 3, 5)):
        right, alone = by_statements(REPLACING[name], seed % 2)
        found, stats = run(REPLACING[name], seed % 2, workers, coordination="bsp")
        assert found == pytest.approx(right, abs=1e-9)
        assert stats.residual == pytest.approx(alone.residual, rel=1e-6)


def test_threads_give_what_the_simulation_gives() -> None:
    right, _ = run(RANK, 3, 3, coordination="bsp", simulate="")
    for mode in ("bsp", "async", "adaptive"):
        found, _ = run(RANK, 3, 3, coordination=mode)
        assert found == pytest.approx(right, abs=1e-3)


def test_a_mode_without_rounds_is_refused_where_no_proof_allows_it() -> None:
    with pytest.raises(UsageError, match=r"no proof allows .* only rounds \(bsp\)"):
        run(RELU, 1, 2, coordination="async")


@pytest.mark.parametrize("storage", ["columns", "loops"])
def test_workers_that_are_not_in_step_may_hand_on_many_small_changes(storage: str) -> None:
    """A worker with a loop of its own goes round it many times between two messages: it is no endless sum."""
    edges = [(4, 0), (1, 4), (4, 4), (2, 4), (0, 4)]
    text = RANK.replace("0.0001", "0.0000000001").replace("node(X)", "edge(X, _)").replace("node(Y)", "edge(Y, _)")
    with emberlog.Engine(executor="local", workers=3, warnings="ignore") as engine:
        engine.register("edge", edges)
        right = dict(engine.run(text, evaluator="sql")["rank"].rows())
        for mode in ("async", "ssp:3:2"):
            result = engine.run(text, coordination=mode, storage=storage, simulate="latency=0.001,seed=66")
            assert dict(result["rank"].rows()) == pytest.approx(right, abs=1e-8)
