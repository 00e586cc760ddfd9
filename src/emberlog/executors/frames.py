"""A user's DataFrame as the rows of a relation: with the program's types, without nulls.

One job over the frame counts its rows, its nulls and the values that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, Literal

from emberlog.diagnostics import DataError, ExecutionError, counted
from emberlog.sql.dialect import Dialect
from emberlog.sql.evaluate import reason_of
from emberlog.types import Column, Type, integer_range


def checked_frame(
    relation: str,
    frame: Any,
    origin: str,
    columns: Sequence[Column],
    dialect: Dialect,
    nulls: Literal["error", "drop"],
    warn: Callable[[str], None],
) -> tuple[Any, int]:
    """The frame with columns `c0`, `c1`, .. of the program's types, and its number of rows.

    `origin` is what an error calls the frame. Rows with nulls are an error, or dropped with a warning.
    """
    if len(frame.columns) != len(columns):
        raise DataError(
            f"`{relation}` has {len(columns)} columns in the program and {len(frame.columns)} in {origin} "
            f"({', '.join(frame.columns)})"
        )
    from pyspark.sql import functions as f

    raw = frame.toDF(*(f"c{i}" for i in range(len(columns))))
    values = [f.col(f"c{i}") for i in range(len(columns))]
    typed = [_typed(value, column.type, dialect) for value, column in zip(values, columns, strict=True)]
    gap = reduce(or_, (value.isNull() for value in values))
    counts = [f.count(f.lit(1)).alias("n"), f.count_if(gap).alias("gaps")]
    for i, column in enumerate(columns):
        counts += _counts(i, values[i], typed[i], column.type)
    try:
        found = raw.agg(*counts).first()
    except Exception as error:
        raise ExecutionError(f"Spark could not read `{relation}` from {origin}: {reason_of(error)}") from error
    _tell_nulls(relation, columns, found, nulls, warn)
    _refuse_misfits(relation, columns, found)
    kept = raw.where(~gap) if found["gaps"] else raw  # dropna would take NaN for a null
    named = [cast.alias(f"c{i}") for i, cast in enumerate(typed)]
    return kept.select(*named), int(found["n"]) - int(found["gaps"])


def _typed(value: Any, type: Type, dialect: Dialect) -> Any:
    """A Spark column as one of the program's type; null where the value does not fit."""
    if type.kind == "float" and type.bits == 32:
        value = value.try_cast("float")
    return value.try_cast(dialect.type_name(type))


def _counts(spot: int, value: Any, cast: Any, type: Type) -> list[Any]:
    """What is asked of a column: its nulls, its values that do not fit, and one of these."""
    from pyspark.sql import functions as f

    bad = value.isNotNull() & cast.isNull()
    if type.is_integer and type.bits < 64:
        bad = bad | ~value.between(*integer_range(type))
    return [
        f.count_if(value.isNull()).alias(f"nulls{spot}"),
        f.count_if(bad).alias(f"bad{spot}"),
        f.first(f.when(bad, value.cast("string")), ignorenulls=True).alias(f"sample{spot}"),
    ]


def _tell_nulls(
    relation: str, columns: Sequence[Column], found: Any, nulls: Literal["error", "drop"], warn: Callable[[str], None]
) -> None:
    there = {column.name: found[f"nulls{i}"] for i, column in enumerate(columns) if found[f"nulls{i}"]}
    if there and nulls == "error":
        listed = ", ".join(f"{count} in column {name}" for name, count in there.items())
        raise DataError(
            f"`{relation}` has nulls: {listed} (of {counted(found['n'], 'row')})",
            fix='nulls="drop" leaves such rows out',
        )
    if there:
        warn(f"`{relation}`: {counted(found['gaps'], 'row')} with nulls dropped")


def _refuse_misfits(relation: str, columns: Sequence[Column], found: Any) -> None:
    for i, column in enumerate(columns):
        if found[f"bad{i}"]:
            more = f" (of {counted(found[f'bad{i}'], 'such value')})" if found[f"bad{i}"] > 1 else ""
            raise DataError(
                f"`{relation}`, column {column.name}: {found[f'sample{i}']} does not fit {column.type}{more}"
            )
