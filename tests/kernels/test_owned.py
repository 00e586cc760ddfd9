"""Workers that own ranges of slots, against the reference: programs of tables with one key, cut among up to eight.

Blocks of 4096 ids have one owner, so nodes stand in several of them, a few in each. What makes threads worth the while
is patched away: here they run for a handful of facts. A shape takes a second or two to compile: `test_interpreted` runs
all programs, and compiled only some of them run, unless slow tests do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import emberlog
from emberlog.kernels import native, owned
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.sorting import ALIGN
from emberlog.types import INT64_MAX
from kernels.owners import (
    BLOCKS,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LOTS,
    NODE,
    PLAIN,
    PROGRAMS,
    REACH,
    SEVERAL,
    SHAPES,
    SHARED,
    SHORT,
    SOME,
    Program,
    Rows,
    Setting,
    agree,
    check,
    eager,
    run,
    table,
)


@pytest.mark.parametrize("program", SHAPES)
def test_owners_agree_with_the_reference(program: Program) -> None:
    agree(program, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_owners_agree_with_the_reference_on_many(program: Program) -> None:
    agree(program, LOTS)


def spread(program: Program, seed: int, a_block: int = 3, rows: int = 90) -> tuple[int, dict[str, Rows]]:
    """Random rows among nodes of all blocks."""
    draw = np.random.default_rng(seed)
    among = sorted(block * ALIGN + int(small) for block in range(BLOCKS) for small in draw.integers(0, ALIGN, a_block))

    def row(kinds: tuple[str, ...]) -> tuple[Any, ...]:
        values = [among[draw.integers(len(among))] if k == NODE else int(draw.integers(1, 40)) for k in kinds]
        if program.acyclic and kinds[1:2] == (NODE,):
            values[:2] = sorted(values[:2])
            values[1] += values[0] == values[1]
        return tuple(float(v) if k == FLOAT else v for v, k in zip(values, kinds, strict=True))

    facts = {
        name: [row(kinds) for _ in range(rows if len(kinds) > 1 else 6)] for name, kinds in program.columns.items()
    }
    return among[0], facts


@pytest.mark.parametrize("owners", SEVERAL if COMPILES else SEVERAL[1:2])
@pytest.mark.parametrize("program", SHAPES)
def test_several_owners_really_work(program: Program, owners: int) -> None:
    stats = check(program, *spread(program, owners), Setting(owners, 0, 1.0, 2))
    assert stats.evaluator == "kernel"
    alone = f"one worker of {owners} (no rows lead straight to what is derived)"
    wanted = f"{owners} workers, {SHARED}" if program.several else alone
    assert stats.how == f"rounds, dense tables, {wanted}"


# --- the ends of ranges, of rings, of numbers ------------------------------------------------------------------------

SOURCE = {"s": [(0,)]}


@contextmanager
def watched() -> Iterator[list[owned.Shared]]:
    """The tables of the runs that are made inside."""
    seen: list[owned.Shared] = []
    real = owned.run_owned

    def run_owned(*given: Any) -> owned.Shared:
        seen.append(real(*given))
        return seen[-1]

    with mock.patch.object(native, "run_owned", run_owned):
        yield seen


@pytest.mark.parametrize("missing", ["a", "b", "both"])
def test_a_relation_without_rows_beside_one_that_has_some(missing: str) -> None:
    program = PROGRAMS["two tables"]
    rows: Rows = [(i * ALIGN, i * ALIGN + ALIGN) for i in range(8)]
    facts = {**SOURCE, "a": rows, "b": rows} | {name: [] for name in ("a", "b") if missing in (name, "both")}
    check(program, 0, facts, Setting(4, 0, 1.0, 1))


@pytest.mark.parametrize("size", [1, 7, 300, ALIGN - 1, ALIGN, ALIGN + 1, 2 * ALIGN - 3])
def test_owners_of_nothing_take_nothing(size: int) -> None:
    """With more owners than blocks some own nothing, from the end of the table on, which is in the midst of a block."""
    rows: Rows = [(i * 7 % size, (i * 11 + k) % size, i * k % 50 + 1) for i in range(60) for k in range(1, 4)]
    for _ in range(3 if COMPILES else 1):
        check(SHORT, 0, {**SOURCE, "w": [*rows, (0, size - 1, 900)]}, Setting(8, 0, 1.0, 1))


def test_ranges_follow_the_rows() -> None:
    """All rows lead into one block: its owner has no other, or some own nothing."""
    rows: Rows = [(i * ALIGN, 5 * ALIGN + i, 1) for i in range(8)] + [(5 * ALIGN, i * ALIGN, i) for i in range(8)]
    with watched() as seen:
        check(SHORT, 0, {**SOURCE, "w": rows}, Setting(6, 0, 1e-9, 1))
    (own,) = seen[0].ranges.borders.values()
    assert own[0] == 0 and own[-1] == 7 * ALIGN + 1 and (np.diff(own) >= 0).all() and (np.diff(own) == 0).any()


def by_loops(text: str, tables: Mapping[str, pa.Table], **options: Any) -> Any:
    """The result of a run by loops."""
    engine = emberlog.Engine(executor="local", workers=options.pop("workers", 2), memory=options.pop("memory", None))
    for name, rows in tables.items():
        engine.register(name, rows)
    return engine.run(text, evaluator="kernel", storage="loops", **options)


def test_rows_of_two_kinds_in_turns_are_both_seen() -> None:
    """Every second row is light: who looks at every second one takes all for light, and rounds without end follow."""
    hub = np.zeros(75_000, np.int64)
    node = np.arange(1, len(hub) + 1)
    heavy = np.random.default_rng(0).integers(1, 10**9, len(hub))
    ends = {"x": np.stack([node, hub], 1).ravel(), "y": np.stack([hub, node], 1).ravel()}
    table = pa.table({**ends, "w": np.stack([np.ones_like(hub), heavy], 1).ravel()})
    text = "d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V."
    result = by_loops(text, {"w": table}, limits={"rounds": 40})
    assert sorted(result["d"].to_arrow()["D"].to_pylist()) == [0, *sorted(heavy.tolist())]


def test_small_pieces_are_put_together() -> None:
    ids = np.random.default_rng(0).integers(0, 5_000, (2, 20_000))
    whole = pa.table({"x": ids[0], "y": ids[1]})
    pieces = pa.Table.from_batches(whole.to_batches(max_chunksize=10))
    text = "c(X,min<X>) <- a(X,_). c(Y,min<Z>) <- c(X,Z), a(X,Y)."
    found = [sorted(by_loops(text, {"a": table})["c"].to_arrow().to_pylist(), key=str) for table in (whole, pieces)]
    assert found[0] == found[1]


@pytest.mark.skipif(not COMPILES, reason="it needs many rows")
def test_fewer_own_where_memory_is_short() -> None:
    ids = np.random.default_rng(0).integers(0, 400_000, (2, 1_200_000))
    table = pa.table({"x": ids[0], "y": ids[1]})
    text = "c(X,min<X>) <- a(X,_). c(Y,min<Z>) <- c(X,Z), a(X,Y)."
    free, short = (by_loops(text, {"a": table}, workers=8, memory=memory) for memory in (None, "48MB"))
    assert free.stats[0].how == "rounds, dense tables, 8 workers, each with its own part of the tables"
    assert "of 8 (for want of memory)" in short.stats[0].how
    assert free["c"].to_arrow().equals(short["c"].to_arrow())


def test_one_worker_of_several_has_a_reason() -> None:
    result = by_loops(REACH, {"s": pa.table({"x": [0]}), "a": pa.table({"x": [0, 1], "y": [1, 2]})}, workers=5)
    assert result.stats[-1].how == "rounds, dense tables, one worker of 5 (few rows)"


@pytest.mark.parametrize("owners", [1, 3])
def test_values_fall_far_below_those_whose_turn_it_is(owners: int) -> None:
    """So far that the difference is more than 64 bits hold."""
    text = (
        "d(X,min<D>) <- v(X,D). d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V. "
        "d(Y,min<D>) <- d(X,C), h(X,Y,V,U), D = C - V - U."
    )
    columns = {"v": (NODE, INT), "w": INTS, "h": (NODE, NODE, INT, INT)}
    facts: dict[str, Rows] = {
        "v": [(0, 1000)],
        "w": [(0, ALIGN, 1), (ALIGN, 9000, 1), (9001, 9002, 1)],
        "h": [(9000, 9001, 2**62, 2**62 + 900)],
    }
    check(Program(text, columns, ("d",)), 0, facts, Setting(owners, 0, 1.0, 1))


@pytest.mark.parametrize("owners", [1, 3])
def test_floats_fall_far_below_those_whose_turn_it_is(owners: int) -> None:
    text = (
        "d(X,min<D>) <- v(X,D). d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V. "
        "d(Y,min<D>) <- d(X,C), a(X,Y), D = C - 1.0e30."
    )
    facts: dict[str, Rows] = {
        "v": [(0, 5.0)],
        "w": [(0, ALIGN, 0.0), (ALIGN, 9000, 1e-9), (9001, 9002, 0.0)],
        "a": [(9000, 9001)],
    }
    columns = {"v": (NODE, FLOAT), "w": FLOATS, "a": PLAIN}
    check(Program(text, columns, ("d",)), 0, facts, Setting(owners, 0, 1.0, 1))


@pytest.mark.parametrize("owners", [1, 4])
@pytest.mark.parametrize("many", [0, 1 << 11])
def test_turns_are_not_skipped_for_what_was_taken_before(owners: int, many: int) -> None:
    """Six nodes get far values first and near ones at once: many buckets hold only what was taken since. Then the
    turn must come to the next bucket that holds more, not go on for ever."""
    hub, tail = ALIGN, 14 * ALIGN
    rows: Rows = [(0, hub, 1), (0, tail, 1200)]
    for i in range(2, 8):
        rows += [(0, i * ALIGN, 60 * i), (hub, i * ALIGN, 1)]
    rows += [(tail + i, tail + i + 1, 1) for i in range(60)]
    with watched() as seen:
        check(SHORT, 0, {**SOURCE, "w": rows}, Setting(owners, many, 1.0, 1))
    assert 0 < seen[0].arrays["held"][0] <= 1260


@pytest.mark.parametrize("far", [10**9, 2**31 - 2, 2**31 - 1, 2**31, 2**40, 2**61, 2**62 - 40])
@pytest.mark.parametrize("owners", [1, 4])
def test_rings_wrap_and_numbers_leave_32_bits(far: int, owners: int) -> None:
    """Weights of one, and others as far apart as can be; what is more than 32 bits hold begins again with 64."""
    rows: Rows = [(i, i + 1, 1) for i in range(20)] + [
        (20, ALIGN, far),
        (ALIGN, 3 * ALIGN, 1),
        (0, 3 * ALIGN, far + 30),
    ]
    rows += [(3 * ALIGN, 5 * ALIGN, far), (5 * ALIGN, 6 * ALIGN, 7)]
    stats = check(SHORT, 0, {**SOURCE, "w": rows}, Setting(owners, 0, 1.0, 1))
    assert stats.evaluator == "kernel"


@pytest.mark.parametrize("owners", [1, 4])
def test_what_leaves_64_bits_is_an_error(owners: int) -> None:
    rows: Rows = [(0, ALIGN, 2**62), (ALIGN, 3 * ALIGN, 2**62), (3 * ALIGN, 5 * ALIGN, 1)]
    with eager(), pytest.raises(emberlog.DataError):
        run(SHORT.text, {"s": [(0,)], "w": rows}, owners, ("d",))


@pytest.mark.parametrize("value", [INT64_MAX, -(2**63)])
def test_the_ends_of_64_bits_are_refused(value: int) -> None:
    rows = table(INTS, [(0, ALIGN, value), (ALIGN, 3 * ALIGN, 2)])
    with eager(), pytest.raises(emberlog.UsageError, match="at the end of what 64 bits hold"):
        run(SHORT.text, {"s": [(0,)], "w": rows}, 3, ("d",))


def test_rounds_and_facts_are_told_as_one_worker_tells_them() -> None:
    program = PROGRAMS["hops"]
    source, facts = spread(program, 5)
    told = [check(program, source, facts, Setting(owners, many, 1.0, 1)) for owners, many in ((1, 0), (4, 0), (4, 9))]
    assert told[0].facts == told[1].facts == told[2].facts and (told[0].facts or 0) > 20
    assert told[0].rounds == told[1].rounds == told[2].rounds
