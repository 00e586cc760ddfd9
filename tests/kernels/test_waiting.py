"""Facts that go into tables and wait there, against naive twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.kernels.cache import call
from emberlog.kernels.waiting import drained, outgoing, put_best, put_owned, put_set, put_sum, skip, turn_of
from emberlog.types import INT64_MAX, INT64_MIN

Array = np.ndarray[Any, Any]
SOME = settings(max_examples=60)


# --- what goes into tables --------------------------------------------------------------------------------------------

SLOTS = 6
slots_and_values = st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(-4, 4)), max_size=30)


class Flags:
    """The state of a dense table: its flags, its facts in order, and what waits."""

    def __init__(self) -> None:
        self.seen = np.zeros(8, np.uint8)
        self.log = np.zeros(SLOTS + 1, np.uint32)
        self.waiting = np.zeros(2 * SLOTS + 1, np.uint32)
        self.counts = np.zeros(3, np.int64)

    def of(self, values: Array) -> tuple[Array, ...]:
        return np.zeros_like(values), self.seen, self.log, self.waiting, self.counts

    def check(self, known: list[int], waiting: list[int]) -> None:
        assert self.log[: self.counts[0]].tolist() == known
        assert self.waiting[: self.counts[2]].tolist() == waiting
        assert [int(slot) for slot in np.flatnonzero(self.seen & 2)] == sorted(waiting or known)


@SOME
@given(slots_and_values)
def test_put_set(pairs: list[tuple[int, int]]) -> None:
    state = Flags()
    call(put_set, state.seen, state.log, state.counts, np.array([slot for slot, _ in pairs], np.uint32))
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, [])


@SOME
@given(slots_and_values, st.booleans())
def test_put_best(pairs: list[tuple[int, int]], smallest: bool) -> None:
    state, best = Flags(), min if smallest else max
    values = np.full(SLOTS, INT64_MAX if smallest else INT64_MIN, np.int64)
    slots, given_values = np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs], np.int64)
    call(put_best, values, state.seen, state.log, state.waiting, state.counts, slots, given_values, smallest)
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, known)
    for slot in known:
        assert values[slot] == best(value for other, value in pairs if other == slot)


@SOME
@given(slots_and_values)
def test_put_sum(pairs: list[tuple[int, int]]) -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs], np.int64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)
    known = list(dict.fromkeys(slot for slot, _ in pairs))
    state.check(known, known)
    for slot in range(SLOTS):
        assert pending[slot] == sum(value for other, value in pairs if other == slot)


@pytest.mark.parametrize("pair", [(INT64_MAX, 1), (INT64_MIN, -1), (2**62, 2**62), (-(2**62), -(2**62) - 1)])
def test_a_sum_that_leaves_64_bits_is_told(pair: tuple[int, int]) -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.zeros(2, np.uint32), np.array(pair, np.int64)
    assert call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)


def test_a_sum_up_to_the_end_of_64_bits_is_one() -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.int64)
    slots, values = np.zeros(3, np.uint32), np.array((2**62, 2**62 - 1, -(2**63) + 1), np.int64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, INT64_MAX, 0.0)
    assert pending[0] == 0


def test_floats_that_are_lost_in_a_sum_are_no_overflow() -> None:
    state, pending = Flags(), np.zeros(SLOTS, np.float64)
    slots, values = np.zeros(2, np.uint32), np.array((1e300, 1.0), np.float64)
    assert not call(put_sum, pending, *state.of(pending), slots, values, np.inf, 1e-12)


def test_small_changes_of_large_sums_wait_until_they_are_more() -> None:
    state, pending, val = Flags(), np.zeros(SLOTS, np.float64), np.full(SLOTS, 1.0)
    state.seen[:SLOTS] = 5  # known, and taken up before
    slots = np.array((0, 1, 2, 1), np.uint32)
    values = np.array((1e-13, 6e-13, 1e-3, 6e-13), np.float64)
    call(put_sum, pending, val, *state.of(pending)[1:], slots, values, np.inf, 1e-12)
    assert state.waiting[: state.counts[2]].tolist() == [2, 1]
    assert pending[0] == 1e-13 and pending[1] == 1.2e-12


@SOME
@given(st.lists(st.integers(0, SLOTS - 1), max_size=12), st.integers(2, 4))
def test_what_is_sent_is_sent_once(waiting: list[int], size: int) -> None:
    seen = np.zeros(8, np.uint8)
    seen[waiting] = 3
    queue, own = np.array(waiting, np.uint32), np.array([slot % size for slot in waiting], np.int64)
    kept, sent, ranges = call(outgoing, queue, len(waiting), seen, 0, size, own)
    assert queue[:kept].tolist() == [slot for slot in waiting if slot % size == 0]
    for other in range(1, size):
        wanted = list(dict.fromkeys(slot for slot in waiting if slot % size == other))
        assert sent[ranges[other] : ranges[other + 1]].tolist() == wanted
    assert [int(slot) for slot in np.flatnonzero(seen & 2)] == sorted({slot for slot in waiting if slot % size == 0})


# --- what owners share ------------------------------------------------------------------------------------------------

OWNED_SLOTS = 42
borders = st.lists(st.integers(0, OWNED_SLOTS // 8).map(lambda block: 8 * block), max_size=4).map(
    lambda inner: [0, *sorted(inner), OWNED_SLOTS]
)
owned_puts = st.lists(st.tuples(st.integers(0, OWNED_SLOTS - 1), st.integers(-4, 4)), max_size=60)


class Ranges:
    """The state of a table that owners share."""

    def __init__(self, own: list[int]) -> None:
        self.own, self.owners = np.array(own, np.int64), len(own) - 1
        self.seen = np.zeros(48, np.uint8)
        self.waiting = np.zeros(OWNED_SLOTS, np.uint32)
        self.tally = np.zeros((self.owners, 3), np.int64)

    def lists(self) -> list[list[int]]:
        """What waits, owner by owner."""
        return [self.waiting[low : low + n].tolist() for low, n in zip(self.own, self.tally[:, 1], strict=False)]

    def check(self, known: list[int], waiting: list[int]) -> None:
        ranges = [range(self.own[i], self.own[i + 1]) for i in range(self.owners)]
        assert self.lists() == [[slot for slot in waiting if slot in one] for one in ranges]
        assert self.tally[:, 0].tolist() == [sum(slot in one for slot in known) for one in ranges]
        assert [int(slot) for slot in np.flatnonzero(self.seen & 2)] == sorted(waiting)
        assert [int(slot) for slot in np.flatnonzero(self.seen & 1)] == sorted(known)

    def drain(self, sweep: int) -> list[list[int]]:
        taken = np.zeros(OWNED_SLOTS, np.uint32)
        found = []
        for i in range(self.owners):
            low, high = self.own[i], self.own[i + 1]
            lists = (self.seen, self.seen.view(np.uint64), self.waiting, taken, low, high, self.tally[i, 1], sweep)
            found.append(taken[low : low + int(call(drained, *lists))].tolist())
            self.tally[i, 1] = 0
        return found


@SOME
@given(borders, owned_puts, owned_puts, st.integers(1, 64))
def test_put_owned_and_drained_of_a_set(
    own: list[int], first: list[tuple[int, int]], second: list[tuple[int, int]], sweep: int
) -> None:
    state, known = Ranges(own), list[int]()
    for puts in (first, second):
        slots = np.array([slot for slot, _ in puts], np.uint32)
        call(put_owned, None, state.seen, state.waiting, state.tally, state.own, slots, None, True)
        new = [slot for slot in dict.fromkeys(slots.tolist()) if slot not in known]
        known += new
        state.check(known, new)
        waits = state.lists()
        for one, other, low, high in zip(waits, state.drain(sweep), own[:-1], own[1:], strict=True):
            assert other == (one if len(one) * sweep <= high - low else sorted(one))
        assert state.seen[known].tolist() == [5] * len(known)


@SOME
@given(borders, owned_puts, owned_puts, st.booleans(), st.sampled_from((np.int32, np.int64, np.float64)))
def test_put_owned_of_extrema(
    own: list[int], first: list[tuple[int, int]], second: list[tuple[int, int]], smallest: bool, dtype: Any
) -> None:
    state, values = Ranges(own), np.full(OWNED_SLOTS, 100 if smallest else -100, dtype)
    best: dict[int, int] = {}
    for puts in (first, second):
        better = list[int]()
        for slot, value in puts:
            if slot not in best or (value < best[slot] if smallest else value > best[slot]):
                best[slot] = value
                better.append(slot)
        slots, given_values = np.array([p[0] for p in puts], np.uint32), np.array([p[1] for p in puts], dtype)
        call(put_owned, values, state.seen, state.waiting, state.tally, state.own, slots, given_values, smallest)
        state.check(list(best), list(dict.fromkeys(better)))
        assert {slot: values[slot] for slot in best} == best
        state.drain(1)


RING = 8


@SOME
@given(
    st.integers(0, 1000), st.lists(st.lists(st.integers(0, 3), min_size=RING, max_size=RING), min_size=1, max_size=4)
)
def test_the_turn_goes_on_to_the_next_bucket_that_holds_something(turn: int, inside: list[list[int]]) -> None:
    held, filled = np.array((turn, 3), np.int64), [sum(one[at] for one in inside) for at in range(RING)]
    found = int(call(turn_of, held, np.array(inside, np.int64)))
    following = next((t for t in range(turn, turn + RING) if filled[t % RING]), None)
    assert (int(held[0]), found) == ((turn, 0) if following is None else (following, filled[following % RING]))
    assert held[1] == 3


NONE = 1 << 61


@SOME
@given(
    st.integers(0, 10**6),
    st.integers(0, 6),
    st.integers(0, 2),
    st.lists(st.one_of(st.just(NONE), st.integers(1, 10**9), st.integers(1, 40)), min_size=1, max_size=4),
)
def test_turns_are_skipped_by_whole_rings(turn: int, idle: int, took: int, far: list[int]) -> None:
    held = np.array((turn, idle), np.int64)
    call(skip, held, took, np.array(far, np.int64), RING, 4, NONE)
    assert held[1] == (0 if took else idle + 1)
    leaps = not took and idle + 1 > 4 and min(far) < NONE
    assert held[0] == turn + (min(far) // RING * RING if leaps else 0)
