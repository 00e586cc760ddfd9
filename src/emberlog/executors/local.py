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
from emberlog.data.load import given_table
from emberlog.data.write import write_pieces, write_table
from emberlog.diagnostics import UsageError, counted
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
from emberlog.executors.session import active_session
from emberlog.kernels.lower import lower
from emberlog.kernels.program import KernelProgram
from emberlog.plan.logical import ProgramPlan, RelationPlan, Stratum, plans, scans
from emberlog.plan.partials import Partial
from emberlog.sql.duck import DuckEngine
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.sql.statement import Statement
from emberlog.stats import Meter, Outgrown, StratumStats
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Choices


SORTED_ROWS = 20_000_000  # more are written as they come: sorting them would take longer than all the rest
MANY_ROWS = 1 << 20  # from so many rows on it pays to ask whether they are a set, in place of making one


class LocalExecutor(Executor):
    """`session` is a Spark session for those who want frames of the results; the active one serves as well."""

    def __init__(
        self, program: CheckedProgram, plan: ProgramPlan, options: Options, scratch: Path, session: Any = None
    ) -> None:
        super().__init__(program, plan, options, scratch)
        self.session = session
        self.engine = DuckEngine(scratch, threads=options.workers, memory=_kib(options.memory))
        self.sql = SqlEvaluator(self.engine, plan.rules, self.meter)
        self.results: dict[str, KernelResult] = {}  # what the kernels computed
        self.fetched: dict[str, pa.Table] = {}  # small tables, which many strata may read
        self.loaded: set[str] = set()  # those of them that are tables too
        self.attached: dict[str, pa.Table] = {}  # sources, and copies of them, that are read where they are
        self.counted = counted_relations(plan)
        self.parts: dict[
            str, int
        ] = {}  # tables with what was asked of relations whose rows are not kept, and their rows

    def load(self, given: Given) -> None:
        table = given_table(
            given.signature.name, given.source, given.signature.columns, given.facts, self.options.nulls, self.warn
        )
        self.load_table(given, table)

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
        self.engine.load(f"{name}_bag", table)
        rows = self.engine.store(name, Statement(f"SELECT DISTINCT * FROM {name}_bag", {}))
        self.engine.drop(f"{name}_bag")
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
        started = monotonic()
        sources = {scan.relation for scan in scans(relation.exit)}
        with self.sql.guarded(stats):
            few = all(self.count(name) <= SMALL_INPUT for name in sources)
            table = self._set(relation, stats) if few else self._copy(relation, sources, stats)
        if table is None:
            return False
        self._attach(relation.name, table.rename_columns(field_names(table.num_columns)))
        stats.evaluator, stats.seconds = "arrow", monotonic() - started
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
            stats.stopped, stats.facts = "computed once", table.num_rows
            self.sql.meter.check(stats, table.num_rows)
            self.sql.meter.rows += table.num_rows
        return table

    def _attach(self, relation: str, table: pa.Table) -> None:
        self.attached[relation] = table
        self.engine.attach(self.sql.table(relation), table)

    def is_for_kernels(self, relation: str) -> bool:
        """Do kernels read a relation, and nobody else?"""
        readers = [stratum for stratum in self.plan.strata if relation in scanned(stratum)]
        return self.options.evaluator != "sql" and all(
            stratum.evaluation != "once" and isinstance(lower(stratum, self.plan), KernelProgram) for stratum in readers
        )

    def _store(self, stratum: Stratum) -> None:
        """Rounds of SQL read their inputs again and again: those that were only attached become tables."""
        derived = {name for other in self.plan.strata for name in other.names}
        for name in scanned(stratum):
            table = self.attached.pop(name, None)
            if table is not None:
                target = self.sql.table(name)
                self.engine.detach(target)
                self.engine.load(target, table)
                if name in derived:
                    self.engine.store(target, Statement(f"SELECT DISTINCT * FROM {target}", {}))

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stratum = self.pushing.substituted(stratum)
        stats.placement, stats.why = self.engine.place, stats.why or "the local executor"
        if self._directly(stratum, stats):
            return
        with self._readable(stratum):
            check_obligations(self.sql, stratum, self.plan.signatures)
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
        found = lower(stratum, self.plan)
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
        self.sql.meter = Meter(meter.limits, meter.progress, _less(meter.room, SMALL_FACTS), monotonic() + SHORT)
        self.sql.meter.started, self.sql.meter.rows = meter.started, meter.rows
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
        from emberlog.kernels.watch import Failed, Unsuited

        decision = self.pushing.decide(stratum, dict.fromkeys(stratum.names, ()), only_counts=True)
        choices = replace(self._choices(), keep=decision.keep)
        try:
            self.results |= evaluate_locally(
                self.sql, stratum, program, stats, self.sql.meter, choices, self.count, self.fetch
            )
        except (Unsuited, Failed) as reason:
            stats.because = str(reason) or "an operation had no value"
            if self.options.evaluator == "kernel" and isinstance(reason, Unsuited):
                raise refuse(stratum, stats.because) from None
            stats.restart()
            self._by_sql(stratum, stats)
            return
        stats.kept = decision.text
        for partial in decision.partials:
            self._load_count(partial)
        self.pushing.done(stratum, decision)

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
        return replace(self.options.choices(), spill=str(self.scratch / "spill"))

    def _by_sql(self, stratum: Stratum, stats: StratumStats) -> None:
        for name in stratum.names:
            self.results.pop(name, None)  # a number of rows without the rows
        if stratum.evaluation != "once":
            self._store(stratum)
        self.sql.run(stratum, stats)

    @contextmanager
    def _readable(self, stratum: Stratum) -> Iterator[None]:
        """What the kernels computed, and this stratum reads, is a table for it: stored if it is read more than once,
        else handed to the one statement that reads it, piece by piece."""
        streamed = []
        for name, times in scanned(stratum).items():
            if name in self.results and name not in self.loaded:
                result, table = self.results[name], self.sql.table(name)
                if times == 1 and stratum.evaluation == "once":
                    self.engine.attach(table, result.reader())
                    streamed.append(table)
                else:
                    self.engine.load(table, result.table())
                    self.loaded.add(name)
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
        return self.engine.count(self.sql.table(relation))

    def fetch(self, relation: str) -> pa.Table:
        self.have_rows(relation)
        if relation in self.results:
            return self.results[relation].table()
        if relation not in self.fetched:
            attached = self.attached.get(relation)
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
            self.engine.attach(table, self.results[relation].reader())
        try:
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
        return to_frame(session, self.fetch(relation))

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        columns = self.plan.signatures[relation].columns
        if relation in self.results and self.results[relation].count() > SORTED_ROWS:
            self.have_rows(relation)
            write_pieces(path, self.results[relation].reader(), named(columns, names))
            return
        write_table(path, self.fetch(relation).cast(arrow_schema(columns)), named(columns, names))

    def close(self) -> None:
        self.engine.close()


def scanned(stratum: Stratum) -> Counter[str]:
    """How often the plans of a stratum read each relation."""
    return Counter(scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan))


def _kib(memory: str | None) -> str | None:
    """A size as DuckDB reads it."""
    if memory is None:
        return None
    from emberlog.kernels.memory import bytes_of

    return f"{max(bytes_of(memory) // 1024, 1)}KiB"


def _less(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def named(columns: tuple[Column, ...], names: list[str]) -> tuple[Column, ...]:
    return tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))


def duplicates(given: Given, count: int) -> str:
    """The warning for a source whose duplicate rows collapsed although something counts them."""
    rows = f"{counted(count, 'duplicate row')} of `{given.signature.name}`"
    return f"{rows} collapsed: relations are sets, and a sum, count or average reads this one"
