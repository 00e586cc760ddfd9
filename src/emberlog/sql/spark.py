"""Spark SQL as the engine: the user's session, through the DataFrame API (but for cancelling jobs).

A table is a temporary view with a name of this run. What is stored is cut off from its plan (`localCheckpoint`), so
that a hundred rounds make no plan of a hundred joins, and needs no folder from the user. A table that grows by one
small part a round is kept as parts of graded sizes: eight parts of one grade become one of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from emberlog.sql.dialect import Dialect, Spark
from emberlog.sql.engine import SqlEngine
from emberlog.sql.statement import FLOAT_TEXT, Statement

if TYPE_CHECKING:
    import pyarrow as pa

PARTS_OF_A_GRADE = 8
SMALL_LIMIT = 1_000_000  # rows: a limit gathers them in one task


@dataclass(frozen=True)
class _Part:
    frame: Any  # a DataFrame, of classic Spark or of Connect
    rows: int | None  # None while nobody has counted

    @property
    def grade(self) -> int:
        return int(log(max(self.rows or 1, 1), PARTS_OF_A_GRADE))


class _Jobs(NamedTuple):
    """Gives the jobs of a thread a tag, gives no more of it, cancels those that have it (from any thread)."""

    add: Callable[[str], None]
    remove: Callable[[str], None]
    cancel: Callable[[str], object]


def _jobs(session: Any) -> _Jobs:
    """A classic session's own tags are of one thread each, which is busy while there is something to cancel."""
    context = getattr(session, "sparkContext", None)  # Connect has none
    if context is None:
        return _Jobs(session.addTag, session.removeTag, session.interruptTag)
    return _Jobs(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)


class SparkEngine(SqlEngine):
    place = "spark"
    lazy = True

    def __init__(self, session: Any) -> None:
        self._dialect = Spark()
        self.session = session
        self._prefix = f"emberlog_{uuid4().hex[:12]}_"
        self._tag = f"{self._prefix}run"
        self._jobs = _jobs(session)
        self._tables: dict[str, list[_Part]] = {}
        self._has_float_text = False

    # --- tables --------------------------------------------------------------------------------------------------

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def table(self, name: str) -> str:
        """The view behind a table."""
        return self._prefix + name

    def frame(self, name: str) -> Any:
        """The rows of a table as a DataFrame."""
        return reduce(lambda left, right: left.union(right), (part.frame for part in self._tables[name]))

    def set_frame(self, name: str, frame: Any, rows: int | None = None) -> None:
        """Makes a DataFrame with the columns `c0`, `c1`, .. a table."""
        self._set(name, [_Part(frame, rows)])

    def _set(self, name: str, parts: list[_Part]) -> None:
        self._tables[name] = parts
        self.frame(name).createOrReplaceTempView(self.table(name))

    def query(self, statement: Statement) -> Any:
        if statement.needs_float_text and not self._has_float_text:
            from pyspark.sql.functions import udf

            # A lambda travels to the workers as it is; a function of ours would need this package there.
            self.session.udf.register(FLOAT_TEXT, udf(lambda value: repr(value), "string", useArrow=False))
            self._has_float_text = True
        return self.session.sql(statement.sql, args=dict(statement.parameters) or None)

    # --- the interface -------------------------------------------------------------------------------------------

    def load(self, name: str, table: pa.Table) -> None:
        self.set_frame(name, to_frame(self.session, table), table.num_rows)

    def define(self, name: str, statement: Statement) -> None:
        self.set_frame(name, self.query(statement))

    def store(self, name: str, statement: Statement, most: int | None = None) -> int:
        frame = self.query(statement)
        if most is not None and most <= SMALL_LIMIT:
            frame = frame.limit(most)
        # Not eager: the count below computes and keeps the rows in one job.
        frame = frame.localCheckpoint(eager=False)
        rows = int(frame.count())
        self.set_frame(name, frame, rows)
        return rows

    def append(self, name: str, other: str) -> None:
        parts = self._tables.get(name, []) + self._tables[other]
        while True:
            grades = [part.grade for part in parts]
            full = next((grade for grade in grades if grades.count(grade) >= PARTS_OF_A_GRADE), None)
            if full is None:
                break
            merged = [part for part in parts if part.grade == full]
            kept = [part for part in parts if part.grade != full]
            parts = [*kept, self._merge(merged)]
        self._set(name, parts)

    def _merge(self, parts: list[_Part]) -> _Part:
        frame = reduce(lambda left, right: left.union(right), (part.frame for part in parts))
        rows = sum(part.rows or 0 for part in parts)
        # About one partition for each 100,000 rows: a union has as many as its parts together.
        frame = frame.coalesce(max(1, rows // 100_000)) if rows < 10_000_000 else frame
        return _Part(frame.localCheckpoint(eager=True), rows)

    def update(self, name: str, other: str, keys: tuple[int, ...]) -> None:
        new = self.frame(other)
        if keys:
            names = [f"c{key}" for key in keys]
            old = self.frame(name).join(new.select(*names), names, "left_anti").select(*new.columns)
            # Not eager: the next round reads it and keeps it then.
            frame = old.union(new).localCheckpoint(eager=False)
        else:
            frame = new if new.count() else self.frame(name)
        self.set_frame(name, frame)

    def rename(self, name: str, new: str) -> None:
        self._set(new, self._tables[name])
        self.drop(name)

    def drop(self, name: str) -> None:
        if self._tables.pop(name, None) is not None:
            self.session.catalog.dropTempView(self.table(name))

    def count(self, name: str) -> int:
        parts = self._tables[name]
        if all(part.rows is not None for part in parts):
            return sum(part.rows or 0 for part in parts)
        return int(self.frame(name).count())

    def fetch(self, name: str) -> pa.Table:
        return self.frame(name).toArrow()

    def head(self, name: str, count: int) -> pa.Table:
        frame = self.frame(name)
        return frame.orderBy(*frame.columns).limit(count).toArrow()

    def read(self, statement: Statement) -> pa.Table:
        return self.query(statement).toArrow()

    def first(self, statement: Statement) -> tuple[Any, ...] | None:
        row = self.query(statement).first()
        return None if row is None else tuple(row)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        self._jobs.add(self._tag)
        try:
            yield
        finally:
            with suppress(Exception):  # Spark may be gone, which the statement told already
                self._jobs.remove(self._tag)

    def interrupt(self) -> None:
        self._jobs.cancel(self._tag)

    def close(self) -> None:
        for name in list(self._tables):
            self.drop(name)


def to_frame(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame. Spark has no unsigned 64-bit integers: they become DECIMAL(20,0)."""
    import pyarrow as pa

    fields = [
        pa.field(field.name, pa.decimal128(20, 0) if pa.types.is_uint64(field.type) else field.type, nullable=False)
        for field in table.schema
    ]
    return session.createDataFrame(table.cast(pa.schema(fields)))
