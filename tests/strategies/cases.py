"""A program with its data, and the check that an evaluator agrees with the reference on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias, cast

import pyarrow as pa

import naive
from emberlog.data.arrow import arrow_type
from emberlog.diagnostics import DataError, EmberlogError, LimitError, ProgramError
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.types import Kind, Type
from naive.values import Row, Value

ERRORS: tuple[type[EmberlogError], ...] = (DataError, LimitError, ProgramError)
Outcome: TypeAlias = Mapping[str, list[Row]] | type[EmberlogError]
Run: TypeAlias = Callable[["Case"], Mapping[str, Iterable[Row]]]
"""Evaluates the program of a case over its facts; gives the rows of (at least) the derived predicates."""


@dataclass(frozen=True)
class Case:
    """A program, the rows of its base relations, and the types of their columns, as they are declared.

    `derived` are the predicates that have rules, or those of them that the program asks for. The rows of a base
    relation differ from one another.
    """

    program: str
    facts: Mapping[str, list[Row]]
    columns: Mapping[str, tuple[str, ...]]
    derived: tuple[str, ...]
    params: Mapping[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        facts = "".join(f"\n{name}: {self.columns[name]} {rows}" for name, rows in self.facts.items())
        return f"Case\n{self.program}{facts}\nparams: {dict(self.params)}\n"


def reference(case: Case, rounds: int = 1000) -> dict[str, set[Row]]:
    """The rows of the predicates that are asked for. Raises what `naive.evaluate` raises."""
    program: nodes.Program = parse(Source("<case>", case.program))
    floats = {(name, i) for name, types in case.columns.items() for i, type in enumerate(types) if type == "float"}
    return naive.evaluate(program, case.facts, case.params, floats=floats, rounds=rounds, wanted=case.derived)


def tables(case: Case) -> dict[str, pa.Table]:
    """The base relations, with the types of their columns."""
    return {name: table(case.columns[name], rows) for name, rows in case.facts.items()}


def table(types: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    arrow: list[pa.DataType] = [arrow_type(column_type(name)) for name in types]
    values = ([row[i] for row in rows] for i in range(len(types)))
    arrays = [pa.array(column, kind) for column, kind in zip(values, arrow, strict=True)]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(types))])


def column_type(name: str) -> Type:
    kind, _, size = name.partition("(")
    precision, scale = map(int, size.rstrip(")").split(",")) if size else (0, 0)
    return Type(cast("Kind", kind), precision=precision, scale=scale)


def outcome(case: Case, run: Run) -> Outcome:
    """The rows that `run` gives for what is asked for, or which of the errors it raises that a program may have."""
    try:
        found = run(case)
        return {name: list(found[name]) for name in case.derived}
    except ERRORS as error:
        return next(kind for kind in ERRORS if isinstance(error, kind))


def expected(case: Case) -> Outcome:
    """The reference's rows, or the class of the error that there must be."""
    try:
        return {name: list(rows) for name, rows in reference(case).items()}
    except naive.EvaluationError:
        return DataError
    except naive.LimitReached:
        return LimitError
    except naive.InvalidProgram:
        return ProgramError


def assert_agrees(case: Case, run: Run) -> None:
    """`run` gives the reference's rows for every derived predicate, or fails where and as the reference fails."""
    assert_same(case, outcome(case, run), expected(case))


def assert_same(case: Case, actual: Outcome, right: Outcome, way: str = "it") -> None:
    if isinstance(actual, type) or isinstance(right, type):
        assert actual is right, f"{way} gives {actual}, the reference {right}\n{case!r}"
        return
    for name in case.derived:
        told = difference(actual[name], right[name])
        assert not told, f"{way}: {name}: {told}\n{case!r}"


# --- comparing rows --------------------------------------------------------------------------------------------------

TOLERANCE = 1e-9


def same_rows(left: Iterable[Row], right: Iterable[Row]) -> bool:
    """The same rows, as often, in any order.

    A number and a float of equal value are the same, a boolean and a number are not. Floats are the same within a
    relative 1e-9 (engines add in different orders), NaN is the same as NaN, and the two zeros are the same.
    """
    return not difference(left, right)


def difference(left: Iterable[Row], right: Iterable[Row]) -> str:
    """The rows that are only on one side, as text; nothing if there are none."""
    one, other = Counter(map(marked, left)), Counter(map(marked, right))
    surplus, missing = list((one - other).elements()), list((other - one).elements())
    for row in list(surplus):
        partner = next((candidate for candidate in missing if close(row, candidate)), None)
        if partner is not None:
            surplus.remove(row)
            missing.remove(partner)
    shown = [
        f"{sign}{tuple(value for _, value in row)}" for sign, rows in (("+", surplus), ("-", missing)) for row in rows
    ]
    return " ".join(sorted(shown))


Marked: TypeAlias = tuple[tuple[str, Value], ...]


def marked(row: Row) -> Marked:
    """The row with the kind of each value, so that `True` is not 1, and with one NaN object. Decimals are numbers."""
    return tuple(
        ("bool", value)
        if isinstance(value, bool)
        else ("number", math.nan if isinstance(value, float) and math.isnan(value) else value)
        if isinstance(value, int | float | Decimal)
        else (type(value).__name__, value)
        for value in row
    )


def close(left: Marked, right: Marked) -> bool:
    return len(left) == len(right) and all(
        kind == other_kind and (value == other or (kind == "number" and near(value, other)))
        for (kind, value), (other_kind, other) in zip(left, right, strict=True)
    )


def near(left: Value, right: Value) -> bool:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return (left != left and right != right) or math.isclose(left, right, rel_tol=TOLERANCE)
