"""Workers that own ranges of slots, against the reference: programs of tables with one key, cut among up to eight.

Blocks of 4096 ids have one owner, so nodes stand in several of them, a few in each. What makes threads worth the while
is patched away: here they run for a handful of facts. A shape takes a second or two to compile: `test_interpreted` runs
all programs, and compiled only some of them run, unless slow tests do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import emberlog
import naive
from emberlog.kernels import native, owned, ranges
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.code.owned import PUT, TAKE
from emberlog.kernels.sorting import ALIGN
from emberlog.kernels.watch import MeterWatch
from emberlog.source import Source
from emberlog.stats import StratumStats
from emberlog.syntax.parser import parse
from emberlog.types import INT64_MAX
from naive.values import Row
from strategies import difference

Rows = list[tuple[Any, ...]]
ARROW = {"node": pa.int64(), "int": pa.int64(), "float": pa.float64()}
NODE, INT, FLOAT = "node", "int", "float"
BLOCKS = 15  # with more, ids would lie too far apart to be ids as they are
SHARED = "each with its own part of the tables"
SEVERAL = (2, 8, 3, 5)


@contextmanager
def eager(many: int = 0, a_slot: float = 1.0) -> Iterator[None]:
    """Threads for each row of an index, and for more than `many` facts that wait. Without a cost for slots, ranges
    follow the rows: they are as uneven as these, and some are empty."""
    with (
        mock.patch.object(ranges, "ROWS_AN_OWNER", 1),
        mock.patch.object(ranges, "ROWS_A_SLOT", a_slot),
        mock.patch.object(owned, "MANY", many),
        mock.patch.object(owned, "FEW", many // 2),
    ):
        yield


@dataclass(frozen=True)
class Program:
    """Rules, the columns of the relations that they read, and what they derive. The weights of the relations are of
    `weights`; `acyclic` ones lead from smaller nodes to larger ones."""

    text: str
    columns: Mapping[str, tuple[str, ...]]
    derived: tuple[str, ...]
    weights: st.SearchStrategy[Any] = field(default_factory=lambda: st.integers(0, 9))
    acyclic: bool = False
    several: bool = True  # whether there is an index that leads into slots: else one owner has all


@dataclass(frozen=True)
class Setting:
    """How a run is cut."""

    owners: int
    many: int
    a_slot: float
    pieces: int


PLAIN = (NODE, NODE)
INTS, FLOATS = (NODE, NODE, INT), (NODE, NODE, FLOAT)
REACH = "p(X) <- s(X). p(Y) <- p(X), a(X,Y)."
SHORTEST = "d(X,min<D>) <- s(X), D = 0. d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V."
positive = st.one_of(st.integers(1, 9), st.integers(1, 10**9), st.sampled_from((1, 10**9)))
signed = st.one_of(st.integers(-9, 9), st.sampled_from((-(10**9), 10**9, -(10**6), 0)))
fractions = st.one_of(
    st.sampled_from((0.0, 0.5, 1e-9, 1e-3, 1e6, 1e12)), st.floats(0, 100, allow_nan=False).map(lambda x: round(x, 3))
)

PROGRAMS: dict[str, Program] = {
    "reach": Program(REACH, {"s": (NODE,), "a": PLAIN}, ("p",)),
    "reach from a constant": Program(
        "p(@). p(Y) <- p(X), a(X,Y), X != Y.", {"s": (NODE,), "a": PLAIN}, ("p",), several=True
    ),
    "reach backwards and forwards": Program(
        "p(X) <- s(X). p(Y) <- p(X), a(X,Y). p(Y) <- p(X), a(Y,X).", {"s": (NODE,), "a": PLAIN}, ("p",)
    ),
    "components": Program(
        "c(X,min<X>) <- a(X,_). c(Y,min<Y>) <- a(_,Y). c(Y,min<Z>) <- c(X,Z), a(X,Y). c(Y,min<Z>) <- c(X,Z), a(Y,X).",
        {"a": PLAIN},
        ("c",),
    ),
    "directed components": Program("c(X,min<X>) <- a(X,_). c(Y,min<Z>) <- c(X,Z), a(X,Y).", {"a": PLAIN}, ("c",)),
    "largest that reaches": Program("c(X,max<X>) <- a(X,_). c(Y,max<Z>) <- c(X,Z), a(X,Y).", {"a": PLAIN}, ("c",)),
    "shortest": Program(SHORTEST, {"s": (NODE,), "w": INTS}, ("d",), positive),
    "shortest, weights of nothing": Program(
        SHORTEST, {"s": (NODE,), "w": INTS}, ("d",), st.sampled_from((0, 0, 1, 500))
    ),
    "shortest, negative": Program(SHORTEST, {"s": (NODE,), "w": INTS}, ("d",), signed, acyclic=True),
    "shortest, floats": Program(SHORTEST.replace("D = 0.", "D = 0.0."), {"s": (NODE,), "w": FLOATS}, ("d",), fractions),
    "shortest, negative floats": Program(
        SHORTEST.replace("D = 0.", "D = 0.0."),
        {"s": (NODE,), "w": FLOATS},
        ("d",),
        st.sampled_from((-1e9, -2.5, -1e-3, 0.0, 1.0, 7.25, 1e9)),
        acyclic=True,
    ),
    "shortest from values": Program(
        "d(X,min<D>) <- v(X,D). d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V.",
        {"v": (NODE, INT), "w": INTS},
        ("d",),
        st.one_of(st.integers(0, 50), st.sampled_from((0, 10**9, 2**31 - 3, 3 * 10**9))),
    ),
    "shortest, by two relations": Program(
        "d(X,min<D>) <- s(X), D = 0. d(Y,min<D>) <- d(X,C), w(X,Y,V), D = C + V. "
        "d(Y,min<D>) <- d(X,C), a(X,Y), D = C - 7.",
        {"s": (NODE,), "w": INTS, "a": PLAIN},
        ("d",),
        positive,
        acyclic=True,
    ),
    "widest": Program(
        "b(X,max<W>) <- s(X), W = 100. b(Y,max<W>) <- b(X,C), w(X,Y,V), W = min(C, V).",
        {"s": (NODE,), "w": INTS},
        ("b",),
        st.integers(0, 99),
    ),
    "narrowest": Program(
        "b(X,min<W>) <- s(X), W = 0. b(Y,min<W>) <- b(X,C), w(X,Y,V), W = max(C, V).",
        {"s": (NODE,), "w": INTS},
        ("b",),
        signed,
    ),
    "hops": Program(
        "d(X,min<D>) <- s(X), D = 0. d(Y,min<D>) <- d(X,C), a(X,Y), D = C + 1.",
        {"s": (NODE,), "a": PLAIN},
        ("d",),
    ),
    "longest": Program(
        "d(X,max<D>) <- s(X), D = 0. d(Y,max<D>) <- d(X,C), w(X,Y,V), D = C + V.",
        {"s": (NODE,), "w": INTS},
        ("d",),
        signed,
        acyclic=True,
    ),
    "longest, floats": Program(
        "d(X,max<D>) <- s(X), D = 0.0. d(Y,max<D>) <- d(X,C), w(X,Y,V), D = C + V.",
        {"s": (NODE,), "w": FLOATS},
        ("d",),
        st.sampled_from((-2.5, 0.0, 1.0, 1e9)),
        acyclic=True,
    ),
    "two tables": Program(
        "p(X) <- s(X). q(Y) <- p(X), a(X,Y). p(Y) <- q(X), b(X,Y).",
        {"s": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p", "q"),
    ),
    "three tables, one index for heads that differ": Program(
        "p(X) <- s(X). q(Y) <- p(X), a(X,Y). r(Y) <- q(X), a(X,Y). p(Y) <- r(X), b(X,Y). q(X) <- r(X).",
        {"s": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p", "q", "r"),
    ),
    "a set and an extremum": Program(
        "p(X) <- s(X). d(Y,min<D>) <- p(X), w(X,Y,D). d(Y,min<D>) <- d(X,C), w(X,Y,V), D = max(C, V). "
        "p(X) <- d(X,C), C < 5.",
        {"s": (NODE,), "w": INTS},
        ("p", "d"),
    ),
    "two extrema": Program(
        "l(X,min<D>) <- s(X), D = 0. g(X,min<D>) <- l(X,D), t(X). l(Y,min<D>) <- l(X,C), w(X,Y,V), D = C + V. "
        "g(Y,min<D>) <- g(X,C), w(Y,X,V), D = C + V. l(X,min<D>) <- g(X,C), D = C + 3.",
        {"s": (NODE,), "t": (NODE,), "w": INTS},
        ("l", "g"),
    ),
    "filters and negation": Program(
        "p(X) <- s(X). p(Y) <- p(X), a(X,Y), !t(Y), X < Y. p(Y) <- p(X), b(X,Y), !a(Y,X). p(Y) <- p(X), b(X,Y), X > Y.",
        {"s": (NODE,), "t": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p",),
    ),
    "keys of the fact itself, and of the rules": Program(
        "p(X) <- s(X). q(X) <- p(X), t(X). p(Y) <- p(X), a(X,Y). p(Y) <- q(X), b(Y,X). p(@) <- q(X), a(X,_).",
        {"s": (NODE,), "t": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p", "q"),
    ),
    "two steps": Program("p(X) <- s(X). p(Y) <- p(X), a(X,Z), b(Z,Y).", {"s": (NODE,), "a": PLAIN, "b": PLAIN}, ("p",)),
    "two steps of one relation": Program(
        "p(X) <- s(X). p(Y) <- p(X), a(X,Z), a(Z,Y). p(Y) <- p(X), b(X,Y).",
        {"s": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p",),
    ),
    "two steps of one relation alone": Program(
        "p(X) <- s(X). p(Y) <- p(X), a(X,Z), a(Z,Y).", {"s": (NODE,), "a": PLAIN}, ("p",), several=False
    ),
    "two steps with weights": Program(
        "d(X,min<D>) <- s(X), D = 0. d(Y,min<D>) <- d(X,C), w(X,Z,V), u(Z,Y,U), D = C + V + U. "
        "d(Y,min<D>) <- d(X,C), a(X,Y), D = C + 5.",
        {"s": (NODE,), "w": INTS, "u": INTS, "a": PLAIN},
        ("d",),
        positive,
    ),
    "an index of different columns": Program(
        "p(X) <- s(X). q(X) <- t(X). p(Y) <- p(X), e(X,Y,_). q(Z) <- p(X), e(X,_,Z). p(X) <- q(X). "
        "q(Y) <- q(X), a(X,Y).",
        {"s": (NODE,), "t": (NODE,), "e": (NODE, NODE, NODE), "a": PLAIN},
        ("p", "q"),
    ),
    "three columns are read": Program(
        "d(X,min<D>) <- s(X), D = 0. d(Y,min<D>) <- d(X,C), h(X,Y,V,U), D = C + V + U. "
        "d(Y,min<D>) <- d(X,C), a(X,Y), D = C + 2.",
        {"s": (NODE,), "h": (NODE, NODE, INT, INT), "a": PLAIN},
        ("d",),
        positive,
    ),
    "a triangle is closed": Program(
        "p(X) <- s(X). p(Y) <- p(X), a(X,Y), b(Y,X). p(Z) <- p(X), a(X,Y), b(X,Z), a(Z,Y). p(Y) <- p(X), b(X,Y).",
        {"s": (NODE,), "a": PLAIN, "b": PLAIN},
        ("p",),
    ),
}


# --- running ---------------------------------------------------------------------------------------------------------


def run(
    text: str, tables: Mapping[str, Any], owners: int, names: tuple[str, ...], **options: Any
) -> tuple[dict[str, list[Row]], StratumStats]:
    """The rows of some relations, and the figures of the last stratum."""
    with emberlog.Engine(executor="local", workers=owners) as engine:
        for relation, rows in tables.items():
            engine.register(relation, rows)
        result = engine.run(text, evaluator="kernel", **options)
        return {name: result[name].rows() for name in names}, result.stats[-1]


def table(kinds: tuple[str, ...], rows: Rows, pieces: int = 1) -> pa.Table:
    """The rows as Arrow has them, in so many chunks; each but the first one begins somewhere in its memory."""
    whole = pa.table({f"c{i}": pa.array([row[i] for row in rows], ARROW[kind]) for i, kind in enumerate(kinds)})
    ends = [len(rows) * piece // pieces for piece in range(pieces + 1)]
    return pa.concat_tables([whole.slice(begin, ends[i + 1] - begin) for i, begin in enumerate(ends[:-1])])


def check(program: Program, source: int, facts: Mapping[str, Rows], how: Setting) -> StratumStats:
    """Holds a run against the reference; gives its figures."""
    text = program.text.replace("@", str(source))
    floats = {(name, i) for name, kinds in program.columns.items() for i, kind in enumerate(kinds) if kind == FLOAT}
    wanted = naive.evaluate(parse(Source("<case>", text)), facts, {}, floats=floats)
    tables = {name: table(kinds, facts[name], how.pieces) for name, kinds in program.columns.items()}
    with eager(how.many, how.a_slot):
        found, stats = run(text, tables, how.owners, program.derived)
    for name in program.derived:
        assert not (told := difference(found[name], wanted[name])), f"{name} ({stats.how}): {told}"
    return stats


# --- data ------------------------------------------------------------------------------------------------------------

settings_drawn = st.builds(
    Setting,
    st.sampled_from((1, *SEVERAL)),
    st.sampled_from((0, 0, 0, 3)),
    st.sampled_from((1.0, 1e-6)),
    st.integers(1, 4),
)
# From 0 on, from far above, below zero, and around what 32 bits hold, with a sign and without.
bases = st.sampled_from((0, 0, 0, 10**12, -ALIGN * 4 - 7, 2**31 - ALIGN * 3, 2**32 - ALIGN * 2 - 5))
MOST_NODES = 9


@st.composite
def nodes(draw: st.DrawFn) -> list[int]:
    """Some nodes, in order: a few in each of several blocks, or all in one."""
    base, blocks = draw(bases), draw(st.sampled_from((BLOCKS, BLOCKS, 3, 0)))
    spots = st.builds(
        lambda block, small: block * ALIGN + small, st.integers(0, blocks), st.sampled_from((0, 1, 63, 64, 2000, 4095))
    )
    found = draw(st.lists(spots, min_size=1, max_size=MOST_NODES, unique=True))
    return sorted(base + spot for spot in found)


@st.composite
def data(draw: st.DrawFn, program: Program) -> tuple[int, dict[str, Rows]]:
    """A node of which rules know, and the rows of all relations."""
    among = draw(nodes())
    facts: dict[str, Rows] = {}
    for name, kinds in program.columns.items():
        if len(kinds) == 1:
            facts[name] = [(node,) for node in draw(st.lists(st.sampled_from(among), max_size=3))]
            continue
        row = st.tuples(*(st.sampled_from(among) if kind == NODE else program.weights for kind in kinds))
        rows = draw(st.lists(row, max_size=4 * MOST_NODES))
        if program.acyclic:
            rows = [row for row in rows if row[0] < row[1]] if kinds[1] == NODE else rows
        facts[name] = rows
    return draw(st.sampled_from(among)), facts


SOME = settings(max_examples=15 if COMPILES else 5)
LOTS = settings(max_examples=300)
COMPILED = ("components", "shortest", "shortest, floats", "keys of the fact itself, and of the rules", "two extrema")
SHAPES = [
    pytest.param(program, id=name, marks=[pytest.mark.slow] if COMPILES and name not in COMPILED else [])
    for name, program in PROGRAMS.items()
]


def agree(program: Program, how_many: settings) -> None:
    @how_many
    @given(data(program), settings_drawn)
    def agrees(drawn: tuple[int, dict[str, Rows]], how: Setting) -> None:
        stats = check(program, *drawn, how)
        event(f"several owners: {SHARED in stats.how}")

    agrees()


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

SHORT = PROGRAMS["shortest"]
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
    for name, table in tables.items():
        engine.register(name, table)
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

    with eager(), mock.patch.object(owned, "Thread", Few), pytest.raises(RuntimeError, match="start new"):
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
