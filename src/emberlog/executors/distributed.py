"""The kernels inside Spark: workers in the barrier tasks of one job, started from DataFrames.

Text, dates and decimals become numbers by Spark SQL: their dictionary is made of the columns that share them, and
joined to them. Workers that coordinate get their share of all relations (`placed`). Others get all of the static ones:
with a pivot each has some of its values, and nothing is exchanged; without one a single worker evaluates on the threads
of its machine, unless an exchange is asked for: then each worker owns facts by their keys. Workers write their results
as Parquet; the driver learns counts and paths. What is only counted, aggregated or cut to a limit afterwards they do so
themselves, and write that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emberlog.choose.strata import Choice
from emberlog.components.program import Copies, Domain, Id, KernelProgram, Kind
from emberlog.components.shares import WorkerPlan
from emberlog.data.arrow import arrow_type
from emberlog.executors.base import Options
from emberlog.executors.kernel import as_bag, copied_parts, end_of, limits_on_rounds, resolved
from emberlog.executors.placed import coordinated, placed_inputs
from emberlog.executors.pushing import asked
from emberlog.executors.session import heap_of
from emberlog.kernels.cluster.inputs import Files, Frame, Input
from emberlog.kernels.cluster.job import Finished, Setup, run_workers
from emberlog.kernels.cluster.manifest import Manifest
from emberlog.kernels.cluster.parts import Kinds
from emberlog.kernels.cluster.probe import Unavailable, look_at
from emberlog.kernels.cluster.task import Worker
from emberlog.kernels.dictionaries import constant_array, type_of_values
from emberlog.memory import Budget
from emberlog.plan.logical import Plan
from emberlog.plan.partials import Decision, Partial
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.sql.spark import SparkEngine, to_frame
from emberlog.stats import Event, Meter, StratumStats
from emberlog.thresholds import FEW_RETURNED, MOST_NAMES
from emberlog.types import INT64_MAX, NUMBER, Type

Described: TypeAlias = list[tuple[Kind, Type]]  # what workers hold in each column, and the type of the program


@dataclass(frozen=True)
class Names:
    """The dictionary of a domain: sorted values, numbered from 0."""

    values: pa.Array
    frame: Any  # id, value

    def code(self, value: object) -> int:
        return int(pc.index(self.values, constant_array([value], self.values.type)[0]).as_py())


@dataclass(frozen=True)
class WorkersInput:
    """What the workers of a component read: its `program` over numbers, and where they find the rows. `copies` are
    inputs that workers make themselves, `plan` is how they share it out if they coordinate."""

    program: KernelProgram
    inputs: Mapping[str, Input]
    names: Mapping[int, Names]
    copies: Mapping[str, Copies]
    plan: WorkerPlan | None


class DistributedKernels:
    """Evaluates components in the tasks of a session."""

    def __init__(
        self,
        session: Any,
        sql: SqlEvaluator,
        options: Options,
        budget: Budget,
        scratch: Path,
        files: Mapping[str, tuple[Path, ...]],
        copied: Mapping[str, Copies],
    ) -> None:
        self.session = session
        self.sql = sql
        self.options = options
        self.budget = budget
        self.scratch = scratch
        self.files = files
        self.copied = copied
        self.runs = 0
        self.sizes: dict[str, int] = {}  # rows of what was computed, kept or not
        self.manifests: dict[str, Manifest] = {}  # relations whose values stand in files as they are

    def evaluate(
        self, stratum: Stratum, choice: Choice, stats: StratumStats, meter: Meter, decision: Decision
    ) -> dict[str, pa.Table | None]:
        """Leaves the relations that are kept as tables of the engine. What was asked of the others comes back if its
        rows are few; where they are not it is a table too, and None comes back.

        Raises `Unavailable` or `GivenUp` where SQL has to evaluate the component, and `NotInParts` where rows have to
        be kept.
        """
        program, clock, stratum_names = choice.whole, meter.clock, ", ".join(stratum.names)
        assert program is not None
        with clock.step("start workers"):
            folder = self._folder()
        given = self._given(stratum, choice, meter)
        worker = self._worker(stratum, choice, meter, decision, given)
        setup = Setup("auto" if given.plan is None else "shares", what=stratum_names)
        outputs = _outputs(program, decision)
        done = run_workers(self.session, given.inputs, worker, choice.shares, folder, outputs, setup)
        told = [json.loads(report.summary) for report in done.reports]
        self._remove_checkpoints(given)
        clock.part("send inputs", stratum_names, done.seconds["inputs"])
        stats.events += [Event("started again", reason) for reason in done.losses]
        self._tell(stats, stratum, told)
        if given.plan is not None:
            stats.coordination = coordinated(choice.why, told)
        stats.kept = decision.text
        for name in decision.keep:
            self._keep(name, done, _copied(program, name), given.names)
        if any(report["infinite"] for report in told):
            self._refuse_infinity(stratum, stats, decision)
        found = {p.relation: self._take(p.relation, done, _made(program, p), given.names) for p in decision.partials}
        counts = {table.name: sum(report["counts"][table.name] for report in told) for table in program.tables}
        self.sizes |= counts
        stats.facts = sum(counts[name] for name in stratum.names)
        meter.check(stats, sum(counts.values()))
        meter.rows += sum(counts.values())
        return found

    def _given(self, stratum: Stratum, choice: Choice, meter: Meter) -> WorkersInput:
        """What workers read: numbers, and the program with its constants as such."""
        program, plan = choice.whole, choice.worker_plan
        assert program is not None
        copies = {} if plan is not None else self._copies(stratum, program)
        frames = self._frames(stratum, program, copies, shared=plan is not None)
        with meter.clock.step("encode", ", ".join(stratum.names)):
            names = self._names(program, frames)
        coded = replace(program, domains=tuple(_coded(d, names.get(i)) for i, d in enumerate(program.domains)))
        inputs = {key: self._input(key, frame, program, names) for key, frame in frames.items()}
        if plan is not None:
            plan = replace(plan, program=coded, placed=replace(plan.placed, domains=coded.domains))
            inputs = placed_inputs(plan, inputs)
        for source in {source for parts in copies.values() for source, _ in parts}:
            types = pq.read_schema(self.files[source][0]).types
            kinds: Kinds = tuple("float64" if type == pa.float64() else "int64" for type in types)
            inputs[f"file/{source}"] = Input(Files(self.files[source]), kinds)
        return WorkersInput(coded, inputs, names, copies, plan)

    def _worker(
        self, stratum: Stratum, choice: Choice, meter: Meter, decision: Decision, given: WorkersInput
    ) -> Worker:
        """What runs in the tasks: compiled loops, or parts of workers that coordinate."""
        growing, inventing = limits_on_rounds(stratum)
        workers = 1 if choice.shares > 1 else choice.setting.workers or 1
        told: dict[str, Any] = {
            "program": given.program,
            "choices": replace(self.options.choices(), workers=workers, keep=decision.keep),
            "limits": meter.limits,
            "growing": growing,
            "inventing": inventing,
            "asked": tuple(asked(partial) for partial in decision.partials),
            "seconds_spent": monotonic() - meter.started,
            "rows_before": meter.rows,
            "memory": self.budget.left() if self.budget.asked else None,
            "reserved": heap_of(self.session),
            "end": end_of(stratum.until),
            "iterated": stratum.evaluation != "delta",
        }
        if given.plan is not None:
            from emberlog.kernels.parts.checkpoints import Checkpoints
            from emberlog.kernels.parts.worker import PartWorker

            checkpoints = Checkpoints.asked(self.options.choices(), given.plan)
            return PartWorker(**told, plan=given.plan, mode=choice.why, checkpoints=checkpoints)
        from emberlog.kernels.worker import KernelWorker

        return KernelWorker(**told, copies=given.copies)

    def _remove_checkpoints(self, given: WorkersInput) -> None:
        """Removes those of a component that is done."""
        if given.plan is not None and self.options.checkpoint is not None:
            from emberlog.kernels.parts.checkpoints import Checkpoints

            checkpoints = Checkpoints.asked(self.options.choices(), given.plan)
            assert checkpoints is not None
            checkpoints.remove()

    def _refuse_infinity(self, stratum: Stratum, stats: StratumStats, decision: Decision) -> None:
        from emberlog.kernels.component_worker import GivenUp
        from emberlog.sql.cycles import refuse_infinity

        if not decision.keep.issuperset(stratum.names):
            raise GivenUp("a sum has become infinite")  # and there are no rows to tell why
        refuse_infinity(self.sql, stratum, stats, is_done=True)

    def _folder(self) -> Path:
        """A new folder for a run, in a session that can run workers."""
        self.runs += 1
        folder = self.scratch / f"kernel{self.runs}"
        folder.mkdir(mode=0o700, parents=True)
        look_at(self.session, folder)
        return folder

    # --- what goes in --------------------------------------------------------------------------------------------

    def _copies(self, stratum: Stratum, program: KernelProgram) -> dict[str, Copies]:
        """Inputs that are columns of relations in files: workers read these, and copy the columns themselves."""
        found: dict[str, Copies | None] = {}
        if stratum.evaluation == "delta" and all(domain.type.kind == "number" for domain in program.domains):
            for relation in stratum.relations:
                if relation.exit is not None:
                    parts = copied_parts(as_bag(relation.exit, relation.state))
                    found[f"exit/{relation.name}"] = resolved(parts, self.files, self.copied)
            for static in program.statics:
                read = tuple(spot for spot, kind in enumerate(static.kinds) if kind != "unread")
                if static.name in self.copied or len(read) == len(static.kinds):
                    found[f"static/{static.name}"] = resolved(((static.name, read),), self.files, self.copied)
        return {key: parts for key, parts in found.items() if parts is not None}

    def _frames(
        self, stratum: Stratum, program: KernelProgram, copies: Mapping[str, Copies], shared: bool
    ) -> dict[str, Any]:
        """Every input that is no copy as a DataFrame. With `shared` each worker gets its share of them."""
        engine = self._engine

        def rows(plan: Plan | None, relation: RelationPlan) -> Any:
            # Spark aggregates what goes through its shuffle: fewer rows come out of it than went in.
            if plan is not None and not (shared and relation.state == "extremum"):
                plan = as_bag(plan, relation.state)
            return self.sql.frame_of(plan, relation.signature)

        statics = (static.name for static in program.statics if f"static/{static.name}" not in copies)
        found = {f"static/{name}": engine.frame(self.sql.table(name)) for name in statics}
        iterated = stratum.evaluation != "delta"
        for relation in stratum.relations:
            if f"exit/{relation.name}" not in copies:
                found[f"exit/{relation.name}"] = rows(relation.constant if iterated else relation.exit, relation)
            if iterated:
                found[f"start/{relation.name}"] = rows(relation.start, relation)
        return found

    @property
    def _engine(self) -> SparkEngine:
        assert isinstance(self.sql.engine, SparkEngine)
        return self.sql.engine

    def _names(self, program: KernelProgram, frames: Mapping[str, Any]) -> dict[int, Names]:
        """The dictionaries of domains that are no numbers."""
        found = {}
        for number, domain in enumerate(program.domains):
            if domain.type.kind == "number":
                continue
            columns = [
                frame.select(frame.columns[spot]).toDF("v")
                for name, spot in domain.columns
                for key, frame in frames.items()
                if key.partition("/")[2] == name
            ]
            kind = _type_of_values(domain, columns)
            values = pa.array([], kind)
            if columns:
                together = reduce(lambda one, other: one.union(other), columns).distinct()
                values = together.limit(MOST_NAMES + 1).toArrow().column(0).cast(kind).combine_chunks()
            if len(values) > MOST_NAMES:
                raise Unavailable(f"more than {MOST_NAMES:,} different values of type {domain.type}")
            if domain.constants:
                values = pc.unique(pa.concat_arrays([values, constant_array(domain.constants, kind)]))
            values = values.take(pc.sort_indices(values))
            table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values})
            found[number] = Names(values, to_frame(self.session, table))
        return found

    def _input(self, key: str, frame: Any, program: KernelProgram, names: Mapping[int, Names]) -> Input:
        """The columns of an input that are read, as numbers."""
        from pyspark.sql import functions as f

        name = key.partition("/")[2]
        kinds = program.kinds(name)
        read = [spot for spot, kind in enumerate(kinds) if kind != "unread"]
        numbers: Kinds = tuple("float64" if kinds[spot] == "float" else "int64" for spot in read)
        coded = [spot for spot in read if isinstance(kind := kinds[spot], Id) and kind.domain in names]
        whole = len(read) == len(kinds)
        if key.startswith("static/") and name in self.files and whole and not coded:
            return Input(Files(self.files[name]), numbers)
        plain = frame.toDF(*(f"c{i}" for i in range(len(kinds))))
        for spot in coded:
            kind = kinds[spot]
            assert isinstance(kind, Id)
            book = names[kind.domain].frame.toDF(f"n{spot}", f"v{spot}")
            plain = plain.join(f.broadcast(book), plain[f"c{spot}"] == book[f"v{spot}"]).drop(f"c{spot}", f"v{spot}")

        def number(spot: int) -> Any:
            if spot in coded:
                return f.col(f"n{spot}")
            # Spark has unsigned numbers as decimals: those that workers cannot hold become one that they refuse.
            natural = kinds[spot] == "int" and program.signatures[name].columns[spot].type.kind == "unsigned"
            return f.least(f.col(f"c{spot}"), f.lit(INT64_MAX)) if natural else f.col(f"c{spot}")

        return Input(Frame(plain.select(*(number(spot).alias(f"c{i}") for i, spot in enumerate(read)))), numbers)

    # --- what comes out ------------------------------------------------------------------------------------------

    def _tell(self, stats: StratumStats, stratum: Stratum, told: Iterable[Mapping[str, Any]]) -> None:
        reports = list(told)
        stats.evaluator = "kernel"
        stats.placement = "spark (tasks)"
        one = len(reports) == 1
        stats.how = reports[0]["how"] + ("" if one else f", {len(reports)} tasks")
        events = dict.fromkeys(Event(what, why) for report in reports for what, why in report["events"])
        stats.events += events
        stats.rounds = max(report["rounds"] for report in reports)
        stats.deltas = list(reports[0]["deltas"]) if one else stats.deltas
        stats.derivations = sum(report["derivations"] for report in reports)
        stats.bytes_exchanged = sum(report["bytes"] for report in reports)
        stats.residual = reports[0]["residual"]
        if stats.residual is not None and stratum.until is not None:
            residuals = [report["residual"] for report in reports]
            stats.residual = max(residuals) if stratum.until.function == "max" else sum(residuals)
        stats.stopped = "fixpoint"
        if reports[0]["converged"] and stratum.until is not None:
            stats.stopped = f"{stratum.until.function}[delta {stratum.until.variable}] = {stats.residual:.3g}"

    def _take(self, name: str, done: Finished, columns: Described, names: Mapping[int, Names]) -> pa.Table | None:
        """What workers wrote: its rows where they are few and lie in files, else a table as `_keep` makes them."""
        if done.rows(name) <= FEW_RETURNED and done.manifest is not None:
            return _few(done.manifest.paths(name), columns, names)
        self._keep(name, done, columns, names)
        return None

    def _keep(self, name: str, done: Finished, columns: Described, names: Mapping[int, Names]) -> None:
        """What workers wrote, as a table with the values of the program."""
        from pyspark.sql import functions as f

        frame = done.frame(self.session, name)
        for spot, (kind, _) in enumerate(columns):
            if isinstance(kind, Id) and kind.domain in names:
                book = names[kind.domain].frame.toDF(f"n{spot}", f"v{spot}")
                frame = frame.join(f.broadcast(book), frame[f"c{spot}"] == book[f"n{spot}"])
                frame = frame.drop(f"c{spot}", f"n{spot}").withColumnRenamed(f"v{spot}", f"c{spot}")
        dialect = self._engine.dialect
        frame = frame.select(
            *(f.col(f"c{i}").cast(dialect.type_name(t.wide)).alias(f"c{i}") for i, (_, t) in enumerate(columns))
        )
        self._engine.set_frame(self.sql.table(name), frame, done.rows(name))
        as_they_are = all(type.kind in ("number", "float") for _, type in columns)
        if done.manifest is not None and as_they_are:
            self.manifests[name] = done.manifest


def _type_of_values(domain: Domain, columns: list[Any]) -> pa.DataType:
    """The type of a domain's dictionary; `columns` are frames of one column."""
    from emberlog.kernels.component_worker import GivenUp
    from emberlog.kernels.watch import Unsuited

    if domain.type.kind != "decimal":
        return arrow_type(domain.type)
    types = [frame.schema[0].dataType for frame in columns]
    try:
        return type_of_values(domain, [pa.decimal128(type.precision, type.scale) for type in types])
    except Unsuited as reason:
        raise GivenUp(str(reason)) from None


