"""Tasks: what maintains the relations of a definition, and what is done where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from emberlog.analysis.program import CheckedProgram
from emberlog.executors.base import broken_obligation
from emberlog.maintain.conditions import first_outside
from emberlog.maintain.counting import CountedSet, grouped
from emberlog.maintain.functions import Missing
from emberlog.maintain.kept import Saves, Tables
from emberlog.maintain.nests import Unsupported
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import Definition, ViewProgram
from emberlog.maintain.recursion import Improper, SupportedFacts
from emberlog.maintain.store import Journal, Relation, Row
from emberlog.maintain.totals import TotalledFacts
from emberlog.stats import MOST_ROUNDS, Limits

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
        given: dict[str, set[Row]] = {name: self._relations[name].rows for name in read}
        given |= {
            name: self._relations[program.inputs[name]].rows for name in component.predicates if name in program.inputs
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
            return self.method.start() if first else self.method.update()
        except Missing:
            why = "an operation has no value for a binding"
        except Improper as reason:
            why = str(reason)
        self._journal.undo_to(mark)
        for relation in self.relations:
            relation.undo()
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
        if isinstance(self.method, Saves):
            self.method.load(tables)

    def _check_obligations(self) -> None:
        """Checks on the rows that the change inserts what conditional verdicts ask of the data."""
        for verdict in self.definition.component.verdicts:
            for obligation in verdict.obligations:
                rows = self._all[obligation.relation].inserted
                row = first_outside(rows, obligation.position, obligation.bound)
                if row is not None:
                    raise broken_obligation(verdict, obligation, self._checked.signatures[obligation.relation], row)


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
        most = (limits.rounds or MOST_ROUNDS) if component.invents else None
        return SupportedFacts(names, rules, relations, program.signatures, journal, most)
    if functions & {"min", "max"}:
        raise Unsupported("minima or maxima and sums in one recursion")
    return TotalledFacts(names, rules, relations, program.signatures, journal, limits.rounds)
