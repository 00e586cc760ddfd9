"""The kernel evaluator inside an executor: when it is used, what it reads, where its results stay."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emberlog.components.program import Copies, End, Id, KernelProgram
from emberlog.data.arrow import arrow_type
from emberlog.executors.direct import direct_rows
from emberlog.plan.logical import Distinct, Fold, Group, Plan, Project, Scan, Union, columns, keep
from emberlog.plan.origins import Heavy
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.sql.evaluate import COMPUTED_ONCE, SqlEvaluator
from emberlog.stats import MOST_ROUNDS, Meter, StratumStats
from emberlog.stopping import Stop
from emberlog.syntax.nodes import Constant, Until, Variable

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Choices, Evaluated


@dataclass(frozen=True)
class KernelResult:
    """A relation that the kernels computed; its rows are made when somebody reads them, as long as nobody asks `stop`
    for the end of that."""

    name: str
    evaluated: Evaluated
    infinite: bool = False  # of its component, that a sum is infinite
    stop: Stop = field(default_factory=Stop)

    def count(self) -> int:
        return self.evaluated.counts[self.name]

    def heavy(self) -> Heavy:
        """What is known of its rows without looking at them."""
        program, sizes = self.evaluated.encoder.program, self.evaluated.encoder.sizes
        kinds, rows = program.kinds(self.name), self.count()
        values = (min(sizes[kind.domain], rows) if isinstance(kind, Id) else rows for kind in kinds)
        return Heavy(rows, tuple(values), streamed=True)

    def reader(self) -> pa.RecordBatchReader:
        """The rows, piece by piece."""
        import pyarrow as pa

        columns = self.evaluated.encoder.program.signatures[self.name].columns
        schema = pa.schema([(f"c{i}", arrow_type(column.type.wide)) for i, column in enumerate(columns)])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self.evaluated.batches(self.name):
                self.stop.check()
                yield batch.cast(schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def table(self) -> pa.Table:
        return self.reader().read_all()


def evaluate_locally(
    sql: SqlEvaluator,
    stratum: Stratum,
    program: KernelProgram,
    stats: StratumStats,
    meter: Meter,
    choices: Choices,
    count: Callable[[str], int],
    fetch: Callable[[str], pa.Table],
) -> dict[str, KernelResult]:
    """Evaluates a component by kernels in this process, and strata above it that are part of the program.

    `count` and `fetch` give the rows of other relations.
    """
    from emberlog.kernels.cache import COMPILING
    from emberlog.kernels.evaluate import evaluate
    from emberlog.kernels.watch import MeterWatch

    names, compiled = ", ".join(stratum.names), COMPILING.seconds
    with sql.guarded(stats):
        statics = {}
        for static in program.statics:
            with meter.clock.step("fetch", static.name):
                statics[static.name] = fetch(static.name)
        exits, starts = first_rows(sql, stratum, count, fetch)
    growing, inventing = limits_on_rounds(stratum)
    watch = MeterWatch(meter, stats, growing, inventing, choices.budget)
    with meter.deadline.enforced(f"computing {names}"):
        evaluated = evaluate(program, statics, exits, watch, choices, starts, end_of(stratum.until), stats.restart)
        infinite = evaluated.has_infinite_sums()
    stats.evaluator = "kernel"
    stats.how = evaluated.how
    stats.events += evaluated.events
    stats.derivations = evaluated.derivations
    stats.facts = sum(evaluated.counts[name] for name in stratum.names)
    found = sum(evaluated.counts.values())
    stats.rounds = max(stats.rounds, evaluated.rounds)
    stats.bytes_exchanged = evaluated.bytes_exchanged
    stats.residual = evaluated.residual
    stats.coordination = evaluated.coordination
    stats.stopped = "fixpoint"
    if evaluated.converged and stratum.until is not None:
        stats.stopped = f"{stratum.until.function}[delta {stratum.until.variable}] = {evaluated.residual:.3g}"
    meter.clock.part("compile", names, COMPILING.seconds - compiled)
    meter.clock.part("encode", names, evaluated.encoder.encoding.seconds)
    meter.check(stats, found)
    meter.rows += found
    return {name: KernelResult(name, evaluated, infinite, meter.stop) for name in evaluated.counts}


def by_loops_of(stratum: Stratum) -> str:
    """How a stratum was evaluated with which the loops of another one went on."""
    return f"by the loops of {', '.join(stratum.names)}, pivot by pivot"


def evaluate_in_one_pass(
    sql: SqlEvaluator,
    program: KernelProgram,
    rows: KernelResult,
    stats: StratumStats,
    meter: Meter,
    choices: Choices,
    fetch: Callable[[str], pa.Table],
) -> dict[str, KernelResult]:
    """Evaluates a stratum without recursion by loops over `rows`; `fetch` gives the rows of other relations."""
    from emberlog.kernels.cache import COMPILING
    from emberlog.kernels.once import Rows, evaluate_once
    from emberlog.kernels.watch import Failed, MeterWatch

    names, compiled = ", ".join(program.heads_above), COMPILING.seconds
    with sql.guarded(stats):
        statics = {static.name: fetch(static.name) for static in program.statics}
    watch = MeterWatch(meter, stats, False, None, choices.budget)
    with meter.deadline.enforced(f"computing {names}"):
        evaluated = evaluate_once(program, Rows(rows.name, rows.evaluated), statics, watch, choices)
        if evaluated.has_infinite_sums():
            raise Failed
    stats.evaluator, stats.how, stats.stopped = "kernel", evaluated.how, COMPUTED_ONCE
    stats.derivations, stats.facts = evaluated.derivations, sum(evaluated.counts.values())
    meter.clock.part("compile", names, COMPILING.seconds - compiled)
    meter.clock.part("encode", names, evaluated.encoder.encoding.seconds)
    meter.check(stats, stats.facts)
    meter.rows += stats.facts
    return {name: KernelResult(name, evaluated, stop=meter.stop) for name in evaluated.counts}


def first_rows(
    sql: SqlEvaluator, stratum: Stratum, count: Callable[[str], int], fetch: Callable[[str], pa.Table]
) -> tuple[dict[str, pa.Table], dict[str, pa.Table] | None]:
    """The rows that a component starts from; of an iteration those that every round has, and its first state."""

    def rows(plan: Plan | None, relation: RelationPlan) -> pa.Table:
        plain = None if plan is None else as_bag(plan, relation.state)
        direct = None if plain is None else direct_rows(plain, count, fetch)
        return sql.rows(plain, relation.signature) if direct is None else direct

    if stratum.evaluation == "delta":
        return {relation.name: rows(relation.exit, relation) for relation in stratum.relations}, None
    starts = {relation.name: rows(relation.start, relation) for relation in stratum.relations}
    return {relation.name: rows(relation.constant, relation) for relation in stratum.relations}, starts


def as_bag(plan: Plan, state: str) -> Plan:
    """What a relation's rows are made of before duplicates, or all but the best values, are dropped: tables do so."""
    match plan:
        case Distinct(child) if state == "set":
            return as_bag(child, state)
        case Project(Group(child, _, (Fold(column, "min" | "max", argument),)), items) if state == "extremum":
            kept = all(isinstance(term, Variable) and term.name == name for name, term in items)
            return keep(child, tuple(name for name, _ in items)) if kept and column == argument else plan
        case Group(child, _, (Fold(column, "min" | "max", argument),)) if state == "extremum" and column == argument:
            return keep(child, tuple(columns(plan)))
        case _:
            return plan


