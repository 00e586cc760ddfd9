"""Where the relations of a view are kept and its tasks run: what a placement must offer, and that in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from emberlog.data.sources import Source
from emberlog.maintain.changes import Reading
from emberlog.maintain.conditions import check_domains
from emberlog.maintain.kept import Tables
from emberlog.maintain.native.encoding import Encoding
from emberlog.maintain.ordinary import Ordinary, canonical_rows
from emberlog.maintain.program import Definition, ViewProgram
from emberlog.maintain.report import holder_of
from emberlog.maintain.store import Journal, Relation, Row
from emberlog.maintain.tasks import Method, Task
from emberlog.relation import Holder
from emberlog.stats import Limits
from emberlog.types import Column


class KeptRelation(Protocol):
    """A relation of a view. What a change does to it is uncommitted until `commit`, and taken back by `undo`."""

    name: str
    width: int

    def __len__(self) -> int: ...

    @property
    def rows(self) -> set[Row]:
        """The rows as they are, in this process."""

    @property
    def content(self) -> Any:
        """The rows, in the form that `replace` takes."""

    @property
    def given(self) -> set[Row] | pa.Table:
        """The rows for somebody who reads them all."""

    @property
    def inserted(self) -> set[Row]:
        """The rows that the change inserted, net."""

    @property
    def deleted(self) -> set[Row]:
        """The rows that the change deleted, net."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows the change inserted and deleted, net."""

    @property
    def changed(self) -> bool: ...

    @property
    def pending(self) -> bool:
        """True if there is something to commit or to undo."""

    def load(self, rows: pa.Table) -> bool:
        """Takes in the first rows of the relation as columns; False if it does not."""

    def edit(self, gone: Iterable[Row], come: Iterable[Row]) -> None:
        """Lets rows go, then takes rows in."""

    def replace(self, content: Any) -> None:
        """Makes these rows the relation's."""

    def commit(self) -> None: ...

    def undo(self) -> None: ...


class KeptTask(Protocol):
    """A task of a view. `why` is the reason if it is evaluated anew after each change."""

    definition: Definition

    @property
    def relations(self) -> list[Any]: ...

    @property
    def method(self) -> Method: ...

    @property
    def why(self) -> str: ...

    @property
    def recomputes(self) -> bool: ...

    @property
    def why_tuples(self) -> str:
        """Why a recursion is maintained over tuples, however many rows there are; empty if it is not."""

    @property
    def saves(self) -> bool: ...

    @property
    def memory(self) -> str:
        """The form in which the task saves what it keeps."""

    def run(self, first: bool = False) -> int:
        """Brings the task's relations up to date; returns how many facts were looked at."""

    def save(self) -> Tables:
        """What the task keeps beside the rows of its relations."""

    def load(self, why: str, tables: Tables) -> None:
        """Goes on as a task that was saved."""


class Placement(Protocol):
    """Makes the relations and tasks of a view. `threads` is how many tasks run at once."""

    @property
    def threads(self) -> int: ...

    def relation(self, name: str, columns: tuple[Column, ...]) -> KeptRelation:
        """An empty relation."""

    def task(
        self, definition: Definition, program: ViewProgram, relations: Mapping[str, Any], journal: Journal
    ) -> KeptTask:
        """A task that has not run."""

    def load(self, relation: Any, name: str, source: Source, reading: Reading) -> None:
        """Takes the rows of a source into the relation of an input, and checks the conditions on its columns."""

    def holder(self, relation: Any, columns: tuple[Column, ...]) -> Holder:
        """The rows of a relation as they are now, for users."""


@dataclass(frozen=True)
class InDriver:
    """This process: rows as tuples, or as columns where compiled loops read many; tasks one after the other. `session`
    is for those who want frames, `encoding` has the words of values in columns."""

    ordinary: Ordinary
    limits: Limits
    session: Any = None
    threads: int = 1
    encoding: Encoding = field(default_factory=Encoding)

    def relation(self, name: str, columns: tuple[Column, ...]) -> Relation:
        return Relation(name, len(columns))

    def task(
        self, definition: Definition, program: ViewProgram, relations: Mapping[str, Any], journal: Journal
    ) -> Task:
        return Task(definition, program, relations, journal, self.ordinary, self.limits, self.encoding)

    def load(self, relation: Relation, name: str, source: Source, reading: Reading) -> None:
        table = reading.table(name, source)
        if table is None:
            relation.edit((), reading.load(name, source))
        elif not relation.load(table):
            relation.edit((), canonical_rows(table))
        if reading.signatures[name].domains:
            check_domains(reading.signatures[name], relation.inserted)

    def holder(self, relation: Relation, columns: tuple[Column, ...]) -> Holder:
        return holder_of(relation, columns, self.session)
