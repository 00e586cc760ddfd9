"""Naive rounds in SQL: each round computes every relation anew from the last state.

This is the meaning of an iteration (`rank(i+1, ..) :- rank(i, ..)`), and what remains for aggregates that may not be
evaluated by deltas. A round ends the evaluation when it changes nothing, or when its change is below the `until` bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from emberlog.plan.logical import Antijoin, Extend, Fold, Group, Lookup, Plan, Project, Scan, Union, Unit, columns
from emberlog.plan.names import position, positions, stateless
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.sql.changes import unchanged
from emberlog.sql.fixpoint import look_for_infinity
from emberlog.stats import StratumStats, default_rounds
from emberlog.syntax.nodes import Call, Constant, Term, Until, Variable
from emberlog.types import NUMBER

if TYPE_CHECKING:
    from emberlog.sql.evaluate import SqlEvaluator

OLD = "#old"


def run_naive(run: SqlEvaluator, stratum: Stratum, stats: StratumStats) -> None:
    """Rounds until nothing changes, or the change is small enough."""
    states = [_State(run, relation, stratum) for relation in stratum.relations]
    for state in states:
        state.begin()
    until = stratum.until
    while True:
        run.meter.allow_round(stats, default_rounds(sum(state.facts for state in states)))
        for state in states:
            state.derive()
        delta = sum(state.difference() for state in states)
        if until is not None:
            residuals = [state.residual for state in states]
            stats.residual = max(residuals) if until.function == "max" else sum(residuals)
        for state in states:
            state.advance(stats.rounds + 1)
        run.meter.round(stats, delta, sum(state.facts for state in states))
        look_for_infinity(run, stratum, stats)
        if delta == 0:
            stats.stopped = "fixpoint"
            break
        if until is not None and reached(until, stats.residual or 0.0):
            stats.stopped = told(until, stats.residual or 0.0)
            break
    for state in states:
        state.finish()
    stats.facts = sum(state.facts for state in states)


def reached(until: Until, residual: float) -> bool:
    """Is the change of a round so small that the iteration ends?"""
    assert isinstance(until.bound, Constant)
    bound = float(until.bound.value)
    return residual <= bound if until.operator == "<=" else residual < bound


def told(until: Until, residual: float) -> str:
    """Why it ended, for the figures of a run."""
    return f"{until.function}[delta {until.variable}] = {residual:.3g}"


class _State:
    """One relation of the component, with the state that the next round reads."""

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, stratum: Stratum) -> None:
        self.run = run
        self.relation = relation
        self.signature = relation.signature
        self.facts = 0
        self.next = replace(self.signature, name=f"{relation.name}/next")
        self.states = f"{relation.name}/states" if stratum.keeps_states else None
        self.step = run.statement_of(relation.exit, self.signature)
        self.first = run.statement_of(relation.start, self.signature)
        new = self._changed(run.scan(self.next), self.signature.name)
        gone = self._changed(run.scan(self.signature), self.next.name)
        figures: list[tuple[str, Plan]] = [("#new", new), ("#gone", gone)]
        if stratum.until is not None and self.signature.aggregates:
            figures.append(("#norm", self._distance(stratum.until)))
        self.measure = run.statement(one_row(figures))
        self.residual = 0.0
        self.rows = 0

    def _changed(self, rows: Scan, others: str) -> Plan:
        """How many of these rows are not among the others."""
        values = {position(spot) for spot in self.signature.aggregates}
        names = tuple(f"{OLD}{name}" if name in values else name for name in positions(len(rows.types)))
        same = tuple(unchanged(name, f"{OLD}{name}", rows) for name in sorted(values))
        missing = Antijoin(rows, Scan(others, names, rows.types), same)
        counted = Group(missing, (), (Fold("#n", "count", None),))
        return Project(counted, (("#n", Call("to_float", (Variable("#n"),))),))

    def _distance(self, until: Until) -> Plan:
        """The L1 norm of the change, or its largest value: a group that is in one state only changed by its value."""
        spot = next(iter(self.signature.aggregates))
        groups = tuple(position(i) for i in self.signature.groups)

        def signed(scan: Scan, sign: float) -> Plan:
            value: Term = Variable(position(spot))
            if columns(scan)[position(spot)].kind != "float":
                value = Call("to_float", (value,))
            items = [(name, Variable(name)) for name in groups]
            return Project(scan, (*items, ("#d", Call("*", (value, Constant(sign))))))

        both = Union((signed(self.run.scan(self.next), 1.0), signed(self.run.scan(self.signature), -1.0)))
        change = Extend(Group(both, groups, (Fold("#d", "sum", "#d"),)), "#size", Call("abs", (Variable("#d"),)))
        return Group(change, (), (Fold("#norm", until.function, "#size"),))

    def begin(self) -> None:
        self.facts = self.run.store(self.run.table(self.signature.name), self.first)
        if self.states is not None:
            self._keep_state(0)

    def derive(self) -> None:
        self.rows = self.run.store(self.run.table(self.next.name), self.step)

    def difference(self) -> int:
        """How many rows the next state has more or less; `residual` is then how far it is from this one."""
        found = self.run.engine.first(self.measure) or (0.0, 0.0)
        new, gone, *norm = found
        self.residual = float(norm[0]) if norm else 0.0
        return int(max(new, gone))

    def advance(self, number: int) -> None:
        self.run.engine.rename(self.run.table(self.next.name), self.run.table(self.signature.name))
        self.facts = self.rows
        if self.states is not None:
            self._keep_state(number)

    def _keep_state(self, number: int) -> None:
        """Adds the state, with its index in front, to those that are kept."""
        engine, run = self.run.engine, self.run
        scan = run.scan(self.signature)
        items: list[tuple[str, Term]] = [("#i", Constant(number))]
        items += [(name, Variable(name)) for name in columns(scan)]
        stamped = f"{self.relation.name}/stamped"
        engine.store(run.table(stamped), run.statement(Project(scan, tuple(items))))
        whole = run.table(stateless(self.signature.name))
        if number == 0:
            engine.store(whole, run.empty((NUMBER, *(column.type for column in self.signature.columns))))
        engine.append(whole, run.table(stamped))

    def finish(self) -> None:
        if self.states is not None:
            self.facts = self.run.engine.count(self.run.table(stateless(self.signature.name)))


def one_row(figures: list[tuple[str, Plan]]) -> Plan:
    """One row with a column for each figure: the value of its plan, 0 when that has no row."""
    row: Plan = Unit()
    for name, plan in figures:
        (made,) = columns(plan)
        row = Lookup(row, Project(plan, ((name, Variable(made)),)), name, Constant(0.0))
    return row
