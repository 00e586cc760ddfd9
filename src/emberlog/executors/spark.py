"""The `spark` executor: the user's session, with small strata evaluated in the driver.

A stratum is evaluated by DuckDB in the driver when everything that it reads is there, which holds for small sources and
for what was computed from them; otherwise by Spark SQL. A relation that is computed once is only defined on Spark: its
plan becomes part of the plans that read it. It is computed where this saves work: when several rules read it, and
before a fixpoint that would read it every round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from emberlog.choose.placement import Placed, place
from emberlog.choose.strata import Choice, apart, refine
from emberlog.choose.ways import Inputs
from emberlog.compiled import Compiled
from emberlog.data.arrow import field_names
from emberlog.data.load import dummy_table, fact_table
from emberlog.data.sources import (
    ArrowSource,
    DatasetSource,
    EmptySource,
    JdbcSource,
    RelationSource,
    Source,
    SparkSource,
    SparkTableSource,
    TextSource,
)
from emberlog.diagnostics import ExecutionError, counted, sized
from emberlog.executors.base import Executor, Given, Options, Outcome, check_obligations, counted_relations
from emberlog.executors.footers import certain_rows, plain_files, spark_schema
from emberlog.executors.frames import certain_frame, checked_frame, read_columns
from emberlog.executors.kernel import as_bag, by_loops_of, copied_parts, resolved
from emberlog.executors.local import LocalExecutor, duplicates
from emberlog.executors.schemas import frame_of_source
from emberlog.executors.session import heap_of, is_on_this_machine, run_settings, slots_of
from emberlog.memory import Budget
from emberlog.plan.logical import scans
from emberlog.plan.names import given_name, stateless
from emberlog.plan.partials import Decision, Partial
from emberlog.plan.sizes import bound
from emberlog.plan.strata import ProgramPlan, Stratum, plans
from emberlog.sessions import beside_interrupts, is_same
from emberlog.sql.evaluate import COMPUTED_ONCE, SqlEvaluator, inputs
from emberlog.sql.spark import SparkEngine, to_frame
from emberlog.sql.statement import Statement
from emberlog.stats import Event, Outgrown, RoundLimit, StratumStats
from emberlog.thresholds import MOST_TO_LOOK_AT, SMALL_RESULT, SMALL_SOURCE

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.components.program import Copies
    from emberlog.executors.distributed import DistributedKernels
    from emberlog.sql.cycles import Cycle

Answer = TypeVar("Answer")

BATCH = 1 << 17  # rows that are read out at once


class SparkExecutor(Executor):
    name = "spark"

    def __init__(self, session: Any, compiled: Compiled, options: Options, scratch: Path) -> None:
        # What Spark keeps in its Java process is Spark's; the rest of this machine is shared by driver and tasks.
        with options.clock.step("look at the session"):
            budget = Budget.of(options.memory, reserved=heap_of(session))
            workers = options.workers or slots_of(session)
        super().__init__(compiled, workers, options, scratch, budget)
        self.session = session
        self.engine = SparkEngine(session)
        self.sql = SqlEvaluator(self.engine, self.plan.rules, self.meter)
        # The driver's share has the same clock and limits, and room of its own while Spark can take over.
        self.driver = LocalExecutor(compiled, options, scratch, budget=self.budget)
        self.driver.outcome = self.outcome
        self.driver.meter = self.driver.sql.meter = self.meter
        self.driver.pushing = self.pushing
        self.finished: dict[tuple[str, ...], str] = {}  # strata that loops in tasks went on with, and how
        self.on_spark: set[str] = set()
        self.source_rows: dict[str, int] = {}  # of sources that are on Spark
        self.states: dict[str, tuple[Given, Hashable]] = {}  # of these, what changes when their rows do
        self.told: dict[str, StratumStats] = {}  # of relations that are only defined
        self.defined: set[str] = set()  # relations on Spark that are a plan only
        self.readers = _readers(self.plan)
        self.files: dict[str, tuple[Path, ...]] = {}  # Parquet files that hold a relation as it is
        self.copied: dict[str, Copies] = {}  # relations for kernels alone that are columns of such files
        self.counted = counted_relations(self.plan)
        self.kernels: DistributedKernels | None = None
        # A limit is kept while the run goes on: what is asked for is then computed at once, not when it is read.
        self.limited = options.limits.rows is not None or options.limits.seconds is not None

    def run(self, sources: Mapping[str, Source]) -> Outcome:
        return self._beside_interrupts(lambda: self._run(sources))

    def _run(self, sources: Mapping[str, Source]) -> Outcome:
        with run_settings(self.session, self.options.wishes.join):
            return super().run(sources)

    def keep(self, stratum: Stratum) -> None:
        super().keep(stratum)
        self.driver.keep(stratum)

    # --- loading -------------------------------------------------------------------------------------------------

    def load(self, given: Given) -> None:
        match given.source:
            case DatasetSource(location, "parquet"):
                self._load_files(given, location)
            case None | ArrowSource() | EmptySource() | TextSource() | DatasetSource():
                # Text files too: they lie where the driver runs, and only our own reader tells what is wrong in them.
                self._load_table(given, self.read(given))
            case SparkSource(frame):
                self._load_frame(given, frame, "its DataFrame")
            case RelationSource(rows) if rows.count() > SMALL_SOURCE or self.options.placement == "spark":
                self._load_frame(given, rows.to_spark(self.session), "its relation")
            case RelationSource():
                self._load_table(given, self.read(given))
            case SparkTableSource() | JdbcSource() as source:
                origin = source.table if isinstance(source, SparkTableSource) else "its table"
                self._load_frame(given, frame_of_source(given.signature.name, source, self.session), origin)
            case _:
                assert_never(given.source)

    @contextmanager
    def guarded(self, stats: StratumStats) -> Iterator[None]:
        in_driver = self.meter.stop.interruptible(self.driver.engine.interrupt, self.meter.seconds_left)
        with self.sql.guarded(stats), in_driver:
            yield

    def home(self, relation: str) -> SqlEvaluator:
        return self.driver.sql if relation in self.driver.store else self.sql

    def _load_files(self, given: Given, location: str) -> None:
        """Parquet. Where the footers say all that is asked of the rows, they are not read here."""
        files = plain_files(location) if not given.facts else ()
        signature, reading = given.signature, given.signature.reading
        whole, positions = (signature.columns, None) if reading is None else (reading.whole, reading.positions)
        rows = certain_rows(files, whole, positions) if signature.columns else None
        # Spark would run a job to learn what the footers have told.
        known = self.session.read if rows is None else self.session.read.schema(spark_schema(files[0], positions))
        frame = _read_parquet(known, location)
        if rows is None:
            self._load_frame(given, frame, location)
        elif rows <= SMALL_SOURCE and self.options.placement != "spark":
            self._load_table(given, self.read(given))
        else:
            self._keep_frame(given, certain_frame(frame, signature.columns), rows)
        if rows is None or given.counts or given.name not in self.on_spark:
            return
        if positions is None:
            self.files[given.name] = files
        elif certain_rows(files, whole) is not None:
            # Workers read the files themselves, and take the columns out of them.
            self.files[f"whole/{given.name}"] = files
            self.copied[given.name] = ((f"whole/{given.name}", positions),)

    def _load_table(self, given: Given, table: pa.Table) -> None:
        """Rows that are in the driver already; Spark gets them when it needs them, or at once when they are many."""
        if self.options.placement != "spark" and (table.num_rows <= SMALL_SOURCE or self.options.placement == "local"):
            self.driver.load_table(given, table)
            return
        self._put_on_spark(given, to_frame(self.session, table), table.num_rows)

    def _load_frame(self, given: Given, frame: Any, origin: str) -> None:
        """Rows that Spark has: checked and counted by one job, fetched when they are few."""
        signature = given.signature
        columns, relation = signature.columns, signature.name
        frame = read_columns(relation, frame, origin, signature)
        if not columns:
            self._load_table(given, dummy_table(bool(given.facts) or not frame.isEmpty()))
            return
        frame, rows, state = checked_frame(
            relation, frame, origin, columns, self.engine.dialect, self.options.nulls, self.warn
        )
        if given.facts:
            frame = frame.union(to_frame(self.session, fact_table(columns, given.facts)))
            self._keep_frame(given, frame, rows + len(given.facts))
        else:
            self._keep_frame(given, frame, rows, state)

    def _keep_frame(self, given: Given, frame: Any, rows: int, state: Hashable = None) -> None:
        """Rows of Spark come here if they are few, or have been here in a run before: `state` tells whether they are
        still the same."""
        table = self._rows_kept(given, state)
        few = rows <= SMALL_SOURCE or self.options.placement == "local"
        if table is None and few and self.options.placement != "spark":
            table = self._fetch_source(given, state, frame.toArrow)
        if table is not None:
            self.driver.load_table(given, table)
            return
        self._put_on_spark(given, frame, rows)
        if not given.counts:  # else Spark has a set of them, and a run after this one would tell of no duplicates
            self.states[given.name] = given, state

    def _rows_kept(self, given: Given, state: Hashable) -> pa.Table | None:
        """The rows of a source as a run before this one fetched them."""
        if given.source is None or state is None or self.options.placement == "spark":
            return None
        how = given.reading, self.options.nulls
        return self.options.kept.found(given.signature.name, given.source, how, state)

    def _fetch_source(self, given: Given, state: Hashable, fetch: Callable[[], pa.Table]) -> pa.Table:
        """The rows of a source, fetched and kept for the next run."""
        if given.source is None or state is None:
            return fetch()
        how = given.reading, self.options.nulls
        return self.options.kept.rows(given.signature.name, given.source, how, fetch, state)

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
        self.source_rows[given.name] = rows

    # --- evaluation ----------------------------------------------------------------------------------------------

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stratum = self.pushing.substituted(stratum)
        needed = inputs(stratum)
        uncoordinated = self.choices[stratum.names].uncoordinated
        if stratum.names in self.finished:
            stats.evaluator, stats.how, stats.stopped = "kernel", self.finished[stratum.names], COMPUTED_ONCE
            stats.placement, stats.facts = "spark (tasks)", sum(map(self.count, stratum.names))
            return
        if stratum.names in self.driver.finished or self._fits_driver(stratum, needed, stats):
            if self._in_driver(stratum, stats):
                return
            stats.restart()
        if uncoordinated:
            stats.events.append(Event("no workers that coordinate", uncoordinated))
        needed |= inputs(self.choices[stratum.names].together(stratum))
        with self.sql.guarded(stats):
            for relation in needed:
                self._need_on_spark(relation)
        stats.placement = self.engine.place
        check_obligations(self.sql, stratum, stats, self.plan.signatures)
        if not self._by_kernels(stratum, needed, stats):
            if stratum.evaluation != "once":
                for relation in needed & self.defined:
                    self._materialise(relation)
            self.sql.run(stratum, stats)
        self.on_spark.update(stratum.made)
        if stratum.evaluation == "once" and stats.facts is None:
            self.defined.update(stratum.names)
            self.told |= dict.fromkeys(stratum.names, stats)
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
        if parts is None or self.choices[stratum.names].evaluator != "columns":
            return False
        self.copied[relation.name] = parts
        return True

    def _by_kernels(self, stratum: Stratum, needed: frozenset[str], stats: StratumStats) -> bool:
        """Evaluates a component by kernels in Spark's tasks; False where SQL has to, and `stats` says why."""
        from emberlog.kernels.cluster.probe import Unavailable
        from emberlog.kernels.component_worker import GivenUp

        choice = self._refined(self.choices[stratum.names])
        if not choice.by_kernels:
            stats.because = choice.why if stratum.evaluation != "once" else ""
            return False
        kernels = self._distributed()
        try:
            with self.sql.guarded(stats):
                for relation in needed & self.defined:
                    self.sql.define(relation)
                try:
                    self._push(stratum, choice, stats, kernels)
                except GivenUp as reason:
                    if choice.continued is None:
                        raise
                    stats.events.append(Event(f"{', '.join(choice.continued.names)} apart", reason.message))
                    self._push(stratum, apart(choice, stratum, self.plan, self.pushing.rows), stats, kernels)
            return True
        except (Unavailable, GivenUp) as reason:
            if self.options.evaluator == "kernel" and isinstance(reason, Unavailable):
                names = ", ".join(f"`{name}`" for name in stratum.names)
                raise ExecutionError(
                    f"no workers for {names} can run in this session: {reason.message}",
                    fix=reason.fix or 'use evaluator="auto" or "sql"',
                ) from reason
            stats.because = reason.message
            stats.events.append(Event("statements", reason.message))
            return False
        except RoundLimit as error:
            from emberlog.sql.cycles import with_cycle

            raise with_cycle(error, self._growth(stratum, needed)) from error.__cause__

    def _refined(self, choice: Choice) -> Choice:
        """The choice with what is known of the inputs of workers that coordinate: small ones they all have whole."""
        if choice.evaluator != "workers" or choice.program is None:
            return choice
        rows = {static.name: self._most_rows(static.name) for static in choice.program.statics}
        return refine(choice, Inputs({name: count for name, count in rows.items() if count is not None}))

    def _distributed(self) -> DistributedKernels:
        """The kernels in Spark's tasks."""
        if self.kernels is None:
            from emberlog.executors.distributed import DistributedKernels

            self.kernels = DistributedKernels(
                self.session, self.sql, self.options, self.budget, self.scratch, self.files, self.copied
            )
        return self.kernels

    def _growth(self, stratum: Stratum, needed: frozenset[str]) -> Cycle | None:
        """Why the kernels found no end: the driver looks again, where the inputs are few enough."""
        elsewhere = [name for name in needed if name not in self.driver.store]
        if sum(map(self.count, elsewhere)) > MOST_TO_LOOK_AT:
            return None
        for name in elsewhere:
            self.driver.store.put(name, self.fetch(name))
        return self.driver.sql.find_growth(stratum)

    def _push(self, stratum: Stratum, choice: Choice, stats: StratumStats, kernels: DistributedKernels) -> None:
        """Runs the kernels; what is only aggregated afterwards is aggregated by them, if that can be."""
        from emberlog.kernels.partials import NotInParts

        decision = choice.kept
        assert decision is not None
        try:
            found = kernels.evaluate(stratum, choice, stats, self.meter, decision)
        except NotInParts as reason:
            told = dict.fromkeys(decision.told, f"rows kept: {reason.message}")
            decision, found = Decision(frozenset(choice.together(stratum).names), (), told), {}
            kernels.evaluate(stratum, choice, stats, self.meter, decision)
        above = () if choice.continued is None else choice.continued.strata
        self.pushing.done(stratum, decision, [name for one in above for name in one.names])
        self.on_spark.update(name for one in above for name in one.names)
        self.finished |= {one.names: by_loops_of(stratum) for one in above}
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
        else:
            self.on_spark.add(partial.relation)

    def _fits_driver(self, stratum: Stratum, needed: frozenset[str], stats: StratumStats) -> bool:
        if self.options.placement == "spark":
            stats.why = "placement was forced"
            return False
        if self.options.placement != "local" and self.choices[stratum.names].evaluator == "workers":
            stats.why = "workers that coordinate are Spark's tasks"
            return False
        missing = sorted(name for name in needed if name not in self.driver.store)
        if missing:
            placed = self._placed(stratum, missing)
            stats.why = self._why_not_here(missing[0]) if placed is None else placed.why
            if placed is None or not placed.here:
                return False
            for name in missing:
                with self.clock.step("fetch", name):
                    self.driver.store.put(name, self._fetch_input(name))
            return True
        rows = sum(map(self.driver.count, needed))
        forced = self.options.placement == "local"
        stats.why = "placement was forced" if forced else f"its inputs have {counted(rows, 'row')}"
        return True

    def _fetch_input(self, relation: str) -> pa.Table:
        """The rows of a relation on Spark; those of a source are kept for the next run."""
        if relation not in self.states:
            return self.fetch(relation)
        given, state = self.states[relation]
        return self._fetch_source(given, state, lambda: self.fetch(relation))

    def _placed(self, stratum: Stratum, missing: Sequence[str]) -> Placed | None:
        """Where to evaluate what loops evaluate, or what only they read, if its inputs are partly on Spark; None for
        other strata, and where the number of rows of an input is not known."""
        choice = self.choices[stratum.names]
        if not choice.by_kernels and choice.evaluator != "columns":
            return None
        rows = {name: self._most_rows(name) for name in missing}
        if None in rows.values():
            return None
        size = sum((number or 0) * self._row(name) for name, number in rows.items())
        total = sum(number or 0 for number in rows.values())
        readers = (reader for name in stratum.names for reader in self.plan.readers.get(name, ()))
        tasks = max([choice.shares, *(self.choices[reader.names].shares for reader in readers)])
        return place(total, size, tasks, self.budget.left())

    def _most_rows(self, relation: str) -> int | None:
        """The number of rows of a relation on Spark, or a bound on it, as far as that is known without a job."""
        known = self.source_rows.get(relation, self.known_count(relation))
        if known is not None or relation not in self.defined:
            return known
        view = self.sql.view(relation)
        if view is None:
            return None
        below = {scan.relation: self._most_rows(scan.relation) for scan in scans(view)}
        return bound(view, {name: rows for name, rows in below.items() if rows is not None})

    def _why_not_here(self, relation: str) -> str:
        if relation in self.source_rows:
            return f"{given_name(relation)} has {counted(self.source_rows[relation], 'row')}"
        return f"{stateless(relation)} was computed on Spark"

    def _in_driver(self, stratum: Stratum, stats: StratumStats) -> bool:
        """Evaluates in the driver; False when the result outgrew it and Spark has to do it."""
        room = None if self.options.placement == "local" else SMALL_RESULT
        meter = self.driver.sql.meter = self.meter.within(room)
        why = stats.why
        try:
            self.driver.evaluate(stratum, stats)
        except Outgrown:
            stats.why = f"more than {counted(room or 0, 'row')}: moved from the driver to Spark"
            stats.events.append(Event("on Spark", f"it has more than {counted(room or 0, 'row')}"))
            return False
        self.meter.rows = meter.rows
        stats.placement, stats.why = f"driver ({stats.placement})", why
        return True

    def _need_on_spark(self, relation: str) -> None:
        if relation not in self.on_spark:
            with self.clock.step("move to Spark", relation):
                self.engine.load(self.sql.table(relation), self.driver.fetch(relation))
            self.on_spark.add(relation)

    def _materialise(self, relation: str) -> None:
        """Computes a relation that was only defined; its own row has the time."""
        stats = self.told.get(relation)
        with self.clock.step("load", relation) if stats is None else self.clock.time(stats):
            self.sql.materialise(relation, stats or StratumStats((relation,)))
        self.defined.discard(relation)

    # --- results -------------------------------------------------------------------------------------------------

    def count(self, relation: str) -> int:
        if relation in self.driver.store:
            return self.driver.count(relation)
        if self.kernels is not None and relation in self.kernels.sizes:
            return self.kernels.sizes[relation]
        return self._ask_spark(lambda: self.engine.count(self._table_of(relation)))

    @property
    def memory(self) -> str:
        heap = heap_of(self.session)
        shared = "shared by the driver and the tasks of a machine"
        return f"{super().memory}, {shared}; Spark's own heap is not counted" + (f": {sized(heap)}" if heap else "")

    def known_count(self, relation: str) -> int | None:
        if relation in self.driver.store:
            return self.driver.count(relation)
        if self.kernels is not None and relation in self.kernels.sizes:
            return self.kernels.sizes[relation]
        return self.engine.known_count(self.sql.table(relation))

    def reader(self, relation: str) -> pa.RecordBatchReader:
        if relation in self.driver.store:
            return self.driver.reader(relation)
        if not is_on_this_machine(self.session):
            return self.fetch(relation).to_reader()
        import pyarrow.dataset

        path = self.scratch / f"read{len(list(self.scratch.glob('read*')))}.parquet"
        self.write_parquet(relation, path, field_names(len(self.plan.signatures[relation].columns)))
        return pyarrow.dataset.dataset(path, format="parquet").scanner(batch_size=BATCH).to_reader()

    def fetch(self, relation: str) -> pa.Table:
        if relation in self.driver.store:
            return self.driver.fetch(relation)
        self.check_room(relation, "a table of Arrow")
        return self._ask_spark(lambda: self.engine.fetch(self._table_with_rows(relation)))

    def head(self, relation: str, count: int) -> pa.Table:
        if relation in self.driver.store:
            return self.driver.head(relation, count)
        return self._ask_spark(lambda: self.engine.head(self._table_with_rows(relation), count))

    def frame(self, relation: str, session: Any = None) -> Any:
        if session is not None and not is_same(session, self.session):
            return self.copy_to_session(relation, session)
        return self._ask_spark(lambda: self._frame(relation))

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        if relation in self.driver.store:
            self.driver.write_parquet(relation, path, names)
        else:
            self._ask_spark(lambda: self._write_parquet(relation, path, names))

    def ready(self, relations: Collection[str]) -> SqlEvaluator:
        """The driver's, which answers in milliseconds, if what Spark has of these relations is soon fetched."""
        for relation in relations:
            self.have_rows(relation)
        away = [name for name in relations if name not in self.driver.store]
        if sum(map(self.count, away)) <= MOST_TO_LOOK_AT:
            for name in away:
                self.driver.store.put(name, self.engine.fetch(self._table_of(name)))
            return self.driver.ready(relations)
        for name in relations:
            self._need_on_spark(name)
            if name in self.defined:
                self._materialise(name)
        return self.sql

    def answer(self, relations: Collection[str], question: Callable[[SqlEvaluator], Answer]) -> Answer:
        def work() -> Answer:
            with run_settings(self.session, "auto"):
                return super(SparkExecutor, self).answer(relations, question)

        return self._beside_interrupts(work)

    def _ask_spark(self, question: Callable[[], Answer]) -> Answer:
        """What Spark answers; it can be interrupted, and its failures are told as errors of ours."""

        def guarded() -> Answer:
            with run_settings(self.session, "auto"), self.sql.guarded():
                return question()

        return self._beside_interrupts(guarded)

    def _beside_interrupts(self, work: Callable[[], Answer]) -> Answer:
        with self.clock.lent() as borrowed:

            def timed() -> Answer:
                with borrowed():
                    return work()

            return beside_interrupts(self.session, self.options.stop, timed)

    def _table_with_rows(self, relation: str) -> str:
        self.have_rows(relation)
        return self._table_of(relation)

    def _table_of(self, relation: str) -> str:
        self.sql.define(relation)
        return self.sql.table(relation)

    def _frame(self, relation: str) -> Any:
        if relation not in self.driver.store:  # the driver sees to its own
            self.have_rows(relation)
        self._need_on_spark(relation)
        return self.engine.frame(self._table_of(relation))

    def _write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        self.have_rows(relation)
        if not self._hand_out(relation, path, names):
            self._frame(relation).toDF(*names).write.mode("overwrite").parquet(str(path.absolute()))

    def _hand_out(self, relation: str, path: Path, names: list[str]) -> bool:
        """Gives away the files in which workers left a relation, if they are what is asked for."""
        from emberlog.kernels.cluster.manifest import hand_out

        manifest = None if self.kernels is None else self.kernels.manifests.get(relation)
        return manifest is not None and hand_out(manifest, relation, names, path.absolute())

    def close(self) -> None:
        try:
            self.driver.close()
        finally:
            self.engine.close()


def _read_parquet(reader: Any, location: str) -> Any:
    """The frame of a location. A path of this machine is given in full, as Spark may have been started in another
    folder, and as it is: Spark would take `[1]` in it for a pattern."""
    if not Path(location).exists():
        return reader.parquet(location)
    return reader.option("__globPaths__", "false").parquet(str(Path(location).absolute()))


def _readers(plan: ProgramPlan) -> Counter[str]:
    """How often each relation is read by the plans of the program."""
    return Counter(
        scan.relation
        for stratum in plan.strata
        for relation in stratum.relations
        for root in plans(relation)
        for scan in scans(root)
    )
