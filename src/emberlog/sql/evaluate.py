"""Evaluates strata on a SQL engine.

`SqlEvaluator.run` takes one stratum: a relation that is not recursive is one statement; a component is a loop of
statements, by deltas (`fixpoint`), by replacing the state (`iterate`) or by handing on changes (`accumulate`).
Statements are compiled once, before the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from emberlog.analysis.program import CoreRule, Signature
from emberlog.causes import cause_of
from emberlog.diagnostics import DataError, EmberlogError, ExecutionError, InternalError, LimitError
from emberlog.plan.logical import (
    Guard,
    Plan,
    Project,
    Scan,
    Version,
    bottom_up,
    children,
    columns,
    rebuild,
    scans,
    walk,
)
from emberlog.plan.lower import with_digits
from emberlog.plan.names import positions
from emberlog.plan.origins import Heavy, large_first, pieces
from emberlog.plan.rename import rename
from emberlog.plan.strata import Stratum, plans
from emberlog.sql.complaints import TooLarge, no_value
from emberlog.sql.engine import SqlEngine
from emberlog.sql.statement import MARK_BETWEEN, MARK_END, MARK_START, TOO_MANY_DIGITS, Statement
from emberlog.stats import Meter, RoundLimit, Silent, StratumStats
from emberlog.syntax.nodes import Variable
from emberlog.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.sql.cycles import Cycle
    from emberlog.store.relations import Store

# What `stats` say of a relation that is not recursive: it was computed, or is a part of the statements that read it.
COMPUTED_ONCE = "computed once"
COMPUTED_WHERE_READ = "computed where it is read"

# How long a component is evaluated again to see why it grows: mostly a few rounds tell.
GROWTH_SECONDS = (0.3, 2.0)

# A statement nests as deep as its plan; past this a view gets a name in the engine, and readers nest no deeper.
DEEPEST_VIEW = 60


class SqlEvaluator:
    """Runs strata on one engine. Relations that a stratum reads must have a table there."""

    def __init__(self, engine: SqlEngine, rules: Mapping[int, CoreRule], meter: Meter) -> None:
        self.engine = engine
        self.rules = rules
        self.meter = meter
        self._tables: dict[str, str] = {}
        self._guards: list[Guard] = []
        self._views: dict[str, Plan] = {}  # relations that have no table: their plans stand in for them
        self.relations: Store | None = None  # where this process has rows; statements are provided with them
        self._copies = count()
        self._stages = count()

    # --- tables and statements -----------------------------------------------------------------------------------

    def table(self, relation: str, version: Version = "all") -> str:
        """The engine's name for a relation in one of its versions."""
        name = self._tables.setdefault(relation, f"r{len(self._tables)}")
        return name if version == "all" else f"{name}_{version}"

    def scan(self, signature: Signature, version: Version = "all", names: tuple[str, ...] | None = None) -> Scan:
        """All columns of a relation, named by position or as given."""
        types = tuple(column.type.wide for column in signature.columns)
        return Scan(signature.name, names or positions(len(types)), types, version)

    def statement(self, plan: Plan) -> Statement:
        from emberlog.sql.compile import compile_plan

        def table(relation: str, version: Version) -> str:
            return self.engine.table(self.table(relation, version))

        if self.relations is not None:
            self.relations.provide({scan.relation for scan in scans(plan)})
        with self.meter.deadline.enforced("writing a statement"):
            return compile_plan(self._spelled_out(plan), self.engine.dialect, table, self._guards, self._new_stage)

    def statement_of(self, plan: Plan | None, signature: Signature) -> Statement:
        """The statement for rows of a relation; no plan gives no rows."""
        return self.empty(_types(signature)) if plan is None else self.statement(with_digits(signature, plan))

    def _new_stage(self) -> tuple[str, str]:
        name = f"s{next(self._stages)}"
        return name, self.engine.table(name)

    def _spelled_out(self, plan: Plan) -> Plan:
        """`plan` with the plans of views in the places where they are read."""

        def spell(node: Plan) -> Plan:
            match node:
                case Scan(relation, names) if relation in self._views:
                    view, copy = self._views[relation], next(self._copies)
                    apart = rename(view, {name: f"{name}/{copy}" for part in walk(view) for name in columns(part)})
                    pairs = zip(names, columns(apart), strict=True)
                    return Project(apart, tuple((name, Variable(made)) for name, made in pairs if name is not None))
                case _:
                    return node

        return rebuild(plan, spell)

    def empty(self, types: tuple[Type, ...]) -> Statement:
        """No rows, with columns of these types."""
        from sqlglot import exp

        dialect = self.engine.dialect
        items = [exp.alias_(dialect.convert(exp.null(), type), f"c{i}") for i, type in enumerate(types)]
        query = exp.select(*(items or [exp.alias_(exp.true(), "c0")])).where(exp.false())
        return Statement(query.sql(dialect=dialect.name), {})

    # --- evaluation ----------------------------------------------------------------------------------------------

    def run(self, stratum: Stratum, stats: StratumStats) -> None:
        """Computes every relation of the stratum; `stats` says how it went. What grows without end is told with the
        cycle in the data along which it does, if there is one."""
        try:
            with self.guarded(stats):
                self._evaluate(stratum, stats)
        except (RoundLimit, TooLarge) as error:
            from emberlog.sql.cycles import find_cycle, with_cycle

            raise with_cycle(error, find_cycle(self, stratum, stats)) from error.__cause__
        self.meter.rows += stats.facts or 0

    def _evaluate(self, stratum: Stratum, stats: StratumStats) -> None:
        from emberlog.sql.accumulate import run_changes
        from emberlog.sql.fixpoint import run_deltas
        from emberlog.sql.iterate import run_naive

        match stratum.evaluation:
            case "once":
                self._once(stratum, stats)
            case "delta":
                run_deltas(self, stratum, stats)
            case "naive":
                run_naive(self, stratum, stats)
            case "accumulate":
                run_changes(self, stratum, stats)

    def find_growth(self, stratum: Stratum) -> Cycle | None:
        """The cycle along which a component grows that somebody else evaluated in vain, whose rows are gone: rounds of
        statements go on for a while, and then their rows are looked at."""
        from emberlog.sql.cycles import find_cycle, may_grow

        meter = self.meter
        cycle: Cycle | None = None
        for seconds in GROWTH_SECONDS:
            if cycle is not None or not may_grow(stratum):
                break
            stats = StratumStats(stratum.names)
            self.meter = Meter(
                replace(meter.limits, rounds=None), Silent(), until=monotonic() + seconds, stop=meter.stop
            )
            self.meter.started = meter.started
            try:
                with suppress(LimitError, TooLarge), self.guarded(stats):
                    self._evaluate(stratum, stats)
                    return None  # it ends
                cycle = find_cycle(self, stratum, stats)
            finally:
                self.meter = meter
        return cycle

    def _once(self, stratum: Stratum, stats: StratumStats) -> None:
        (relation,) = stratum.relations
        stats.stopped = COMPUTED_WHERE_READ if self.engine.lazy and relation.exit is not None else COMPUTED_ONCE
        if relation.exit is None:
            self.engine.store(self.table(relation.name), self.empty(_types(relation.signature)))
            stats.facts = 0
            return
        rows = with_digits(relation.signature, relation.exit)
        if self.engine.lazy:
            self._views[relation.name] = self._spelled_out(rows)
            if depth(self._views[relation.name]) > DEEPEST_VIEW:
                self.define(relation.name)
        else:
            heavy: Mapping[str, Heavy] = {} if self.relations is None else self.relations.heavy
            plan = pieces(rows, heavy, self._count)
            statement = self.statement(large_first(rows, heavy) if plan.streamed else rows)
            stats.facts = self.engine.compute(self.table(relation.name), statement, self.meter.most_rows, plan)
            self.meter.check(stats, stats.facts)

    def _count(self, relation: str) -> int:
        if self.relations is not None and relation in self.relations:
            return self.relations.count(relation)
        return self.engine.count(self.table(relation))

    def store(self, name: str, statement: Statement) -> int:
        """Computes rows of a relation, no more than it takes to see that they are too many."""
        return self.engine.store(name, statement, self.meter.most_rows)

    def rows(self, plan: Plan | None, signature: Signature) -> pa.Table:
        """The rows of a plan that makes rows of a relation, in this process."""
        statement = self.empty(_types(signature)) if plan is None else self.statement(plan)
        return self.engine.read(statement)

    def frame_of(self, plan: Plan | None, signature: Signature) -> Any:
        """The same as a DataFrame of Spark."""
        from emberlog.sql.spark import SparkEngine

        assert isinstance(self.engine, SparkEngine)
        return self.engine.query(self.empty(_types(signature)) if plan is None else self.statement(plan))

    def view(self, relation: str) -> Plan | None:
        """The plan that stands in for a relation that has no table."""
        return self._views.get(relation)

    def define(self, relation: str) -> None:
        """Gives a relation that is a view a name in the engine; nothing is computed."""
        view = self._views.pop(relation, None)
        if view is not None:
            self.engine.define(self.table(relation), self.statement(view))

    def materialise(self, relation: str, stats: StratumStats) -> None:
        """Computes a relation that was only defined, for those who read it more than once."""
        self.define(relation)
        name = self.engine.table(self.table(relation))
        with self.guarded(stats):
            stats.facts = self.store(self.table(relation), Statement(f"SELECT * FROM {name}", {}))
            stats.stopped = COMPUTED_ONCE
            self.meter.check(stats, stats.facts)

    @contextmanager
    def guarded(self, stats: StratumStats | None = None) -> Iterator[None]:
        """Holds statements to the time limit, and turns what an engine complains of into our errors."""
        meter = self.meter
        seconds = None if stats is None else meter.seconds_left
        try:
            with meter.stop.interruptible(self.engine.interrupt, seconds), self.engine.interruptible():
                yield
        except KeyboardInterrupt:
            with suppress(Exception):
                self.engine.interrupt()
            raise
        except Exception as error:
            if isinstance(error, EmberlogError) and not isinstance(error, ExecutionError):
                raise
            # Who ended it: what an engine says of an interrupted statement is no failure of the engine.
            stopped = meter.stop.error()
            if stopped is None and stats is not None and seconds is not None and (meter.seconds_left or 0) <= 0:
                stopped = meter.out_of_time(stats)
            told = stopped or self.engine.lost(error)
            if told is not None:
                raise told from error
            # The workers' job reads rows that rules make: its failure may be one of a rule or of the data.
            told = self._of_data(error.__cause__ or error)
            if told is not None:
                raise told from error
            if isinstance(error, EmberlogError):
                raise
            raise self._translated(error) from error

    def _of_data(self, error: BaseException) -> DataError | InternalError | None:
        """An engine's exception as an error of the data: a rule without a value, a decimal of too many digits."""
        found = re.search(re.escape(MARK_START) + r"(\d+)(.*?)" + re.escape(MARK_END), str(error), re.DOTALL)
        if found is not None:
            guard = self._guards[int(found.group(1))]
            return no_value(self.rules.get(guard.rule), guard, found.group(2).split(MARK_BETWEEN)[1:])
        if _is_of_engine(error) and (misfit := _decimal_misfit(error)) is not None:
            return DataError(
                f"a decimal does not fit in the digits of its type: {misfit}",
                fix="convert to floats with `to_float(...)`, or keep such facts out of the rule",
            )
        return None

    def _translated(self, error: Exception) -> EmberlogError:
        """An engine's exception as a failure of the engine, or of ours."""
        if not _is_of_engine(error):
            return InternalError(f"{type(error).__name__}: {error}", fix="please report this with the program")
        if (short := self.engine.shortage(error)) is not None:
            return short
        return ExecutionError(f"{self.engine.place} failed: {cause_of(error)}", fix="its own error is chained to this")


