"""A user's DataFrame as the rows of a relation: with the program's types, without nulls.

One job over the frame counts its rows, its nulls and the values that do not fit, and gives it a fingerprint: a frame
does not tell when the rows behind it change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from secrets import randbits
from typing import Any, Literal

from emberlog.analysis.program import Signature
from emberlog.causes import cause_of
from emberlog.diagnostics import DataError, ExecutionError, counted
from emberlog.sql.dialect import Dialect
from emberlog.types import Column, Type, integer_range

SALT = randbits(62)  # nobody can make rows to have the fingerprint of others
HALF = (1 << 32) - 1


def read_columns(relation: str, frame: Any, origin: str, signature: Signature) -> Any:
    """The columns of a frame that the program uses, as `c0`, `c1`, ... Raises DataError if it has another number."""
    reading = signature.reading
    wanted = len(signature.columns if reading is None else reading.whole)
    if len(frame.columns) != wanted:
        raise DataError(
            f"`{relation}` has {wanted} columns in the program and {len(frame.columns)} in {origin} "
            f"({', '.join(frame.columns)})"
        )
    named = frame.toDF(*(f"c{i}" for i in range(wanted)))
    if reading is None:
        return named
    return named.select(*(f"c{i}" for i in reading.positions)).toDF(*(f"c{i}" for i in range(len(reading.positions))))


def checked_frame(
    relation: str,
    frame: Any,
    origin: str,
    columns: Sequence[Column],
    dialect: Dialect,
    nulls: Literal["error", "drop"],
    warn: Callable[[str], None],
) -> tuple[Any, int, tuple[int, ...]]:
    """The frame with columns `c0`, `c1`, .. of the program's types, its number of rows, and its fingerprint.

    `frame` has these columns alone, as `read_columns` gives them. `origin` is what an error calls the frame. Rows with
    nulls are an error, or dropped with a warning.
    """
    from pyspark.sql import functions as f

    raw = frame
    values = [f.col(f"c{i}") for i in range(len(columns))]
    typed = [_typed(value, column.type, dialect) for value, column in zip(values, columns, strict=True)]
    gap = reduce(or_, (value.isNull() for value in values))
    counts = [f.count(f.lit(1)).alias("n"), f.count_if(gap).alias("gaps"), *_fingerprint(values)]
    for i, column in enumerate(columns):
        counts += _counts(i, values[i], typed[i], column.type)
    try:
        found = raw.agg(*counts).first()
    except Exception as error:
        raise ExecutionError(f"Spark could not read `{relation}` from {origin}: {cause_of(error)}") from error
    _tell_nulls(relation, columns, found, nulls, warn)
    _refuse_misfits(relation, columns, found)
    kept = raw.where(~gap) if found["gaps"] else raw  # dropna would take NaN for a null
    named = [cast.alias(f"c{i}") for i, cast in enumerate(typed)]
    fingerprint = (found["n"], found["high"], found["low"])
    return kept.select(*named), int(found["n"]) - int(found["gaps"]), fingerprint


def _fingerprint(values: Sequence[Any]) -> list[Any]:
    """Sums of the hashes of all rows, in halves: they cannot overflow, and equal rows do not cancel each other out."""
    from pyspark.sql import functions as f

    hashed = f.xxhash64(f.lit(SALT), *values)
    return [f.sum(f.shiftright(hashed, 32)).alias("high"), f.sum(hashed.bitwiseAND(f.lit(HALF))).alias("low")]


def certain_frame(frame: Any, columns: Sequence[Column]) -> Any:
    """The same for a frame that needs no check: it has the program's types and no nulls."""
    from pyspark.sql import functions as f

    named = frame.toDF(*(f"c{i}" for i in range(len(columns))))
    values = [
        f.col(f"c{i}") + 0.0 if column.type.kind == "float" else f.col(f"c{i}") for i, column in enumerate(columns)
    ]
    return named.select(*(value.alias(f"c{i}") for i, value in enumerate(values)))


def _typed(value: Any, type: Type, dialect: Dialect) -> Any:
    """A Spark column as one of the program's type; null where the value does not fit."""
    if type.kind == "float" and type.bits == 32:
        value = value.try_cast("float")
    cast = value.try_cast(dialect.type_name(type))
    return cast + 0.0 if type.kind == "float" else cast  # no value of a program is -0.0


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
