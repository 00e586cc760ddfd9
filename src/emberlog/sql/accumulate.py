"""Iterations in SQL that hand on changes (MRA): sums of which both properties of MRA evaluation are proved.

A relation is a table of groups with two numbers: what the group has handed on, and what it still has to hand on. A
round takes up each change that counts: it is added to the first number, taken from the second one, and what the rules
make of it is added to the changes of other groups. All of this is one statement. The first change is what the first
round would change of the start. The state of an iteration is at any time the sum of the two numbers.

A group that is new hands on a change of zero too: groups come to be by contributions, whatever these are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from emberlog.plan.logical import (
    Antijoin,
    Fold,
    Group,
    Plan,
    Project,
    RelationPlan,
    Scan,
    Select,
    Stratum,
    columns,
    keep,
    map_children,
)
from emberlog.plan.lower import union
from emberlog.plan.names import position, positions
from emberlog.sql.changes import FLOAT_TOLERANCE
from emberlog.sql.iterate import one_row, reached, run_naive, told
from emberlog.stats import StratumStats, default_rounds
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Until, Variable
from emberlog.types import FLOAT

if TYPE_CHECKING:
    from emberlog.sql.evaluate import SqlEvaluator

WAITS = "#waits"  # what a group still has to hand on
TIMES = "#times"  # 1 for a group that has handed something on, 0 for one that is new
LARGEST = 1e300  # a change of a value beyond this counts always: such an iteration does not end

HOW = "changes of sums are handed on (MRA)"


def run_changes(run: SqlEvaluator, stratum: Stratum, stats: StratumStats) -> None:
    """Rounds until nothing that counts waits, or what waits is small enough and no group is new."""
    until = stratum.until
    tables = {relation.name: _Table(run, relation, until) for relation in stratum.relations}
    if not all([table.starts_within_constants() for table in tables.values()]):
        # A group of the start that nothing contributes to is gone after a round: only states know that.
        run_naive(run, stratum, stats)
        return
    stats.how = HOW
    for table in tables.values():
        table.prepare(tables)
    first = True
    while True:
        run.meter.allow_round(stats, default_rounds(sum(table.facts for table in tables.values())))
        for table in tables.values():
            table.derive(first)
        for table in tables.values():
            table.advance()
        first = False
        waiting = sum(table.waiting for table in tables.values())
        if until is not None:
            sizes = [table.size for table in tables.values()]
            stats.residual = max(sizes) if until.function == "max" else sum(sizes)
        run.meter.round(stats, waiting, sum(table.facts for table in tables.values()))
        if waiting == 0:
            stats.stopped = "fixpoint"
            break
        new = sum(table.new for table in tables.values())
        if until is not None and new == 0 and reached(until, stats.residual or 0.0):
            stats.stopped = told(until, stats.residual or 0.0)
            break
    for table in tables.values():
        table.finish()
    stats.facts = sum(table.facts for table in tables.values())


class _Table:
    """One relation: its groups, what they have handed on and what they have to."""

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, until: Until | None) -> None:
        self.run = run
        self.relation = relation
        self.until = until
        signature = relation.signature
        self.groups = tuple(position(i) for i in signature.groups)
        self.value = position(relation.aggregate[0])
        self.start = replace(signature, name=f"{relation.name}/start")
        self.name, self.next = f"{relation.name}/changes", f"{relation.name}/next"
        self.facts = self.waiting = self.new = 0
        self.size = 0.0

    def starts_within_constants(self) -> bool:
        """Stores the start. Does every group of it get something in every round?"""
        plan, run = self.relation.start, self.run
        types = tuple(column.type for column in self.relation.signature.columns)
        statement = run.empty(types) if plan is None else run.statement(plan)
        if run.store(run.table(self.start.name), statement) == 0:
            return True
        if self.relation.constant is None:
            return False
        outside = Antijoin(keep(run.scan(self.start), self.groups), keep(self.relation.constant, self.groups))
        return run.engine.first(run.statement(outside)) is None

    # --- statements ----------------------------------------------------------------------------------------------

    def prepare(self, tables: Mapping[str, _Table]) -> None:
        """Compiles the statements; the steps read changes of all tables of the component."""
        run = self.run
        own = run.scan(self.start)
        begun = self._row(own, Variable(self.value), Call("neg", (Variable(self.value),)), 1.0)
        constant = self.relation.constant
        always = [] if constant is None else [self._contributed(constant)]
        from_start = self._steps({name: run.scan(table.start) for name, table in tables.items()})
        self.first = run.statement(self._summed([begun, *always, *from_start]))
        state = self.scan()
        handed = Call("+", (Variable(self.value), Variable(WAITS)))
        taken = self._row(Select(state, (_counts(self.value),)), handed, Constant(0.0), 1.0)
        held = Select(state, (_counts(self.value, holds=False),))
        changes = self._steps({name: table.changes() for name, table in tables.items()})
        self.round = run.statement(self._summed([taken, keep(held, tuple(columns(taken))), *changes]))
        self.measure = run.statement(one_row(self._figures(state)))
        whole = Project(state, tuple((name, handed if name == self.value else Variable(name)) for name in self._names))
        self.whole = run.statement(whole)

    @property
    def _names(self) -> tuple[str, ...]:
        return positions(len(self.relation.signature.columns))

    def scan(self) -> Scan:
        types = tuple(column.type.wide for column in self.relation.signature.columns)
        return Scan(self.name, (*self._names, WAITS, TIMES), (*types, FLOAT, FLOAT))

    def changes(self) -> Plan:
        """The changes that are taken up, in the place of the values."""
        rows = Select(self.scan(), (_counts(self.value),))
        return Project(rows, tuple((n, Variable(WAITS if n == self.value else n)) for n in self._names))

    def _steps(self, recent: Mapping[str, Plan]) -> list[Plan]:
        return [self._contributed(_reading(step, recent)) for step in self.relation.steps]

    def _contributed(self, rows: Plan) -> Plan:
        """Contributions wait."""
        return self._row(rows, Constant(0.0), Variable(self.value), 0.0)

    def _row(self, rows: Plan, value: Term, waits: Term, times: float) -> Plan:
        kept = tuple((name, Variable(name)) for name in self.groups)
        return Project(rows, (*kept, (self.value, value), (WAITS, waits), (TIMES, Constant(times))))

    def _summed(self, parts: list[Plan]) -> Plan:
        rows = union(parts)
        assert rows is not None
        folds = tuple(Fold(name, "sum", name) for name in (self.value, WAITS, TIMES))
        return keep(Group(rows, self.groups, folds), (*self._names, WAITS, TIMES))

    def _figures(self, state: Scan) -> list[tuple[str, Plan]]:
        """How many changes count, how many groups are new, how large all changes are."""

        def counted(rows: Plan) -> Plan:
            number = Group(rows, (), (Fold("#n", "count", None),))
            return Project(number, (("#n", Call("to_float", (Variable("#n"),))),))

        new = Select(state, (Comparison("=", Variable(TIMES), Constant(0.0)),))
        figures = [("#facts", counted(state)), ("#waiting", counted(Select(state, (_counts(self.value),))))]
        figures.append(("#new", counted(new)))
        if self.until is not None:
            sizes = Project(state, (("#size", Call("abs", (Variable(WAITS),))),))
            figures.append(("#norm", Group(sizes, (), (Fold("#norm", self.until.function, "#size"),))))
        return figures

    # --- rounds --------------------------------------------------------------------------------------------------

    def derive(self, first: bool) -> None:
        self.run.store(self.run.table(self.next), self.first if first else self.round)

    def advance(self) -> None:
        self.run.engine.rename(self.run.table(self.next), self.run.table(self.name))
        facts, waiting, new, *norm = self.run.engine.first(self.measure) or (0.0, 0.0, 0.0)
        self.facts, self.waiting, self.new = int(facts), int(waiting), int(new)
        self.size = float(norm[0]) if norm else 0.0

    def finish(self) -> None:
        engine, run = self.run.engine, self.run
        engine.store(run.table(self.relation.name), self.whole)
        engine.drop(run.table(self.name))
        engine.drop(run.table(self.start.name))


def _counts(value: str, *, holds: bool = True) -> Comparison:
    """The condition that a change is taken up: its group is new, or the change is not lost in the digits of the sum."""
    new = Call("-", (Constant(1.0), Variable(TIMES)))
    size = Call("min", (Call("abs", (Variable(value),)), Constant(LARGEST)))
    least = Call("*", (Call("*", (Constant(FLOAT_TOLERANCE), size)), Variable(TIMES)))
    waits = Call("+", (Call("abs", (Variable(WAITS),)), new))
    return Comparison("!<=" if holds else "<=", waits, least)


def _reading(plan: Plan, recent: Mapping[str, Plan]) -> Plan:
    """The plan in which what the last round brought is read from these plans."""

    def change(node: Plan) -> Plan:
        match node:
            case Scan(relation, names, _, "recent"):
                made = columns(recent[relation])
                pairs = zip(names, made, strict=True)
                return Project(recent[relation], tuple((n, Variable(m)) for n, m in pairs if n is not None))
            case _:
                return map_children(node, change)

    return change(plan)
