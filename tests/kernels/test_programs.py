"""Programs by hand: every type as an id, the ends of 64 bits, operations without a value, shapes that broke once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import emberlog
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.choices import Choices
from emberlog.stats import StratumStats
from emberlog.types import INT64_MAX, INT64_MIN, Type, integer_range
from kernels.variants import FEW, WAYS, in_every_way

Rows = list[tuple[Any, ...]]
TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
SG = "sg(X,Y) <- arc(P,X), arc(P,Y), X != Y. sg(X,Y) <- arc(A,X), sg(A,B), arc(B,Y)."
NONLINEAR = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."

LARGE_ENOUGH = pytest.mark.skipif(not COMPILES, reason="takes long as plain Python")


def run(
    text: str, tables: dict[str, Any], evaluator: str = "kernel", ways: Mapping[str, Choices] | None = None
) -> tuple[emberlog.Result, StratumStats]:
    """The result, in every way (compiled: in one), and the figures of the last recursive stratum."""
    engine = emberlog.Engine(executor="local", workers=1)
    for name, rows in tables.items():
        engine.register(name, rows)
    with in_every_way(ways if ways is not None else {} if COMPILES else WAYS):
        result = engine.run(text, evaluator=evaluator)
    return result, result.stats[-1]


def rows(text: str, tables: dict[str, Any], name: str, ways: Mapping[str, Choices] | None = None) -> Rows:
    result, stats = run(text, tables, ways=ways)
    assert stats.evaluator == "kernel"
    return sorted(result[name].rows())


def closure(edges: Rows) -> Rows:
    found = set(edges)
    while True:
        more = {(x, y) for x, z in found for other, y in edges if z == other} - found
        if not more:
            return sorted(found)
        found |= more


# --- graphs ----------------------------------------------------------------------------------------------------------

GRAPHS: dict[str, Rows] = {
    "one edge": [(1, 2)],
    "a self-loop": [(5, 5)],
    "two rings": [(0, 1), (1, 0), (2, 3), (3, 4), (4, 2), (1, 2)],
    "negative": [(-1, -2), (-2, -3), (-3, 7)],
    "around 2^31": [(2**31 - 1, 2**31), (2**31, 2**31 + 1), (2**31 + 1, 2**31 - 1)],
    "around 2^62": [(2**62, 2**62 + 1), (2**62 + 1, -(2**62))],
    "the ends of 64 bits": [(INT64_MIN, INT64_MAX), (INT64_MAX, 0), (0, INT64_MIN)],
    "far apart": [(0, 10**15), (10**15, -(10**15)), (-(10**15), 3)],
}


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("text", [TC, NONLINEAR], ids=["linear", "non-linear"])
def test_closures(text: str, edges: Rows) -> None:
    assert rows(text, {"arc": edges}, "tc") == closure(edges)


def test_nothing_gives_nothing() -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    for text, name in ((TC, "tc"), (NONLINEAR, "tc"), (SG, "sg")):
        assert rows(text, {"arc": empty}, name) == []


@pytest.mark.filterwarnings("ignore:.*duplicate:UserWarning")
def test_duplicate_edges_are_one() -> None:
    assert rows(TC, {"arc": [(1, 2), (1, 2), (2, 3), (2, 3)]}, "tc") == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "ü"],
        [date(1969, 12, 31), date(2024, 2, 29), date(1, 1, 1)],
        [Decimal("1.50"), Decimal("-2.25"), Decimal("0.00")],
        [False, True, False],
    ],
    ids=["symbols", "dates", "decimals", "booleans"],
)
def test_other_types_are_ids(values: list[Any]) -> None:
    one, two, three = values
    edges = [(one, two), (two, three)]
    table = pa.table({"a": [edge[0] for edge in edges], "b": [edge[1] for edge in edges]})
    result, stats = run(TC, {"arc": table})
    expected, _ = run(TC, {"arc": table}, "sql")
    assert stats.evaluator == "kernel"
    assert sorted(result["tc"].rows()) == sorted(expected["tc"].rows())


def test_ids_compare_as_their_values_do() -> None:
    table = pa.table({"a": ["b", "a", "ü", "B"], "b": ["a", "ü", "B", "c"]})
    up = "p(X,Y) <- arc(X,Y). p(X,Y) <- p(X,Z), arc(Z,Y), Z < Y."
    best = "m(X,max<Y>) <- arc(X,Y). m(Y,max<V>) <- m(X,V), arc(X,Y)."
    assert rows(up, {"arc": table}, "p") == sorted(run(up, {"arc": table}, "sql")[0]["p"].rows())
    assert rows(best, {"arc": table}, "m") == [("B", "ü"), ("a", "ü"), ("b", "a"), ("c", "ü"), ("ü", "ü")]


def test_dates_compare_with_dates_of_the_rules() -> None:
    days = pa.table({"a": [1, 2, 3], "b": [2, 3, 1], "d": [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]})
    text = '.decl arc(a: number, b: number, d: date)\np(1). p(Y) <- p(X), arc(X,Y,D), D < "2024-03-01".'
    assert rows(text, {"arc": days}, "p") == [(1,), (2,), (3,)]
    text = text.replace("< ", "!= ").replace("03-01", "02-29")
    assert rows(text, {"arc": days}, "p") == [(1,), (2,)]


# --- shapes that broke once ------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[str, dict[str, Rows], str, Rows]] = {
    "facts found by no column": (
        "p(X,Y,min<D>) <- arc(X,Y,D). p(X,Y,min<D>) <- p(X,_,C), p(_,Y,W), D = C + W.",
        {"arc": [(1, 2, 5), (3, 4, 1)]},
        "p",
        [(1, 2, 5), (1, 4, 6), (3, 2, 6), (3, 4, 1)],
    ),
    "a pivot that stands twice": (
        "p(X,Y) <- arc(X,Y). p(Y,X) <- p(X,X), arc(X,Y).",
        {"arc": [(1, 1), (1, 2), (2, 2), (3, 4)]},
        "p",
        [(1, 1), (1, 2), (2, 1), (2, 2), (3, 4)],
    ),
    "several pivots, one of which stands elsewhere too": (
        "p(X,X,X,X) <- arc(X,X). p(X,X,X,0) <- p(X,X,X,X).",
        {"arc": [(1, 1), (1, 2), (2, 2)]},
        "p",
        [(1, 1, 1, 0), (1, 1, 1, 1), (2, 2, 2, 0), (2, 2, 2, 2)],
    ),
    "two pivots that a rule wants to be equal": (
        "p(S,T,U) <- e(S,T,U). p(S,S,U) <- p(S,S,Z), f(Z,U).",
        {"e": [(1, 2, 3), (1, 1, 4), (2, 2, 2)], "f": [(3, 7), (4, 8)]},
        "p",
        [(1, 1, 4), (1, 1, 8), (1, 2, 3), (2, 2, 2)],
    ),
    "two pivots that a rule of a ring wants to be equal": (
        "p(S,T,U) <- e(S,T,U). q(S,S,U) <- p(S,S,Z), f(Z,U). p(S,T,U) <- q(T,S,U).",
        {"e": [(1, 2, 3), (1, 1, 4), (2, 2, 2)], "f": [(3, 7), (4, 8)]},
        "p",
        [(1, 1, 4), (1, 1, 8), (1, 2, 3), (2, 2, 2)],
    ),
    "a minimum with two pivots that a rule wants to be equal": (
        "p(S,T,min<U>) <- e(S,T,U). p(S,S,min<U>) <- p(S,S,Z), f(W), U = min(Z, W).",
        {"e": [(1, 2, 3), (1, 1, 4), (2, 2, 2)], "f": [(2,)]},
        "p",
        [(1, 1, 2), (1, 2, 3), (2, 2, 2)],
    ),
    "constants of several types beside repeated variables": (
        'p(S,X) <- e(S,X). p(S,Y) <- p("a",X), p(S,3), e(S,Y), e(_,X).',
        {"e": [("a", 1), ("a", 3), ("b", 3), ("b", 9), ("c", 4)]},
        "p",
        [("a", 1), ("a", 3), ("b", 3), ("b", 9), ("c", 4)],
    ),
    "constants that are nowhere in the data": (
        "p(X) <- arc(X,_). p(-77) <- p(X), arc(X,4). p(Y) <- p(99), arc(_,Y). p(Y) <- p(X), !arc(X,12345), arc(X,Y).",
        {"arc": [(1, 4), (4, 6)]},
        "p",
        [(-77,), (1,), (4,), (6,)],
    ),
    "a contributor of several rows that nobody reads": (
        "s(X,sum<D>) <- s0(X,D). s(Y,sum<(X,C)>) <- s(X,C), arc(X,Y).",
        {"s0": [(1, 5)], "arc": [(1, 2), (2, 3), (1, 3)]},
        "s",
        [(1, 5), (2, 5), (3, 10)],
    ),
    "a sum that reads a plain relation and itself": (
        "m(X) <- m0(X). m(Y) <- t(X,C), C>3, arc(X,Y). t(X,sum<D>) <- s0(X,D). t(Y,sum<C>) <- m(X), t(X,C), arc(X,Y).",
        {"m0": [(1,)], "s0": [(1, 5), (2, 1)], "arc": [(1, 2), (2, 3), (1, 3), (3, 4)]},
        "t",
        [(1, 5), (2, 6), (3, 11), (4, 11)],
    ),
    "no keys": (
        "m(min<D>) <- arc(D,_). m(min<D>) <- m(C), arc(_,W), D = min(C, W).",
        {"arc": [(3, 2), (2, 1), (4, 9)]},
        "m",
        [(1,)],
    ),
    "no keys, and several exit rows": (
        "m(min<D>) <- start(D). m(min<D>) <- m(C), arc(_), D = C. m(min<D>) <- m(_), arc(D).",
        {"start": [(7,), (-3,), (5,)], "arc": [(2,), (0,)]},
        "m",
        [(-3,)],
    ),
    "minima far apart": (
        "d(X,min<D>) <- start(X,D). d(Y,min<D>) <- d(X,C), arc(X,Y,W), D = C + W.",
        {"start": [(1, 0), (2, 2**62), (7, -(2**62))], "arc": [(1, 3, 1), (3, 4, 1), (2, 5, 1), (5, 6, 3), (7, 8, 1)]},
        "d",
        [(1, 0), (2, 2**62), (3, 1), (4, 2), (5, 2**62 + 1), (6, 2**62 + 4), (7, -(2**62)), (8, -(2**62) + 1)],
    ),
    "four columns, one of them computed": (
        "p(X,Y,A,N) <- arc(X,Y), A = X, N = 0. p(X,Y,A,M) <- p(X,Z,A,N), arc(Z,Y), M = N + 1, M < 3.",
        {"arc": [(1, 2), (2, 1)]},
        "p",
        [(1, 1, 1, 1), (1, 2, 1, 0), (1, 2, 1, 2), (2, 1, 2, 0), (2, 1, 2, 2), (2, 2, 2, 1)],
    ),
    "a relation of one computed column": (
        "n(0). n(Y) <- n(X), Y = X + 3, Y < 20. n(Y) <- n(X), Y = -X, Y > -7.",
        {},
        "n",
        [(x,) for x in (-6, -3, 0, 3, 6, 9, 12, 15, 18)],
    ),
    "found by a computed value": (
        "p(X) <- arc(X,_). p(Y) <- p(X), arc(X + 1, Y). p(Y) <- p(X), arc(Y, X * 2).",
        {"arc": [(1, 7), (2, 9), (10, 14), (8, 3)]},
        "p",
        [(1,), (2,), (8,), (9,), (10,), (14,)],
    ),
}


@pytest.mark.parametrize(("text", "tables", "name", "expected"), SHAPES.values(), ids=SHAPES)
def test_shapes(text: str, tables: dict[str, Rows], name: str, expected: Rows) -> None:
    assert rows(text, tables, name) == expected


def test_a_contributor_with_several_values_is_left_to_sql() -> None:
    text = "s(X,sum<D>) <- s0(X,D). s(Y,sum<(X,C)>) <- s(X,C), arc(X,Y,_)."
    tables = {"s0": [(1, 5)], "arc": [(1, 2, 0), (1, 2, 1), (2, 3, 0)]}
    with pytest.raises(emberlog.UsageError, match="a contributor has several values in `arc`"):
        run(text, tables)


@LARGE_ENOUGH
def test_hashed_tables_grow_in_the_middle_of_everything() -> None:
    size = 2500  # more than twice the first size of a table
    chain = [(i * 10**9, (i + 1) * 10**9) for i in range(size)]
    text = "r(X,N) <- X = 0, N = 0. r(Y,M) <- r(X,N), arc(X,Y), M = N + 1."
    assert rows(text, {"arc": chain}, "r", FEW) == [(i * 10**9, i) for i in range(size + 1)]


@LARGE_ENOUGH
def test_groups_that_wait_again_behind_a_sweep() -> None:
    # A group gets better many times in one sweep over all slots, before and behind where the sweep is.
    size = 600
    edges = [(i, i + 1, 1) for i in range(size)] + [(i + 1, i, 1) for i in range(size)]
    edges += [(0, i, 3 * abs(i - 300) + 5) for i in range(1, size)]
    text = "d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), arc(X,Y,W), D = C + W."
    best = {0: 0, **{i: 3 * abs(i - 300) + 5 for i in range(1, size)}, size: 10**9}
    for i in range(1, size + 1):
        best[i] = min(best[i], best[i - 1] + 1)
    for i in range(size - 1, -1, -1):
        best[i] = min(best[i], best[i + 1] + 1)
    assert rows(text, {"arc": edges}, "d", FEW) == sorted(best.items())


# --- operations without a value --------------------------------------------------------------------------------------

FAILING = {
    "a sum": "p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y), D = V + V.",
    "a product": "p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y), D = V * 3.",
    "a difference": "p(X,min<V>) <- e(X,V). p(Y,min<D>) <- p(X,V), f(X,Y), D = V - 4611686018427387904.",
    "an aggregated sum": "p(X,sum<V>) <- e(X,V). p(Y,sum<V>) <- p(X,V), f(X,Y). p(Y,sum<V>) <- p(X,V), f(X,Y).",
    "a sum of exit rows": "p(X,sum<V>) <- e(_,V), X = 1, V > 0. p(X,sum<V>) <- p(Y,V), f(Y,X).",
}
LARGE = {"e": [(1, 2**62 + 1), (2, 2**62), (4, -(2**62) - 1)], "f": [(1, 2), (2, 3), (4, 5)]}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
def test_what_leaves_64_bits_is_an_error_as_in_sql(text: str) -> None:
    with pytest.raises(emberlog.DataError) as kernel:
        run(text, LARGE)
    with pytest.raises(emberlog.DataError) as sql:
        run(text, LARGE, "sql")
    assert str(kernel.value) == str(sql.value)


def test_an_operation_without_a_value_where_nothing_counts() -> None:
    # The division fails only for a binding that the rest of the body rejects.
    text = "p(X) <- e(X,_). p(Y) <- p(X), f(X,Y), Z = 10 / (X - 1), Z < 100, X != 1."
    result, stats = run(text, LARGE)
    assert sorted(result["p"].rows()) == [(1,), (2,), (3,), (4,), (5,)]
    assert stats.evaluator == "sql" and stats.because == "an operation had no value"


@pytest.mark.parametrize("term", ["10 / (X - 2)", "10 % (X - 2)", "(0 - 9223372036854775806 - X) / (1 - X)"])
def test_a_division_without_a_value(term: str) -> None:
    text = f"p(X) <- e(X,_). p(Z) <- p(X), f(X,_), Z = {term}, X < 3."
    with pytest.raises(emberlog.DataError):
        run(text, {"e": [(2, 0)], "f": [(2, 2), (1, 1)]})


@pytest.mark.parametrize("value", [INT64_MAX, INT64_MIN])
def test_numbers_at_the_ends_of_64_bits_are_left_to_sql(value: int) -> None:
    text = "p(X,min<V>) <- e(X,V). p(Y,min<D>) <- p(X,V), f(X,Y), D = max(V, V / 2)."
    tables = {"e": [(1, value), (2, 5)], "f": [(1, 2), (2, 3)]}
    with pytest.raises(emberlog.UsageError, match="at the end of what 64 bits hold"):
        run(text, tables)
    result, stats = run(text, tables, "auto")
    assert stats.evaluator == "sql"
    assert sorted(result["p"].rows()) == sorted(run(text, tables, "sql")[0]["p"].rows())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_floats_that_are_not_finite_are_left_to_sql(value: float) -> None:
    text = "p(X,min<V>) <- e(X,V). p(Y,min<D>) <- p(X,V), f(X,Y), D = V + 1.0."
    tables = {"e": [(1, value), (2, 5.0)], "f": [(1, 2), (2, 3)]}
    with pytest.raises(emberlog.UsageError, match="not finite"):
        run(text, tables)


def test_values_near_the_ends_of_64_bits_are_exact() -> None:
    text = "p(X,min<V>) <- e(X,V). p(Y,min<D>) <- p(X,V), f(X,Y), D = V - 1."
    tables = {"e": [(1, INT64_MAX - 1), (2, INT64_MIN + 3)], "f": [(1, 2), (2, 3)]}
    assert rows(text, tables, "p") == [(1, INT64_MAX - 1), (2, INT64_MIN + 3), (3, INT64_MIN + 2)]


@pytest.mark.parametrize(
    "term", ["X / 4", "X % 4", "-X / 3", "X % -3", "abs(X)", "relu(X)", "clip(X, -2, 2)", "clip(X, 2, -2)", "-X"]
)
def test_arithmetic_is_that_of_sql(term: str) -> None:
    text = f"p(X) <- e(X,_). p(Y) <- p(X), Y = {term}."
    tables = {"e": [(x, 0) for x in (-9, -4, -3, -1, 0, 1, 7, 8, INT64_MAX - 1, INT64_MIN + 1)]}
    assert rows(text, tables, "p") == sorted(run(text, tables, "sql")[0]["p"].rows())


def test_float_arithmetic_is_that_of_sql() -> None:
    terms = "V + W;V * W;max(V, W);min(V, W) + 1.0;sqrt(V) + W;exp(W) + V;tanh(V) + W;abs(V - W) + V;V / (W + 1.0)"
    tables = {"e": [(1, 0.5), (2, 2.25)], "f": [(1, 2, 0.25), (2, 3, 1.5), (3, 4, 1e-9)]}
    for term in terms.split(";"):
        text = f"p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y,W), D = {term}."
        expected = sorted(run(text, tables, "sql")[0]["p"].rows())
        for row, other in zip(rows(text, tables, "p"), expected, strict=True):
            assert row[0] == other[0] and row[1] == pytest.approx(other[1], rel=1e-12)


# --- unsigned and narrow integers ------------------------------------------------------------------------------------

ENDS = {
    "small": [0, 1, 5, 250],
    "below 2^63": [INT64_MAX - 1, 2, 1],
    "at 2^63": [2**63, INT64_MAX, 3],
    "at 2^64": [2**64 - 1, 1, 0],
}
TERMS = """V + W;V * W;V - W;W - V;V / W;V % W;-V;abs(V);relu(V);clip(V, 2, W);min(V, W);max(V, W);V - W + 1;
    to_unsigned(to_number(V) - 3);to_unsigned(9223372036854775807) + V"""


def unsigned(values: list[int]) -> dict[str, Any]:
    keys, type = list(range(len(values))), pa.uint64()
    return {
        "e": pa.table({"x": keys, "v": pa.array(values, type)}),
        "f": pa.table({"x": keys, "y": [*keys[1:], 99], "w": pa.array(values[::-1], type)}),
    }


def told(text: str, tables: dict[str, Any], evaluator: str = "kernel") -> tuple[object, str]:
    """The rows of `p`, or the error in their place, and who evaluated it."""
    try:
        result, stats = run(text, tables, evaluator, ways={})
        return sorted(result["p"].rows()), stats.evaluator
    except emberlog.DataError as error:
        return str(error), ""
    except emberlog.UsageError as error:
        assert "a number at the end of what 64 bits hold" in error.message
        return told(text, tables, "sql")


@pytest.mark.parametrize("term", [term.strip() for term in TERMS.split(";")])
def test_unsigned_arithmetic_is_that_of_sql(term: str) -> None:
    text = f"p(X,V) <- e(X,V). p(Y,D) <- p(X,V), f(X,Y,W), D = {term}."
    for where, values in ENDS.items():
        tables = unsigned(values)
        expected, _ = told(text, tables, "sql")
        found, evaluator = told(text, tables)
        assert found == expected
        within = isinstance(found, list) and all(value < INT64_MAX for _, value in found)
        assert evaluator == "kernel" or not within or where != "small"


@pytest.mark.parametrize("operator", ["<", "!="])
def test_unsigned_numbers_are_compared_as_sql_does(operator: str) -> None:
    for bound, values in product((INT64_MAX, 2**64 - 1), (ENDS["small"], ENDS["at 2^64"])):
        text = f"p(X,V) <- e(X,V). p(Y,D) <- p(X,V), f(X,Y,W), V {operator} {bound}u, D = max(V, W)."
        assert told(text, unsigned(values))[0] == told(text, unsigned(values), "sql")[0]


@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_narrow_integers_are_checked_as_sql_does(kind: str, bits: int) -> None:
    low, high = integer_range(Type("unsigned" if kind == "uint" else "number", bits))
    type = pa.int64() if kind == "int" else pa.uint64()
    for head, start, step in (("V", high, "+ W"), ("max<V>", high, "+ W"), ("V", low, "- W")):
        rules = f"p(X,{head}) <- e(X,V). p(Y,{head}) <- p(X,C), f(X,Y,W), V = C {step}."
        text = f".decl p(x: number, v: {kind}{bits})\n{rules}"
        for away, evaluator in ((3, "kernel"), (2, "")):  # the last step leaves the range
            tables = {
                "e": pa.table({"x": [0], "v": pa.array([start - away if start == high else start + away], type)}),
                "f": pa.table({"x": [0, 1, 2], "y": [1, 2, 3], "w": pa.array([1, 1, 1], type)}),
            }
            assert told(text, tables) == (told(text, tables, "sql")[0], evaluator)


def test_a_narrow_sum_is_left_to_sql() -> None:
    text = ".decl p(x: number, v: uint8)\np(X,sum<V>) <- e(X,V). p(Y,sum<V>) <- p(X,V), f(X,Y,_)."
    with pytest.raises(emberlog.UsageError, match="the column v of `p` is uint8"):
        run(text, unsigned([1, 2, 3]))


def test_shortest_paths_with_unsigned_weights() -> None:
    text = "d(X,min<D>) <- X = 0u, D = 0u. d(Y,min<D>) <- d(X,C), arc(X,Y,W), D = C + W."
    for type in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        edges = [(0, 1, 200), (1, 2, 200), (0, 2, 255), (2, 3, 1)]
        table = pa.table({name: pa.array([edge[i] for edge in edges], type) for i, name in enumerate("xyw")})
        result, stats = run(text, {"arc": table}, ways=FEW)
        assert (sorted(result["d"].rows()), stats.evaluator) == ([(0, 0), (1, 200), (2, 255), (3, 256)], "kernel")
        assert str(result["d"].schema[1].type) == "unsigned"


# --- ways that data choose -------------------------------------------------------------------------------------------


@LARGE_ENOUGH
@pytest.mark.parametrize(
    ("edges", "way"),
    [
        ([(i, i + 10_000) for i in range(6000)], "pivot by pivot"),
        ([(i, j) for i in range(6000) for j in (6000, 6001)] + [(6001, 6000)], "512 pivots at a time"),
    ],
)
def test_pivots_with_little_in_common_go_one_by_one(edges: Rows, way: str) -> None:
    result, stats = run(TC, {"arc": edges})
    assert way in stats.how
    assert result["tc"].count() == len(edges)


def test_first_rows_of_several_relations_are_not_mistaken_for_each_other() -> None:
    text = """a(X, min<X>) <- p(X, _). b(X, min<X>) <- q(X, _).
              a(Y, min<V>) <- b(X, V), arc(X, Y). b(Y, min<V>) <- a(X, V), arc(X, Y)."""
    # Each node stands there several times, so that duplicates are dropped; both relations have as many.
    p, q = ([(x, z) for x in range(low, low + 60) for z in range(4)] for low in (0, 60))
    found, _ = run(text, {"p": p, "q": q, "arc": [(0, 60), (60, 1), (61, 62)]}, ways=FEW)
    assert sorted(found["a"].rows()) == [(0, 0), (1, 0), *((x, x) for x in range(2, 60)), (62, 61)]
    assert sorted(found["b"].rows()) == [(60, 0), *((x, x) for x in range(61, 120))]
