"""Answers of goals: relations that are evaluated when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from emberlog.relation import Holder, Relation
from emberlog.stats import Stats
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa


class Deferred:
    """Rows that are computed at the first call that needs them. A call that fails leaves them to the next one."""

    def __init__(self, evaluate: Callable[[], Holder]) -> None:
        self._evaluate = evaluate
        self._found: Holder | None = None
        self._lock = Lock()

    @property
    def holder(self) -> Holder:
        """Where the rows are, now that they are needed."""
        with self._lock:
            if self._found is None:
                self._found = self._evaluate()
            return self._found

    def have_rows(self) -> None:
        """Computes the rows, if that was not done."""
        _ = self.holder

    def count(self) -> int:
        return self.holder.count()

    def fetch(self) -> pa.Table:
        return self.holder.fetch()

    def head(self, count: int) -> pa.Table:
        return self.holder.head(count)

    def check_room(self, what: str, each: int) -> None:
        self.holder.check_room(what, each)

    def is_large(self) -> bool:
        return self.holder.is_large()

    def reader(self) -> pa.RecordBatchReader:
        return self.holder.reader()

    def frame(self, session: Any = None) -> Any:
        return self.holder.frame(session)

    def write_parquet(self, path: Path, names: list[str]) -> None:
        self.holder.write_parquet(path, names)

    def step(self, name: str) -> AbstractContextManager[object]:
        return self.holder.step(name)


class Answer(Relation):
    """The answer of `engine.query`. Nothing is evaluated before its rows, their number or its `stats` are asked for."""

    def __init__(self, name: str, columns: tuple[Column, ...], deferred: Deferred, stats: Stats) -> None:
        super().__init__(name, columns, deferred)
        self._deferred = deferred
        self._stats = stats

    @property
    def stats(self) -> Stats:
        """What the evaluation took."""
        self._deferred.have_rows()
        return self._stats
