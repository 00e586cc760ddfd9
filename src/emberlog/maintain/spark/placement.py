"""Spark as the place of a view: when it is, and how sources get there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import finalize

from emberlog.data.convert import ignore
from emberlog.data.sources import JdbcSource, Source, SparkSource, SparkTableSource, known_rows
from emberlog.diagnostics import sized
from emberlog.executors.frames import checked_frame, read_columns
from emberlog.executors.schemas import frame_of_source
from emberlog.maintain.changes import Reading
from emberlog.maintain.conditions import check_domains, frame_outside
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import Definition, ViewProgram
from emberlog.maintain.spark.stored import Root, SparkRelation, StoredHolder
from emberlog.maintain.spark.tasks import SparkTask
from emberlog.maintain.store import Journal
from emberlog.memory import Budget
from emberlog.relation import TUPLE, VALUE
from emberlog.sql.spark_dialect import Spark
from emberlog.types import Column

COPIES = 6  # of the rows of inputs, in the driver: arranged, and what is derived from them


def opened_sources(sources: Mapping[str, Source], session: Any) -> dict[str, Source]:
    """The sources, with a frame for each that only Spark can open."""
    return {
        name: SparkSource(frame_of_source(name, source, session))
        if isinstance(source, SparkTableSource | JdbcSource)
        else source
        for name, source in sources.items()
    }


def too_large(sources: Mapping[str, Source], widths: Mapping[str, int], budget: Budget) -> str:
    """Why the driver has no room for a view over these sources; empty if it has."""
    rows = {name: _rows(source) for name, source in sources.items() if name in widths}
    needed = COPIES * sum(count * (TUPLE + VALUE * widths[name]) for name, count in rows.items())
    if needed <= budget.total:
        return ""
    return f"its inputs would take about {sized(needed)} in the driver, which has {sized(budget.total)}"


def _rows(source: Source) -> int:
    if isinstance(source, SparkSource):
        return int(source.frame.count())
    return known_rows(source) or 0


@dataclass(frozen=True)
class OnSpark:
    """Relations as Parquet that Spark writes and reads, tasks as its queries, some at once. `why` tells the reason."""

    ordinary: Ordinary
    root: Root
    why: str
    threads: int

    @staticmethod
    def of(ordinary: Ordinary, session: Any, folder: Path, why: str, threads: int) -> OnSpark:
        """A placement with a folder of its own, which goes with it."""
        root = Root(session, folder)
        finalize(root, shutil.rmtree, folder, ignore_errors=True)
        return OnSpark(ordinary, root, why, threads)

    def relation(self, name: str, columns: tuple[Column, ...]) -> SparkRelation:
        return SparkRelation(name, columns, self.root)

    def task(
        self, definition: Definition, program: ViewProgram, relations: Mapping[str, Any], journal: Journal
    ) -> SparkTask:
        return SparkTask(definition, program, relations, self.ordinary, self.root.session, self.why)

    def load(self, relation: SparkRelation, name: str, source: Source, reading: Reading) -> None:
        signature = reading.signatures[name]
        columns = signature.columns
        if not isinstance(source, SparkSource) or not columns:
            relation.edit((), reading.load(name, source))
            check_domains(signature, relation.inserted)
            return
        raw = read_columns(name, source.frame, "its DataFrame", signature)
        frame, _, _ = checked_frame(name, raw, "its DataFrame", columns, Spark(), reading.nulls, ignore)
        check_domains(signature, frame, frame_outside)
        relation.replace(frame.distinct())

    def holder(self, relation: SparkRelation, columns: tuple[Column, ...]) -> StoredHolder:
        return relation.holder()