def _few(paths: list[Path], columns: Described, names: Mapping[int, Names]) -> pa.Table:
    """Rows that are read here, without a job."""
    schema = pa.schema([(f"c{i}", arrow_type(type.wide)) for i, (_, type) in enumerate(columns)])
    parts = [schema.empty_table()]
    for path in paths:
        coded = pq.read_table(path)
        arrays = [
            names[kind.domain].values.take(coded.column(spot))
            if isinstance(kind, Id) and kind.domain in names
            else coded.column(spot)
            for spot, (kind, _) in enumerate(columns)
        ]
        parts.append(pa.table(arrays, names=schema.names).cast(schema))
    return pa.concat_tables(parts).combine_chunks()


def _copied(program: KernelProgram, name: str) -> Described:
    """The columns of a table."""
    types = (column.type for column in program.signatures[name].columns)
    return list(zip(program.kinds(name), types, strict=True))


def _made(program: KernelProgram, partial: Partial) -> Described:
    """The columns of what was asked of a table: copies of its own, or numbers."""
    kinds = program.kinds(partial.table)
    return [
        (kinds[origin] if origin is not None else "float" if type.kind == "float" else "int", type)
        for origin, type in zip(partial.origins, partial.types, strict=True)
    ]


def _outputs(program: KernelProgram, decision: Decision) -> dict[str, Kinds]:
    """What workers write."""
    found = {table.name: _copied(program, table.name) for table in program.tables if table.name in decision.keep}
    found |= {partial.relation: _made(program, partial) for partial in decision.partials}
    return {
        name: tuple("float64" if kind == "float" else "int64" for kind, _ in columns) for name, columns in found.items()
    }


def _coded(domain: Domain, names: Names | None) -> Domain:
    if names is None:
        return domain
    return Domain(NUMBER, domain.columns, (), tuple((value, names.code(value)) for value in domain.constants))
