"""Rows in every form against Python sets: growing, moving between forms, taking in deltas, turning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.components.compositions import Storage
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows.delta import Delta, Metas
from emberlog.kernels.rows.layout import BITS, FORM, SIZE, View, decode, grouped, words_of
from emberlog.kernels.rows.parts import packed, together
from emberlog.kernels.rows.setrows import chunks, merge
from emberlog.kernels.rows.store import Store
from emberlog.kernels.rows.turn import turned

FEW = settings(max_examples=int(os.environ.get("ROWS_EXAMPLES", "60")), deadline=None)
Rows = dict[int, set[int]]


def delta_of(rows: Rows, first: int, second: int, dense: set[int]) -> Delta:
    """A delta with these rows, those of `dense` as bit rows."""
    view = grouped(
        np.array([x for x, own in rows.items() for _ in own], np.int32),
        np.array([y for own in rows.values() for y in own], np.int32),
        first,
        second,
    )
    bits = np.zeros(len(dense) * view.words, np.int64)
    for place, x in enumerate(sorted(dense & rows.keys())):
        if rows[x]:
            for y in rows[x]:
                bits[place * view.words + (y >> 6)] |= np.int64(1) << np.int64(y & 63)
            view.meta[x] = place * view.words, len(rows[x]) << SIZE | BITS
    view.bits = bits
    xs = np.flatnonzero(view.meta[:, 1]).astype(np.int32)
    return Delta(xs, view, sum(len(own) for own in rows.values()), xs)


def read(view: View, xs: list[int], second: int) -> Rows:
    """Rows of a view; no id comes twice."""
    found: Rows = {}
    for x in xs:
        out = np.empty(second, np.int32)
        count = decode(x, view.meta, view.items, view.bits, view.words, out, 0)
        assert count == view.meta[x, 1] >> SIZE
        found[x] = set(out[:count].tolist())
        assert len(found[x]) == count
    return found


@st.composite
def rounds(draw: st.DrawFn) -> tuple[int, int, list[tuple[Rows, set[int]]]]:
    """Sizes of the domains, and rows of facts for some rounds, many or few at once, with those that are bit rows."""
    first, second = draw(st.integers(1, 5)), draw(st.sampled_from((1, 5, 64, 65, 300, 5000)))
    some = st.one_of(
        st.sets(st.integers(0, second - 1), max_size=20),
        st.integers(1, 40).map(lambda step: set(range(0, second, step))),
        st.integers(0, second - 1).map(lambda low: set(range(low, second))),
    )
    rows = st.dictionaries(st.integers(0, first - 1), some)
    return first, second, draw(st.lists(st.tuples(rows, st.sets(st.integers(0, first - 1))), max_size=8))


@pytest.mark.parametrize("storage", ["auto", "bits", "sparse"])
@FEW
@given(rounds())
def test_rows_grow_as_sets_do(storage: Storage, case: tuple[int, int, list[tuple[Rows, set[int]]]]) -> None:
    first, second, steps = case
    store, truth = Store(first, second, storage), {x: set[int]() for x in range(first)}
    for rows, dense in steps:
        new = {x: own - truth[x] for x, own in rows.items()}
        merge(store, delta_of(new, first, second, dense), Crew(1))
        for x, own in new.items():
            truth[x] |= own
        assert read(store.view, list(truth), second) == truth
    pairs = [pair for part in chunks(store.view, 7) for pair in zip(*(c.tolist() for c in part), strict=True)]
    assert sorted(pairs) == sorted((x, y) for x, own in truth.items() for y in own)
    if storage == "auto":
        assert store.bytes <= 16 * first + 24 * first * max(words_of(second), 1) + 64 * len(pairs)


def test_blocks_are_used_again() -> None:
    store = Store(2, 1 << 20, "sparse")
    for size in range(0, 3000, 100):
        for x in (0, 1):
            merge(store, delta_of({x: set(range(size, size + 100))}, 2, 1 << 20, set()), Crew(1))
    # 6000 ids in tables at least three eighths full, and the blocks that two rows have left.
    assert store.bytes < 32 + 4 * 6000 * 3 * 2
    assert store.view.meta[0, 1] & FORM == 12


@FEW
@given(rounds())
def test_turning_is_transposing(case: tuple[int, int, list[tuple[Rows, set[int]]]]) -> None:
    first, second, steps = case
    for rows, dense in steps:
        delta = delta_of(rows, first, second, dense)
        for lists in (False, True):
            columns = turned(delta.xs, delta.view, delta.facts, first, Metas(second), lists=lists)
            wanted: Rows = {}
            for x, own in rows.items():
                for y in own:
                    wanted.setdefault(y, set()).add(x)
            assert read(columns.view, columns.xs.tolist(), first) == wanted


@FEW
@given(rounds())
def test_deltas_together(case: tuple[int, int, list[tuple[Rows, set[int]]]]) -> None:
    first, second, steps = case
    truth: Rows = {}
    parts = []
    for rows, dense in steps:
        new = {x: own - truth.get(x, set()) for x, own in rows.items()}
        delta = delta_of(new, first, second, dense)
        parts.append(packed(delta, delta.xs))
        for x, own in new.items():
            truth.setdefault(x, set()).update(own)
    if parts:
        delta = together(parts, words_of(second), Metas(first))
        assert delta.facts == sum(len(own) for own in truth.values())
        assert read(delta.view, delta.xs.tolist(), second) == {x: own for x, own in truth.items() if own}


@pytest.mark.apart
def test_the_same_without_the_compiler() -> None:
    """The loops are Python too: the tests of programs pass with them uncompiled."""
    here = Path(__file__).parent
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "ROWS_EXAMPLES": "6"}
    # Numbers of NumPy warn where machine words wrap.
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    done = subprocess.run(
        [*command, str(here / "test_programs.py"), str(here / "test_store.py"), "-k", "not compiler"],
        env=environment, capture_output=True, text=True, cwd=here.parent.parent.parent, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
