"""Programs whose tables have one key, data for them, and runs in which many own a part, however small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import emberlog
import naive
from emberlog.kernels import owned, ranges
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.sorting import ALIGN
from emberlog.source import Source
from emberlog.stats import StratumStats
from emberlog.syntax.parser import parse
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


SHORT = PROGRAMS["shortest"]
