"""Runs in which many own a part: what ends them before their end, and large ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import emberlog
from emberlog.kernels import owned
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.code.owned import PUT, TAKE
from emberlog.kernels.sorting import ALIGN
from emberlog.kernels.watch import MeterWatch
from kernels.owners import PROGRAMS, REACH, SHARED, SHORT, Rows, eager, run

# --- what ends a run before its end ----------------------------------------------------------------------------------

CHAIN: Rows = [(i * 1000, i * 1000 + 1000) for i in range(60)] + [(i * 1000, i) for i in range(60)]
ENDLESS: Rows = [(0, ALIGN, -1), (ALIGN, 2 * ALIGN, -1), (2 * ALIGN, 0, -1)]


@pytest.fixture
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - before


@pytest.mark.usefixtures("no_thread_stays")
@pytest.mark.parametrize("many", [0, 2, 1 << 11])
@pytest.mark.parametrize(
    ("limits", "message"),
    [({"rounds": 20}, "limit of 20 rounds"), ({"rows": 50}, "limit of 50 rows"), ({"seconds": 1e-9}, "second")],
)
def test_limits_hold_in_the_middle(limits: Any, message: str, many: int) -> None:
    with eager(many), pytest.raises(emberlog.LimitError, match=message):
        run(REACH, {"s": [(0,)], "a": CHAIN}, 4, ("p",), limits=limits)


@pytest.mark.usefixtures("no_thread_stays")
@pytest.mark.parametrize("many", [0, 1 << 11])
def test_limits_that_are_kept_are_none(many: int) -> None:
    with eager(many):
        found, stats = run(REACH, {"s": [(0,)], "a": CHAIN}, 4, ("p",), limits={"rounds": 62, "rows": 200})
    assert stats.rounds == 62 and len(found["p"]) == stats.facts == 120


@pytest.mark.usefixtures("no_thread_stays")
@pytest.mark.parametrize("many", [0, 1 << 11])
@pytest.mark.parametrize("owners", [1, 3])
def test_what_falls_for_ever_is_stopped(owners: int, many: int) -> None:
    with eager(many), pytest.raises(emberlog.LimitError, match="rounds"):
        run(SHORT.text, {"s": [(0,)], "w": ENDLESS}, owners, ("d",))


@pytest.mark.usefixtures("no_thread_stays")
@pytest.mark.parametrize("after", [1, 2, 30])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_a_watch_raises_ends_all_threads(error: type[BaseException], after: int) -> None:
    real, told = MeterWatch.rounds, []

    def rounds(self: MeterWatch, deltas: list[int], facts: int) -> None:
        told.append(facts)
        if len(told) == after:
            raise error
        real(self, deltas, facts)

    with eager(), mock.patch.object(MeterWatch, "rounds", rounds), pytest.raises(error):
        run(REACH, {"s": [(0,)], "a": CHAIN}, 5, ("p",))
    assert len(told) == after


@pytest.mark.usefixtures("no_thread_stays")
@pytest.mark.parametrize("rank", [0, 1, 4])
@pytest.mark.parametrize("half", [TAKE, PUT])
def test_what_one_owner_raises_ends_all_threads(rank: int, half: int) -> None:
    real, made = owned.Shared.call, []

    def call(self: owned.Shared, which: int, first: int, *more: Any) -> None:
        if (which, first) == (half, rank):
            made.append(rank)
            if len(made) == 7:
                raise ZeroDivisionError
        real(self, which, first, *more)

    with eager(), mock.patch.object(owned.Shared, "call", call), pytest.raises(ZeroDivisionError):
        run(REACH, {"s": [(0,)], "a": CHAIN}, 5, ("p",))
    assert len(made) == 7


@pytest.mark.usefixtures("no_thread_stays")
def test_a_thread_that_cannot_start_ends_the_others() -> None:
    started: list[threading.Thread] = []

    class Few(threading.Thread):
        def start(self) -> None:
            started.append(self)
            if len(started) == 3:
                raise RuntimeError("can't start new thread")
            super().start()

    with eager(), mock.patch.object(threading, "Thread", Few), pytest.raises(RuntimeError, match="start new"):
        run(REACH, {"s": [(0,)], "a": CHAIN}, 5, ("p",))
    assert len(started) == 3


# --- large ones ------------------------------------------------------------------------------------------------------


def graph(nodes: int, edges: int, seed: int) -> pa.Table:
    """Random edges, half of them from near to near, with weights of very different sizes."""
    draw = np.random.default_rng(seed)
    x, y = draw.integers(0, nodes, edges), draw.integers(0, nodes, edges)
    y[::2] = np.minimum(x[::2] + draw.integers(1, 50, len(x[::2])), nodes - 1)
    w = np.exp(draw.uniform(0, 14 if seed % 2 else 3, edges)).astype(np.int64)
    return pa.table({"x": x, "y": y, "w": w, "f": w / 8})


def matrix(edges: pa.Table, nodes: int) -> Any:
    """The least weight of each edge."""
    from scipy.sparse import csr_array

    x, y, w = (edges[name].to_numpy() for name in "xyw")
    order = np.lexsort([w, y, x])
    x, y, w = x[order], y[order], w[order]
    first = np.r_[True, (x[1:] != x[:-1]) | (y[1:] != y[:-1])]
    return csr_array((w[first].astype(np.float64), (x[first], y[first])), shape=(nodes, nodes))


LARGE = [(2000, 100_000), (100_000, 150_000), (100_000, 1_000_000), (300_000, 400_000)]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILES, reason="takes long as plain Python")
@pytest.mark.parametrize("owners", [2, 3, 8])
@pytest.mark.parametrize(("nodes", "edges"), LARGE)
@pytest.mark.parametrize("many", [0, 1 << 11])
def test_large_graphs(nodes: int, edges: int, owners: int, many: int) -> None:
    from scipy.sparse import csgraph

    text = (
        "a(X,Y) <- e(X,Y,_,_). w(X,Y,W) <- e(X,Y,W,_). f(X,Y,F) <- e(X,Y,_,F). p(X) <- X = 0. p(Y) <- p(X), a(X,Y). "
        + PROGRAMS["components"].text
        + "d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V. "
        + "g(X,min<D>) <- X = 0, D = 0.0. g(Y,min<D>) <- g(X,C), f(X,Y,V), D = C + V."
    )
    for seed in range(2):
        given_edges = graph(nodes, edges, seed)
        weights = matrix(given_edges, nodes)
        far = csgraph.dijkstra(weights, indices=[0])[0]
        _, label = csgraph.connected_components(weights, directed=False)
        least = np.full(nodes, nodes)
        np.minimum.at(least, label, np.arange(nodes))
        alone = set(
            np.flatnonzero(np.bincount(np.r_[given_edges["x"], given_edges["y"]], minlength=nodes) == 0).tolist()
        )
        with eager(many), emberlog.Engine(executor="local", workers=owners) as engine:
            engine.register("e", given_edges)
            result = engine.run(text, evaluator="kernel")
            assert sum(SHARED in stats.how for stats in result.stats) == 4
            reached = [(i, int(x)) for i, x in enumerate(far) if np.isfinite(x)]
            assert sorted(result["d"].rows()) == reached
            assert sorted(result["g"].rows()) == [(i, x / 8) for i, x in reached]
            assert sorted(result["p"].rows()) == [(i,) for i, _ in reached]
            assert sorted(result["c"].rows()) == [(i, int(least[label[i]])) for i in range(nodes) if i not in alone]
