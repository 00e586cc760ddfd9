"""Plans whose rows are computed without a statement: the same rows as a statement gives, duplicates and all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.executors.base import given_relations
from emberlog.executors.direct import different_rows, direct_rows
from emberlog.executors.kernel import as_bag
from emberlog.plan.logical import Plan
from emberlog.sql.duck import DuckEngine
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.stats import Limits, Meter, Silent
from emberlog.thresholds import SMALL_ROWS
from emberlog.types import FLOAT, INT64_MAX, INT64_MIN, NUMBER, SYMBOL, Column
from planned import planned

DECLARED = """
.decl e(X: number, Y: number)
.decl w(X: number, Y: number, W: number)
.decl s(A: symbol, N: number)
.decl f(X: number, V: float)
.input e
.input w
.input s
.input f
.output p
"""

SIMPLE = (
    "p(X, Y) <- e(X, Y).",
    "p(Y, X) <- e(X, Y).",
    "p(X) <- e(X, _).",
    "p(X, X) <- e(X, _).",
    "p(X) <- X = 3.",
    'p(A, N) <- A = "a", N = -1.',
    "p(X, Y) <- e(X, Y), X < 3.",
    "p(X, Y) <- e(X, Y), X >= Y, Y != 2.",
    "p(X, Y) <- e(X, Y), 2 <= X, X < Y.",
    "p(Y) <- e(1, Y).",
    "p(X) <- e(X, X).",
    'p(N) <- s("b", N).',
    'p(A) <- s(A, _), A != "a".',
    "p(A, Y) <- s(A, X), e(X, Y).",
    "p(X, Y) <- e(P, X), e(P, Y), X != Y.",
    "p(X, Y) <- e(X, Y), w(X, Y, _).",
    "p(X, U) <- e(X, _), w(_, U, _), X < 2, U < 2.",
    "p(X, Y) <- e(X, Y). p(X, Y) <- w(X, Y, _), X > 1.",
    "p(X, min<W>) <- w(X, _, W).",
    "p(X, Y, max<W>) <- w(X, Y, W), Y > 0.",
    "p(max<W>) <- w(_, _, W).",
)
OTHERS = (
    "p(X) <- e(X, Y), X + Y > 3.",
    "p(Z) <- e(X, Y), Z = X + Y.",
    "p(X) <- f(X, V), V < 1.5.",
    'p(A) <- s(A, _), A < "b".',
    "p(X) <- e(X, _), !w(X, _, _).",
    "p(X, sum<W>) <- w(X, _, W).",
    "p(A) <- s(A, _), s(A, 1).",
    "p(A, min<N>) <- s(A, N).",
)
NUMBERS = st.integers(-1, 4) | st.sampled_from([INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX])
TEXTS = st.sampled_from(["a", "b", "", "ä"])


def table(rows: list[tuple[Any, ...]], *types: pa.DataType) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    arrays = [pa.array(list(c), type) for c, type in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(types))])


@st.composite
def databases(draw: st.DrawFn) -> dict[str, pa.Table]:
    def rows(*columns: st.SearchStrategy[Any]) -> list[tuple[Any, ...]]:
        return draw(st.lists(st.tuples(*columns), max_size=8, unique=True))

    number = pa.int64()
    return {
        "e": table(rows(NUMBERS, NUMBERS), number, number),
        "w": table(rows(NUMBERS, NUMBERS, NUMBERS), number, number, number),
        "s": table(rows(TEXTS, NUMBERS), pa.string(), number),
        "f": table(rows(NUMBERS, st.floats(-2, 2)), number, pa.float64()),
    }


def plan_of(text: str) -> tuple[Plan, Any]:
    _, _, plan = planned(DECLARED + text)
    relation = next(relation for stratum in plan.strata for relation in stratum.relations if relation.name == "p")
    assert relation.exit is not None
    return as_bag(relation.exit, relation.state), relation.signature


def with_duplicates_dropped(text: str) -> Plan:
    _, _, plan = planned(DECLARED + text)
    exit = next(relation.exit for stratum in plan.strata for relation in stratum.relations if relation.name == "p")
    assert exit is not None
    return exit


def directly(plan: Plan, tables: dict[str, pa.Table]) -> pa.Table | None:
    return direct_rows(plan, lambda name: int(tables[name].num_rows), lambda name: tables[name])


def counted(found: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlEvaluator]:
    engine = DuckEngine(tmp_path_factory.mktemp("duckdb"), threads=1)
    yield SqlEvaluator(engine, {}, Meter(Limits(), Silent()))
    engine.close()


@pytest.mark.parametrize("text", SIMPLE)
@given(tables=databases())
@settings(max_examples=20)
def test_rows_are_those_of_a_statement(text: str, sql: SqlEvaluator, tables: dict[str, pa.Table]) -> None:
    for name, rows in tables.items():
        sql.engine.load(sql.table(name), rows)
    bag, signature = plan_of(text)
    for plan in [bag] if "s(" in text or '"' in text else [bag, with_duplicates_dropped(text)]:
        found = directly(plan, tables)
        assert found is not None
        assert counted(found) == counted(sql.rows(plan, signature))


@pytest.mark.parametrize("text", OTHERS)
def test_what_statements_mean_otherwise_is_left_to_them(text: str) -> None:
    plan, _ = plan_of(text)
    empty = {"e": 2, "w": 3, "s": 2, "f": 2}
    tables = {name: table([], *[pa.int64()] * width) for name, width in empty.items()}
    assert directly(plan, tables) is None


def test_many_rows_are_copied_but_not_selected() -> None:
    many = table([(i, i) for i in range(SMALL_ROWS + 1)], pa.int64(), pa.int64())
    copied, _ = plan_of("p(Y, X) <- e(X, Y).")
    selected, _ = plan_of("p(X, Y) <- e(X, Y), X < 3.")
    found = directly(copied, {"e": many})
    assert found is not None
    assert found.column(0).chunk(0).buffers()[1].address == many.column(1).chunk(0).buffers()[1].address
    assert directly(selected, {"e": many}) is None


def test_a_join_that_multiplies_is_left_to_a_statement() -> None:
    plan, _ = plan_of("p(X, Y) <- e(P, X), e(P, Y), X != Y.")
    assert directly(plan, {"e": table([(0, i) for i in range(1500)], pa.int64(), pa.int64())}) is None


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_duplicates_go(rows: list[tuple[int, int]]) -> None:
    columns = [Column("X", NUMBER), Column("Y", NUMBER)]
    found = different_rows(table(rows, pa.int64(), pa.int64()), columns)
    assert found is not None
    assert counted(found) == Counter(set(rows))


@pytest.mark.parametrize("type", [SYMBOL, FLOAT])
def test_values_that_may_be_equal_and_look_different_are_left_to_a_statement(type: Any) -> None:
    rows = table([(1,)], pa.int64())
    assert different_rows(rows, [Column("X", type)]) is None


# --- in a run --------------------------------------------------------------------------------------------------------

JOINED = """
.output tc
q(X, Y) <- e(X, Z), e(Z, Y).
tc(X, Y) <- q(X, Y), X = 1, Y = 1.
tc(X, Y) <- tc(X, Z), q(Z, Y), X > 5.
"""


def test_relations_for_kernels_are_counted_once_and_held_to_limits() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("e", [(i, j) for i in range(40) for j in range(40)])
        stats = next(one for one in engine.run(JOINED).stats if one.predicates == ("q",))
        assert (stats.evaluator, stats.facts) == ("arrow", 1600)
        with pytest.raises(emberlog.LimitError, match="limit of 100 rows while computing q"):
            engine.run(JOINED, limits={"rows": 100})


def test_kept_states_are_given_by_nobody() -> None:
    _, checked, plan = planned(
        "x(0, V, S) :- a(V), S = 1. x(I+1, V, sum[S]) :- x(I, V, Q), S = Q / 2. y(V) :- x(1, V, _)."
    )
    given = given_relations(checked, plan, {}, frozenset({"y"}))
    assert [relation.name for relation in given] == ["a"]


def test_threads_open_the_database_once(tmp_path: Path) -> None:
    engine = DuckEngine(tmp_path, threads=1)
    engine.attach("t", table([(1,)], pa.int64()))
    together = Barrier(8)

    def opened(_: int) -> int:
        together.wait()
        return id(engine._connection)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(opened, range(8)))) == 1
    assert engine.count("t") == 1
    engine.close()
