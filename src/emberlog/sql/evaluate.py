"""Evaluates strata on a SQL engine.

`SqlEvaluator.run` takes one stratum: a relation that is not recursive is one statement; a component is a loop of
statements, by deltas (`fixpoint`), by replacing the state (`iterate`) or by handing on changes (`accumulate`).
Statements are compiled once, before the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from emberlog.analysis.program import CoreRule, Signature
from emberlog.diagnostics import EmberlogError, ExecutionError, InternalError
from emberlog.plan.logical import (
    Guard,
    Plan,
    Project,
    Scan,
    Stratum,
    Version,
    children,
    columns,
    map_children,
    plans,
    scans,
    walk,
)
from emberlog.plan.names import positions
from emberlog.plan.rename import rename
from emberlog.sql.complaints import bad_pattern, no_value
from emberlog.sql.engine import SqlEngine
from emberlog.sql.statement import MARK_BETWEEN, MARK_END, MARK_START, Statement
from emberlog.stats import Meter, StratumStats
from emberlog.syntax.nodes import Variable
from emberlog.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

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
        self._copies = count()

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

        return compile_plan(self._spelled_out(plan), self.engine.dialect, table, self._guards)

    def _spelled_out(self, plan: Plan) -> Plan:
        """`plan` with the plans of views in the places where they are read."""
        match plan:
            case Scan(relation, names) if relation in self._views:
                view, copy = self._views[relation], next(self._copies)
                apart = rename(view, {name: f"{name}/{copy}" for node in walk(view) for name in columns(node)})
                pairs = zip(names, columns(apart), strict=True)
                return Project(apart, tuple((name, Variable(made)) for name, made in pairs if name is not None))
            case _:
                return map_children(plan, self._spelled_out)

    def empty(self, types: tuple[Type, ...]) -> Statement:
        """No rows, with columns of these types."""
        from sqlglot import exp

        dialect = self.engine.dialect
        items = [exp.alias_(dialect.convert(exp.null(), type), f"c{i}") for i, type in enumerate(types)]
        query = exp.select(*(items or [exp.alias_(exp.true(), "c0")])).where(exp.false())
        return Statement(query.sql(dialect=dialect.name), {})

    # --- evaluation ----------------------------------------------------------------------------------------------

    def run(self, stratum: Stratum, stats: StratumStats) -> None:
        """Computes every relation of the stratum; `stats` says how it went."""
        from emberlog.sql.accumulate import run_changes
        from emberlog.sql.fixpoint import run_deltas
        from emberlog.sql.iterate import run_naive

        started = monotonic()
        try:
            with self.guarded(stats):
                match stratum.evaluation:
                    case "once":
                        self._once(stratum, stats)
                    case "delta":
                        run_deltas(self, stratum, stats)
                    case "naive":
                        run_naive(self, stratum, stats)
                    case "accumulate":
                        run_changes(self, stratum, stats)
        finally:
            stats.seconds = monotonic() - started
        self.meter.rows += stats.facts or 0

    def _once(self, stratum: Stratum, stats: StratumStats) -> None:
        (relation,) = stratum.relations
        stats.stopped = "computed once"
        if relation.exit is None:
            self.engine.store(self.table(relation.name), self.empty(_types(relation.signature)))
            stats.facts = 0
        elif self.engine.lazy:
            self._views[relation.name] = self._spelled_out(relation.exit)
            if depth(self._views[relation.name]) > DEEPEST_VIEW:
                self.define(relation.name)
        else:
            stats.facts = self.store(self.table(relation.name), self.statement(relation.exit))
            self.meter.check(stats, stats.facts)

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
            self.meter.check(stats, stats.facts)

    @contextmanager
    def guarded(self, stats: StratumStats | None = None) -> Iterator[None]:
        """Holds statements to the time limit, and turns what an engine complains of into our errors."""
        watch = None if stats is None or self.meter.seconds_left is None else _Watch(self.engine, self.meter)
        try:
            with watch or nullcontext(), self.engine.interruptible():
                yield
        except EmberlogError:
            raise
        except KeyboardInterrupt:
            with suppress(Exception):
                self.engine.interrupt()
            raise
        except Exception as error:
            if _was_interrupted(error):
                raise KeyboardInterrupt from error
            left = self.meter.seconds_left
            if stats is not None and left is not None and left <= 0:
                raise self.meter.out_of_time(stats) from error
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> EmberlogError:
        """An engine's exception as an error of ours: a rule without a value, or a failure of the engine."""
        found = re.search(re.escape(MARK_START) + r"(\d+)(.*?)" + re.escape(MARK_END), str(error), re.DOTALL)
        if found is None and not _is_of_engine(error):
            return InternalError(f"{type(error).__name__}: {error}", fix="please report this with the program")
        if found is None and (reason := pattern_trouble(str(error))) is not None:
            wrong = bad_pattern(self.rules.values(), reason)
            if wrong is not None:
                return wrong
        if found is None:
            return ExecutionError(
                f"{self.engine.place} failed: {reason_of(error)}", fix="its own error is chained to this"
            )
        guard = self._guards[int(found.group(1))]
        return no_value(self.rules.get(guard.rule), guard, found.group(2).split(MARK_BETWEEN)[1:])


