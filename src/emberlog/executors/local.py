"""The `local` executor: everything in this process, on DuckDB and the kernels. No JVM."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from emberlog.choose.once import refine_once
from emberlog.choose.strata import Choice, apart, refine, refusal
from emberlog.choose.ways import Inputs
from emberlog.compiled import Compiled
from emberlog.components.program import OVER_COLUMNS, KernelProgram
from emberlog.data.arrow import arrow_schema, field_names
from emberlog.data.write import write_pieces, write_table
from emberlog.diagnostics import UsageError, counted, sized
from emberlog.executors.base import Executor, Given, Options, check_obligations, counted_relations
from emberlog.executors.direct import copies, different_rows, direct_rows
from emberlog.executors.kernel import KernelResult, as_bag, by_loops_of, evaluate_in_one_pass, evaluate_locally
from emberlog.executors.session import active_session
from emberlog.memory import Budget
from emberlog.plan.logical import scans
from emberlog.plan.origins import Pieces
from emberlog.plan.partials import Partial
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.sql.duck import DuckEngine
from emberlog.sql.evaluate import COMPUTED_ONCE, SqlEvaluator
from emberlog.sql.statement import Statement
from emberlog.stats import Event, Outgrown, RoundLimit, StratumStats
from emberlog.store.relations import Store, reads_of
from emberlog.thresholds import KEPT_SHARE, MOST_TO_LOOK_AT, SHARED_ROWS, SHORT_FACTS, SHORT_SECONDS, SMALL_ROWS
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Choices
    from emberlog.sql.cycles import Cycle


class LocalExecutor(Executor):
    """`session` is a Spark session for those who want frames of the results; the active one serves as well. `budget` is
    that of a run that this is a part of."""

    name = "local"

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        scratch: Path,
        session: Any = None,
        budget: Budget | None = None,
    ) -> None:
        workers = options.choices().workers
        super().__init__(compiled, workers, options, scratch, budget or Budget.of(options.memory))
        self.session = session
        options.kept.most = int(KEPT_SHARE * self.budget.total)
        self.engine = DuckEngine(scratch, threads=options.workers, budget=self.budget)
        self.sql = SqlEvaluator(self.engine, self.plan.rules, self.meter)
        self.store = self.sql.relations = Store(self.engine, self.sql.table)
        self.counted = counted_relations(self.plan)
        self.finished: dict[tuple[str, ...], str] = {}  # strata that loops of a component below went on with, and how

    def load(self, given: Given) -> None:
        self.load_table(given, self.read(given))

    def load_table(self, given: Given, table: pa.Table) -> None:
        """Takes the rows in as a set, and tells of duplicates where they would have counted.

        Many rows that nothing counts stay where they are, duplicates among them: rules make sets of what they read. So
        do those that are a set already, or of which a set is soon made.
        """
        name = self.sql.table(given.name)
        few = different_rows(table, given.signature.columns)
        if few is not None:
            self.store.put(given.name, few)
            self._warn_of_duplicates(given, table.num_rows - few.num_rows)
            return
        if table.num_rows > SMALL_ROWS and given.name not in self.wanted and self._may_stay(given, table):
            self.store.put(given.name, table)
            return
        self.engine.attach(f"{name}_bag", table)
        width = len(given.signature.columns)
        set_of = Statement(f"SELECT DISTINCT * FROM {name}_bag", {})
        rows = self.engine.compute(name, set_of, None, Pieces(table.num_rows, width))
        self.engine.detach(f"{name}_bag")
        self.store.put_table(given.name, width, rows)
        self._warn_of_duplicates(given, table.num_rows - rows)

    def _warn_of_duplicates(self, given: Given, number: int) -> None:
        if given.counts and number:
            self.warn(duplicates(given, number))

    def _may_stay(self, given: Given, table: pa.Table) -> bool:
        if not given.counts:
            return True
        # It pays to ask whether many rows are a set already, in place of making one.
        if table.num_rows < SHARED_ROWS or self.options.evaluator == "sql":
            return False
        from emberlog.kernels.distinct import is_known_set

        workers = self.options.choices().workers
        return self.options.kept.made("set", table.columns, lambda: is_known_set(table, workers), lambda _: 0)

    def _directly(self, stratum: Stratum, stats: StratumStats) -> bool:
        """Computes a relation for kernels alone without a statement, where that can be: see `_copy` and `_set`."""
        (relation,) = stratum.relations
        if relation.exit is None:
            return False
        sources = {scan.relation for scan in scans(relation.exit)}
        with self.sql.guarded(stats):
            few = all(self.count(name) <= SMALL_ROWS for name in sources)
            table = self._set(relation, stats) if few else self._copy(relation, sources, stats)
        if table is None:
            return False
        self.store.put(relation.name, table)
        stats.evaluator = "arrow"
        return True

    def _copy(self, relation: RelationPlan, sources: set[str], stats: StratumStats) -> pa.Table | None:
        """What only copies columns of large relations is no table: kernels read what it copies. It may hold duplicates
        then, which their tables drop. None for any other relation."""
        assert relation.exit is not None
        bag = as_bag(relation.exit, relation.state)
        if relation.name in self.counted or not copies(bag) or not all(map(self.store.in_arrow, sources)):
            return None
        stats.stopped = "read where its columns are"
        return direct_rows(bag, self.count, self.fetch)

    def _set(self, relation: RelationPlan, stats: StratumStats) -> pa.Table | None:
        """The few rows of a relation; None where a statement should give them."""
        assert relation.exit is not None
        table = direct_rows(relation.exit, self.count, self.fetch)
        if table is not None:
            stats.stopped, stats.facts = COMPUTED_ONCE, table.num_rows
            self.sql.meter.check(stats, table.num_rows)
            self.sql.meter.rows += table.num_rows
        return table

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stratum = self.pushing.substituted(stratum)
        stats.why = stats.why or "the local executor"
        self._evaluate(stratum, stats)
        stats.placement = place_in_process(stats)

    def _evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        choice = self._refined(stratum)
        if stratum.names in self.finished:
            stats.evaluator, stats.how, stats.stopped = "kernel", self.finished[stratum.names], COMPUTED_ONCE
            stats.facts = sum(map(self.count, stratum.names))
            return
        if choice.uncoordinated:
            stats.events.append(Event("no workers that coordinate", choice.uncoordinated))
        if choice.evaluator == "columns" and self._directly(stratum, stats):
            return
        with self.store.reading(stratum):
            check_obligations(self.sql, stratum, stats, self.plan.signatures)
            match choice.evaluator:
                case "sql" | "columns":
                    stats.because = choice.why if stratum.evaluation != "once" or choice.evaluator == "sql" else ""
                    self._by_sql(stratum, stats)
                case "trial":
                    self._by_sql_if_short(stratum, choice, stats)
                case "loops" if choice.driver:
                    self._in_one_pass(stratum, choice, stats)
                case "interpreter" | "loops" | "workers":
                    self._by_kernels(stratum, choice, stats)

    def _refined(self, stratum: Stratum) -> Choice:
        choice = self.choices[stratum.names]
        if stratum.evaluation == "once":
            encoded = {name: self.count(name) for name in stratum.reads if self.store.encoded(name) is not None}
            return refine_once(choice, stratum, self.plan, encoded, self.pushing.rows)
        if choice.program is None:
            return choice
        rows = {static.name: self.count(static.name) for static in choice.program.statics}
        return refine(choice, Inputs(rows, room=self.budget.total))

    def _by_sql_if_short(self, stratum: Stratum, choice: Choice, stats: StratumStats) -> None:
        meter = self.sql.meter
        self.sql.meter = meter.within(_less(meter.room, SHORT_FACTS), monotonic() + SHORT_SECONDS)
        try:
            self._by_sql(stratum, stats)
            stats.because = "few rows"
            meter.rows = self.sql.meter.rows
        except Outgrown:
            self.sql.meter = meter
            stats.restart()
            stats.events.append(Event("loops", "statements are not soon done with it"))
            self._by_kernels(stratum, choice, stats)
        finally:
            self.sql.meter = meter

    def _by_kernels(self, stratum: Stratum, choice: Choice, stats: StratumStats) -> None:
        from emberlog.kernels.watch import Unsuited

        failed = self._evaluated(stratum, choice, stats)
        if failed is not None and choice.continued is not None:
            stats.restart()
            above = ", ".join(choice.continued.names)
            stats.events.append(Event(f"{above} apart", str(failed) or "an operation had no value"))
            failed = self._evaluated(stratum, self._apart(choice, stratum), stats)
        if failed is None:
            return
        # What the kernels held is gone by now, and room for SQL.
        stats.because = str(failed) or "an operation had no value"
        if self.options.evaluator == "kernel" and isinstance(failed, Unsuited):
            raise refusal(stratum.names, stats.because) from None
        stats.restart()
        stats.events.append(Event("statements", stats.because))
        self.engine.take_what_is_left()
        self._by_sql(stratum, stats)

    def _in_one_pass(self, stratum: Stratum, choice: Choice, stats: StratumStats) -> None:
        """By loops over the rows that other loops computed; by statements where these give up."""
        from emberlog.kernels.watch import Failed, Unsuited

        program, decision, rows = choice.program, choice.kept, self.store.encoded(choice.driver)
        assert program is not None and decision is not None and isinstance(rows, KernelResult)
        choices = replace(self._choices(), keep=None if program.float_sums else decision.keep)
        try:
            self._check_inputs(program)
            found = evaluate_in_one_pass(self.sql, program, rows, stats, self.sql.meter, choices, self.fetch)
        except (Unsuited, Failed) as reason:
            stats.restart()
            stats.events.append(Event("statements", str(reason) or "an operation had no value"))
            self._by_sql(stratum, stats)
            return
        for name, result in found.items():
            self.store.put_encoded(name, result)
        self._go_on(choice, stratum, stats)

    def _evaluated(self, stratum: Stratum, choice: Choice, stats: StratumStats) -> Exception | None:
        """Evaluates a component by kernels; what they gave up with, if they did."""
        from emberlog.kernels.watch import Failed, Unsuited

        program, decision = choice.whole, choice.kept
        assert program is not None and decision is not None
        # Whether sums are infinite can be told from their rows only.
        choices = replace(self._choices(), keep=None if program.float_sums else decision.keep)
        try:
            self._check_inputs(program)
            found = evaluate_locally(self.sql, stratum, program, stats, self.sql.meter, choices, self.count, self.fetch)
        except (Unsuited, Failed) as reason:
            return reason.with_traceback(None)
        except RoundLimit as error:
            from emberlog.sql.cycles import with_cycle

            raise with_cycle(error, self._growth(stratum, program)) from error.__cause__
        if choice.continued is not None and found.keys().isdisjoint(choice.continued.names):
            choice = self._apart(choice, stratum)
        for name, result in found.items():
            self.store.put_encoded(name, result)
        if any(result.infinite for result in found.values()):
            self._refuse_infinity(stratum, stats)
        self._go_on(choice, stratum, stats)
        return None

    def _go_on(self, choice: Choice, stratum: Stratum, stats: StratumStats) -> None:
        """Tells what became of the rows of a component, and of strata above it that its loops went on with."""
        decision = choice.kept
        assert decision is not None
        stats.kept = decision.text
        for partial in decision.partials:
            self._load_count(partial)
        continued = () if choice.continued is None else choice.continued.strata
        self.pushing.done(stratum, decision, [name for above in continued for name in above.names])
        for above in continued:
            self.finished[above.names] = by_loops_of(stratum)

    def _apart(self, choice: Choice, stratum: Stratum) -> Choice:
        return apart(choice, stratum, self.plan, self.pushing.rows)

    def _refuse_infinity(self, stratum: Stratum, stats: StratumStats) -> None:
        from emberlog.sql.cycles import refuse_infinity

        with self.sql.guarded(stats):
            refuse_infinity(self.sql, stratum, stats, is_done=True)

    def _check_inputs(self, program: KernelProgram) -> None:
        """Raises where what the kernels read would not fit in memory."""
        from emberlog.kernels.watch import Unsuited

        absent = [static.name for static in program.statics if static.name not in self.store]
        if absent:
            raise Unsuited(f"{absent[0]} is not in this process")
        many = [s.name for s in program.statics if s.name in self.store.heavy and not self.store.in_arrow(s.name)]
        needed = sum(self.store.heavy[name].rows * self._row(name) for name in many)
        if needed > self.budget.left():
            raise Unsuited(f"inputs need {sized(needed)}, and {sized(self.budget.left())} may be used (memory=)")

    def _growth(self, stratum: Stratum, program: KernelProgram) -> Cycle | None:
        """Why the kernels found no end, where the inputs are few enough to look again."""
        if sum(self.count(static.name) for static in program.statics) > MOST_TO_LOOK_AT:
            return None
        self._settle(stratum)
        return self.sql.find_growth(stratum)

    def _load_count(self, partial: Partial) -> None:
        """A table with the number of rows of a relation, or with nothing where there are none."""
        import pyarrow as pa

        count = self.count(partial.table)
        column = pa.array([count] if count else [], pa.int64())
        self.load_part(
            partial.relation, pa.table([column] * len(partial.origins), names=field_names(len(partial.origins)))
        )

    def load_part(self, relation: str, table: pa.Table) -> None:
        """Takes in what was asked of a relation whose rows are not kept."""
        self.store.put(relation, table)

    def _choices(self) -> Choices:
        spill = str(self.scratch / "spill")
        return replace(self.options.choices(), spill=spill, budget=self.budget, kept=self.options.kept)

    def _by_sql(self, stratum: Stratum, stats: StratumStats) -> None:
        for name in stratum.names:
            self.store.forget(name)
        if stratum.evaluation != "once":
            self._settle(stratum)
        self.sql.run(stratum, stats)
        width = {relation.name: len(relation.signature.columns) for relation in stratum.relations}
        for name in stratum.made:
            self.store.put_table(name, width.get(name, 0), most=stats.facts)

    def _settle(self, stratum: Stratum) -> None:
        """Rounds of SQL read their inputs again and again."""
        self.store.settle(reads_of(stratum), lambda name: name in self.plan.derived)

    def count(self, relation: str) -> int:
        known = self.store.known_count(relation)
        if known is not None:
            return known
        with self.sql.guarded():
            return self.store.count(relation)

    def known_count(self, relation: str) -> int | None:
        return self.count(relation)

    def reader(self, relation: str) -> pa.RecordBatchReader:
        self.have_rows(relation)
        self.engine.take_what_is_left()
        return self.store.reader(relation)

    def fetch(self, relation: str) -> pa.Table:
        self.have_rows(relation)
        if self.store.is_to_be_made(relation):
            self.check_room(relation, "a table of Arrow")
        with self.sql.guarded():
            return self.store.fetch(relation)

    def head(self, relation: str, count: int) -> pa.Table:
        self.have_rows(relation)
        with self.sql.guarded(), self.store.reading(None):
            self.store.provide((relation,))
            found = self.engine.head(self.sql.table(relation), count)
        return found.rename_columns(field_names(found.num_columns))

    def frame(self, relation: str, session: Any = None) -> Any:
        session = session or self.session or active_session()
        if session is None:
            raise UsageError(
                "there is no Spark session to make a DataFrame in",
                fix='start one, or use executor="spark"; to_arrow(), to_pandas() and to_polars() need none',
            )
        return self.copy_to_session(relation, session)

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        columns, stop = self.plan.signatures[relation].columns, self.options.stop
        if self.is_large(relation):
            write_pieces(path, self.reader(relation), named(columns, names), stop)
            return
        write_table(path, self.fetch(relation).cast(arrow_schema(columns)), named(columns, names), stop=stop)

    def ready(self, relations: Collection[str]) -> SqlEvaluator:
        for relation in relations:
            self.have_rows(relation)
        self.store.tabulate(relations)
        return self.sql

    def close(self) -> None:
        self.engine.close()


def place_in_process(stats: StratumStats) -> str:
    """What evaluated a stratum in this process: DuckDB, compiled loops, or operators over columns."""
    if stats.evaluator == "sql":
        return DuckEngine.place
    over_columns = stats.evaluator == "arrow" or OVER_COLUMNS in stats.how
    return "columns" if over_columns else "compiled loops"


def _less(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def named(columns: tuple[Column, ...], names: list[str]) -> tuple[Column, ...]:
    return tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))


def duplicates(given: Given, count: int) -> str:
    """The warning for a source whose duplicate rows collapsed although something counts them."""
    rows = f"{counted(count, 'duplicate row')} of `{given.signature.name}`"
    return f"{rows} collapsed: relations are sets, and a sum, count or average reads this one"
