"""A session of a notebook: the rules of its cells, what they gave, and the tables that they read.

A relation that a cell computed is not computed again by later cells that read it, as long as no rule and no table that
it depends on has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emberlog.diagnostics import UsageError
from emberlog.engine import Engine
from emberlog.notebook.cells import (
    changed_by,
    closure,
    needed,
    parameters_of,
    questions,
    readers_of,
    reads,
    ruled,
    with_cell,
)
from emberlog.relation import Relation
from emberlog.result import Result
from emberlog.source import Source
from emberlog.syntax.nodes import Directive, Item, Program
from emberlog.syntax.parser import parse


class Session:
    """Cells over one engine. A cell with a mistake, or one that fails, leaves the session as it was."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.program = Program(())
        self.known: dict[str, Relation] = {}
        self._tables: dict[str, object] = {}  # of the notebook, as they were registered
        self._values: dict[str, Any] = {}  # of parameters, as they were in the last run that used them
        self._cells = 0

    def run(self, text: str, names: Mapping[str, Any], **options: Any) -> Result | None:
        """Adds the rules of a cell and evaluates what it asks for, or else what its rules derive; None if that is
        nothing. `names` are the variables of the notebook: tables that rules read, and values of parameters."""
        cell, program = self._read(text)
        asked = questions(cell)
        known = self._still_known(program, cell, names)
        result = self._evaluate(program, asked, known, names, options) if asked else None
        self.program, self.known = program, known
        if result is not None:
            self.known |= {name: result[name] for name in result if name in ruled(program)}
        self._cells += 1
        return result

    def prepare(self, text: str, names: Mapping[str, Any]) -> tuple[Program, dict[str, Any]]:
        """The program that a cell would run, without what is known already, and its parameters: to be checked or
        explained. The tables that it reads are registered."""
        cell, program = self._read(text)
        asked = questions(cell)
        wanted = closure((name for item in asked for name in reads(item)), readers_of(program))
        self._register(program, wanted, {}, names)
        whole = needed(program, asked, wanted, ())
        return whole, _parameters(whole, names)

    def _read(self, text: str) -> tuple[Program, Program]:
        cell = parse(Source(f"cell {self._cells + 1}", text))
        return cell, with_cell(self.program, cell)

    def _still_known(self, program: Program, cell: Program, names: Mapping[str, Any]) -> dict[str, Relation]:
        """The relations that earlier cells computed and nothing has changed since."""
        edges = {**readers_of(self.program), **readers_of(program)}
        changed = changed_by(cell)
        changed |= {name for name, table in self._tables.items() if names.get(name, table) is not table}
        changed |= {f"${name}" for name, value in self._values.items() if names.get(name, value) != value}
        return {name: found for name, found in self.known.items() if not closure([name], edges) & changed}

    def _evaluate(
        self,
        program: Program,
        asked: tuple[Item, ...],
        known: Mapping[str, Relation],
        names: Mapping[str, Any],
        options: dict[str, Any],
    ) -> Result:
        edges = readers_of(program)
        direct = {name for item in asked for name in reads(item)}
        # What an `.output` names is asked of its own rules; goals may read what is known.
        shown = {item.relation for item in asked if isinstance(item, Directive)}
        stop = {name for name in known if name not in shown}
        wanted = closure(direct, edges, stop)
        given = {name: known[name] for name in wanted & stop}
        self._register(program, wanted, given, names)
        for name, relation in given.items():
            self.engine.register(name, relation)
        try:
            whole = needed(program, asked, wanted, given)
            values = _parameters(whole, names)
            result = self.engine.run(whole, values, **options)
            self._values |= values
            return result
        finally:
            for name in given:
                self.engine.unregister(name)

    def _register(
        self, program: Program, wanted: set[str], given: Mapping[str, Relation], names: Mapping[str, Any]
    ) -> None:
        """Registers the tables of the notebook that these predicates name and no rule defines."""
        for name in wanted - ruled(program) - given.keys():
            table = names.get(name)
            if table is None or self._tables.get(name) is table:
                continue
            try:
                self.engine.register(name, table)
            except UsageError:  # a variable that is no table: the program tells what is missing
                continue
            self._tables[name] = table


def _parameters(program: Program, names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: names[name] for name in parameters_of(program) if name in names}
