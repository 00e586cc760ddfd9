"""Tasks of a view on Spark: a component is evaluated by Spark's queries, and what differs is taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from emberlog.compiled import Compiled
from emberlog.data.sources import Source
from emberlog.executors.base import Executor
from emberlog.executors.spark import SparkExecutor
from emberlog.maintain.kept import Tables
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import Definition, ViewProgram
from emberlog.maintain.spark.stored import SparkRelation
from emberlog.maintain.tasks import Method
from emberlog.result import RunHolder


class SparkTask:
    """A definition that Spark evaluates anew when what it reads has changed. `why` says why it is on Spark."""

    why_tuples = ""
    memory = "SparkTask"

    recomputes = True
    saves = False
    kept = "nothing"

    def __init__(
        self,
        definition: Definition,
        program: ViewProgram,
        relations: Mapping[str, SparkRelation],
        ordinary: Ordinary,
        session: Any,
        why: str,
    ) -> None:
        self.definition = definition
        self.relations = [relations[name] for name in definition.names]
        self.why = why
        self._program = program
        self._all = relations
        self._ordinary = ordinary
        self._session = session

    def run(self, first: bool = False) -> int:
        """Brings the task's relations up to date; returns how many facts were computed."""
        program, component = self._program, self.definition.component
        read = {name for rule in component.rules for name in rule.reads()} - set(component.predicates)
        given: dict[str, Source] = {name: self._all[name].source for name in read}
        given |= {
            name: self._all[program.inputs[name]].source for name in component.predicates if name in program.inputs
        }
        with self._ordinary.run(program.checked, component, given, self._executor) as live:
            for relation in self.relations:
                relation.replace(RunHolder(live, relation.name).frame())
        return sum(map(len, self.relations))

    @property
    def method(self) -> Method:
        return self

    def start(self) -> int:
        return self.run()

    def update(self) -> int:
        return self.run()

    def save(self) -> Tables:
        return {}

    def load(self, why: str, tables: Tables) -> None:
        raise AssertionError("a task on Spark is not saved")

    def _executor(self, compiled: Compiled, scratch: Path) -> Executor:
        options = replace(self._ordinary.options(), placement="spark")
        return SparkExecutor(self._session, compiled, options, scratch)
