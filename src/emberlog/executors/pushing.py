"""Aggregates, projections and limits over what the kernels compute, done where the rows are; see `plan.partials`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from emberlog.kernels.partials import ROWS, Asked
from emberlog.plan.logical import Plan
from emberlog.plan.partials import Decision, Partial, substituted
from emberlog.plan.strata import Stratum
from emberlog.sql.statement import DUCKDB_PRELUDE


@dataclass
class Pushing:
    """What a run does in parts. `rows` are the relations whose rows somebody will read."""

    rows: frozenset[str]
    made: dict[Plan, Plan] = field(default_factory=dict)  # nodes that workers evaluated, and what stands for them
    unkept: dict[str, Stratum] = field(default_factory=dict)  # relations whose rows were not kept

    def done(self, stratum: Stratum, decision: Decision, above: Iterable[str] = ()) -> None:
        """A component was evaluated, and relations of strata `above` with it; the rows are gone but for those that the
        decision keeps."""
        self.unkept |= {name: stratum for name in (*stratum.names, *above) if name not in decision.keep}
        self.made |= {partial.node: partial.rest for partial in decision.partials}

    def together(self, partial: Partial) -> None:
        """The parts of all workers were put together: they are read as they are."""
        self.made[partial.node] = partial.parts

    def want(self, relation: str) -> Stratum | None:
        """The stratum to evaluate again because the rows of a relation are wanted after all; None if they are there."""
        stratum = self.unkept.get(relation)
        if stratum is not None:
            names = stratum.names if relation in stratum.names else (relation,)
            self.rows |= set(names)
            for name in names:
                self.unkept.pop(name, None)
        return stratum

    def substituted(self, stratum: Stratum) -> Stratum:
        return substituted(stratum, self.made)


def asked(partial: Partial) -> Asked:
    """What a worker is told to compute."""
    if partial.counts:
        return Asked(partial.relation, partial.table, None, len(partial.origins), {})

    from emberlog.sql.compile import compile_plan
    from emberlog.sql.duck_dialect import DuckDB

    def table(relation: str, version: str) -> str:
        return ROWS

    statement = compile_plan(partial.node, DuckDB(), table, [])
    return Asked(
        partial.relation, partial.table, statement.sql, len(partial.origins), statement.parameters, DUCKDB_PRELUDE
    )
