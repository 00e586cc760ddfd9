"""What the evaluator asks of a SQL engine: named tables that are stored, grown, updated and read.

Table names are ours. A table has the columns `c0`, `c1`, ..; a relation without columns has one dummy column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from emberlog.diagnostics import EmberlogError, ExecutionError
from emberlog.plan.origins import Pieces
from emberlog.sql.statement import Statement

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.sql.dialect import Dialect


class SqlEngine(ABC):
    """A place where statements run and their tables live."""

    place: str  # as `explain` and `stats` name it
    lazy: bool  # is `define` free until somebody reads?

    @property
    @abstractmethod
    def dialect(self) -> Dialect:
        """How this engine spells SQL."""

    def table(self, name: str) -> str:
        """How a statement names a table."""
        return name

    @abstractmethod
    def load(self, name: str, table: pa.Table) -> None:
        """A table with the rows of an Arrow table, whose columns are `c0`, `c1`, .."""

    @contextmanager
    def staged(self, statement: Statement) -> Iterator[None]:
        """Computes the stages of a statement that is to run, and drops them afterwards."""
        made: list[str] = []
        try:
            for stage in statement.stages:
                self.keep(stage.name, stage.statement)
                made.append(stage.name)
            yield
        finally:
            for name in made:
                self.drop(name)

    @abstractmethod
    def keep(self, name: str, statement: Statement) -> None:
        """A table with the rows of a statement, computed once, now or when somebody reads them."""

    @abstractmethod
    def define(self, name: str, statement: Statement) -> None:
        """A table with the rows of a statement, computed when this is cheapest."""

    @abstractmethod
    def store(self, name: str, statement: Statement, most: int | None = None) -> int:
        """A table with the rows of a statement, computed now. Returns how many there are.

        Whoever gives up at `most` rows says so: the statement may then end with as many.
        """

    def compute(self, name: str, statement: Statement, most: int | None, plan: Pieces) -> int:
        """The same for the rows of a whole relation, in pieces where all at once would not fit."""
        return self.store(name, statement, most)

    @abstractmethod
    def append(self, name: str, other: str) -> None:
        """Adds the rows of `other`, none of which are there yet."""

    @abstractmethod
    def update(self, name: str, other: str, keys: tuple[int, ...]) -> None:
        """Adds the rows of `other`; a row whose columns at `keys` are there already takes that row's place."""

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """`new` is now the table that was `name`."""

    @abstractmethod
    def drop(self, name: str) -> None: ...

    @abstractmethod
    def count(self, name: str) -> int: ...

    @abstractmethod
    def fetch(self, name: str) -> pa.Table:
        """All rows of a table."""

    @abstractmethod
    def head(self, name: str, count: int) -> pa.Table:
        """The first rows of a table, in order; the others stay where they are."""

    @abstractmethod
    def read(self, statement: Statement) -> pa.Table:
        """All rows of a statement."""

    @abstractmethod
    def first(self, statement: Statement) -> tuple[Any, ...] | None:
        """The first row of a statement, None when it has none."""

    def shortage(self, error: Exception) -> EmberlogError | None:
        """What an exception of the engine says of memory or disk that ran out; None where it says something else."""
        return None

    def interruptible(self) -> AbstractContextManager[None]:
        """Statements that run inside can be interrupted."""
        return nullcontext()

    @abstractmethod
    def interrupt(self) -> None:
        """Ends the statement that is running, from another thread."""

    def lost(self, error: Exception) -> ExecutionError | None:
        """The error to tell where a statement failed because of what happened to the whole engine from outside: it is
        gone, or somebody cancelled its jobs. None where the statement itself failed."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Drops every table."""
