"""The `spark` executor: the user's session, with small strata evaluated in the driver.

A stratum is evaluated by DuckDB in the driver when everything that it reads is there, which holds for small sources and
for what was computed from them; otherwise by Spark SQL. A relation that is computed once is only defined on Spark: its
plan becomes part of the plans that read it. It is computed where this saves work: when several rules read it, and
before a fixpoint that would read it every round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from emberlog.analysis.program import CheckedProgram
from emberlog.data.load import dummy_table, fact_table, given_table
from emberlog.data.sources import (
    ArrowSource,
    DatasetSource,
    EmptySource,
    JdbcSource,
    Source,
    SparkSource,
    SparkTableSource,
    TextSource,
)
from emberlog.diagnostics import counted
from emberlog.executors.base import Executor, Given, Options, Outcome, check_obligations, counted_relations
from emberlog.executors.footers import certain_rows, plain_files, spark_schema
from emberlog.executors.frames import checked_frame
from emberlog.executors.kernel import as_bag, copied_parts, refuse, resolved
from emberlog.executors.local import LocalExecutor, duplicates
from emberlog.executors.session import join_settings
from emberlog.plan.logical import ProgramPlan, Stratum, plans, scans
from emberlog.plan.partials import Decision, Partial
from emberlog.sql.evaluate import SqlEvaluator, inputs
from emberlog.sql.spark import SparkEngine, to_frame
from emberlog.sql.statement import Statement
from emberlog.stats import Meter, Outgrown, StratumStats

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.executors.distributed import DistributedKernels
    from emberlog.kernels.program import Copies, KernelProgram

SMALL_SOURCE = 100_000  # rows: what is fetched into the driver
SMALL_RESULT = 10_000_000  # rows: where a stratum in the driver gives up and goes to Spark


class SparkExecutor(Executor):
    def __init__(
        self, session: Any, program: CheckedProgram, plan: ProgramPlan, options: Options, scratch: Path
    ) -> None:
        super().__init__(program, plan, options, scratch)
        self.session = session
        self.engine = SparkEngine(session)
        self.sql = SqlEvaluator(self.engine, plan.rules, self.meter)
        # The driver's share has the same clock and limits, and room of its own while Spark can take over.
        self.driver = LocalExecutor(program, plan, options, scratch)
        self.driver.outcome = self.outcome
        self.driver.meter = self.driver.sql.meter = self.meter
        self.driver.pushing = self.pushing
        self.in_driver: dict[str, int] = {}  # relations that the driver has, and their rows
        self.on_spark: set[str] = set()
        self.defined: set[str] = set()  # relations on Spark that are a plan only
        self.readers = _readers(plan)
        self.files: dict[str, tuple[Path, ...]] = {}  # Parquet files that hold a relation as it is
        self.copied: dict[str, Copies] = {}  # relations for kernels alone that are columns of such files
        self.counted = counted_relations(plan)
        self.kernels: DistributedKernels | None = None
        # A limit is kept while the run goes on: what is asked for is then computed at once, not when it is read.
        self.limited = options.limits.rows is not None or options.limits.seconds is not None

    def run(
        self, sources: Mapping[str, Source], wanted: frozenset[str], sized: frozenset[str] = frozenset()
    ) -> Outcome:
        self.driver.wanted = wanted
        with join_settings(self.session, self.options.variants.join):
            return super().run(sources, wanted, sized)

    # --- loading -------------------------------------------------------------------------------------------------

    def load(self, given: Given) -> None:
        match given.source:
            case DatasetSource(location, "parquet"):
                self._load_files(given, location)
            case None | ArrowSource() | EmptySource() | TextSource() | DatasetSource():
                # Text files too: they lie where the driver runs, and only our own reader tells what is wrong in them.
                self._load_table(given, self._table(given))
            case SparkSource(frame):
                self._load_frame(given, frame, "its DataFrame")
            case SparkTableSource(table):
                self._load_frame(given, self.session.table(table), table)
            case JdbcSource(pairs):
                self._load_frame(given, self.session.read.format("jdbc").options(**dict(pairs)).load(), "its table")
            case _:
                assert_never(given.source)

    def home(self, relation: str) -> SqlEvaluator:
        return self.driver.sql if relation in self.in_driver else self.sql

    def _load_files(self, given: Given, location: str) -> None:
        """Parquet. Where the footers say all that is asked of the rows, they are not read here."""
        files = plain_files(location) if not given.facts else ()
        rows = certain_rows(files, given.signature.columns)
        # Spark would run a job to learn what the footers have told.
        known = self.session.read if rows is None else self.session.read.schema(spark_schema(files[0]))
        frame = known.parquet(_absolute(location))
        if rows is None:
            self._load_frame(given, frame, location)
        elif rows <= SMALL_SOURCE and self.options.placement != "spark":
            self._load_table(given, self._table(given))
        else:
            self._keep_frame(given, frame.toDF(*(f"c{i}" for i in range(len(given.signature.columns)))), rows)
        if rows is not None and not given.counts and given.name in self.on_spark:
            self.files[given.name] = files

    def _table(self, given: Given) -> pa.Table:
        return given_table(
            given.signature.name, given.source, given.signature.columns, given.facts, self.options.nulls, self.warn
        )

    def _load_table(self, given: Given, table: pa.Table) -> None:
        """Rows that are in the driver already; Spark gets them when it needs them, or at once when they are many."""
        if self.options.placement != "spark" and (table.num_rows <= SMALL_SOURCE or self.options.placement == "local"):
            self.driver.load_table(given, table)
            self.in_driver[given.name] = self.driver.count(given.name)
            return
        self._put_on_spark(given, to_frame(self.session, table), table.num_rows)

    def _load_frame(self, given: Given, frame: Any, origin: str) -> None:
        """Rows that Spark has: checked and counted by one job, fetched when they are few."""
        if not given.signature.columns:
            self._load_table(given, dummy_table(bool(given.facts) or not frame.isEmpty()))
            return
        columns, relation = given.signature.columns, given.signature.name
        frame, rows = checked_frame(
            relation, frame, origin, columns, self.engine.dialect, self.options.nulls, self.warn
        )
        if given.facts:
            frame = frame.union(to_frame(self.session, fact_table(columns, given.facts)))
            rows += len(given.facts)
        self._keep_frame(given, frame, rows)

    def _keep_frame(self, given: Given, frame: Any, rows: int) -> None:
        few = rows <= SMALL_SOURCE or self.options.placement == "local"
        if few and self.options.placement != "spark":
            self._load_table(given, frame.toArrow())
        else:
            self._put_on_spark(given, frame, rows)

    def _put_on_spark(self, given: Given, frame: Any, rows: int) -> None:
        """Spark's rows stay a bag where nothing counts them; duplicates then go where a rule's result is made a set."""
        name = self.sql.table(given.name)
        if given.counts:
            self.engine.set_frame(f"{name}_bag", frame)
            bag = self.engine.table(f"{name}_bag")
            kept = self.engine.store(name, Statement(f"SELECT DISTINCT * FROM {bag}", {}))
            self.engine.drop(f"{name}_bag")
            if kept < rows:
                self.warn(duplicates(given, rows - kept))
        else:
            self.engine.set_frame(name, frame)
            self.defined.add(given.name)
        self.on_spark.add(given.name)

    # --- evaluation ----------------------------------------------------------------------------------------------

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stratum = self.pushing.substituted(stratum)
        needed = inputs(stratum)
        if self._fits_driver(stratum, needed, stats):
            if self._in_driver(stratum, stats):
                return
            stats.restart()
        with self.sql.guarded(stats):
            for relation in needed:
                self._need_on_spark(relation)
        stats.placement = self.engine.place
        check_obligations(self.sql, stratum, self.plan.signatures)
        if not self._by_kernels(stratum, needed, stats):
            if stratum.evaluation != "once":
                for relation in needed & self.defined:
                    self._materialise(relation)
            self.sql.run(stratum, stats)
        self.on_spark.update(stratum.made)
        if stratum.evaluation == "once" and stats.facts is None:
            self.defined.update(stratum.names)
            if self._is_copy(stratum):
                stats.stopped = "read where its columns are"
                return
            for name in stratum.names:
                if self.readers[name] > 1 or (self.limited and name in self.wanted):
                    self.sql.materialise(name, stats)
                    self.defined.discard(name)

    def _is_copy(self, stratum: Stratum) -> bool:
        """Does a relation only copy columns that lie in files, for kernels alone? They can do so themselves."""
        (relation,) = stratum.relations
        if relation.exit is None or relation.name in self.wanted | self.counted:
            return False
        parts = resolved(copied_parts(as_bag(relation.exit, relation.state)), self.files, self.copied)
        if parts is None or not self.driver.is_for_kernels(relation.name):
            return False
        self.copied[relation.name] = parts
        return True

    def _by_kernels(self, stratum: Stratum, needed: frozenset[str], stats: StratumStats) -> bool:
        """Evaluates a component by kernels in Spark's tasks; False where SQL has to, and `stats` says why."""
        from emberlog.executors.distributed import DistributedKernels
        from emberlog.kernels.cluster.probe import Unavailable
        from emberlog.kernels.worker import GivenUp

        program = self.driver.kernel_program(stratum, stats)
        if program is None:
            return False
        if self.kernels is None:
            self.kernels = DistributedKernels(
                self.session, self.sql, self.options, self.scratch, self.files, self.copied
            )
        try:
            with self.sql.guarded(stats):
                for relation in needed & self.defined:
                    self.sql.define(relation)
                self._push(stratum, program, stats, self.kernels)
            return True
        except (Unavailable, GivenUp) as reason:
            told = reason.reason if isinstance(reason, Unavailable) else reason.message
            if self.options.evaluator == "kernel" and isinstance(reason, Unavailable):
                raise refuse(stratum, told) from None
            stats.because = told
            return False

    def _push(self, stratum: Stratum, program: KernelProgram, stats: StratumStats, kernels: DistributedKernels) -> None:
        """Runs the kernels; what is only aggregated afterwards is aggregated by them, if that can be."""
        from emberlog.kernels.partials import NotInParts

        decision = self.pushing.decide(stratum, kernels.split(program))
        try:
            found = kernels.evaluate(stratum, program, stats, self.meter, decision)
        except NotInParts as reason:
            told = dict.fromkeys(decision.told, f"rows kept: {reason.message}")
            decision, found = Decision(frozenset(stratum.names), (), told), {}
            kernels.evaluate(stratum, program, stats, self.meter, decision)
        self.pushing.done(stratum, decision)
        for partial in decision.partials:
            self._put_together(partial, found[partial.relation])

    def _put_together(self, partial: Partial, parts: pa.Table | None) -> None:
        """Makes one relation of the parts that workers found: here where they are few, else when Spark reads them."""
        if parts is not None:
            self.driver.load_part(partial.relation, parts)
            whole = self.driver.engine.read(self.driver.sql.statement(partial.rest))
            if not any(column.null_count for column in whole.columns):
                self.pushing.together(partial)
                parts = whole
            # Else a sum does not fit in 64 bits, and whoever reads it tells so.
            self.driver.load_part(partial.relation, parts)
            self.in_driver[partial.relation] = parts.num_rows
        else:
            self.on_spark.add(partial.relation)

    def _fits_driver(self, stratum: Stratum, needed: frozenset[str], stats: StratumStats) -> bool:
        if self.options.placement == "spark":
            stats.why = "placement was forced"
            return False
        missing = sorted(name for name in needed if name not in self.in_driver)
        if missing:
            stats.why = f"{missing[0]} is not small"
            return False
        rows = sum(self.in_driver[name] for name in needed)
        forced = self.options.placement == "local"
        stats.why = "placement was forced" if forced else f"its inputs have {counted(rows, 'row')}"
        return True

    def _in_driver(self, stratum: Stratum, stats: StratumStats) -> bool:
        """Evaluates in the driver; False when the result outgrew it and Spark has to do it."""
        room = None if self.options.placement == "local" else SMALL_RESULT
        meter = Meter(self.options.limits, self.options.progress, room)
        meter.started, meter.rows = self.meter.started, self.meter.rows
        self.driver.sql.meter = meter
        why = stats.why
        try:
            self.driver.evaluate(stratum, stats)
        except Outgrown:
            stats.why = f"more than {counted(room or 0, 'row')}: moved from the driver to Spark"
            return False
        self.meter.rows = meter.rows
        stats.placement, stats.why = "driver (duckdb)", why
        for name in stratum.made:
            self.in_driver[name] = self.driver.count(name)
        self.in_driver |= self.driver.parts
        return True

    def _need_on_spark(self, relation: str) -> None:
        if relation not in self.on_spark:
            self.engine.load(self.sql.table(relation), self.driver.fetch(relation))
            self.on_spark.add(relation)

    def _materialise(self, relation: str) -> None:
        self.sql.materialise(relation, StratumStats((relation,)))
        self.defined.discard(relation)

    # --- results -------------------------------------------------------------------------------------------------

    def count(self, relation: str) -> int:
        if relation in self.in_driver:
            return self.driver.count(relation)
        if self.kernels is not None and relation in self.kernels.sizes:
            return self.kernels.sizes[relation]
        with self.sql.guarded():
            self.sql.define(relation)
            return self.engine.count(self.sql.table(relation))

    def fetch(self, relation: str) -> pa.Table:
        self._have_rows(relation)
        if relation in self.in_driver:
            return self.driver.fetch(relation)
        with self.sql.guarded():
            self.sql.define(relation)
            return self.engine.fetch(self.sql.table(relation))

    def head(self, relation: str, count: int) -> pa.Table:
        self._have_rows(relation)
        if relation in self.in_driver:
            return self.driver.head(relation, count)
        with self.sql.guarded():
            self.sql.define(relation)
            return self.engine.head(self.sql.table(relation), count)

    def _have_rows(self, relation: str) -> None:
        if relation not in self.in_driver:  # the driver sees to its own
            self.have_rows(relation)

    def frame(self, relation: str) -> Any:
        self._have_rows(relation)
        with self.sql.guarded():
            self._need_on_spark(relation)
            self.sql.define(relation)
            return self.engine.frame(self.sql.table(relation))

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        if relation in self.in_driver:
            self.driver.write_parquet(relation, path, names)
            return
        if self._hand_out(relation, path, names):
            return
        frame = self.frame(relation).toDF(*names)
        with self.sql.guarded():
            frame.write.mode("overwrite").parquet(str(path.absolute()))

    def _hand_out(self, relation: str, path: Path, names: list[str]) -> bool:
        """Gives away the files in which workers left a relation, if they are what is asked for."""
        from emberlog.kernels.cluster.manifest import hand_out

        self._have_rows(relation)
        manifest = None if self.kernels is None else self.kernels.manifests.get(relation)
        return manifest is not None and hand_out(manifest, relation, names, path.absolute())

    def close(self) -> None:
        self.driver.close()
        self.engine.close()


def _absolute(location: str) -> str:
    """A path of this machine in full: Spark may have been started in another folder."""
    return str(Path(location).absolute()) if Path(location).exists() else location


def _readers(plan: ProgramPlan) -> Counter[str]:
    """How often each relation is read by the plans of the program."""
    return Counter(
        scan.relation
        for stratum in plan.strata
        for relation in stratum.relations
        for root in plans(relation)
        for scan in scans(root)
    )