def _types(signature: Signature) -> tuple[Type, ...]:
    return tuple(column.type for column in signature.columns)


def _decimal_misfit(error: BaseException) -> str | None:
    """What an engine says of a decimal that is too large, None where it says something else. All other values are
    checked by the statement itself."""
    text = str(error)
    if found := re.search(rf"-?[\d.]+ {TOO_MANY_DIGITS} DECIMAL\(\d+,\d+\)", text):
        return found[0]
    if type(error).__name__ in ("OutOfRangeException", "ConversionException"):
        too_large = "DECIMAL" in text or "HUGEINT" in text or "decimal" in text
    else:
        too_large = "NUMERIC_VALUE_OUT_OF_RANGE" in text or ("OVERFLOW" in text and "DECIMAL" in text)
    return cause_of(error) if too_large else None


def _is_of_engine(error: BaseException) -> bool:
    """Is it an engine that failed, or the machine? All else is our own mistake."""
    package = type(error).__module__.partition(".")[0]
    return package in ("duckdb", "_duckdb", "pyspark", "py4j", "grpc", "pyarrow") or isinstance(
        error, OSError | MemoryError
    )


def depth(plan: Plan) -> int:
    """How many nodes stand above one another."""
    found: dict[int, int] = {}
    for node in bottom_up(plan, lambda node: id(node) in found):
        found[id(node)] = 1 + max((found[id(child)] for child in children(node)), default=0)
    return found[id(plan)]


def inputs(stratum: Stratum) -> frozenset[str]:
    """The relations of other strata that a stratum reads."""
    read = {scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan)}
    return frozenset(read - set(stratum.names))
