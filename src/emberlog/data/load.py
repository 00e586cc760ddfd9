"""The rows that a relation is given: those of its source and those that stand in the program."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from emberlog.data.arrow import arrow_schema, empty_table, nullary_table
from emberlog.data.convert import Nulls, Warn, narrow, without_signs
from emberlog.data.sources import Source, load_table
from emberlog.types import Column, Value


def given_table(
    relation: str,
    source: Source | None,
    columns: tuple[Column, ...],
    facts: Sequence[tuple[Value, ...]],
    nulls: Nulls,
    warn: Warn,
    whole: tuple[Column, ...] | None = None,
    positions: tuple[int, ...] | None = None,
) -> pa.Table:
    """All rows, with a dummy column where the relation has none (SQL tables have at least one). Where `columns` are not
    all of the source's, `whole` are, and `columns` are those at `positions`."""
    if source is None:
        table = empty_table(columns)
    else:
        table = load_table(relation, source, columns if whole is None else whole, nulls, warn, positions)
    if not columns:
        return dummy_table(bool(facts) or table.num_rows > 0)
    return pa.concat_tables([table, fact_table(columns, facts)]) if facts else table


def fact_table(columns: tuple[Column, ...], facts: Sequence[tuple[Value, ...]]) -> pa.Table:
    """The facts of a program as a table."""
    schema = arrow_schema(columns)
    arrays = [
        without_signs(narrow(_array([row[i] for row in facts], entry.type), column.type))
        for i, (entry, column) in enumerate(zip(schema, columns, strict=True))
    ]
    return pa.table(arrays, schema=schema)


def _array(values: list[Value], type: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(type) or pa.types.is_decimal(type):
        return pa.array([str(value) for value in values]).cast(type)
    return pa.array(values, type)


def dummy_table(holds: bool) -> pa.Table:
    """A relation without columns as a SQL table: one row when it is true."""
    return pa.table({"c0": pa.array([True] * holds, pa.bool_())})


def without_dummy(table: pa.Table) -> pa.Table:
    """The Arrow table of a relation without columns, from its SQL table."""
    return nullary_table(table.num_rows > 0)
