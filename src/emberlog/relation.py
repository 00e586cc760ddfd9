"""Relations as users hold them: rows that can be counted, read, converted and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from emberlog.diagnostics import UsageError
from emberlog.types import Column

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class Holder(Protocol):
    """Where the rows of a relation are. Every call raises UsageError when they are gone."""

    def count(self) -> int: ...

    def fetch(self) -> pa.Table: ...

    def head(self, count: int) -> pa.Table: ...

    def frame(self) -> Any: ...

    def write_parquet(self, path: Path, names: list[str]) -> None: ...


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
        """All rows as tuples of Python values, in no particular order."""
        from emberlog.data.arrow import rows

        return rows(self._bare())

    def head(self, count: int) -> list[tuple[Any, ...]]:
        """The first rows, in order: of these, however many there are, only `count` are fetched."""
        from emberlog.data.arrow import rows

        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise UsageError(f"head gives a number of rows, from 0 on, not {count!r}")
        return rows(self._typed(self._holder.head(count)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def _bare(self) -> pa.Table:
        """The rows with columns `c0`, `c1`, .. of exactly the relation's types."""
        return self._typed(self._holder.fetch())

    def _typed(self, table: pa.Table) -> pa.Table:
        """What a holder gave, with exactly the relation's types."""
        from emberlog.data.arrow import arrow_schema
        from emberlog.data.load import without_dummy

        return table.cast(arrow_schema(self.schema)) if self.schema else without_dummy(table)

    def to_arrow(self) -> pa.Table:
        return self._bare().rename_columns(self.columns)

    def to_pandas(self) -> pandas.DataFrame:
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_spark(self) -> Any:
        """The rows as a Spark DataFrame; nothing is computed or moved before an action needs it."""
        frame = self._holder.frame()
        return frame.toDF(*self.columns) if self.schema else frame.select()

    def write(self, path: str | Path) -> None:
        """Writes the rows; the ending of the path says how: csv, tsv, facts, parquet, arrow."""
        from emberlog.data.write import write_table

        target = Path(path)
        if target.suffix.lower() == ".parquet" and self.schema:
            self._holder.write_parquet(target, self.columns)
        else:
            write_table(target, self._bare(), self.schema)

    def __repr__(self) -> str:
        listed = ", ".join(f"{column.name}: {column.type}" for column in self.schema)
        return f"<Relation {self.name}({listed})>"
