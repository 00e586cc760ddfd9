"""The kernel evaluator inside an executor: when it is used, what it reads, where its results stay."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from emberlog.data.arrow import arrow_type
from emberlog.diagnostics import UsageError
from emberlog.kernels.program import KernelProgram
from emberlog.plan.logical import Stratum
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.stats import MOST_ROUNDS, Meter, StratumStats
from emberlog.syntax.nodes import Constant, Until

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.evaluate import Choices, Evaluated
    from emberlog.kernels.iterations import End

# Loops have to be compiled, or at least loaded: what SQL does in this time and space it may do.
SMALL_INPUT = 50_000  # rows
SMALL_FACTS = 200_000
SHORT = 0.3  # seconds


@dataclass(frozen=True)
class KernelResult:
    """A relation that the kernels computed; its rows are made when somebody reads them."""

    name: str
    evaluated: Evaluated

    def count(self) -> int:
        return self.evaluated.counts[self.name]

    def reader(self) -> pa.RecordBatchReader:
        """The rows, piece by piece."""
        import pyarrow as pa

        columns = self.evaluated.encoder.program.signatures[self.name].columns
        schema = pa.schema([(f"c{i}", arrow_type(column.type.wide)) for i, column in enumerate(columns)])
        return pa.RecordBatchReader.from_batches(
            schema, (batch.cast(schema) for batch in self.evaluated.batches(self.name))
        )

    def table(self) -> pa.Table:
        return self.reader().read_all()


def refuse(stratum: Stratum, reason: str) -> UsageError:
    """The error for a forced evaluator that cannot evaluate this."""
    names = ", ".join(f"`{name}`" for name in stratum.names)
    return UsageError(f"the kernels cannot evaluate {names}: {reason}", fix='use evaluator="auto" or "sql"')


def evaluate_locally(
    sql: SqlEvaluator, stratum: Stratum, program: KernelProgram, stats: StratumStats, meter: Meter, choices: Choices
) -> dict[str, KernelResult]:
    """Evaluates a component by kernels, on rows that a SQL engine of this process has."""
    from emberlog.kernels.evaluate import evaluate
    from emberlog.kernels.watch import MeterWatch

    started = monotonic()
    with sql.guarded(stats):
        statics = {static.name: sql.engine.fetch(sql.table(static.name)) for static in program.statics}
        iterated = stratum.evaluation == "naive"
        exits = {r.name: sql.rows(r.constant if iterated else r.exit, r.signature) for r in stratum.relations}
        starts = {r.name: sql.rows(r.start, r.signature) for r in stratum.relations} if iterated else None
    growing, inventing = limits_on_rounds(stratum)
    watch = MeterWatch(meter, stats, growing, inventing)
    evaluated = evaluate(program, statics, exits, watch, choices, starts, end_of(stratum.until))
    stats.evaluator = "kernel"
    stats.how = evaluated.how
    stats.derivations = evaluated.derivations
    stats.facts = sum(evaluated.counts.values())
    stats.rounds = max(stats.rounds, evaluated.rounds)
    stats.bytes_exchanged = evaluated.bytes_exchanged
    stats.residual = evaluated.residual
    stats.stopped = "fixpoint"
    if evaluated.converged and stratum.until is not None:
        stats.stopped = f"{stratum.until.function}[delta {stratum.until.variable}] = {evaluated.residual:.3g}"
    stats.seconds = monotonic() - started
    meter.check(stats, stats.facts)
    meter.rows += stats.facts
    return {name: KernelResult(name, evaluated) for name in stratum.names}


def end_of(until: Until | None) -> End | None:
    """An iteration's end, as the kernels read it."""
    from emberlog.kernels.iterations import End

    if until is None:
        return None
    assert isinstance(until.bound, Constant)
    return End("max" if until.function == "max" else "sum", float(until.bound.value), until.operator == "<=")


def limits_on_rounds(stratum: Stratum) -> tuple[bool, int | None]:
    """May values grow for ever, so that facts bound the rounds? And the bound where facts are no bound."""
    if stratum.evaluation == "naive" or any(relation.state == "total" for relation in stratum.relations):
        return True, None
    groups = any(relation.state == "extremum" for relation in stratum.relations)
    return stratum.invents and groups, MOST_ROUNDS if stratum.invents and not groups else None
