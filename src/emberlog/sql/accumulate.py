"""Iterations in SQL that hand on changes (MRA), by the plans of `plan.changes`: one statement a round and relation, and
one that measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberlog.plan.changes import change_plans, changes_table, start_table
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.sql.iterate import one_row, reached, run_naive, told
from emberlog.stats import StratumStats, default_rounds

if TYPE_CHECKING:
    from emberlog.sql.evaluate import SqlEvaluator

HOW = "changes of sums are handed on (MRA)"


def run_changes(run: SqlEvaluator, stratum: Stratum, stats: StratumStats) -> None:
    """Rounds until nothing that counts waits, or what waits is small enough and no group is new."""
    until = stratum.until
    tables = [_Table(run, relation, stratum) for relation in stratum.relations]
    if not all([table.begin() for table in tables]):
        # A group of the start that nothing contributes to is gone after a round: only states know that.
        run_naive(run, stratum, stats)
        return
    stats.how = HOW
    while True:
        run.meter.allow_round(stats, default_rounds(sum(table.facts for table in tables)))
        for table in tables:
            table.derive()
        for table in tables:
            table.advance()
        waiting = sum(table.waiting for table in tables)
        if until is not None:
            sizes = [table.size for table in tables]
            stats.residual = max(sizes) if until.function == "max" else sum(sizes)
        run.meter.round(stats, waiting, sum(table.facts for table in tables))
        if waiting == 0:
            stats.stopped = "fixpoint"
            break
        is_small = until is not None and reached(until, stats.residual or 0.0)
        if until is not None and is_small and not any(table.new for table in tables):
            stats.stopped = told(until, stats.residual or 0.0)
            break
    for table in tables:
        table.finish()
    stats.facts = sum(table.facts for table in tables)


class _Table:
    """One relation: its groups, what they have handed on and what they have to."""

    def __init__(self, run: SqlEvaluator, relation: RelationPlan, stratum: Stratum) -> None:
        self.run = run
        self.relation = relation
        plans = change_plans(relation, stratum.relations, stratum.until)
        self.outside = plans.outside
        self.next = run.statement(plans.first)
        self.round = run.statement(plans.round)
        self.measure = run.statement(one_row(list(plans.figures)))
        self.whole = run.statement(plans.whole)
        self.start, self.state = run.table(start_table(relation.name)), run.table(changes_table(relation.name))
        self.facts = self.waiting = self.new = 0
        self.size = 0.0

    def begin(self) -> bool:
        """Stores the start. Does every group of it get something in every round?"""
        run = self.run
        if run.store(self.start, run.statement_of(self.relation.start, self.relation.signature)) == 0:
            return True
        return self.outside is not None and run.engine.first(run.statement(self.outside)) is None

    def derive(self) -> None:
        """Computes the next changes; nothing else changes."""
        self.run.store(f"{self.state}_next", self.next)
        self.next = self.round

    def advance(self) -> None:
        engine = self.run.engine
        engine.rename(f"{self.state}_next", self.state)
        facts, waiting, new, *norm = engine.first(self.measure) or (0.0, 0.0, 0.0)
        self.facts, self.waiting, self.new = int(facts), int(waiting), int(new)
        self.size = float(norm[0]) if norm else 0.0

    def finish(self) -> None:
        engine = self.run.engine
        engine.store(self.run.table(self.relation.name), self.whole)
        engine.drop(self.state)
        engine.drop(self.start)
