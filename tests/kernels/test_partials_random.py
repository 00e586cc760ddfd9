"""Random aggregates, projections and limits over random recursion: what workers on Spark answer is what DuckDB does."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.executors import distributed
from emberlog.thresholds import FEW_RETURNED

Rows = list[tuple[Any, ...]]

# --- values ----------------------------------------------------------------------------------------------------------

NODES = 7
HUGE = 2**62
VALUES: dict[str, list[Any]] = {
    "number": [0, 1, 2, -3, 10**12, HUGE, -HUGE],
    "unsigned": [0, 1, 2, 3, 10**12, HUGE, 2**64 - 1],
    "symbol": ["", "a", "B", "b", "ab", "é", "\U0001f600"],
    "date": [datetime.date(2000, 1, 1) + datetime.timedelta(days=400 * i) for i in range(NODES)],
}
ARROW = {
    "number": pa.int64(),
    "unsigned": pa.uint64(),
    "symbol": pa.string(),
    "date": pa.date32(),
    "float": pa.float64(),
}
WEIGHTS: dict[str, list[Any]] = {
    "number": [0, 1, 2, 5, HUGE // 4],
    "unsigned": [0, 1, 2, 5, HUGE // 4],
    "float": [0.0, 0.5, 1.25, 3.0, 1e9],
}


def literal(value: Any, kind: str) -> str:
    if kind in ("symbol", "date"):
        return f'"{value}"'
    return f"{value}u" if kind == "unsigned" else str(value)


# --- programs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recursion:
    """Rules for `r` over `arc(x, y)` and `warc(x, y, w)`; `columns` are those of `r`: `node`, `weight` or a type."""

    rules: str
    columns: tuple[str, ...]
    forward: bool = False  # are edges to go up only, so that sums end?


RECURSIONS = (
    Recursion("r(X,Y) <- arc(X,Y). r(X,Y) <- r(X,Z), arc(Z,Y).", ("node", "node")),
    Recursion("r(X,Y) <- arc(X,Y). r(X,Y) <- arc(X,Z), r(Z,Y).", ("node", "node")),
    Recursion("r(X,Y) <- arc(X,Y). r(X,Y) <- r(X,Z), r(Z,Y).", ("node", "node")),
    Recursion("r(X,Y) <- arc(P,X), arc(P,Y), X != Y. r(X,Y) <- arc(A,X), r(A,B), arc(B,Y).", ("node", "node")),
    Recursion("r(X,min<X>) <- arc(X,_). r(Y,min<V>) <- r(X,V), arc(X,Y).", ("node", "node")),
    Recursion("r(X) <- arc(X,X). r(Y) <- r(X), arc(X,Y).", ("node",)),
    Recursion("r(X,Y) <- arc(X,Y). o(X,Y) <- r(X,Z), arc(Z,Y). r(X,Y) <- o(X,Z), arc(Z,Y).", ("node", "node")),
    Recursion("r(Y,min<W>) <- warc(_,Y,W). r(Y,min<D>) <- r(X,C), warc(X,Y,W), D = C + W.", ("node", "weight")),
    Recursion(
        "r(X,Y,min<W>) <- warc(X,Y,W). r(X,Y,min<D>) <- r(X,Z,C), warc(Z,Y,W), D = C + W.", ("node", "node", "weight")
    ),
    Recursion(
        "r(X,Y,max<W>) <- warc(X,Y,W). r(X,Y,max<D>) <- r(X,Z,C), warc(Z,Y,W), D = min(C, W).",
        ("node", "node", "weight"),
    ),
    Recursion("r(X,K) <- arc(X,_), K = 0. r(Y,L) <- r(X,K), arc(X,Y), L = K + 1, L < 4.", ("node", "number")),
    Recursion("r(X,sum<C>) <- arc(X,_), C = 1. r(Y,sum<C>) <- r(X,C), arc(X,Y).", ("node", "number"), forward=True),
)


@dataclass(frozen=True)
class Case:
    """A program and its data. `few` is how many rows of an answer the driver puts together itself."""

    program: str
    tables: Mapping[str, pa.Table]
    way: Mapping[str, Any]
    in_files: bool
    few: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    recursion = draw(st.sampled_from(RECURSIONS))
    node = draw(st.sampled_from(sorted(VALUES)))
    weight = draw(st.sampled_from(sorted(WEIGHTS)))
    kinds = tuple({"node": node, "weight": weight}.get(kind, kind) for kind in recursion.columns)
    questions = [draw(question(f"q{i}", kinds)) for i in range(draw(st.integers(1, 4)))]
    outputs = [f".output q{i}" for i in range(len(questions))]
    outputs += draw(st.sampled_from([[], [], [], [".printsize r"], [".output r"]]))
    declared = [
        f".decl arc(x: {node}, y: {node})\n.decl warc(x: {node}, y: {node}, w: {weight})",
        ".decl r(" + ", ".join(f"c{i}: {kind}" for i, kind in enumerate(kinds)) + ")",
    ]
    return Case(
        "\n".join([*declared, recursion.rules, *questions, *outputs]),
        draw(tables(node, weight, recursion.forward)),
        draw(st.sampled_from([{}, {}, {"decompose": False}, {"decompose": False, "exchange": True}])),
        draw(st.booleans()),
        draw(st.sampled_from([0, 2, FEW_RETURNED])),
    )


@st.composite
def tables(draw: st.DrawFn, node: str, weight: str, forward: bool) -> dict[str, pa.Table]:
    ends = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1))
    least = draw(st.sampled_from([0, 4, 8, 8]))
    drawn = draw(st.lists(ends, min_size=least, max_size=14, unique=True))
    pairs = [pair for pair in drawn if pair[0] < pair[1] or not forward]
    weights = draw(st.lists(st.sampled_from(WEIGHTS[weight]), min_size=len(pairs), max_size=len(pairs)))
    columns = [pa.array([VALUES[node][pair[i]] for pair in pairs], ARROW[node]) for i in (0, 1)]
    return {
        "arc": pa.table(columns, names=["x", "y"]),
        "warc": pa.table([*columns, pa.array(weights, ARROW[weight])], names=["x", "y", "w"]),
    }


@st.composite
def question(draw: st.DrawFn, name: str, kinds: tuple[str, ...]) -> str:
    """A rule that asks something of `r`."""
    names = [f"V{i}" for i in range(len(kinds))]
    types = dict(zip(names, kinds, strict=True))
    body = ", ".join([f"r({', '.join(names)})", *draw(conditions(types))])
    used = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    match draw(st.sampled_from(["aggregates", "aggregates", "aggregates", "rows", "first", "body"])):
        case "aggregates":
            # What is neither a group nor aggregated is read by nobody.
            groups = used[: draw(st.integers(0, len(used) - 1))]
            folds = [draw(aggregate(variable, types[variable])) for variable in used[len(groups) :]]
            return f"{name}({', '.join([*groups, *folds])}) <- {body}."
        case "rows":
            return f"{name}({', '.join(used)}) <- {body}."
        case "first":
            order = ", ".join(f"({variable}, {draw(st.sampled_from(['asc', 'desc']))})" for variable in used)
            return f"{name}({', '.join(used)}) <- {body}, sort({order}), limit({draw(st.integers(1, 4))})."
        case _:
            fold = draw(st.sampled_from(["count", f"min {used[0]}", f"max {used[0]}"]))
            return f"{name}(A) <- A = {fold} : {{ {body} }}."


@st.composite
def aggregate(draw: st.DrawFn, variable: str, kind: str) -> str:
    functions = ["count", "min", "max", "countd"]
    if kind in ("number", "unsigned", "float"):
        functions += ["sum", "sum", "avg"]
    return f"{draw(st.sampled_from(functions))}<{variable}>"


@st.composite
def conditions(draw: st.DrawFn, types: Mapping[str, str]) -> list[str]:
    found = []
    for variable in draw(st.lists(st.sampled_from(sorted(types)), max_size=2, unique=True)):
        kind = types[variable]
        alike = [other for other in types if types[other] == kind and other != variable]
        operator = draw(st.sampled_from(["<", ">=", "!=", "="]))
        value = draw(st.sampled_from((VALUES | WEIGHTS)[kind]))
        other = draw(st.sampled_from([*alike, literal(value, kind)]))
        found.append(f"{variable} {operator} {other}")
    return found


# --- the comparison --------------------------------------------------------------------------------------------------


def answers(engine: emberlog.Engine, case: Case, **options: Any) -> dict[str, Rows] | None:
    """Every relation that is asked for; None where some value does not exist."""
    try:
        result = engine.run(case.program, **options)
        return {name: sorted(result[name].rows()) for name in sorted(result)}
    except emberlog.DataError:
        return None


def registered(engine: emberlog.Engine, case: Case, folder: Path) -> None:
    for name, table in case.tables.items():
        path = folder / f"{name}.parquet"
        pq.write_table(table, path)
        engine.register(name, path if case.in_files else table)


def alike(one: Rows, other: Rows) -> bool:
    """Sums of floats depend on their order."""
    return len(one) == len(other) and all(
        tuple(pytest.approx(v, rel=1e-9) if isinstance(v, float) else v for v in a) == b
        for a, b in zip(one, other, strict=True)
    )


def compare(spark: Any, case: Case) -> None:
    with TemporaryDirectory() as folder, mock.patch.object(distributed, "FEW_RETURNED", case.few):
        with emberlog.Engine(executor="local", workers=1) as engine:
            registered(engine, case, Path(folder))
            expected = answers(engine, case, evaluator="sql")
        with emberlog.Engine(spark, workers=2) as engine:
            registered(engine, case, Path(folder))
            found = answers(engine, case, evaluator="kernel", placement="spark", **case.way)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.keys() == expected.keys()
        for name, rows in expected.items():
            assert alike(rows, found[name]), (name, rows, found[name])


CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=4, suppress_health_check=CHECKS)
@given(case=cases())
def test_what_workers_are_asked_is_what_sql_finds(spark: Any, case: Case) -> None:
    compare(spark, case)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=CHECKS)
@given(case=cases())
def test_what_workers_are_asked_is_what_sql_finds_in_many_cases(spark: Any, case: Case) -> None:
    compare(spark, case)