def copied_parts(plan: Plan) -> Copies | None:
    """The relations, and the positions of their columns, whose rows a plan copies one by one; None for other plans."""
    match plan:
        case Scan(relation, names, _, "all") if None not in names:
            return ((relation, tuple(range(len(names)))),)
        case Project(Scan(relation, names, _, "all"), items) if all(isinstance(term, Variable) for _, term in items):
            return ((relation, tuple(names.index(term.name) for _, term in items if isinstance(term, Variable))),)
        case Union(inputs):
            parts = [part for child in inputs if (part := copied_parts(child)) is not None]
            return tuple(one for part in parts for one in part) if len(parts) == len(inputs) else None
        case _:
            return None


def resolved(parts: Copies | None, files: Container[str], copied: Mapping[str, Copies]) -> Copies | None:
    """The same as copies of relations that lie in files; None where some do not."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for relation, spots in parts or ():
        if relation in copied:
            found += [(source, tuple(behind[spot] for spot in spots)) for source, behind in copied[relation]]
        elif relation in files:
            found.append((relation, spots))
        else:
            return None
    return tuple(found) or None


def end_of(until: Until | None) -> End | None:
    """An iteration's end, as the kernels read it."""
    if until is None:
        return None
    assert isinstance(until.bound, Constant)
    return End("max" if until.function == "max" else "sum", float(until.bound.value), until.operator == "<=")


def limits_on_rounds(stratum: Stratum) -> tuple[bool, int | None]:
    """May values grow for ever, so that facts bound the rounds? And the bound where facts are no bound."""
    if stratum.evaluation != "delta" or any(relation.state == "total" for relation in stratum.relations):
        return True, None
    groups = any(relation.state == "extremum" for relation in stratum.relations)
    return stratum.invents and groups, MOST_ROUNDS if stratum.invents and not groups else None