class _Watch(Thread):
    """Interrupts an engine when the time is up: again and again, for it may be between two statements just then."""

    def __init__(self, engine: SqlEngine, meter: Meter) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self._meter = meter
        self._over = Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def run(self) -> None:
        wait = max(self._meter.seconds_left or 0.0, 0.0)
        while not self._over.wait(wait):
            with suppress(Exception):
                self._engine.interrupt()
            wait = 0.2


def _types(signature: Signature) -> tuple[Type, ...]:
    return tuple(column.type for column in signature.columns)


def _was_interrupted(error: BaseException | None) -> bool:
    """Spark's Python side may answer Ctrl-C by an error of its own, which has the interrupt behind it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _is_of_engine(error: Exception) -> bool:
    """Is it an engine that failed, or the machine? All else is our own mistake."""
    package = type(error).__module__.partition(".")[0]
    return package in ("duckdb", "_duckdb", "pyspark", "py4j", "grpc", "pyarrow") or isinstance(
        error, OSError | MemoryError
    )


def pattern_trouble(message: str) -> str | None:
    """What is wrong with a regular expression, where that is what an engine complains of."""
    in_spark = re.search(
        r"PatternSyntaxException: ([^\n]*)|The value of parameter\(s\) `regexp`[^\n]*?: ([^\n]*)", message
    )
    if in_spark is not None:
        return in_spark[1] or in_spark[2]
    in_duckdb = re.match(rf"Invalid Input Error: ((?:{'|'.join(_RE2_TROUBLES)})[^\n]*)", message)
    return None if in_duckdb is None else in_duckdb[1]


# What RE2, which DuckDB uses, says of patterns.
_RE2_TROUBLES = (
    "invalid escape sequence",
    "invalid character class",
    "invalid character class range",
    "missing ]",
    "missing \\)",
    "unexpected \\)",
    "trailing \\\\",
    "no argument for repetition operator",
    "invalid repetition size",
    "bad repetition operator",
    "invalid perl operator",
    "invalid UTF-8",
    "invalid named capture group",
)


def reason_of(error: Exception) -> str:
    """The line of an engine's message that says what happened: a worker's last one, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*:", line)]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0]


def depth(plan: Plan) -> int:
    """How many nodes stand above one another."""
    return 1 + max((depth(child) for child in children(plan)), default=0)


def inputs(stratum: Stratum) -> frozenset[str]:
    """The relations of other strata that a stratum reads."""
    read = {scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan)}
    return frozenset(read - set(stratum.names))
