"""Relations as users hold them: rows that can be counted, read, converted and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from emberlog.diagnostics import DataError, UsageError, counted
from emberlog.tables import html_table, html_title
from emberlog.types import Column

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


SHOWN = 20  # rows that a notebook shows of a relation
TUPLE, VALUE = 64, 40  # bytes of a tuple, and of a value of Python in it


class Holder(Protocol):
    """Where the rows of a relation are. Every call raises UsageError when they are gone."""

    def count(self) -> int: ...

    def fetch(self) -> pa.Table: ...

    def head(self, count: int) -> pa.Table: ...

    def check_room(self, what: str, each: int) -> None:
        """Raises where all rows at once have no room in memory as `what`, which takes `each` bytes a row besides those
        of Arrow."""

    def is_large(self) -> bool:
        """Are rows better read piece by piece?"""

    def reader(self) -> pa.RecordBatchReader: ...

    def frame(self, session: Any = None) -> Any:
        """A Spark DataFrame, of this session if one is given."""

    def write_parquet(self, path: Path, names: list[str]) -> None: ...

    def step(self, name: str) -> AbstractContextManager[object]:
        """What is done with rows after they were fetched is done inside: its time is told."""


class Relation:
    """The rows of a predicate. They stay where they were computed until something asks for them."""

    def __init__(self, name: str, columns: tuple[Column, ...], holder: Holder) -> None:
        self.name = name
        self.schema = columns
        self._holder = holder
        self._count: int | None = None

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.schema]

    def count(self) -> int:
        """How many rows there are."""
        if self._count is None:
            self._count = self._holder.count()
        return self._count

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return self.count() > 0

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values, in no particular order. A loop over the relation needs less memory."""
        from emberlog.data.arrow import rows

        self._holder.check_room("tuples of Python", TUPLE + VALUE * len(self.schema))
        with self._holder.step("fetch"):
            return rows(self._bare())

    def head(self, count: int) -> list[tuple[Any, ...]]:
        """The first rows, in order: of these, however many there are, only `count` are fetched."""
        from emberlog.data.arrow import rows

        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise UsageError(f"head gives a number of rows, from 0 on, not {count!r}")
        with self._holder.step("fetch"):
            return rows(self._typed(self._holder.head(count)))

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        numeric = {i for i, column in enumerate(self.schema) if column.type.is_numeric or column.type.kind == "decimal"}
        headings = [f"{column.name}: {column.type}" for column in self.schema]
        first, count = self.head(SHOWN), self.count()
        told = counted(count, "row") + (f", of which these are the first {SHOWN}" if count > SHOWN else "")
        return html_table(headings, first, numeric, html_title(self.name, told))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, those of a large relation some at a time."""
        from emberlog.data.arrow import rows

        if not self.schema or not self._holder.is_large():
            yield from self.rows()
            return
        import pyarrow as pa

        for piece in self._pieces():
            yield from rows(pa.Table.from_batches([piece]))

    def _pieces(self) -> pa.RecordBatchReader:
        """The rows piece by piece, with exactly the relation's types."""
        import pyarrow as pa

        from emberlog.data.arrow import arrow_schema

        schema = arrow_schema(self.schema)
        pieces = (batch.rename_columns(schema.names).cast(schema) for batch in self._holder.reader())
        return pa.RecordBatchReader.from_batches(schema, pieces)

    def _to_write(self) -> pa.Table | pa.RecordBatchReader:
        """The rows for a file: those of a large relation piece by piece."""
        return self._pieces() if self.schema and self._holder.is_large() else self._bare()

    def _bare(self) -> pa.Table:
        """The rows with columns `c0`, `c1`, .. of exactly the relation's types."""
        with self._holder.step("fetch"):
            return self._typed(self._holder.fetch())

    def _typed(self, table: pa.Table) -> pa.Table:
        """What a holder gave, with exactly the relation's types."""
        import pyarrow as pa

        from emberlog.data.arrow import arrow_schema
        from emberlog.data.load import without_dummy

        if not self.schema:
            return without_dummy(table)
        try:
            return table.cast(arrow_schema(self.schema))
        except pa.ArrowInvalid as error:  # a decimal with too many digits; all else was checked where it was computed
            raise DataError(f"`{self.name}` has a value that does not fit its column: {error}") from error

    def to_arrow(self) -> pa.Table:
        self._holder.check_room("a table of Arrow", 0)
        return self._bare().rename_columns(self.columns)

    def to_pandas(self) -> pandas.DataFrame:
        self._holder.check_room("a frame of pandas", VALUE * len(self.schema))
        with self._holder.step("fetch"):
            frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        with self._holder.step("fetch"):
            import polars

            frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_spark(self, session: Any = None) -> Any:
        """The rows as a Spark DataFrame; nothing is computed or moved before an action needs it.

        It is one of the given session, else of the session that has the rows, else of the active one.
        """
        frame = self._holder.frame(session)
        return frame.toDF(*self.columns) if self.schema else frame.select()

    def write(self, path: str | Path, *, partition_by: str | Sequence[str] = (), mode: str = "overwrite") -> None:
        """Writes the rows; the ending of the path says how: csv, tsv, facts, parquet, arrow. Without an ending, or with
        `partition_by`, it is a folder of Parquet files, with a folder for each value of these columns.

        `mode` says what becomes of what is there: "overwrite", "append" (folders only), or "error" if there is any.
        Readers see all rows of a write or none; if it fails, what was there stays.
        """
        from emberlog.data.folders import checked_mode, write_folder
        from emberlog.data.paths import path_of
        from emberlog.data.write import write_table

        target = path_of(path, f"`{self.name}` cannot be written to")
        chosen, parts = checked_mode(mode), [partition_by] if isinstance(partition_by, str) else list(partition_by)
        if self.schema and (parts or not target.suffix or (chosen == "append" and target.is_dir())):
            with self._holder.step("write"):
                write_folder(target, self._to_write(), self.schema, parts, chosen)
            return
        if chosen == "append":
            raise UsageError(
                f"{target} is a file: nothing can be added to it", fix="append to a folder, a path without ending"
            )
        if chosen == "error" and target.exists():
            raise UsageError(f"{target} is there already", fix='mode="overwrite"')
        if target.suffix.lower() == ".parquet" and self.schema:
            self._holder.write_parquet(target, self.columns)
        else:
            with self._holder.step("write"):
                write_table(target, self._to_write(), self.schema)

    def save_as_table(self, name: str, *, mode: str = "overwrite", session: Any = None) -> None:
        """Writes the rows as a table of Spark's catalog, in the session that `to_spark(session)` takes. `mode` is that
        of `write`. What is to be replaced stays until all rows are written."""
        from emberlog.data.folders import checked_mode
        from emberlog.data.tables import save_frame

        chosen = checked_mode(mode)
        with self._holder.step("write"):
            save_frame(self.to_spark(session), name, chosen)

    def __repr__(self) -> str:
        listed = ", ".join(f"{column.name}: {column.type}" for column in self.schema)
        return f"<Relation {self.name}({listed})>"
