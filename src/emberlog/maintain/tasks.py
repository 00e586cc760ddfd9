"""Tasks: what maintains the relations of a definition, and what is done where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from emberlog.analysis.program import CheckedProgram
from emberlog.executors.base import broken_obligation
from emberlog.kernels import cache
from emberlog.maintain.conditions import first_outside
from emberlog.maintain.counting import CountedSet, grouped
from emberlog.maintain.functions import Missing
from emberlog.maintain.kept import Saves, Tables
from emberlog.maintain.native.encoding import Encoding
from emberlog.maintain.native.facts import NativeFacts
from emberlog.maintain.nests import Unsupported
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import Definition, ViewProgram
from emberlog.maintain.recursion import NAN_REASON, Improper, SupportedFacts
from emberlog.maintain.store import Journal, Place, Relation, Unheld
from emberlog.maintain.totals import TotalledFacts
from emberlog.stats import MOST_ROUNDS, Limits
from emberlog.thresholds import MAINTAINED_ROWS
from emberlog.types import Column

FOLDS = frozenset({"count", "countd", "sum", "min", "max", "avg"})  # that groups compute from their contributions


class Method(Protocol):
    """A way to keep relations current. `kept` says what it keeps for that beside their rows."""

    @property
    def kept(self) -> str: ...

    def start(self) -> int:
        """Derives everything, for empty relations; returns how many facts it looked at."""

    def update(self) -> int:
        """Follows the changes of the relations that it reads."""


class Recomputation:
    """The ordinary engine evaluates the component anew, and what differs is taken over."""

    kept = "nothing"

    def __init__(
        self, definition: Definition, program: ViewProgram, relations: Mapping[str, Relation], ordinary: Ordinary
    ) -> None:
        self._definition = definition
        self._program = program
        self._relations = relations
        self._ordinary = ordinary

    def start(self) -> int:
        return self.update()

    def update(self) -> int:
        program, component = self._program, self._definition.component
        read = {name for rule in component.rules for name in rule.reads()} - set(component.predicates)
        given = {name: self._relations[name].given for name in read}
        given |= {
            name: self._relations[program.inputs[name]].given for name in component.predicates if name in program.inputs
        }
        found = self._ordinary.evaluate(program.checked, component, given)
        for name, rows in found.items():
            self._relations[name].replace(rows)
        return sum(map(len, found.values()))


class Task:
    """A definition and the method that maintains it. `why` is the reason if that is no better one."""

    def __init__(
        self,
        definition: Definition,
        program: ViewProgram,
        relations: Mapping[str, Relation],
        journal: Journal,
        ordinary: Ordinary,
        limits: Limits,
        encoding: Encoding,
    ) -> None:
        self.definition = definition
        self.relations = [relations[name] for name in definition.names]
        self._all = relations
        self._checked: CheckedProgram = program.checked
        self._journal = journal
        self._last_resort = Recomputation(definition, program, relations, ordinary)
        self._how: dict[str, Any] = {"method": self._last_resort, "why": ""}
        try:
            self._how["method"] = _method(definition, program, relations, journal, limits)
        except Unsupported as reason:
            self._how["why"] = str(reason)
        self._columns = self._columns_method(program, encoding, limits)

    def _columns_method(self, program: ViewProgram, encoding: Encoding, limits: Limits) -> NativeFacts | str:
        """Compiled loops over columns, for when there are many rows; or why there are none."""
        definition = self.definition
        if not isinstance(self.method, SupportedFacts):
            return ""
        try:
            most = _most_rank(definition, limits)
            found = NativeFacts(definition.names, definition.rules, self._all, program.signatures, encoding, most)
        except Unsupported as reason:
            return str(reason)
        for relation in found.inputs:
            columns = program.signatures[relation.name].columns
            relation.allow_place(self._journal, partial(_place_of, columns, encoding))
        for relation in self.relations:
            relation.allow_place(self._journal)
        return found

    @property
    def why_tuples(self) -> str:
        """Why the recursion is maintained over tuples, however many rows there are; empty if it is not."""
        return self._columns if isinstance(self._columns, str) else ""

    @property
    def method(self) -> Method:
        method: Method = self._how["method"]
        return method

    @property
    def why(self) -> str:
        return str(self._how["why"])

    @property
    def recomputes(self) -> bool:
        """True if the ordinary engine evaluates the task."""
        return self.method is self._last_resort

    def run(self, first: bool = False) -> int:
        """Brings the task's relations up to date, for the first time or after a change of what they are made from;
        returns how many facts were looked at."""
        self._check_obligations()
        if self.recomputes:
            return self.method.update()
        mark = self._journal.mark
        try:
            found = self._start_columns(mark) if self._is_due_for_columns() else None
            if found is not None:
                return found
            return self.method.start() if first else self.method.update()
        except Missing:
            why = "an operation has no value for a binding"
        except Improper as reason:
            why = str(reason)
        self._journal.undo_to(mark)
        for relation in self.relations:
            relation.undo()
            relation.leave()
        self._journal.put(self._how, "method", self._last_resort)
        self._journal.put(self._how, "why", why)
        return self.method.update()

    @property
    def saves(self) -> bool:
        """True if the task can go on from what it saved."""
        return self.recomputes or isinstance(self.method, Saves)

    def save(self) -> Tables:
        """What the task keeps beside the rows of its relations."""
        return self.method.save() if isinstance(self.method, Saves) else {}

    def load(self, why: str, tables: Tables) -> None:
        """Goes on as a task that was saved, when its relations have their rows. `why` is that task's."""
        if why and not self.recomputes:
            self._how.update(method=self._last_resort, why=why)
        if self._is_due_for_columns():
            self._how["method"] = self._columns
        if isinstance(self.method, Saves):
            self.method.load(tables)

    @property
    def memory(self) -> str:
        """The form in which the task saves what it keeps."""
        method = SupportedFacts if isinstance(self.method, NativeFacts) else type(self.method)
        return method.__name__

    def _is_due_for_columns(self) -> bool:
        """True if compiled loops should take over."""
        if not isinstance(self._columns, NativeFacts):
            return False
        if self.method is self._columns and self._columns.is_current:
            return False
        return self._columns.is_ready and sum(map(len, self._columns.inputs)) >= least_rows()

    def _start_columns(self, mark: int) -> int | None:
        """Lets compiled loops derive everything anew; None if the rows have values that they do not hold."""
        assert isinstance(self._columns, NativeFacts)
        try:
            self._journal.put(self._how, "method", self._columns)
            return self._columns.start()
        except Unheld:
            self._journal.undo_to(mark)
            self._columns = NAN_REASON
            return None

    def _check_obligations(self) -> None:
        """Checks on the rows that the change inserts what conditional verdicts ask of the data."""
        for verdict in self.definition.component.verdicts:
            for obligation in verdict.obligations:
                rows = self._all[obligation.relation].inserted
                row = first_outside(rows, obligation.position, obligation.bound)
                if row is not None:
                    raise broken_obligation(verdict, obligation, self._checked.signatures[obligation.relation], row)


