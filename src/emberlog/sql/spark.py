"""Spark SQL as the engine: the user's session, through the DataFrame API (but for cancelling jobs).

A table is a temporary view with a name of this run. What is stored is cut off from its plan (`localCheckpoint`), so
that a hundred rounds make no plan of a hundred joins, and needs no folder from the user. A table that grows by one
small part a round is kept as parts of graded sizes: eight parts of one grade become one of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from math import log
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from emberlog.diagnostics import EmberlogError, ExecutionError, LimitError
from emberlog.memory import FEWER
from emberlog.sessions import TaggedJobs, is_gone, lost
from emberlog.sql.calling import arrow_type
from emberlog.sql.dialect import Dialect
from emberlog.sql.engine import SqlEngine
from emberlog.sql.spark_dialect import Spark
from emberlog.sql.statement import EXACT, EXTRACT, FLOAT_TEXT, MATCHES, PATTERN, GivenFunction, Statement

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


class SparkEngine(SqlEngine):
    place = "spark"
    lazy = True

    def __init__(self, session: Any) -> None:
        self._dialect = Spark()
        self.session = session
        self._prefix = f"emberlog_{uuid4().hex[:12]}_"
        self._jobs = TaggedJobs(session, f"{self._prefix}run")
        self._tables: dict[str, list[_Part]] = {}
        self._given: set[str] = set()  # those of our functions that the session has

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
        for name in statement.needs - self._given:
            self._give(name)
        for name in statement.calls.keys() - self._given:
            self._give_users(name, statement.calls[name])
        with self.staged(statement):
            return self.session.sql(statement.sql, args=dict(statement.parameters) or None)

    def _give(self, name: str) -> None:
        """Registers one of our functions."""
        from pyspark.sql.functions import udf

        if name == FLOAT_TEXT:
            # A lambda travels to the workers as it is; a function of ours would need this package there.
            self.session.udf.register(FLOAT_TEXT, udf(lambda value: repr(value), "string", useArrow=False))
        if name in (PATTERN, MATCHES, EXTRACT, EXACT):
            from pyspark.cloudpickle import register_pickle_by_value

            from emberlog import patterns
            from emberlog.sql import exact

            functions: Mapping[str, tuple[Any, Callable[..., Any], str]] = {
                PATTERN: (patterns, patterns.for_java_or_none, "string"),
                MATCHES: (patterns, patterns.matches, "boolean"),
                EXTRACT: (patterns, patterns.extract, "string"),
                EXACT: (exact, exact.compute, "string"),
            }
            module, function, type = functions[name]
            # The module travels along: it needs nothing else of this package.
            register_pickle_by_value(module)  # type: ignore[no-untyped-call]
            self.session.udf.register(name, udf(function, type, useArrow=False))
        self._given.add(name)

    def _give_users(self, name: str, given: GivenFunction) -> None:
        """Registers a function of the user, which gets columns of Arrow."""
        import pyarrow as pa
        from pyspark.cloudpickle import register_pickle_by_value
        from pyspark.sql.pandas.functions import arrow_udf

        from emberlog.sql import calling as module

        register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        calling, whole = given.calling, given.calling.result == "unsigned"  # which is a decimal to Spark
        digits = ("decimal", 20, 0) if whole else (calling.result, calling.precision, calling.scale)
        type = arrow_type(*digits)

        def function(*columns: Any) -> Any:
            return calling.column(columns, type)

        # Spark reads from the annotations that it is a function of columns.
        function.__annotations__ = {"columns": pa.Array, "return": pa.Array}
        self.session.udf.register(name, arrow_udf(function, given.result))  # type: ignore[call-overload]
        self._given.add(name)

    # --- the interface -------------------------------------------------------------------------------------------

    def load(self, name: str, table: pa.Table) -> None:
        self.set_frame(name, to_frame(self.session, table), table.num_rows)

    def define(self, name: str, statement: Statement) -> None:
        self.set_frame(name, self.query(statement))

    def keep(self, name: str, statement: Statement) -> None:
        # What reads it is planned without the plan of these rows, and computes them.
        self.set_frame(name, self.query(statement).localCheckpoint(eager=False))

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

    def shortage(self, error: Exception) -> EmberlogError | None:
        text = str(error)
        if "spark.driver.maxResultSize" in text:
            return LimitError(
                "the rows are more than Spark hands to its driver at once (spark.driver.maxResultSize)",
                fix=f"{FEWER}; or raise that setting when the session starts",
            )
        if "java.lang.OutOfMemoryError" in text:
            return LimitError(
                "the heap of Spark's Java process is too small for this (memory= does not count it)",
                fix="raise spark.driver.memory (spark.executor.memory on a cluster) when the session starts",
            )
        return None

    def known_count(self, name: str) -> int | None:
        """The number of rows of a table, where no job is needed to learn it."""
        parts = self._tables.get(name)
        if parts is None or any(part.rows is None for part in parts):
            return None
        return sum(part.rows or 0 for part in parts)

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

    def interruptible(self) -> AbstractContextManager[None]:
        return self._jobs.tagged()

    def interrupt(self) -> None:
        self._jobs.cancel()

    def lost(self, error: Exception) -> ExecutionError | None:
        return lost(self.session, error)

    def close(self) -> None:
        """Drops the views. Those of a session that is gone went with it."""
        try:
            for name in list(self._tables):
                self.drop(name)
        except Exception as error:
            if not is_gone(self.session, error):
                raise


def to_frame(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame. Spark has no unsigned 64-bit integers: they become DECIMAL(20,0). Timestamps have
    no time zone; Spark by itself would give them that of the session, in which hours are left out or come twice."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = [
        pa.field(field.name, pa.decimal128(20, 0) if pa.types.is_uint64(field.type) else field.type, nullable=False)
        for field in table.schema
    ]
    schema = pa.schema(fields)
    return session.createDataFrame(table.cast(schema), from_arrow_schema(schema, prefer_timestamp_ntz=True))
