"""What a run returns, and what keeps its relations alive."""

from __future__ import annotations

import json
import re
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.relation import Relation
from emberlog.stats import StratumStats
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.executors.base import Executor


class LiveRun:
    """An executor and its scratch folder, until they are closed or nobody holds them any more."""

    def __init__(self, executor: Executor, scratch: Path, session: Any = None) -> None:
        self._executor = executor
        self._release = weakref.finalize(self, _release, executor, scratch)
        self.session = session

    @property
    def executor(self) -> Executor:
        if not self._release.alive:
            raise UsageError(
                "the engine is closed, and the rows of this relation went with it",
                fix="read or write relations before the engine closes, or run with persist=PATH",
            )
        return self._executor

    def close(self) -> None:
        self._release()


def _release(executor: Executor, scratch: Path) -> None:
    try:
        executor.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class RunHolder:
    """The rows of a relation in the executor that computed it."""

    def __init__(self, run: LiveRun, relation: str) -> None:
        self._run = run
        self._relation = relation

    def count(self) -> int:
        return self._run.executor.count(self._relation)

    def fetch(self) -> pa.Table:
        return self._run.executor.fetch(self._relation)

    def frame(self) -> Any:
        return self._run.executor.frame(self._relation)

    def write_parquet(self, path: Path, names: list[str]) -> None:
        self._run.executor.write_parquet(self._relation, path, names)


class ParquetHolder:
    """The rows of a relation in a Parquet file or folder that outlives the engine."""

    def __init__(self, path: Path, rows: int, session: Any) -> None:
        self._path = path
        self._rows = rows
        self._session = session

    def count(self) -> int:
        return self._rows

    def fetch(self) -> pa.Table:
        import pyarrow.dataset

        table = pyarrow.dataset.dataset(self._path, format="parquet").to_table()
        return table.rename_columns([f"c{i}" for i in range(table.num_columns)])

    def frame(self) -> Any:
        if self._session is None:
            raise UsageError("there is no Spark session to read this relation with", fix="use to_arrow()")
        frame = self._session.read.parquet(str(self._path))
        return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))

    def write_parquet(self, path: Path, names: list[str]) -> None:
        from emberlog.data.write import write_table

        table = self.fetch()
        write_table(path, table.rename_columns(names), _columns_of(table, names))


class Result:
    """The relations of a run, by name; `goals` are the answers of its `?-` goals, in order."""

    def __init__(
        self,
        relations: dict[str, Relation],
        goals: list[Relation],
        stats: list[StratumStats],
        warnings: list[str],
        run: LiveRun,
    ) -> None:
        self._relations = relations
        self._run = run  # keeps the rows alive as long as the result
        self.goals = goals
        self.stats = stats
        self.warnings = warnings

    def __getitem__(self, name: str) -> Relation:
        if name not in self._relations:
            hint = did_you_mean(name, self._relations)
            raise UsageError(f"there is no relation `{name}` in this result", fix=hint or f"there are: {self._names()}")
        return self._relations[name]

    def _names(self) -> str:
        return ", ".join(sorted(self._relations)) or "none"

    def __contains__(self, name: object) -> bool:
        return name in self._relations

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def keys(self) -> list[str]:
        return list(self._relations)

    def __repr__(self) -> str:
        return f"<Result of {self._names()}>"

    def persist(self, folder: Path) -> None:
        """Moves every relation to Parquet files in a folder; they can be read after the engine is closed.

        `relations.json` is written last: a folder without it is not a whole result.
        """
        folder.mkdir(parents=True, exist_ok=True)
        manifest = folder / "relations.json"
        manifest.unlink(missing_ok=True)
        listed = {}
        for number, (name, relation) in enumerate(self._relations.items()):
            if not relation.schema:
                relation.count()
                listed[name] = {"columns": [], "rows": len(relation)}
                continue
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
            path = folder / f"{number:03}_{plain}.parquet"
            relation.write(path)
            moved = Relation(name, relation.schema, ParquetHolder(path, len(relation), self._run.session))
            self._relations[name] = moved
            columns = [[column.name, str(column.type)] for column in relation.schema]
            listed[name] = {"file": path.name, "columns": columns, "rows": len(moved)}
        partial = folder / "relations.json.partial"
        partial.write_text(json.dumps(listed, indent=2), encoding="utf-8")
        partial.replace(manifest)


def _columns_of(table: pa.Table, names: list[str]) -> tuple[Column, ...]:
    from emberlog.data.arrow import type_of_arrow

    types = [type_of_arrow(field.type) for field in table.schema]
    return tuple(Column(name, type) for name, type in zip(names, types, strict=True) if type is not None)
