"""Semi-naive rounds in SQL (PSN): each round derives from the rows of the last one, until there are none.

What is kept of a relation between rounds is its `state`: a set of rows in two tables, `stable` and `recent`; the best
row of each group; or contributions and the totals made of them. Each state computes its next rows first; when all
relations of the component have done so, all of them take them in. Facts of a round are thus seen by the next one only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Fold,
    Group,
    Join,
    Plan,
    Scan,
    Union,
    columns,
    keep,
    rebuild,
    scans,
)
from emberlog.plan.lower import brings_counts, by_contributor, totals, union
from emberlog.plan.names import position, positions
from emberlog.plan.strata import Contribution, RelationPlan, Stratum
from emberlog.sql.changes import unchanged
from emberlog.stats import MOST_ROUNDS, StratumStats, default_rounds
from emberlog.syntax.nodes import Comparison, Variable

if TYPE_CHECKING:
    from emberlog.sql.evaluate import SqlEvaluator
    from emberlog.sql.statement import Statement

BEST = "#best"  # the value that a group has so far
FIRST_LOOK = 8  # the round after which infinite sums are looked for first; then after twice as many, and so on


def run_deltas(run: SqlEvaluator, stratum: Stratum, stats: StratumStats) -> None:
    """The fixpoint of a component."""
    sets = frozenset(relation.name for relation in stratum.relations if relation.state == "set")
    states = [_state_of(run, relation, sets) for relation in stratum.relations]
    for state in states:
        state.fresh = state.begin()
    delta = sum(state.fresh for state in states)
    run.meter.round(stats, delta, sum(state.facts for state in states))
    while delta:
        run.meter.allow_round(stats, _default_limit(stratum, states))
        changed = {state.relation.name for state in states if state.fresh}
        # Of a large component most relations have nothing to do in most rounds.
        awake = [state for state in states if state.fresh or state.reads_changes_of(changed)]
        for state in awake:
            state.derive() if state.reads_changes_of(changed) else state.rest()
        for state in awake:
            state.fresh = state.advance()
        delta = sum(state.fresh for state in states)
        run.meter.round(stats, delta, sum(state.facts for state in states))
        look_for_infinity(run, stratum, stats)
    for state in states:
        state.finish()
    stats.facts = sum(state.facts for state in states)
    stats.stopped = "fixpoint"


def look_for_infinity(run: SqlEvaluator, stratum: Stratum, stats: StratumStats) -> None:
    """Raises if sums have grown to infinity along a cycle, in rounds of which there are few: to look takes time."""
    from emberlog.sql.cycles import refuse_infinity

    if stats.rounds >= FIRST_LOOK and stats.rounds.bit_count() == 1:
        refuse_infinity(run, stratum, stats)


def _default_limit(stratum: Stratum, states: list[State]) -> int | None:
    """How many rounds are allowed unless the user says; None for a component that is sure to end."""
    if any(state.grows_values for state in states):
        return default_rounds(sum(state.facts for state in states))
    if not stratum.invents:
        return None
    groups = any(isinstance(state, GroupState) for state in states)
    return default_rounds(sum(state.facts for state in states)) if groups else MOST_ROUNDS


class State(ABC):
    """A relation while its component is evaluated."""

    grows_values = False  # may values change for ever although no rule computes new ones?

    def __init__(self, run: SqlEvaluator, relation: RelationPlan) -> None:
        self.run = run
        self.relation = relation
        self.facts = 0
        self.pending = 0  # rows that `derive` found
        self.fresh = 0  # rows that are recent
        steps = (*relation.steps, *(step for part in relation.contributions for step in part.steps))
        self._read = frozenset(scan.relation for step in steps for scan in scans(step) if scan.version == "recent")
        name = run.table(relation.name)
        self.all, self.stable, self.recent, self.next = name, f"{name}_stable", f"{name}_recent", f"{name}_next"

    def _statement(self, plan: Plan | None) -> Statement:
        return self.run.statement_of(plan, self.relation.signature)

    def begin(self) -> int:
        """The first rows, from lower strata. Returns how many are recent."""
        self.facts = self.run.store(self.recent, self._statement(self.relation.exit))
        self.run.engine.store(self.kept, self._statement(None))
        return self.facts

    def reads_changes_of(self, relations: Collection[str]) -> bool:
        """True if its rules start from recent rows of one of these relations."""
        return not self._read.isdisjoint(relations)

    def rest(self) -> None:
        """Finds no next rows, because nothing changed that its rules start from."""
        self.pending = 0
        self.run.engine.store(self.next, self._statement(None))

    @property
    @abstractmethod
    def kept(self) -> str:
        """The table that holds the rows of earlier rounds."""

    @abstractmethod
    def derive(self) -> None:
        """Computes the next rows; nothing else changes."""

    @abstractmethod
    def advance(self) -> int:
        """The next rows become the recent ones. Returns how many."""

    @abstractmethod
    def finish(self) -> None:
        """Leaves the relation's rows in one table."""


