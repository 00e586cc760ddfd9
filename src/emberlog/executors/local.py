"""The `local` executor: everything in this process, on DuckDB and the kernels. No JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from emberlog.analysis.program import CheckedProgram
from emberlog.data.arrow import arrow_schema, field_names
from emberlog.data.write import write_pieces, write_table
from emberlog.diagnostics import UsageError, counted, sized
from emberlog.executors.base import Executor, Given, Options, check_obligations, counted_relations
from emberlog.executors.direct import copies, different_rows, direct_rows
from emberlog.executors.kernel import (
    SHORT,
    SMALL_FACTS,
    SMALL_INPUT,
    KernelResult,
    as_bag,
    evaluate_locally,
    refuse,
)
from emberlog.executors.session import active_session, is_on_this_machine
from emberlog.kernels.lower import lower
from emberlog.kernels.program import INTERPRETED, Ineligible, KernelProgram
from emberlog.memory import Budget
from emberlog.plan.logical import scans
from emberlog.plan.origins import Heavy, Pieces
from emberlog.plan.partials import Partial
from emberlog.plan.strata import ProgramPlan, RelationPlan, Stratum, plans
from emberlog.sql.duck import DuckEngine, Stream
from emberlog.sql.evaluate import COMPUTED_ONCE, SqlEvaluator
from emberlog.sql.statement import Statement
from emberlog.stats import Outgrown, RoundLimit, StratumStats
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Choices
    from emberlog.sql.cycles import Cycle


MOST_TO_LOOK_AT = 2_000_000  # input rows of a recursion without end: from more its cycle would not be found in time
MANY_ROWS = 1 << 20  # from so many rows on it pays to ask whether they are a set, in place of making one


class LocalExecutor(Executor):
    """`session` is a Spark session for those who want frames of the results; the active one serves as well. `budget` is
    that of a run that this is a part of."""

    def __init__(
        self,
        program: CheckedProgram,
        plan: ProgramPlan,
        options: Options,
        scratch: Path,
        session: Any = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(program, plan, options, scratch, budget or Budget.of(options.memory))
        self.session = session
        self.engine = DuckEngine(scratch, threads=options.workers, budget=self.budget)
        self.sql = SqlEvaluator(self.engine, plan.rules, self.meter)
        self.results: dict[str, KernelResult] = {}  # what the kernels computed
        self._programs: dict[tuple[str, ...], KernelProgram | Ineligible] = {}  # of components, by their names
        self.fetched: dict[str, pa.Table] = {}  # small tables, which many strata may read
        self.loaded: set[str] = set()  # those of them that are tables too
        self.attached: dict[str, pa.Table] = {}  # sources, and copies of them, that are read where they are
        self.counted = counted_relations(plan)
        self.parts: dict[
            str, int
        ] = {}  # tables with what was asked of relations whose rows are not kept, and their rows

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
            self._attach(given.name, few)
            self._warn_of_duplicates(given, table.num_rows - few.num_rows)
            return
        if table.num_rows > SMALL_INPUT and given.name not in self.wanted and self._may_stay(given, table):
            self._attach(given.name, table)
            return
        self.engine.attach(f"{name}_bag", table)
        width = len(given.signature.columns)
        set_of = Statement(f"SELECT DISTINCT * FROM {name}_bag", {})
        rows = self.engine.compute(name, set_of, None, Pieces(table.num_rows, width))
        self.engine.detach(f"{name}_bag")
        self._weigh(given.name, rows, width)
        self._warn_of_duplicates(given, table.num_rows - rows)

    def _warn_of_duplicates(self, given: Given, number: int) -> None:
        if given.counts and number:
            self.warn(duplicates(given, number))

    def _may_stay(self, given: Given, table: pa.Table) -> bool:
        if not given.counts:
            return True
        if table.num_rows < MANY_ROWS or self.options.evaluator == "sql":
            return False
        from emberlog.kernels.distinct import is_known_set

        return is_known_set(table, self.options.choices().workers)

    def _directly(self, stratum: Stratum, stats: StratumStats) -> bool:
        """Computes a relation for kernels alone without a statement, where that can be: see `_copy` and `_set`."""
        if stratum.evaluation != "once":
            return False
        (relation,) = stratum.relations
        if relation.exit is None or relation.name in self.wanted or not self.is_for_kernels(relation.name):
            return False
        sources = {scan.relation for scan in scans(relation.exit)}
        with self.sql.guarded(stats):
            few = all(self.count(name) <= SMALL_INPUT for name in sources)
            table = self._set(relation, stats) if few else self._copy(relation, sources, stats)
        if table is None:
            return False
        self._attach(relation.name, table.rename_columns(field_names(table.num_columns)))
        stats.evaluator = "arrow"
        return True

    def _copy(self, relation: RelationPlan, sources: set[str], stats: StratumStats) -> pa.Table | None:
        """What only copies columns of large relations is no table: kernels read what it copies. It may hold duplicates
        then, which their tables drop. None for any other relation."""
        assert relation.exit is not None
        bag = as_bag(relation.exit, relation.state)
        if relation.name in self.counted or not copies(bag) or not sources <= self.attached.keys():
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

    def _weigh(self, relation: str, rows: int, width: int) -> None:
        if rows > MANY_ROWS:
            self.sql.heavy[relation] = Heavy(rows, (rows,) * width)

    def _attach(self, relation: str, table: pa.Table) -> None:
        self._weigh(relation, table.num_rows, table.num_columns)
        self.attached[relation] = table
        self.engine.attach(self.sql.table(relation), table)

    def is_for_kernels(self, relation: str) -> bool:
        """Do kernels read a relation, and nobody else?"""
        readers = self.plan.readers.get(relation, ())
        return self.options.evaluator != "sql" and all(
            stratum.evaluation != "once" and isinstance(self._lowered(stratum), KernelProgram) for stratum in readers
        )

    def _lowered(self, stratum: Stratum) -> KernelProgram | Ineligible:
        """A component for the kernels, or why it is not for them; found out once."""
        if stratum.names not in self._programs:
            self._programs[stratum.names] = lower(stratum, self.plan)
        return self._programs[stratum.names]

    def _store(self, stratum: Stratum) -> None:
        """Rounds of SQL read their inputs again and again: those that were only attached become tables."""
        for name in scanned(stratum):
            table = self.attached.pop(name, None)
            if table is not None:
                target = self.sql.table(name)
                self.engine.detach(target)
                self.engine.load(target, table)
                if name in self.plan.derived:
                    self.engine.store(target, Statement(f"SELECT DISTINCT * FROM {target}", {}))

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stratum = self.pushing.substituted(stratum)
        stats.why = stats.why or "the local executor"
        self._evaluate(stratum, stats)
        stats.placement = place_in_process(stats)

    def _evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        if self._directly(stratum, stats):
            return
        self.engine.take_what_is_left()
        with self._readable(stratum):
            check_obligations(self.sql, stratum, stats, self.plan.signatures)
            program = self.kernel_program(stratum, stats)
            if program is None:
                self._by_sql(stratum, stats)
            elif self.options.evaluator == "kernel" or not self._is_for_sql(program):
                self._by_kernels(stratum, program, stats)
            else:
                self._by_sql_if_short(stratum, program, stats)

    def kernel_program(self, stratum: Stratum, stats: StratumStats) -> KernelProgram | None:
        """The component for the kernels, None where SQL evaluates it; `stats` says why."""
        if stratum.evaluation == "once":
            return None
        if self.options.evaluator == "sql":
            stats.because = "the evaluator was forced"
            return None
        found = self._lowered(stratum)
        if isinstance(found, KernelProgram):
            return found
        if self.options.evaluator == "kernel":
            raise refuse(stratum, found.reason)
        stats.because = found.reason
        return None

    def _is_for_sql(self, program: KernelProgram) -> bool:
        """Is it small, and nothing for the interpreter, so that SQL may be done before loops are compiled?"""
        from emberlog.kernels.choices import interprets

        if interprets(program, self._choices()):
            return False
        return sum(self.count(static.name) for static in program.statics) <= SMALL_INPUT

    def _by_sql_if_short(self, stratum: Stratum, program: KernelProgram, stats: StratumStats) -> None:
        meter = self.sql.meter
        self.sql.meter = meter.within(_less(meter.room, SMALL_FACTS), monotonic() + SHORT)
        try:
            self._by_sql(stratum, stats)
            stats.because = "few rows"
            meter.rows = self.sql.meter.rows
        except Outgrown:
            self.sql.meter = meter
            stats.restart()
            self._by_kernels(stratum, program, stats)
        finally:
            self.sql.meter = meter

    def _by_kernels(self, stratum: Stratum, program: KernelProgram, stats: StratumStats) -> None:
        from emberlog.kernels.watch import Unsuited

        failed = self._evaluated(stratum, program, stats)
        if failed is None:
            return
        # What the kernels held is gone by now, and room for SQL.
        stats.because = str(failed) or "an operation had no value"
        if self.options.evaluator == "kernel" and isinstance(failed, Unsuited):
            raise refuse(stratum, stats.because) from None
        stats.restart()
        self.engine.take_what_is_left()
        self._by_sql(stratum, stats)

    def _evaluated(self, stratum: Stratum, program: KernelProgram, stats: StratumStats) -> Exception | None:
        """Evaluates a component by kernels; what they gave up with, if they did."""
        from emberlog.kernels.watch import Failed, Unsuited

        decision = self.pushing.decide(stratum, dict.fromkeys(stratum.names, ()), only_counts=True)
        choices = replace(self._choices(), keep=decision.keep)
        try:
            self._check_inputs(program)
            found = evaluate_locally(self.sql, stratum, program, stats, self.sql.meter, choices, self.count, self.fetch)
        except (Unsuited, Failed) as reason:
            return reason.with_traceback(None)
        except RoundLimit as error:
            from emberlog.sql.cycles import with_cycle

            raise with_cycle(error, self._growth(stratum, program)) from error.__cause__
        self.results |= found
        self.sql.heavy |= {name: result.heavy() for name, result in found.items() if result.count() > MANY_ROWS}
        stats.kept = decision.text
        for partial in decision.partials:
            self._load_count(partial)
        self.pushing.done(stratum, decision)
        return None

    def _check_inputs(self, program: KernelProgram) -> None:
        """Raises where what the kernels read would not fit in memory."""
        from emberlog.kernels.watch import Unsuited

        many = [s.name for s in program.statics if s.name in self.sql.heavy and s.name not in self.attached]
        needed = sum(self.sql.heavy[name].rows * self._row(name) for name in many)
        if needed > self.budget.left():
            raise Unsuited(f"inputs need {sized(needed)}, and {sized(self.budget.left())} may be used (memory=)")

    def _growth(self, stratum: Stratum, program: KernelProgram) -> Cycle | None:
        """Why the kernels found no end, where the inputs are few enough to look again."""
        if sum(self.count(static.name) for static in program.statics) > MOST_TO_LOOK_AT:
            return None
        self._store(stratum)
        return self.sql.find_growth(stratum)

    def _load_count(self, partial: Partial) -> None:
        """A table with the number of rows of a relation, or with nothing where there are none."""
        import pyarrow as pa

        count = self.results[partial.table].count()
        column = pa.array([count] if count else [], pa.int64())
        self.load_part(
            partial.relation, pa.table([column] * len(partial.origins), names=field_names(len(partial.origins)))
        )

    def load_part(self, relation: str, table: pa.Table) -> None:
        """Takes in what was asked of a relation whose rows are not kept."""
        self.engine.load(self.sql.table(relation), table)
        self.parts[relation] = table.num_rows

    def _choices(self) -> Choices:
        return replace(self.options.choices(), spill=str(self.scratch / "spill"), budget=self.budget)

    def _by_sql(self, stratum: Stratum, stats: StratumStats) -> None:
        for name in stratum.names:
            self.results.pop(name, None)  # a number of rows without the rows
        if stratum.evaluation != "once":
            self._store(stratum)
        self.sql.run(stratum, stats)
        for relation in stratum.relations:
            if stats.facts is not None:
                self._weigh(relation.name, stats.facts, len(relation.signature.columns))

    @contextmanager
    def _readable(self, stratum: Stratum) -> Iterator[None]:
        """What the kernels computed, and this stratum reads, is a table for it: stored if it is read more than once,
        else handed to the one statement that reads it, piece by piece."""
        streamed = []
        for name, times in scanned(stratum).items():
            if name in self.results and name not in self.loaded:
                result, table = self.results[name], self.sql.table(name)
                if (times == 1 or name in self.sql.heavy) and stratum.evaluation == "once":
                    self.engine.attach(table, Stream(result.reader))
                    streamed.append(table)
                else:
                    self.engine.load_stream(table, result.reader, result.count())
                    self.loaded.add(name)
                    if name in self.sql.heavy:
                        self.sql.heavy[name] = replace(self.sql.heavy[name], streamed=False)
        try:
            yield
        finally:
            for table in streamed:
                self.engine.detach(table)

    def count(self, relation: str) -> int:
        if relation in self.results:
            return self.results[relation].count()
        if relation in self.attached:
            return int(self.attached[relation].num_rows)
        with self.sql.guarded():
            return self.engine.count(self.sql.table(relation))

    def known_count(self, relation: str) -> int | None:
        return self.count(relation)

    def reader(self, relation: str) -> pa.RecordBatchReader:
        self.have_rows(relation)
        self.engine.take_what_is_left()
        if relation in self.results:
            return self.results[relation].reader()
        if relation in self.attached:
            return self.attached[relation].to_reader()
        return self.engine.reader(self.sql.table(relation))

    def fetch(self, relation: str) -> pa.Table:
        self.have_rows(relation)
        if relation in self.results:
            self.check_room(relation, "a table of Arrow")
            return self.results[relation].table()
        if relation not in self.fetched:
            attached = self.attached.get(relation)
            if attached is None and relation in self.sql.heavy:
                self.check_room(relation, "a table of Arrow")
            with self.sql.guarded():
                table = self.engine.fetch(self.sql.table(relation)) if attached is None else attached
            table = table.rename_columns(field_names(table.num_columns))
            if table.num_rows > SMALL_INPUT:
                return table
            self.fetched[relation] = table
        return self.fetched[relation]

    def head(self, relation: str, count: int) -> pa.Table:
        self.have_rows(relation)
        table = self.sql.table(relation)
        streamed = relation in self.results and relation not in self.loaded
        if streamed:
            self.engine.attach(table, Stream(self.results[relation].reader))
        try:
            with self.sql.guarded():
                found = self.engine.head(table, count)
        finally:
            if streamed:
                self.engine.detach(table)
        return found.rename_columns(field_names(found.num_columns))

    def frame(self, relation: str) -> Any:
        from emberlog.sql.spark import to_frame

        session = self.session or active_session()
        if session is None:
            raise UsageError(
                "there is no Spark session to make a DataFrame in",
                fix='start one, or use executor="spark"; to_arrow(), to_pandas() and to_polars() need none',
            )
        if self.is_large(relation) and is_on_this_machine(session):
            path = self.scratch / f"frame{len(list(self.scratch.glob('frame*')))}.parquet"
            self.write_parquet(relation, path, field_names(len(self.plan.signatures[relation].columns)))
            return session.read.parquet(path.as_uri())
        return to_frame(session, self.fetch(relation))

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        columns = self.plan.signatures[relation].columns
        if self.is_large(relation):
            write_pieces(path, self.reader(relation), named(columns, names))
            return
        write_table(path, self.fetch(relation).cast(arrow_schema(columns)), named(columns, names))

    def close(self) -> None:
        self.engine.close()


def place_in_process(stats: StratumStats) -> str:
    """What evaluated a stratum in this process: DuckDB, compiled loops, or operators over columns."""
    if stats.evaluator == "sql":
        return DuckEngine.place
    over_columns = stats.evaluator == "arrow" or stats.how == INTERPRETED
    return "columns" if over_columns else "compiled loops"


def scanned(stratum: Stratum) -> Counter[str]:
    """How often the plans of a stratum read each relation."""
    return Counter(scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan))


def _less(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def named(columns: tuple[Column, ...], names: list[str]) -> tuple[Column, ...]:
    return tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))


def duplicates(given: Given, count: int) -> str:
    """The warning for a source whose duplicate rows collapsed although something counts them."""
    rows = f"{counted(count, 'duplicate row')} of `{given.signature.name}`"
    return f"{rows} collapsed: relations are sets, and a sum, count or average reads this one"
