"""DuckDB as the engine: in this process, tables in memory, large ones in a database in the run's folder.

DuckDB is held to what the budget of the run has left. Its own limit is on its buffers; what it takes beside them was
measured at up to half as much again. Sets that would not fit are made in pieces: DuckDB spills by itself, but the hash
table of each of its partitions has to fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import cached_property
from inspect import Parameter, Signature
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

from emberlog.diagnostics import EmberlogError, ExecutionError, LimitError, UsageError, sized
from emberlog.memory import NOISE, Budget
from emberlog.plan.origins import Pieces
from emberlog.sql.calling import arrow_type
from emberlog.sql.engine import SqlEngine
from emberlog.sql.statement import DUCKDB_PRELUDE, EXACT, FLOAT_TEXT, LOWER, PATTERN, UPPER, GivenFunction, Statement
from emberlog.store.forms import Stream

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from emberlog.sql.dialect import Dialect

Answer = TypeVar("Answer")

BUFFERS = 0.65  # of what DuckDB gets, for its buffers
ROW, COLUMN = 40, 8  # bytes that a row takes in a hash table, and besides for each of its columns
FULL = 0.4  # of the buffers: how much of them the rows of a table may take
SPILLED = 3  # times the buffers: so much DuckDB makes a set of by itself, most of it on disk
FEW_PIECES, MOST_PIECES = 8, 1 << 12  # when all at once did not fit
MORE = 8  # times as many pieces when one did not fit
BATCH = 1 << 17  # rows that are read out at once
LARGE = "large"  # the database of large tables


def first_rows(name: str, count: int) -> str:
    """The statement for the first rows of a table, in order. DuckDB keeps no others while it reads them."""
    return f"SELECT * FROM {name} ORDER BY ALL LIMIT {count}"


class DuckEngine(SqlEngine):
    """DuckDB is loaded, and opened, with the first statement: what the kernels alone evaluate has none."""

    place = "duckdb"
    lazy = False

    def __init__(self, scratch: Path, *, threads: int | None = None, budget: Budget | None = None) -> None:
        self.scratch = scratch
        self.budget = budget or Budget.of(None)
        self._limit = _buffers(self.budget.total)
        self._settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(scratch),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "memory_limit": _kib(self._limit),
            "allocator_flush_threshold": "16MiB",
            "allocator_bulk_deallocation_flush_threshold": "64MiB",
        }
        if threads is not None:
            self._settings["threads"] = threads
        self._attached: dict[str, pa.Table | Stream] = {}  # before it is opened
        self._large: set[str] = set()  # tables that lie in the database on disk
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._opening = RLock()
        self._worker = ThreadPoolExecutor(1, "emberlog-duckdb")
        self._given: set[str] = set()  # those of our functions that it has
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
                f"{self.budget.told} are too little for DuckDB to start",
                fix="allow it 16MB or more",
            ) from None
        for name, rows in self._attached.items():
            opened.register(name, rows)
        self._attached.clear()
        return opened

    @cached_property
    def dialect(self) -> Dialect:
        from emberlog.sql.duck_dialect import DuckDB

        return DuckDB()

    def _run(self, sql: str, statement: Statement | None = None) -> list[tuple[Any, ...]]:
        connection = self._connection
        if statement is not None:
            self._prepare(statement)
        parameters = statement.parameters if statement else None
        return self._interruptibly(lambda: connection.execute(sql, parameters).fetchall())

    def _prepare(self, statement: Statement) -> None:
        for name in statement.needs - self._given:
            if name == FLOAT_TEXT:
                self._connection.create_function(FLOAT_TEXT, repr, ["DOUBLE"], "VARCHAR")
            if name in (LOWER, UPPER):
                function = str.lower if name == LOWER else str.upper
                self._connection.create_function(name, function, ["VARCHAR"], "VARCHAR")
            if name == PATTERN:
                from duckdb.func import FunctionNullHandling

                from emberlog.patterns import for_re2_or_none

                nulls = FunctionNullHandling.SPECIAL  # null is what it says of a text that is no pattern
                self._connection.create_function(PATTERN, for_re2_or_none, ["VARCHAR"], "VARCHAR", null_handling=nulls)
            if name == EXACT:
                from duckdb.func import FunctionNullHandling

                from emberlog.sql.exact import compute

                nulls = FunctionNullHandling.SPECIAL  # null is what it says of a result that does not fit
                self._connection.create_function(
                    EXACT, compute, ["VARCHAR", "VARCHAR", "VARCHAR", int, int], "VARCHAR", null_handling=nulls
                )
            self._given.add(name)

        for name in statement.calls.keys() - self._given:
            self._give(name, statement.calls[name])
            self._given.add(name)

    def _give(self, name: str, given: GivenFunction) -> None:
        """Registers a function of the user: it gets columns, a few thousand rows of them at a time."""
        from duckdb.func import FunctionNullHandling, PythonUDFType

        calling = given.calling
        type = arrow_type(calling.result, calling.precision, calling.scale)

        def function(*columns: Any) -> Any:
            return calling.column(columns, type)

        # DuckDB counts the parameters of a function.
        places = [Parameter(f"c{i}", Parameter.POSITIONAL_ONLY) for i in range(len(given.parameters))]
        function.__signature__ = Signature(places)  # type: ignore[attr-defined]
        self._connection.create_function(
            name,
            function,
            [*given.parameters],
            given.result,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )

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

    # --- memory --------------------------------------------------------------------------------------------------

    def take_what_is_left(self) -> None:
        """From now on DuckDB may use what nobody else does: kernels, Arrow's tables, other results."""
        used = self.budget.used()
        if self._opened is None and used <= NOISE:
            return
        own = 0 if self._opened is None else int(self._run("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")[0][0])
        total = min(self.budget.left() + own, self.budget.total)
        limit = max(_buffers(total), min(self.budget.total, NOISE))
        if abs(limit - self._limit) > self._limit // 20:
            self._limit = limit
            self._settings["memory_limit"] = _kib(limit)
            if self._opened is not None:
                self._run(f"SET memory_limit = '{_kib(limit)}'")

    def fits(self, plan: Pieces) -> bool:
        """Have its rows room in memory?"""
        return plan.rows * COLUMN * plan.width <= FULL * self._limit

    # --- tables --------------------------------------------------------------------------------------------------

    def load(self, name: str, table: pa.Table) -> None:
        self._forget(name)
        self._connection.register("arrow_in", table)
        try:
            self._run(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM arrow_in")
        finally:
            self._connection.unregister("arrow_in")

    def load_stream(self, name: str, made: Callable[[], pa.RecordBatchReader], rows: int) -> None:
        """A table with the rows of a reader, of which there are so many; a large one goes to disk."""
        source = f"{name}_in"
        self.attach(source, Stream(made))
        try:
            kept = Pieces(rows, len(made().schema), sets=False)
            self._make(name, f"SELECT * FROM {source}", None, large=not self.fits(kept))
        finally:
            self.detach(source)

    def attach(self, name: str, rows: pa.Table | Stream) -> None:
        """A table whose rows stay in Arrow's memory, or are made again whenever they are read."""
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

    def make_set(self, name: str) -> None:
        """Drops duplicate rows of a table."""
        self.store(name, Statement(f"SELECT DISTINCT * FROM {name}", {}))

    def _forget(self, name: str) -> None:
        """Makes room for a table of this name where there is a large one."""
        if name in self._large:
            self._large.discard(name)
            self._run(f"DROP VIEW {name}")
            self._run(f"DROP TABLE {LARGE}.{name}")

    def _make(self, name: str, query: str, statement: Statement | None, *, large: bool) -> int:
        self._forget(name)
        if not large:
            return int(self._run(f"CREATE OR REPLACE TABLE {name} AS {query}", statement)[0][0])
        self._have_large()
        rows = int(self._run(f"CREATE OR REPLACE TABLE {LARGE}.{name} AS {query}", statement)[0][0])
        self._show(name)
        return rows

    def _have_large(self) -> None:
        """The database for large tables. Nobody reads it after this run: it needs no log to be whole after a crash."""
        known = self._run(f"SELECT count(*) FROM duckdb_databases() WHERE database_name = '{LARGE}'")[0][0]
        if not known:
            path = str(self.scratch / "large.duckdb").replace("'", "''")
            self._run(f"ATTACH '{path}' AS {LARGE} (RECOVERY_MODE 'no_wal_writes')")

    def _show(self, name: str) -> None:
        """A large table is read like any other."""
        self._run(f"DROP TABLE IF EXISTS {name}")
        self._run(f"CREATE VIEW {name} AS SELECT * FROM {LARGE}.{name}")
        self._large.add(name)

    def define(self, name: str, statement: Statement) -> None:
        self.store(name, statement)

    def store(self, name: str, statement: Statement, most: int | None = None) -> int:
        with self.staged(statement):
            return self._make(name, _at_most(statement.sql, most), statement, large=False)

    def compute(self, name: str, statement: Statement, most: int | None, plan: Pieces) -> int:
        with self.staged(statement), self._as_written() if plan.streamed else nullcontext():
            return self._computed(name, statement, most, plan)

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """DuckDB takes the rows of a stream for one row, and would put all of them into a table for each join: it takes
        joins as they are written instead."""
        self._run("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        try:
            yield
        finally:
            self._run("SET disabled_optimizers = ''")

    def _computed(self, name: str, statement: Statement, most: int | None, plan: Pieces) -> int:
        import duckdb

        pieces, by = self._pieces(plan), plan.by
        if pieces == 1:
            try:
                return self._make(name, _at_most(statement.sql, most), statement, large=not self.fits(plan))
            except duckdb.OutOfMemoryException:
                pieces = FEW_PIECES
        while True:
            try:
                return self._in_pieces(name, statement, most, pieces, by or range(plan.width))
            except duckdb.OutOfMemoryException:
                if pieces * MORE > MOST_PIECES or not plan.width:
                    raise
            pieces, by = pieces * MORE, ()  # by all columns: that is even, whatever the data are

    def _pieces(self, plan: Pieces) -> int:
        """In how many pieces the rows of a plan are made a set."""
        needed = plan.rows * (ROW + COLUMN * plan.width) if plan.sets else 0
        return min(max(-(-needed // (SPILLED * self._limit)), 1), MOST_PIECES)

    def _in_pieces(self, name: str, statement: Statement, most: int | None, pieces: int, by: Sequence[int]) -> int:
        """The rows of a statement by the hash of some of their columns: each piece is a set, and no row is in two."""
        self._forget(name)
        self._have_large()
        key = ", ".join(f"c{spot}" for spot in by)
        rows = 0
        for piece in range(pieces):
            # A hash is never null, also of a value that is missing: whoever tells of it meets it in one piece.
            part = f"SELECT * FROM ({statement.sql}) WHERE hash({key}) % {pieces} = {piece}"
            into = f"INSERT INTO {LARGE}.{name}" if piece else f"CREATE OR REPLACE TABLE {LARGE}.{name} AS"
            left = None if most is None else most - rows
            rows += int(self._run(f"{into} {_at_most(part, left)}", statement)[0][0])
            if most is not None and rows >= most:
                break
        self._show(name)
        return rows

    def keep(self, name: str, statement: Statement) -> None:
        self.store(name, statement)

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
        self._forget(new)
        self._run(f"DROP TABLE IF EXISTS {new}")
        self._run(f"ALTER TABLE {name} RENAME TO {new}")

    def drop(self, name: str) -> None:
        self._forget(name)
        self._run(f"DROP TABLE IF EXISTS {name}")

    def count(self, name: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {name}")[0][0])

    def fetch(self, name: str) -> pa.Table:
        return self._connection.sql(f"SELECT * FROM {name}").to_arrow_table()

    def reader(self, name: str) -> pa.RecordBatchReader:
        """The rows of a table, piece by piece. Other statements may run meanwhile."""
        return self._connection.cursor().sql(f"SELECT * FROM {name}").to_arrow_reader(BATCH)

    def head(self, name: str, count: int) -> pa.Table:
        return self.read(Statement(first_rows(name, count), {}))

    def read(self, statement: Statement) -> pa.Table:
        self._prepare(statement)
        with self.staged(statement):
            return self._interruptibly(
                lambda: self._connection.sql(statement.sql, params=statement.parameters or None).to_arrow_table()
            )

    def first(self, statement: Statement) -> tuple[Any, ...] | None:
        with self.staged(statement):
            rows = self._run(f"{statement.sql} LIMIT 1", statement)
        return rows[0] if rows else None

    def shortage(self, error: Exception) -> EmberlogError | None:
        import duckdb

        text = str(error)
        if isinstance(error, duckdb.Error) and re.search("No space left|max_temp_directory_size|Disk quota", text):
            return ExecutionError(
                f"the disk is full: DuckDB puts what has no room in memory into {self.scratch}",
                fix=f"make room there, choose another folder with run_dir=, or {self.budget.more}",
            )
        if isinstance(error, duckdb.OutOfMemoryException):
            wanted = re.search(r"(?:size|of) ([\d.]+ [KMG]?i?B|\d+ bytes)", text)
            more = f"{wanted[1]} more than" if wanted else "more than"
            return LimitError(
                f"DuckDB needs {more} the {sized(self._limit)} that its buffers have, in {self.budget.told}",
                fix=f"{self.budget.more}, use fewer workers, or select before rows are joined",
            )
        return None

    def interrupt(self) -> None:
        if self._opened is not None:
            self._opened.interrupt()

    def close(self) -> None:
        self._worker.shutdown()
        if self._opened is not None:
            self._opened.close()


def _buffers(size: int) -> int:
    """What DuckDB's buffers may take of what it gets; of little, all."""
    return int(BUFFERS * size) if size > NOISE else size


def _kib(size: int) -> str:
    """A size as DuckDB reads it."""
    return f"{max(size // 1024, 1)}KiB"


def _at_most(query: str, most: int | None) -> str:
    return query if most is None else f"SELECT * FROM ({query}) LIMIT {most}"
