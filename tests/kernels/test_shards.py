"""Tables in shards: the rows of the reference and of DuckDB, as facts or as rows of sets, for any number of workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emberlog
from agreement import assert_all_agree
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.crew import Crew
from emberlog.kernels.shards import directory
from emberlog.kernels.shards.vectors import Vectors
from kernels.variants import by_kernels
from naive.values import Row, Value
from strategies import Case, assert_agrees, same_rows, wide_joins

GALEN = """
    p(X, Z) <- p0(X, Z).
    q(X, R, Z) <- q0(X, R, Z).
    p(X, Z) <- p(X, Y), p(Y, Z).
    q(X, R, Z) <- p(X, Y), q(Y, R, Z).
    p(X, Z) <- p(Y, W), u(W, R, Z), q(X, R, Y).
    p(X, Z) <- c(Y, W, Z), p(X, W), p(X, Y).
    q(X, E, Z) <- q(X, R, Z), s(R, E).
    q(X, E, O) <- q(X, Y, Z), r(Y, U), q(Z, U, O), r(U, E).
"""
TAK = """
    num(-1). num(0). num(X + 1) <- num(X), X < 7.
    tak(X, Y, Z, Z) <- num(X), num(Y), num(Z), Y >= X.
    tak(X, Y, Z, R) <- tak(V, Y, Z, A), X = V + 1, Y < X, W = Y - 1, U = Z - 1,
                       tak(W, Z, X, B), tak(U, X, Y, C), tak(A, B, C, R).
"""
long_in_python = pytest.mark.skipif(not COMPILES, reason="takes long as plain Python")
COLUMNS = {"p0": 2, "q0": 3, "u": 3, "c": 3, "s": 2, "r": 2}


def galen(seed: int, nodes: int, roles: int, rows: int) -> Case:
    """Random facts of the shape of the Galen ontology: concepts, roles between them, and rules for roles."""
    random = Random(seed)

    def node() -> int:
        return random.randrange(nodes)

    def role() -> int:
        return random.randrange(roles)

    drawn: dict[str, list[tuple[int, ...]]] = {
        "p0": [(node(), node()) for _ in range(rows)],
        "q0": [(node(), role(), node()) for _ in range(rows)],
        "u": [(node(), role(), node()) for _ in range(rows)],
        "c": [(node(), node(), node()) for _ in range(rows)],
        "s": [(role(), role()) for _ in range(roles)],
        "r": [(role(), role()) for _ in range(roles)],
    }
    facts: dict[str, list[Row]] = {name: [*sorted(set(found))] for name, found in drawn.items()}
    return Case(GALEN, facts, {name: ("number",) * size for name, size in COLUMNS.items()}, ("p", "q"))


def shuffled(case: Case, seed: int) -> tuple[Case, dict[Value, Value]]:
    """The case with other numbers, and which number each of them was."""
    values = list(dict.fromkeys(value for rows in case.facts.values() for row in rows for value in row))
    others = Random(seed).sample(range(10 * len(values)), len(values))
    names: dict[Value, Value] = dict(zip(values, others, strict=True))
    facts: dict[str, list[Row]] = {
        name: [tuple(names[v] for v in row) for row in rows] for name, rows in case.facts.items()
    }
    return Case(case.program, facts, case.columns, case.derived), {new: old for old, new in names.items()}


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(wide_joins())
def test_every_way_agrees_on_joins_of_growing_tables(case: Case) -> None:
    assert_all_agree(case, Counter())


@pytest.mark.parametrize("storage", ("rows", "hash"))
@pytest.mark.parametrize("workers", (1, 3))
def test_small_galen_is_that_of_the_reference(storage: str, workers: int) -> None:
    assert_agrees(galen(7, 9, 3, 8), lambda case: by_kernels(case, workers, storage=storage))


@long_in_python
@pytest.mark.apart
@pytest.mark.parametrize("storage", ("rows", "hash"))
def test_galen_whatever_the_labels_the_workers_and_the_form(storage: str) -> None:
    case = galen(11, 120, 6, 130)
    right = by_sql(case.program)
    other, back = shuffled(case, 3)
    found = by_kernels(other, 2, storage=storage)
    for name in case.derived:
        rows = [tuple(back[value] for value in row) for row in found[name]]
        assert len(rows) > 2000 or name == "p"
        assert same_rows(rows, right[name])


@cache
def by_sql(program: str) -> dict[str, list[Row]]:
    """What DuckDB makes of the larger case, once for all forms."""
    case = galen(11, 120, 6, 130)
    with emberlog.Engine(executor="local") as engine:
        for name, rows in case.facts.items():
            engine.register(name, rows)
        result = engine.run(program, evaluator="sql")
        return {name: list(result[name].rows()) for name in case.derived}


@long_in_python
@pytest.mark.apart
def test_takeuchi_of_a_cube() -> None:
    """A rule with four growing atoms over numbers that are computed: each is looked up by what is known of it."""

    def tak(x: int, y: int, z: int) -> int | None:
        """The function, None where it leaves the numbers that there are."""
        if min(x, y, z) < -1 or max(x, y, z) > 7:
            return None
        if y >= x:
            return z
        inner = [tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)]
        return None if None in inner else tak(*(value for value in inner if value is not None))

    numbers = range(-1, 8)
    right = {(x, y, z, r) for x in numbers for y in numbers for z in numbers if (r := tak(x, y, z)) is not None}
    with emberlog.Engine(executor="local", workers=2) as engine:
        result = engine.run(TAK, evaluator="kernel")
        assert {row for row in result["tak"].rows() if max(row) <= 7} == right
        assert "shards" in str(result.stats)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3), st.integers(-9, 9)), max_size=60), st.integers(1, 4))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_vectors_hold_what_was_appended_in_order(rows: list[tuple[int, int, int]], workers: int) -> None:
    with pytest.MonkeyPatch.context() as patch, Crew(workers) as crew:
        patch.setattr(directory, "SIDE_BY_SIDE", 1)
        vectors, right = Vectors(2, 1, "int64", crew), defaultdict(list)
        for begin in range(0, len(rows), 7):
            some = np.array(rows[begin : begin + 7], np.int64)
            vectors.append(some[:, :2], some[:, 2:])
        for a, b, item in rows:
            right[a, b].append(item)
        keys = vectors.directory.since(np.zeros(workers, np.int64))
        found = {
            tuple(vectors.directory.keys[key].tolist()): vectors.pool[
                vectors.wheres[key] : vectors.wheres[key] + vectors.sizes[key], 0
            ].tolist()
            for key in keys
        }
        assert found == right