def least_rows() -> int:
    """Input rows from which compiled loops maintain a recursion. Tests have all of them compiled."""
    return MAINTAINED_ROWS if cache.INTERPRETS else 0


def _place_of(columns: tuple[Column, ...], encoding: Encoding, found: pa.Table) -> Place | None:
    """Many rows in columns; None if they are few, or words do not stand for all their values."""
    if found.num_rows < least_rows():
        return None
    from emberlog.maintain.native.place import Columns  # which loads the compiler

    try:
        return Columns.of_table(columns, encoding, found)
    except Unheld:
        return None


def _method(
    definition: Definition,
    program: ViewProgram,
    relations: Mapping[str, Relation],
    journal: Journal,
    limits: Limits,
) -> Method:
    """The way to maintain a definition. Raises `Unsupported` where there is none."""
    component, rules, names = definition.component, definition.rules, definition.names
    functions = {f for name in names for f in program.signatures[name].aggregates.values()}
    if component.evaluation in ("naive", "accumulate"):
        raise Unsupported("an iteration" if component.indexed else "naive evaluation")
    if any(rule.order or rule.limit is not None for rule in rules):
        raise Unsupported("`sort` and `limit`")
    if functions - FOLDS:
        raise Unsupported(f"`{min(functions - FOLDS)}`")
    if not component.recursive:
        make = grouped if functions else CountedSet
        return make(names[0], rules, relations, program.signatures, journal)
    if functions <= {"min", "max"}:
        return SupportedFacts(names, rules, relations, program.signatures, journal, _most_rank(definition, limits))
    if functions & {"min", "max"}:
        raise Unsupported("minima or maxima and sums in one recursion")
    return TotalledFacts(names, rules, relations, program.signatures, journal, limits.rounds)


def _most_rank(definition: Definition, limits: Limits) -> int | None:
    """The longest derivation that is followed, where values may be invented without end."""
    return (limits.rounds or MOST_ROUNDS) if definition.component.invents else None
