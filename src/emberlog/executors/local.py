"""The `local` executor: everything in this process, on DuckDB. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlog.analysis.program import CheckedProgram
from emberlog.data.arrow import arrow_schema, field_names
from emberlog.data.load import given_table
from emberlog.data.write import write_table
from emberlog.diagnostics import UsageError
from emberlog.executors.base import Executor, Given, Options, check_obligations
from emberlog.executors.session import active_session
from emberlog.plan.logical import ProgramPlan, Stratum
from emberlog.sql.compile import Statement
from emberlog.sql.duck import DuckEngine
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.sql.spark import to_frame
from emberlog.stats import StratumStats
from emberlog.types import Column

if TYPE_CHECKING:
    import pyarrow as pa


class LocalExecutor(Executor):
    """`session` is a Spark session for those who want frames of the results; the active one serves as well."""

    def __init__(
        self, program: CheckedProgram, plan: ProgramPlan, options: Options, scratch: Path, session: Any = None
    ) -> None:
        super().__init__(program, plan, options, scratch)
        self.session = session
        self.engine = DuckEngine(scratch, threads=options.workers, memory=options.memory)
        self.sql = SqlEvaluator(self.engine, plan.rules, self.meter)

    def load(self, given: Given) -> None:
        table = given_table(
            given.signature.name, given.source, given.signature.columns, given.facts, self.options.nulls, self.warn
        )
        self.load_table(given, table)

    def load_table(self, given: Given, table: pa.Table) -> None:
        """Takes the rows in as a set, and tells of duplicates where they would have counted."""
        name = self.sql.table(given.name)
        self.engine.load(f"{name}_bag", table)
        rows = self.engine.store(name, Statement(f"SELECT DISTINCT * FROM {name}_bag", {}))
        self.engine.drop(f"{name}_bag")
        if given.counts and rows < table.num_rows:
            self.warn(duplicates(given, table.num_rows - rows))

    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        stats.placement, stats.why = self.engine.place, stats.why or "the local executor"
        check_obligations(self.sql, stratum, self.plan.signatures)
        self.sql.run(stratum, stats)

    def count(self, relation: str) -> int:
        return self.engine.count(self.sql.table(relation))

    def fetch(self, relation: str) -> pa.Table:
        table = self.engine.fetch(self.sql.table(relation))
        return table.rename_columns(field_names(table.num_columns))

    def frame(self, relation: str) -> Any:
        session = self.session or active_session()
        if session is None:
            raise UsageError(
                "there is no Spark session to make a DataFrame in",
                fix='start one, or use executor="spark"; to_arrow(), to_pandas() and to_polars() need none',
            )
        return to_frame(session, self.fetch(relation))

    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        columns = self.plan.signatures[relation].columns
        write_table(path, self.fetch(relation).cast(arrow_schema(columns)), named(columns, names))

    def close(self) -> None:
        self.engine.close()


def named(columns: tuple[Column, ...], names: list[str]) -> tuple[Column, ...]:
    return tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))


def duplicates(given: Given, count: int) -> str:
    """The warning for a source whose duplicate rows collapsed although something counts them."""
    rows = "1 duplicate row" if count == 1 else f"{count:,} duplicate rows"
    return (
        f"{rows} of `{given.signature.name}` collapsed: relations are sets, and a sum, count or average reads this one"
    )
