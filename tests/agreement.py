"""Evaluates a case in every way there is on this machine, and holds each against the reference.

    sql           DuckDB evaluates all strata
    planner       what a run chooses: few rows over Arrow's columns, recursion by the interpreter, the rest by DuckDB
    loops ...     inside that run, each recursive component that the interpreter evaluates is evaluated by the loops
                  too, in several ways: they must give its rows, or fail where it fails

Without a compiler (EMBERLOG_JIT=off) the loops are plain Python, with one they are compiled: seconds for each shape. On
Spark, where a program takes a second or more, many are run as one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import emberlog
from emberlog.kernels import cache
from emberlog.kernels import evaluate as module
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.watch import Failed, Unsuited
from emberlog.types import Value
from kernels.variants import FEW, WAYS, Patient, rows_of
from naive.values import Row
from strategies.cases import Case, Outcome, assert_same, difference, expected, outcome, tables

LIMITS = {"rounds": 1000}


def rows_by(engine: emberlog.Engine, case: Case, **how: Any) -> Mapping[str, Iterable[Row]]:
    """The rows that an engine gives for what the case asks for."""
    for name, table in tables(case).items():
        engine.register(name, table)
    result = engine.run(case.program, cast("Mapping[str, Value]", case.params), limits=LIMITS, **how)
    return {name: result[name].rows() for name in case.derived}


def locally(case: Case, **how: Any) -> Mapping[str, Iterable[Row]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        return rows_by(engine, case, **how)


def assert_all_agree(case: Case, counts: Counter[str]) -> None:
    """Every way gives what the reference gives. `counts` gets how many programs and components each way evaluated."""
    with loops_beside_the_interpreter(counts):
        right = assert_both_agree(case)
    counts["programs"] += 1
    counts["programs that fail" if isinstance(right, type) else "programs with rows"] += 1


def assert_both_agree(case: Case) -> Outcome:
    """DuckDB, and what a run chooses, give what the reference gives, which is returned."""
    right = expected(case)
    assert_same(case, outcome(case, lambda case: locally(case, evaluator="sql")), right, "sql")
    assert_same(case, outcome(case, locally), right, "planner")
    return right


# --- loops -----------------------------------------------------------------------------------------------------------


def ways(number: int) -> Mapping[str, Choices]:
    """Loops, hashed tables and rows of sets for every component; of the other ways, each has its turn."""
    if COMPILES:
        return FEW
    always = {name: WAYS[name] for name in ("loops", "hashed", "rows")}
    others = [name for name in WAYS if name not in always and name != "columns"]
    return {**always, others[number % len(others)]: WAYS[others[number % len(others)]]}


@contextmanager
def loops_beside_the_interpreter(counts: Counter[str]) -> Iterator[None]:
    """Each component that is evaluated inside is evaluated by the loops, too, in several ways."""
    real = module.evaluate

    def one_way(counted: str, *arguments: Any) -> Evaluated | None:
        """What an evaluation gives; None where an operation has no value."""
        try:
            found = real(*arguments)
        except Failed:
            counts[f"{counted}, failed"] += 1
            return None
        counts[counted] += 1
        return found

    def evaluate(program: Any, statics: Any, exits: Any, watch: Any, choices: Choices, *more: Any) -> Evaluated:
        base = one_way("components by the interpreter", program, statics, exits, watch, choices, *more)
        # Values that better ones replace later may be computed in one order and not in another.
        strict = all(table.fold == "set" for table in program.tables)
        for way, other in ways(counts["components by the interpreter"]).items() if program.mode == "delta" else ():
            try:
                found = one_way(f"components by {way}", program, statics, exits, Patient(), other, *more)
            except Unsuited:
                continue
            failed = f"{way} fails: {found is None}, the interpreter: {base is None}"
            assert not strict or (found is None) == (base is None), failed
            if found is not None and base is not None:
                for table in program.tables:
                    told = difference(rows_of(found, table.name), rows_of(base, table.name))
                    assert not told, f"{table.name}, {way} ({found.how}) against {base.how}: {told}"
        if base is None:
            raise Failed
        return base

    with mock.patch.object(module, "evaluate", evaluate), mock.patch.object(cache, "INTERPRETS", True):
        yield


# --- Spark -----------------------------------------------------------------------------------------------------------

MERGED = 10  # programs that are run as one


def assert_spark_agrees(spark: Any, cases: Iterable[Case], counts: Counter[str], **how: Any) -> None:
    """Spark gives what the reference gives. Programs with rows are run many at once, those that fail one by one."""

    def run(case: Case) -> Mapping[str, Iterable[Row]]:
        with emberlog.Engine(spark) as engine:
            return rows_by(engine, case, placement="spark", **how)

    rows, failing = list[Case](), list[Case]()
    for case in cases:
        (failing if isinstance(expected(case), type) else rows).append(case)
    merged = [side_by_side(rows[i : i + MERGED]) for i in range(0, len(rows), MERGED)]
    for case in (*merged, *failing):
        assert_same(case, outcome(case, run), expected(case), f"Spark, {how}")
    counts[f"programs with rows on Spark, {how}"] += len(rows)
    counts[f"programs that fail on Spark, {how}"] += len(failing)


def side_by_side(cases: Iterable[Case]) -> Case:
    """One program of several wide ones, whose predicates get the numbers of their programs."""
    lines, asked = list[str](), list[str]()
    facts: dict[str, list[Row]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for number, case in enumerate(cases):
        own = [line for line in case.program.splitlines() if not line.startswith(".output")]
        lines += [re.sub(r"\b([ep][0-9]+)(?=\()", rf"n{number}_\1", line) for line in own]
        facts |= {f"n{number}_{name}": rows for name, rows in case.facts.items()}
        columns |= {f"n{number}_{name}": types for name, types in case.columns.items()}
        asked += [f"n{number}_{name}" for name in case.derived]
    return Case("\n".join([*lines, *(f".output {name}" for name in asked)]), facts, columns, tuple(asked))
