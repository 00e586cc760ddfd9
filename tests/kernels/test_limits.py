"""Limits, memory, progress and Ctrl-C while loops run; options that are none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import emberlog
from emberlog.diagnostics import sized
from emberlog.kernels import native, rounds
from emberlog.kernels.memory import Memory

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
REACH = "r(X) <- X = 0. r(Y) <- r(X), arc(X,Y)."
SSSP = "d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), arc(X,Y), D = C + 1."
CHAIN = [(i, i + 1) for i in range(40)]
WAYS: dict[str, dict[str, Any]] = {
    "pivots": {"storage": "hash"},
    "rows": {"storage": "rows"},
    "whole": {"storage": "loops", "decompose": False},
    "hashed": {"storage": "hash", "decompose": False},
}


def engine(workers: int = 1, **options: Any) -> emberlog.Engine:
    made = emberlog.Engine(executor="local", workers=workers, **options)
    made.register("arc", CHAIN)
    return made


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("limits", "message"), [({"rounds": 20}, "limit of 20 rounds"), ({"rows": 500}, "limit of 500 rows")]
)
def test_a_limit_is_an_error(limits: Any, message: str, how: dict[str, Any]) -> None:
    with engine() as made, pytest.raises(emberlog.LimitError, match=message):
        made.run(TC, evaluator="kernel", limits=limits, **how)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_a_limit_that_is_kept_is_none(how: dict[str, Any]) -> None:
    with engine() as made:
        result = made.run(TC, evaluator="kernel", limits={"rounds": 41, "rows": 820, "seconds": 300}, **how)
        assert len(result["tc"]) == 820


@pytest.mark.parametrize("workers", [1, 3])
def test_limits_hold_for_workers_that_exchange(workers: int) -> None:
    how: dict[str, Any] = {"evaluator": "kernel", "exchange": True, "decompose": False}
    with engine(workers) as made:
        with pytest.raises(emberlog.LimitError, match="limit of 20 rounds"):
            made.run(REACH, limits={"rounds": 20}, **how)
        assert len(made.run(REACH, limits={"rounds": 42}, **how)["r"]) == 41


GROWING = {
    "set": ("n(0). n(Y) <- n(X), Y = X + 1.", "rounds"),
    "sum": ("s(X,sum<D>) <- X = 0, D = 1. s(Y,sum<C>) <- s(X,C), ring(X,Y).", "rounds"),
    "min": ("d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), ring(X,Y), D = C - 1.", "rounds"),
    "pairs": ("p(X,Y,min<D>) <- ring(X,Y), D = 0. p(X,Y,min<D>) <- p(X,Z,C), ring(Z,Y), D = C - 1.", "rounds"),
}


@pytest.mark.parametrize(("text", "message"), GROWING.values(), ids=GROWING)
def test_what_grows_for_ever_is_stopped(text: str, message: str) -> None:
    with engine() as made:
        made.register("ring", [(0, 1), (1, 2), (2, 0)])
        with pytest.raises(emberlog.LimitError, match=message):
            made.run(text, evaluator="kernel")


def test_seconds() -> None:
    with engine() as made:
        began = time.monotonic()
        with pytest.raises(emberlog.LimitError, match="second"):
            made.run(
                "n(X) <- X = 0. n(Y) <- n(X), Y = X + 1.", evaluator="kernel", limits={"seconds": 0.5, "rounds": 10**9}
            )
        assert time.monotonic() - began < 60


# Programs that visit many rows in one round, or for one fact, and the size of the data for which that takes long.
SCAN = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y), X * Y + Z {}."
BOTH = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."
BEST = "d(X,Y,min<D>) <- arc(X,Y), D = X + Y. d(X,Y,min<D>) <- d(X,Z,A), d(Z,Y,B), D = A + B."
FROM = "s(0). t(S,X,Y) <- s(S), arc(X,Y). t(S,X,Y) <- t(S,X,Z), t(S,Z,Y)."
THREE = "p(X) <- arc(X,_). p(X) <- p(Y), arc(A,B), arc(C,D), arc(E,F), X = A * B * C * D * E * F * Y, X < 0."
VISITED: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "hashed rows that are derived": (SCAN.format("> -1"), {"storage": "hash"}, 2000, 5),
    "hashed rows that match nothing": (SCAN.format("< -1"), {"storage": "hash"}, 2000, 1000),
    "one fact": (THREE, {"storage": "hash"}, 3000, 1),
    "dense": (BOTH, {"storage": "loops"}, 2000, 500),
}
SLOWLY_COMPILED: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "minima": (BEST, {"storage": "loops"}, 2000, 500),
    "unordered minima": (BEST, {"storage": "loops", "ordered": False}, 2000, 500),
    "one pivot": (FROM, {"storage": "loops"}, 2000, 500),
}


def arcs(size: int, degree: int) -> pa.Table:
    """So many nodes, each with arcs to so many others."""
    rows = np.arange(size * degree)
    return pa.table({"x": rows // degree, "y": (rows // degree * 7 + rows % degree * 3 + 1) % size})


@pytest.mark.parametrize(
    ("text", "how", "size", "degree"),
    [
        *(pytest.param(*case, id=name) for name, case in VISITED.items()),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, case in SLOWLY_COMPILED.items()),
    ],
)
def test_seconds_while_rows_are_visited(text: str, how: dict[str, Any], size: int, degree: int) -> None:
    with engine() as made:
        made.run(text, evaluator="kernel", **how)  # compiles the loops
        made.register("arc", arcs(size, degree))
        began = time.monotonic()
        with pytest.raises(emberlog.LimitError, match=r"limit of 1\.5 seconds"):
            made.run(text, evaluator="kernel", limits={"seconds": 1.5}, **how)
        assert time.monotonic() - began < 1.5 + 2


def test_cancelled_while_rows_are_visited() -> None:
    with engine() as made:
        text = SCAN.format("< -1")
        made.run(text, evaluator="kernel", storage="hash")
        made.register("arc", arcs(2000, 1000))
        threading.Timer(1, made.cancel).start()
        began = time.monotonic()
        with pytest.raises(emberlog.CancelledError):
            made.run(text, evaluator="kernel", storage="hash")
        assert time.monotonic() - began < 1 + 3


def test_a_round_that_is_left_off_is_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCAN.format("> -1")
    with engine() as made:
        made.register("arc", [(i, (i + 1) % 40) for i in range(40)])
        (whole,) = made.run(text, evaluator="kernel", storage="hash").stats
        monkeypatch.setattr(rounds, "WORK", 5000)
        (parts,) = made.run(text, evaluator="kernel", storage="hash").stats
    assert whole.deltas == parts.deltas and whole.rounds == parts.rounds > 3
    assert whole.facts == parts.facts == 1600 and whole.derivations == parts.derivations


class Recorder:
    """Somebody who is told how a run goes on."""

    def __init__(self) -> None:
        self.rounds: list[tuple[int, int, int]] = []
        self.ended = 0

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        return

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        self.rounds.append((number, delta, facts))

    def done(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("text", [REACH, SSSP])
def test_progress_tells_of_rounds(text: str) -> None:
    told = Recorder()
    with engine() as made:
        result = made.run(text, evaluator="kernel", progress=told, ordered=False)
        (stats,) = result.stats
    assert [number for number, _, _ in told.rounds] == list(range(1, len(told.rounds) + 1))
    assert sum(delta for _, delta, _ in told.rounds) >= 41
    assert stats.rounds == len(told.rounds) and stats.facts == 41


# A closure that takes long: what is asked is only that it ends soon after the signal.
LONG = """
import emberlog, sys
with emberlog.Engine(executor="local", workers={workers}) as engine:
    engine.register("arc", [(i, (i * 7 + k) % 80000) for i in range(80000) for k in range(6)])
    print("go", flush=True)
    engine.run("{text}", evaluator="kernel", {how})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "how"),
    [
        (1, "storage='loops'"),
        (2, "storage='loops'"),
        (1, "storage='rows'"),
        (1, "storage='hash'"),
        (2, "storage='hash', decompose=False"),
    ],
)
def test_ctrl_c_ends_long_loops(workers: int, how: str) -> None:
    command = [sys.executable, "-c", LONG.format(workers=workers, text=TC, how=how)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert running.stdout is not None and running.stdout.readline() == "go\n"
    time.sleep(5)
    assert running.poll() is None, running.communicate()[1]
    running.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, errors = running.communicate(timeout=90)
    assert "KeyboardInterrupt" in errors
    assert time.monotonic() - sent < 30


def test_workers_are_gone_afterwards() -> None:
    before = threading.active_count()
    with engine(4) as made:
        made.run(TC, evaluator="kernel", storage="loops")
        made.run(REACH, evaluator="kernel", exchange=True, decompose=False)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "way"),
    [
        ("60MB", "512 pivots at a time (tc: 1), dense tables, 3 workers"),
        ("35MB", "512 pivots at a time (tc: 1), dense tables, 2 workers, 1 fewer for want of memory"),
        ("4MB", "pivot by pivot (tc: 1), dense tables, 3 workers"),
    ],
)
def test_fewer_pivots_go_at_once_where_memory_is_short(memory: str, way: str) -> None:
    with engine(3, memory=memory) as made:
        # Everybody reaches the same few: masks pay.
        made.register("arc", [(i, 60_000 + j) for i in range(5000) for j in range(2)] + [(60_001, 79_000)])
        result = made.run(TC, evaluator="kernel")
        assert result.stats[-1].how == way
        assert len(result["tc"]) == 15_001