class SetState(State):
    """Rows, in two tables that share none: those before the last round and those of it."""

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, sets: frozenset[str]) -> None:
        super().__init__(run, relation)
        known = run.scan(relation.signature)
        found = union([split_all(step, sets) for step in relation.steps])
        self.step = self._statement(found and Antijoin(Distinct(found), split_all(known, sets)))

    @property
    def kept(self) -> str:
        return self.stable

    def derive(self) -> None:
        self.pending = self.run.store(self.next, self.step)

    def advance(self) -> int:
        self.run.engine.append(self.stable, self.recent)
        self.run.engine.rename(self.next, self.recent)
        self.facts += self.pending
        return self.pending

    def finish(self) -> None:
        self.run.engine.rename(self.stable, self.all)
        self.run.engine.drop(self.recent)


class GroupState(State):
    """One row for each group, with the value that it has now."""

    @property
    def kept(self) -> str:
        return self.all

    def begin(self) -> int:
        count = super().begin()
        self.run.engine.append(self.all, self.recent)
        return count

    def advance(self) -> int:
        engine = self.run.engine
        engine.rename(self.next, self.recent)
        if self.pending:
            engine.update(self.all, self.recent, self.relation.signature.groups)
            # Counting the groups is a job of its own on Spark; a lower bound does until the end.
            self.facts = max(self.facts, self.pending) if engine.lazy else engine.count(self.all)
        return self.pending

    def finish(self) -> None:
        self.run.engine.drop(self.recent)
        self.facts = self.run.engine.count(self.all)


class ExtremumState(GroupState):
    """The best row of each group. A round's rows are those that are better than what is there."""

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, sets: frozenset[str]) -> None:
        super().__init__(run, relation)
        spot, function = relation.aggregate
        value, groups = position(spot), tuple(position(i) for i in relation.signature.groups)
        names = tuple(BEST if name == value else name for name in positions(len(relation.signature.columns)))
        found = union([split_all(step, sets) for step in relation.steps])
        better: Plan | None = None
        if found is not None:
            best = keep(Group(found, groups, (Fold(value, function, value),)), positions(len(names)))
            at_least = Comparison("<=" if function == "min" else ">=", Variable(BEST), Variable(value))
            better = Antijoin(best, run.scan(relation.signature, names=names), (at_least,))
        self.step = self._statement(better)

    def derive(self) -> None:
        self.pending = self.run.store(self.next, self.step)


class TotalState(GroupState):
    """Sums and counts: contributions by identity, and a total for each group.

    A round brings contributions, new ones or new values of known ones; the groups that they touch are totalled anew.
    """

    grows_values = True

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, sets: frozenset[str]) -> None:
        super().__init__(run, relation)
        self.parts = [_Part(run, relation, spot, part, sets) for spot, part in enumerate(relation.contributions)]
        signature = relation.signature
        self.exits = [
            _Exits(run, f"{relation.name}/{name}", plan, brings_counts=name == "plain")
            for name, plan in (("exits", relation.exit), ("plain", relation.plain))
            if plan is not None
        ]
        groups = tuple(position(i) for i in signature.groups)
        rule = relation.contributions[0].rule if relation.contributions else -1
        self.first = self._totals(self.exits, rule)
        now = self._totals(self._sources, rule, touched=[keep(part.fresh(), groups) for part in self.parts])
        changed: Plan | None = None
        if now is not None and self.parts:
            value = position(relation.aggregate[0])
            names = tuple(BEST if name == value else name for name in positions(len(signature.columns)))
            changed = Antijoin(now, run.scan(signature, names=names), (unchanged(value, BEST, now),))
        self.step = self._statement(changed)

    @property
    def _sources(self) -> list[_Exits | _Part]:
        return [*self.exits, *self.parts]

    def _totals(self, sources: Sequence[_Exits | _Part], rule: int, touched: Sequence[Plan] = ()) -> Plan | None:
        """The totals of what is stored, of the groups that are `touched` if some are."""
        asked = union(list(touched))

        def rows(brings_counts: bool) -> Plan | None:
            found = union([source.rows() for source in sources if source.brings_counts == brings_counts])
            return found if found is None or asked is None else Join(found, Distinct(asked))

        return totals(self.relation.signature, rows(False), rows(True), rule)

    def begin(self) -> int:
        for source in self._sources:
            source.begin()
        self.relation = replace(self.relation, exit=self.first)
        return super().begin()

    def derive(self) -> None:
        for part in self.parts:
            part.derive()
        self.pending = self.run.store(self.next, self.step)

    def finish(self) -> None:
        super().finish()
        for source in self._sources:
            source.finish()


