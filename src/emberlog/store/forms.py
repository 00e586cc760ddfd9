"""The forms in which the rows of a relation exist beside Arrow's tables, as the store sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.plan.origins import Heavy


class Stream:
    """Rows that come piece by piece, from the start each time that they are read; as Arrow's protocol has it."""

    def __init__(self, made: Callable[[], pa.RecordBatchReader]) -> None:
        self._made = made

    def __arrow_c_schema__(self) -> object:
        return self._made().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._made().__arrow_c_stream__(requested_schema)


class Encoded(Protocol):
    """Rows that loops computed and hold as numbers; they are decoded when somebody reads them."""

    def count(self) -> int: ...

    def reader(self) -> pa.RecordBatchReader: ...

    def table(self) -> pa.Table: ...

    def heavy(self) -> Heavy:
        """What is known of the rows without looking at them."""


class Tables(Protocol):
    """The tables of a SQL engine in this process."""

    def attach(self, name: str, rows: pa.Table | Stream) -> None:
        """A table whose rows stay in Arrow's memory, or are made again whenever they are read."""

    def detach(self, name: str) -> None: ...

    def load(self, name: str, table: pa.Table) -> None:
        """A table of the engine's own with a copy of the rows."""

    def load_stream(self, name: str, made: Callable[[], pa.RecordBatchReader], rows: int) -> None: ...

    def make_set(self, name: str) -> None:
        """Drops duplicate rows of a table."""

    def count(self, name: str) -> int: ...

    def fetch(self, name: str) -> pa.Table: ...

    def reader(self, name: str) -> pa.RecordBatchReader: ...

    def take_what_is_left(self) -> None:
        """Uses from now on what memory nobody else does."""
