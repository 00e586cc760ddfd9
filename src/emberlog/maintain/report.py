"""What a change did: the exact differences of relations, and what was done for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlog.diagnostics import UsageError, counted, did_you_mean
from emberlog.maintain.ordinary import table
from emberlog.maintain.store import Relation as Stored
from emberlog.maintain.store import Row
from emberlog.relation import Relation
from emberlog.schedule.interface import Graph
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.schedule.trace import Trace


class Rows(frozenset[Row]):
    """A set of rows that knows its columns."""

    schema: tuple[Column, ...] = ()

    @staticmethod
    def of(columns: tuple[Column, ...], rows: Any) -> Rows:
        found = Rows(rows)
        found.schema = columns
        return found

    def __eq__(self, other: object) -> bool:
        """True for any set of the same rows. (It is here so that type checkers allow the comparison with a `set`.)"""
        return super().__eq__(other)

    __hash__ = frozenset.__hash__

    def to_arrow(self) -> pa.Table:
        found = table(self.schema, self)
        return found.rename_columns([column.name for column in self.schema])

    def to_spark(self, session: Any = None) -> Any:
        """The rows as a DataFrame of the given session, or of the active one."""
        return Relation("difference", self.schema, RowsHolder(self.schema, self, session)).to_spark()


@dataclass(frozen=True)
class Difference:
    """The rows that a relation gained and lost, net."""

    inserted: Rows
    deleted: Rows

    def __bool__(self) -> bool:
        return bool(self.inserted or self.deleted)

    def to_arrow(self) -> pa.Table:
        """Both as one table with a column `_change_type`, as change data has it."""
        import pyarrow as pa

        from emberlog.data.arrow import array_of

        parts = [
            part.to_arrow().append_column("_change_type", array_of([word] * len(part), pa.string()))
            for part, word in ((self.deleted, "delete"), (self.inserted, "insert"))
        ]
        return pa.concat_tables(parts)


@dataclass(frozen=True, slots=True)
class TaskStats:
    """A task that a change ran. `why` is the reason why the ordinary engine evaluated it, if it did; `reached` are the
    tasks that got a change from it."""

    number: int
    names: tuple[str, ...]
    seconds: float
    touched: int
    inserted: int
    deleted: int
    why: str
    reached: tuple[int, ...]


@dataclass(frozen=True)
class ChangeStats:
    """What was done for a change. `scheduling` and `maintenance` are seconds, `touched` the facts that were looked
    at, `operations` the steps of the scheduler."""

    graph: Graph
    first: frozenset[int]  # the tasks that read what was changed
    tasks: tuple[TaskStats, ...]
    scheduling: float
    maintenance: float
    operations: int

    @property
    def active(self) -> int:
        """The tasks that got a change."""
        return len(self.tasks)

    run = active

    @cached_property
    def skipped(self) -> int:
        """The tasks that depend on what was changed and turned out unaffected."""
        import numpy as np

        return len(self.graph.descendants(np.array(sorted(self.first), np.int64))) - self.active

    @property
    def levels(self) -> int:
        return self.graph.depth

    @property
    def touched(self) -> int:
        return sum(task.touched for task in self.tasks)

    def trace(self) -> Trace:
        """The change as a trace: what each task took, in microseconds, and which tasks sent a change to which."""
        import numpy as np

        from emberlog.schedule.trace import Trace

        work = np.zeros(self.graph.size, np.int64)
        for task in self.tasks:
            work[task.number] = max(round(1e6 * task.seconds), 1)
        changes = [(task.number, reached) for task in self.tasks for reached in task.reached]
        return Trace.of(self.graph, [True] * self.graph.size, work, work, sorted(self.first), changes, 1e-6)

    def __str__(self) -> str:
        lines = [
            f"{counted(self.active, 'task')} run, {self.skipped} skipped as unaffected, "
            f"{counted(self.touched, 'fact')} looked at, {1e3 * self.maintenance:.2f} ms; "
            f"scheduling {1e3 * self.scheduling:.2f} ms"
        ]
        for task in self.tasks:
            how = f", recomputed: {task.why}" if task.why else ""
            lines.append(f"  {', '.join(task.names)}: +{task.inserted} -{task.deleted}, {task.touched} looked at{how}")
        return "\n".join(lines)


NOTHING = ChangeStats(Graph.of(0, []), frozenset(), (), 0.0, 0.0, 0)


class Change:
    """The differences that a change made, by relation. A relation that did not change has an empty one."""

    def __init__(
        self,
        differences: Mapping[str, Difference],
        columns: Mapping[str, tuple[Column, ...]],
        stats: ChangeStats,
    ) -> None:
        self._differences = differences
        self._columns = columns
        self.stats = stats

    def __getitem__(self, name: str) -> Difference:
        if name in self._differences:
            return self._differences[name]
        if name not in self._columns:
            hint = did_you_mean(name, self._columns)
            raise UsageError(f"there is no relation `{name}` in this view", fix=hint or f"there are: {self._names()}")
        nothing = Rows.of(self._columns[name], ())
        return Difference(nothing, nothing)

    def _names(self) -> str:
        return ", ".join(sorted(self._columns)) or "none"

    def __iter__(self) -> Iterator[str]:
        """The relations that changed."""
        return iter(self._differences)

    def __len__(self) -> int:
        return len(self._differences)

    def __bool__(self) -> bool:
        return bool(self._differences)

    def __repr__(self) -> str:
        told = (f"{name} +{len(d.inserted)} -{len(d.deleted)}" for name, d in self._differences.items())
        return f"<Change: {', '.join(told) or 'none'}>"


class RowsHolder:
    """Rows in this process, as a relation has them."""

    def __init__(self, columns: tuple[Column, ...], rows: frozenset[Row], session: Any = None) -> None:
        self._columns = columns
        self._rows = rows
        self._session = session

    def count(self) -> int:
        return len(self._rows)

    def fetch(self) -> pa.Table:
        from emberlog.data.load import dummy_table

        return table(self._columns, self._rows) if self._columns else dummy_table(bool(self._rows))

    def head(self, count: int) -> pa.Table:
        if not self._columns:
            return self.fetch().slice(0, count)
        return table(self._columns, sorted(self._rows)[:count])

    def check_room(self, what: str, each: int) -> None:
        return

    def is_large(self) -> bool:
        return False

    def reader(self) -> pa.RecordBatchReader:
        return self.fetch().to_reader()

    def frame(self, session: Any = None) -> Any:
        from emberlog.executors.session import usable_session
        from emberlog.sql.spark import to_frame

        return to_frame(usable_session(session or self._session), self.fetch())

    def write_parquet(self, path: Path, names: list[str]) -> None:
        from emberlog.data.write import write_table

        write_table(path, self.fetch().rename_columns(names), self._columns)

    def step(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()


class ColumnsHolder(RowsHolder):
    """Rows that were copied as columns; what they stand for is looked up when somebody asks."""

    def __init__(
        self, columns: tuple[Column, ...], count: int, rows: Callable[[], pa.Table], session: Any = None
    ) -> None:
        super().__init__(columns, frozenset(), session)
        self._count = count
        self._table = rows

    def count(self) -> int:
        return self._count

    def fetch(self) -> pa.Table:
        return self._table()

    def head(self, count: int) -> pa.Table:
        found = self._table()
        return found.sort_by([(name, "ascending") for name in found.column_names]).slice(0, count)


def holder_of(relation: Stored, columns: tuple[Column, ...], session: Any) -> RowsHolder:
    """The rows of a relation as they are now."""
    if relation.place is None:
        return RowsHolder(columns, frozenset(relation.rows), session)
    return ColumnsHolder(columns, len(relation), relation.place.frozen(), session)