def test_finished_rows_go_to_disk_where_memory_is_short() -> None:
    with engine(memory="3MB") as made:
        made.register("arc", [(i, i + 1) for i in range(60_000) if i % 40])
        result = made.run(TC, evaluator="kernel", storage="hash")
        assert "of rows on disk" in result.stats[-1].how
        assert result["tc"].to_arrow().num_rows == result["tc"].count() == 1500 * 780


def test_rows_on_disk_are_not_those_of_another_component() -> None:
    """Each component has files of its own: the rows of the first one are read after the second one wrote some."""
    other = "uc(X,Y) <- brc(X,Y). uc(X,Y) <- uc(X,Z), brc(Z,Y)."
    with engine(memory="3MB") as made:
        made.register("arc", [(i, i + 1) for i in range(60_000) if i % 40])
        made.register("brc", [(i, i + 1) for i in range(60_000) if i % 50])
        result = made.run(TC + other, evaluator="kernel", storage="hash")
        assert all("of rows on disk" in stats.how for stats in result.stats)
        for name, length in (("tc", 40), ("uc", 50)):
            assert result[name].to_arrow().num_rows == 60_000 // length * length * (length - 1) // 2
            assert all(x // length == (y - 1) // length for x, y in result[name])


def test_what_is_begun_again_does_not_count_twice() -> None:
    """Pivots with little in common are begun together, and then done one by one: the first rows are given back."""
    kept = []
    for storage in ("loops", "hash"):  # hashed tables are never begun together
        memory = Memory(10**9)
        with engine() as made, mock.patch.object(native, "Memory", lambda budget, folder, memory=memory: memory):
            made.register("arc", [(i, i + 10_000) for i in range(6000)])
            result = made.run(TC, evaluator="kernel", storage=storage)
            assert result.stats[-1].how.startswith("pivot by pivot") and len(result["tc"]) == 6000
        kept.append(memory.kept)
    assert kept[0] == kept[1] > 0


def test_what_is_forgotten_is_gone_from_disk_too(tmp_path: Path) -> None:
    memory = Memory(100, tmp_path)
    rows = np.arange(20)
    for _ in range(2):
        assert memory.keep(rows).tolist() == rows.tolist()
        assert (memory.kept, memory.spilled, len(list(tmp_path.rglob("*.npy")))) == (0, 160, 1)
        memory.forget()
        assert (memory.kept, memory.spilled, list(tmp_path.rglob("*.npy"))) == (0, 0, [])


@pytest.mark.parametrize("text", ["lots", "0", "-1GB", "1.2.3MB", "4 potatoes", ""])
def test_memory_is_a_size(text: str) -> None:
    with pytest.raises(emberlog.UsageError, match="memory is a size such as 4GB"):
        engine(memory=text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (50_400_000, "50.4 MB"),
        (7 * 10**12, "7,000.0 GB"),
    ],
)
def test_sizes_are_told_in_units(count: int, text: str) -> None:
    assert sized(count) == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage": "tree"}, "storage is one of auto, hash, rows, loops, columns, not 'tree'"),
        ({"decompose": "no"}, "decompose is one of True, False, not 'no'"),
        ({"workers": 2}, "there is no option `workers`"),
        ({"partition": 0}, "partition gives an argument for each predicate, not 0"),
        ({"partition": {"ct": 0}}, "partition: there is no `ct`"),
        ({"partition": {"tc": 2}}, "partition: `tc` has 2 arguments, counted from 0, and none is 2"),
        ({"partition": {"tc": "X"}}, "and none is 'X'"),
        ({"partition": {"arc": 0}}, "`arc` is not recursive, and workers share out recursive predicates only"),
        ({"partition": {"n": 0}}, "`n` is not recursive"),
        ({"partition": {"d": 1}}, "argument 1 of `d` is aggregated"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", [(1, 2)])
        with pytest.raises(emberlog.UsageError, match=message):
            engine.run(TC + SSSP + "n(count<X>) <- tc(X,_).", **options)


@pytest.mark.parametrize(
    ("text", "partition", "fix"),
    [
        (TC + SSSP, {"arc": 0}, "these are recursive: `d`, `tc`"),
        ("n(count<X>) <- arc(X,_).", {"arc": 0}, "leave partition out: this program has none"),
        (SSSP, {"d": 1}, "divide by a group: 0"),
    ],
)
def test_what_can_be_divided_is_told(text: str, partition: dict[str, int], fix: str) -> None:
    with engine() as made, pytest.raises(emberlog.UsageError) as caught:
        made.run(text, partition=partition)
    assert caught.value.fix == fix


def test_memory_that_is_too_little_to_start_is_told() -> None:
    with engine(memory="1MB") as made, pytest.raises(emberlog.EmberlogError, match=r"(?i)duckdb"):
        made.run("p(1). p(X) <- p(Y), X = Y, X > 5.")
