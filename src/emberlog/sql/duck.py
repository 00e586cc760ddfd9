"""DuckDB as the engine: in this process, tables in memory, larger ones spilled to the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

from emberlog.diagnostics import UsageError
from emberlog.sql.engine import SqlEngine
from emberlog.sql.statement import DUCKDB_PRELUDE, FLOAT_TEXT, Statement

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from emberlog.sql.dialect import Dialect

Answer = TypeVar("Answer")


def first_rows(name: str, count: int) -> str:
    """The statement for the first rows of a table, in order. DuckDB keeps no others while it reads them."""
    return f"SELECT * FROM {name} ORDER BY ALL LIMIT {count}"


class DuckEngine(SqlEngine):
    """DuckDB is loaded, and opened, with the first statement: what the kernels alone evaluate has none."""

    place = "duckdb"
    lazy = False

    def __init__(self, scratch: Path, *, threads: int | None = None, memory: str | None = None) -> None:
        self._settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(scratch),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        if threads is not None:
            self._settings["threads"] = threads
        if memory is not None:
            self._settings["memory_limit"] = memory
        self._attached: dict[str, pa.Table | pa.RecordBatchReader] = {}  # before it is opened
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._opening = RLock()
        self._worker = ThreadPoolExecutor(1, "emberlog-duckdb")
        self._has_float_text = False
        self._dead: dict[str, int] = {}  # rows of a table that updates have replaced since it was last rewritten

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            opened = duckdb.connect(":memory:", config=self._settings)
            for macro in DUCKDB_PRELUDE:
                opened.execute(macro)
        except duckdb.OutOfMemoryException:
            raise UsageError(
                f"memory={self._settings['memory_limit']} is too little for DuckDB to start",
                fix="allow it 16MB or more",
            ) from None
        for name, rows in self._attached.items():
            opened.register(name, rows)
        self._attached.clear()
        return opened

    @cached_property
    def dialect(self) -> Dialect:
        from emberlog.sql.dialect import DuckDB

        return DuckDB()

    def _run(self, sql: str, statement: Statement | None = None) -> list[tuple[Any, ...]]:
        connection = self._connection
        if statement is not None:
            self._prepare(statement)
        parameters = statement.parameters if statement else None
        return self._interruptibly(lambda: connection.execute(sql, parameters).fetchall())

    def _prepare(self, statement: Statement) -> None:
        if statement.needs_float_text and not self._has_float_text:
            self._connection.create_function(FLOAT_TEXT, repr, ["DOUBLE"], "VARCHAR")
            self._has_float_text = True

    def _interruptibly(self, work: Callable[[], Answer]) -> Answer:
        """Python sees Ctrl-C when a call returns, which a long statement does not: it runs in another thread."""
        if current_thread() is not main_thread():
            return work()
        running = self._worker.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            while not running.done():
                self._connection.interrupt()
                wait([running], timeout=0.1)
            raise

    def load(self, name: str, table: pa.Table) -> None:
        self._connection.register("arrow_in", table)
        try:
            self._run(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM arrow_in")
        finally:
            self._connection.unregister("arrow_in")

    def attach(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """A table whose rows stay in Arrow's memory; those of a reader come once, for the next statement that reads
        them."""
        with self._opening:
            if self._opened is None:
                self._attached[name] = rows
            else:
                self._opened.register(name, rows)

    def detach(self, name: str) -> None:
        with self._opening:
            if self._opened is None:
                self._attached.pop(name, None)
            else:
                self._opened.unregister(name)

    def define(self, name: str, statement: Statement) -> None:
        self.store(name, statement)

    def store(self, name: str, statement: Statement, most: int | None = None) -> int:
        query = statement.sql if most is None else f"SELECT * FROM ({statement.sql}) LIMIT {most}"
        rows = self._run(f"CREATE OR REPLACE TABLE {name} AS {query}", statement)
        return int(rows[0][0])

    def append(self, name: str, other: str) -> None:
        self._run(f"INSERT INTO {name} SELECT * FROM {other}")

    def update(self, name: str, other: str, keys: tuple[int, ...]) -> None:
        same = " AND ".join(f"{name}.c{key} = {other}.c{key}" for key in keys) or "TRUE"
        deleted = int(self._run(f"DELETE FROM {name} USING {other} WHERE {same}")[0][0])
        self._run(f"INSERT INTO {name} SELECT * FROM {other}")
        self._dead[name] = self._dead.get(name, 0) + deleted
        if self._dead[name] > 100_000 and self._dead[name] > self.count(name):
            self._run(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name}")
            self._dead[name] = 0

    def rename(self, name: str, new: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {new}")
        self._run(f"ALTER TABLE {name} RENAME TO {new}")

    def drop(self, name: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {name}")

    def count(self, name: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {name}")[0][0])

    def fetch(self, name: str) -> pa.Table:
        return self._connection.sql(f"SELECT * FROM {name}").to_arrow_table()

    def head(self, name: str, count: int) -> pa.Table:
        return self.read(Statement(first_rows(name, count), {}))

    def read(self, statement: Statement) -> pa.Table:
        self._prepare(statement)
        return self._interruptibly(
            lambda: self._connection.sql(statement.sql, params=statement.parameters or None).to_arrow_table()
        )

    def first(self, statement: Statement) -> tuple[Any, ...] | None:
        rows = self._run(f"{statement.sql} LIMIT 1", statement)
        return rows[0] if rows else None

    def interrupt(self) -> None:
        if self._opened is not None:
            self._opened.interrupt()

    def close(self) -> None:
        self._worker.shutdown()
        if self._opened is not None:
            self._opened.close()
