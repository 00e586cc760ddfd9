"""The rows of a maintained relation as Parquet files that Spark writes and reads.

A change makes a new version of each relation that it touches; the old one stays until the change is committed, and its
files as long as somebody holds it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from weakref import finalize

import pyarrow as pa

from emberlog.data.arrow import row_bytes
from emberlog.data.load import dummy_table
from emberlog.data.sources import SparkSource, load_table
from emberlog.maintain.ordinary import canonical_rows, table
from emberlog.maintain.store import Row
from emberlog.memory import Budget
from emberlog.sql.spark import to_frame
from emberlog.types import Column


@dataclass(frozen=True)
class Root:
    """Where the versions of a view's relations are, and the session that writes them."""

    session: Any
    folder: Path
    numbers: Any = field(default_factory=count)

    def frame_of_rows(self, columns: tuple[Column, ...], rows: Collection[Row]) -> Any:
        """Rows of this process as a frame; a relation without columns has a column that says nothing."""
        return to_frame(self.session, table(columns, rows) if columns else dummy_table(bool(rows)))

    def empty(self, columns: tuple[Column, ...]) -> Stored:
        """No rows, and no file."""
        return Stored(self.frame_of_rows(columns, ()))

    def store(self, frame: Any) -> Stored:
        """Writes the rows of a frame to a folder, which goes when nobody holds them any more."""
        path = self.folder / f"{next(self.numbers):08}"
        frame.write.parquet(str(path.absolute()))
        stored = Stored(self.session.read.schema(frame.schema).parquet(str(path.absolute())))
        finalize(stored, shutil.rmtree, path, ignore_errors=True)
        return stored


class Stored:
    """A version of a relation: a frame that reads its files."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @cached_property
    def rows(self) -> int:
        return int(self.frame.count())


class Pending:
    """An uncommitted version of a relation, and its difference from the last one."""

    def __init__(self, old: Stored, new: Stored) -> None:
        self.new = new
        # Both are read more than once: counted, and fetched.
        self.gained = new.frame.subtract(old.frame).localCheckpoint(eager=False)
        self.lost = old.frame.subtract(new.frame).localCheckpoint(eager=False)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many rows came and went."""
        return int(self.gained.count()), int(self.lost.count())


class SparkRelation:
    """A relation of a view on Spark: the last committed version, and the one that a change is making."""

    def __init__(self, name: str, columns: tuple[Column, ...], root: Root) -> None:
        self.name = name
        self.width = len(columns)
        self._columns = columns
        self._root = root
        self._last = root.empty(columns)
        self._next: Pending | None = None

    @property
    def _now(self) -> Stored:
        return self._last if self._next is None else self._next.new

    def __len__(self) -> int:
        return self._now.rows

    @property
    def content(self) -> Any:
        """The rows, in the form that `replace` takes."""
        return self._now.frame

    @property
    def source(self) -> SparkSource:
        """The rows as a source of a run."""
        frame = self._now.frame
        return SparkSource(frame if self.width else frame.select())

    @property
    def rows(self) -> set[Row]:
        return self._fetch(self._now.frame)

    @property
    def given(self) -> set[Row]:
        """The rows for somebody who reads them all."""
        return self.rows

    def holder(self) -> StoredHolder:
        """The rows as they are now, for users."""
        return StoredHolder(self.name, self._columns, self._now)

    # --- changes -------------------------------------------------------------------------------------------------

    def load(self, rows: pa.Table) -> bool:
        """False: rows are not kept in this process."""
        return False

    def edit(self, gone: Iterable[Row], come: Iterable[Row]) -> None:
        """Lets rows go, then takes rows in."""
        gone, come = list(gone), list(come)
        frame = self._now.frame
        if gone:
            lost = self._root.frame_of_rows(self._columns, gone)
            frame = frame.join(lost, lost.columns, "left_anti")
        if come:
            frame = frame.union(self._root.frame_of_rows(self._columns, come)).distinct()
        if gone or come:
            self.replace(frame)

    def replace(self, content: Any) -> None:
        """Makes the rows of a frame, or of a collection, the relation's."""
        frame = self._root.frame_of_rows(self._columns, content) if isinstance(content, Collection) else content
        self._next = Pending(self._last, self._root.store(frame))

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows the change inserted and deleted, net."""
        return (0, 0) if self._next is None else self._next.counts

    @property
    def changed(self) -> bool:
        return any(self.counts)

    @property
    def pending(self) -> bool:
        """True if there is something to commit or to undo."""
        return self._next is not None

    @property
    def inserted(self) -> set[Row]:
        return set() if self._next is None or not self.counts[0] else self._fetch(self._next.gained)

    @property
    def deleted(self) -> set[Row]:
        return set() if self._next is None or not self.counts[1] else self._fetch(self._next.lost)

    def _fetch(self, frame: Any) -> set[Row]:
        if not self.width:
            return set() if frame.isEmpty() else {()}
        return canonical_rows(load_table(self.name, SparkSource(frame), self._columns))

    def commit(self) -> None:
        self._last, self._next = self._now, None

    def undo(self) -> None:
        self._next = None


class StoredHolder:
    """A version of a relation as users hold it."""

    def __init__(self, name: str, columns: tuple[Column, ...], stored: Stored) -> None:
        self._name = name
        self._columns = columns
        self._stored = stored

    def count(self) -> int:
        return self._stored.rows

    def fetch(self) -> pa.Table:
        return self._table(self._stored.frame)

    def _table(self, frame: Any) -> pa.Table:
        if not self._columns:
            return dummy_table(not frame.isEmpty())
        return load_table(self._name, SparkSource(frame), self._columns)

    def head(self, count: int) -> pa.Table:
        frame = self._stored.frame
        return self._table(frame.orderBy(*frame.columns).limit(count))

    def check_room(self, what: str, each: int) -> None:
        rows = self.count()
        needed = rows * (row_bytes(self._columns) + each)
        Budget.of(None).check(needed, f"`{self._name}` ({rows:,} rows) as {what}")

    def is_large(self) -> bool:
        return False

    def reader(self) -> pa.RecordBatchReader:
        return self.fetch().to_reader()

    def frame(self, session: Any = None) -> Any:
        return self._stored.frame

    def write_parquet(self, path: Path, names: list[str]) -> None:
        from emberlog.data.write import write_table

        write_table(path, self.fetch().rename_columns(names), self._columns)

    def step(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()