class _Exits:
    """Rows that lower strata contribute: they stay the same. Their values have the types that the rules give them, not
    those of the relation: a `countd` of texts is a number."""

    def __init__(self, run: SqlEvaluator, name: str, plan: Plan, *, brings_counts: bool) -> None:
        self.run = run
        self.name = name
        self.columns = columns(plan)
        self.statement = run.statement(plan)
        self.brings_counts = brings_counts

    def rows(self) -> Plan:
        return Scan(self.name, tuple(self.columns), tuple(self.columns.values()))

    def begin(self) -> None:
        self.run.engine.store(self.run.table(self.name), self.statement)

    def finish(self) -> None:
        self.run.engine.drop(self.run.table(self.name))


class _Part:
    """The contributions of one rule: their identity, their row, their current value."""

    def __init__(
        self, run: SqlEvaluator, relation: RelationPlan, spot: int, part: Contribution, sets: frozenset[str]
    ) -> None:
        self.run = run
        self.rule = run.rules[part.rule]
        self.brings_counts = brings_counts(self.rule, relation.signature)
        found = union([split_all(step, sets) for step in part.steps])
        assert found is not None
        self.columns = columns(found)
        self.keys = tuple(i for i, name in enumerate(self.columns) if name in part.identity)
        self.name, self.fresh_name = f"{relation.name}/by{spot}", f"{relation.name}/fresh{spot}"
        self.statement = run.statement(Distinct(found))

    def _scan(self, name: str) -> Scan:
        return Scan(name, tuple(self.columns), tuple(self.columns.values()))

    def fresh(self) -> Plan:
        return self._scan(self.fresh_name)

    def rows(self) -> Plan:
        """All contributions as rows of the relation, one for each contributor where the rule names one."""
        arity = len(self.rule.arguments)
        kept = tuple(name for name in self.columns if name.startswith("#"))
        rows = by_contributor(self.rule, keep(self._scan(self.name), kept))
        return keep(rows, positions(arity))

    def begin(self) -> None:
        types = tuple(self.columns.values())
        self.run.engine.store(self.run.table(self.name), self.run.empty(types))

    def derive(self) -> None:
        engine = self.run.engine
        fresh = self.run.table(self.fresh_name)
        if engine.store(fresh, self.statement):
            engine.update(self.run.table(self.name), fresh, self.keys)

    def finish(self) -> None:
        self.run.engine.drop(self.run.table(self.name))
        self.run.engine.drop(self.run.table(self.fresh_name))


def _state_of(run: SqlEvaluator, relation: RelationPlan, sets: frozenset[str]) -> State:
    match relation.state:
        case "set":
            return SetState(run, relation, sets)
        case "extremum":
            return ExtremumState(run, relation, sets)
        case "total":
            return TotalState(run, relation, sets)


def split_all(plan: Plan, sets: frozenset[str]) -> Plan:
    """`plan` in which all rows of a set of the component are read as its two tables, and groups have one table."""

    def split(node: Plan) -> Plan:
        match node:
            case Scan(relation, _, _, "all") if relation in sets:
                return Union((replace(node, version="stable"), replace(node, version="recent")))
            case Scan(relation, _, _, "stable") if relation not in sets:
                return replace(node, version="all")
            case _:
                return node

    return rebuild(plan, split)
