"""The columns of a source before it is loaded, and the frames of those that only Spark can open."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from emberlog.causes import cause_of
from emberlog.data.sources import JdbcSource, Source, SparkSource, SparkTableSource, TextSource, schema_of
from emberlog.deadline import Deadline
from emberlog.diagnostics import DataError, EmberlogError, ExecutionError, did_you_mean
from emberlog.types import Column


def columns_of_source(
    relation: str,
    source: Source,
    session: Callable[[], Any] | None,
    declared: bool,
    deadline: Deadline,
    unread: Container[int] = (),
) -> tuple[Column, ...] | None:
    """Names and types of the source's columns, None where the program has to tell them.

    `session` gives Spark's (None on the local executor), for sources that only Spark can open. The columns of a
    declared text file are those of its declaration: it is not read twice. Columns at the positions `unread` may be of
    any type.
    """
    match source:
        case SparkTableSource() | JdbcSource() if session is not None:
            return schema_of(relation, SparkSource(frame_of_source(relation, source, session())), unread)
        case TextSource() if declared:
            return None
        case TextSource():
            return deadline.bounded(lambda: schema_of(relation, source, unread), f"reading `{relation}`")
        case _:
            return schema_of(relation, source, unread)


class _All:
    """Contains everything."""

    def __contains__(self, item: object) -> bool:
        return True


def names_of_source(
    relation: str, source: Source | None, session: Callable[[], Any] | None, deadline: Deadline
) -> tuple[str, ...] | None:
    """The names of a source's columns, of whatever types; None if there is no such source, or only the program can
    tell them."""
    if source is None:
        return None
    columns = columns_of_source(relation, source, session, declared=False, deadline=deadline, unread=_All())
    return None if columns is None else tuple(column.name for column in columns)


def frame_of_source(relation: str, source: SparkTableSource | JdbcSource, session: Any) -> Any:
    """The DataFrame of a table of Spark's catalog or of a database. Raises if there is none."""
    try:
        if isinstance(source, SparkTableSource):
            frame = session.table(source.table)
        else:
            frame = session.read.format("jdbc").options(**dict(source.options)).load()
        frame.schema  # noqa: B018 - where Spark runs elsewhere, nothing is looked up before this
    except EmberlogError:
        raise
    except Exception as error:  # Spark's own, of many classes
        raise _not_there(relation, source, session, error) from error
    return frame


def _not_there(relation: str, source: SparkTableSource | JdbcSource, session: Any, error: Exception) -> EmberlogError:
    if isinstance(source, JdbcSource):
        return ExecutionError(f"cannot read `{relation}` from its database: {cause_of(error)}", span=source.span)
    if "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
        told = f"cannot read `{relation}` from the table {source.table!r}: {cause_of(error)}"
        return DataError(told, span=source.span)
    known = [table.name for table in session.catalog.listTables()]
    listed = ", ".join(sorted(known)[:10]) or "no tables"
    return DataError(
        f"cannot read `{relation}`: Spark's catalog has no table `{source.table}`",
        span=source.span,
        fix=did_you_mean(source.table, known) or f"it has {listed}",
    )
