"""All exchanges do the same: what is sent arrives, whole and in order, and a failing peer is told."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import Alone, Array, Exchange, PeerLost, Received
from emberlog.kernels.cluster.links import Links, open_links
from emberlog.kernels.cluster.meeting import Meeting
from emberlog.kernels.cluster.sockets import SocketExchange
from emberlog.kernels.cluster.threads import thread_exchanges

KINDS = ("threads", "ipc", "tcp")
DTYPES = ("i8", "i4", "f8", "u1", "?")


def meeting_of(size: int) -> Callable[[int], Meeting]:
    """Meetings for threads of this process, by rank."""
    texts, everybody = [""] * size, Barrier(size, timeout=30)

    def of(rank: int) -> Meeting:
        def meet(text: str) -> Sequence[str]:
            texts[rank] = text
            everybody.wait()
            return texts

        return meet

    return of


def together(kind: str, size: int, work: Callable[[Exchange], Received | None]) -> list[Received | None]:
    """Runs `work` by `size` workers with one kind of exchange; their results, by rank."""
    threads = thread_exchanges(size)
    meeting = meeting_of(size)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(size) as pool:

        def run(rank: int) -> Received | None:
            exchange: Exchange = threads[rank]
            if kind != "threads":
                at = Path(folder) if kind == "ipc" else "127.0.0.1"
                exchange = SocketExchange(open_links(Links(rank, size, at, "run"), meeting(rank)))
            try:
                return work(exchange)
            except PeerLost:
                raise
            except Exception as error:
                exchange.abort(str(error))
                raise
            finally:
                exchange.close()

        return [task.result(60) for task in [pool.submit(run, rank) for rank in range(size)]]


def drawn(seed: int, lengths: list[int], size: int) -> list[list[Array]]:
    """Arrays for each worker, of several types and lengths, the same for the same seed."""
    random = np.random.default_rng(seed)
    return [
        [random.integers(0, 2, length * peer).astype(DTYPES[i % len(DTYPES)]) for i, length in enumerate(lengths)]
        for peer in range(size)
    ]


def equal(left: list[list[Array]], right: list[list[Array]]) -> bool:
    def same(a: Array, b: Array) -> bool:
        return a.dtype == b.dtype and np.array_equal(a, b)

    return all(len(x) == len(y) and all(map(same, x, y)) for x, y in zip(left, right, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(
    size=st.integers(1, 4),
    steps=st.lists(st.lists(st.integers(0, 50), max_size=4), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_what_is_sent_arrives(kind: str, size: int, steps: list[list[int]], seed: int) -> None:
    def work(exchange: Exchange) -> None:
        sent = 0
        for number, lengths in enumerate(steps):
            outgoing = drawn(seed + 100 * number + exchange.rank, lengths, size)
            arrays, summaries = exchange.swap(outgoing, (exchange.rank, number, 0.5))
            expected = [drawn(seed + 100 * number + peer, lengths, size)[exchange.rank] for peer in range(size)]
            assert equal(arrays, expected)
            assert summaries == [(peer, number, 0.5) for peer in range(size)]
            sent += sum(a.nbytes for peer, own in enumerate(outgoing) if peer != exchange.rank for a in own)
        assert exchange.bytes_sent == sent

    together(kind, size, work)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_many_frames(kind: str) -> None:
    length = wire.FRAME_BYTES // 8 * 3 + 5

    def work(exchange: Exchange) -> None:
        for step in range(3):
            mine = np.arange(length) + exchange.rank + step
            arrays, _ = exchange.swap([[mine, mine[:1]]] * exchange.size)
            for peer, (long, short) in enumerate(arrays):
                assert long.size == length and long[-1] == length - 1 + peer + step and short[0] == peer + step
                assert peer == exchange.rank or (long.flags.writeable and long.flags.aligned)

    together(kind, 2, work)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_numbers_in_a_summary(kind: str) -> None:
    sent = (2**63, -(2**62), 1e-300, float("inf"), np.int64(7))

    def work(exchange: Exchange) -> None:
        _, summaries = exchange.swap([[], []], sent)
        assert summaries == [(2**63, -(2**62), 1e-300, float("inf"), 7)] * 2

    together(kind, 2, work)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 4])
def test_a_failing_peer_is_told_to_all(kind: str, size: int) -> None:
    lost: list[str] = []

    def work(exchange: Exchange) -> None:
        exchange.swap([[]] * size)
        if exchange.rank == 1:
            raise ValueError("no such node")
        try:
            exchange.swap([[]] * size)
        except PeerLost as error:
            lost.append(error.message)
            raise

    started = monotonic()
    with pytest.raises((PeerLost, ValueError)):
        together(kind, size, work)
    assert lost == ["worker 1 failed: no such node"] * (size - 1)
    assert monotonic() - started < 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_peer_that_ends_early_is_lost(kind: str) -> None:
    def work(exchange: Exchange) -> None:
        exchange.swap([[], []])
        if exchange.rank == 0:
            exchange.swap([[], []])

    with pytest.raises(PeerLost, match=r"worker 1 (is gone|ended before)"):
        together(kind, 2, work)


def test_alone_gives_everything_back() -> None:
    alone, array = Alone(), np.arange(3)
    arrays, summaries = alone.swap([[array]], (1,))
    assert arrays[0][0] is array and summaries == [(1,)] and alone.bytes_sent == 0


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_lists_as_workers(kind: str) -> None:
    def work(exchange: Exchange) -> None:
        with pytest.raises(ValueError, match="3 lists of arrays for 2 workers"):
            exchange.swap([[], [], []])

    together(kind, 2, work)
