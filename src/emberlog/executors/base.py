"""What an executor does: it loads sources, evaluates strata in order and keeps their relations until it is closed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from math import ceil, floor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from emberlog.analysis.program import Bound, CheckedProgram, Obligation, Signature, Verdict
from emberlog.choose.strata import Choice, keeping, with_setting
from emberlog.choose.wishes import Wishes
from emberlog.clock import Clock
from emberlog.compiled import Compiled
from emberlog.data.arrow import field_names, row_bytes
from emberlog.data.sources import Source
from emberlog.deadline import Deadline
from emberlog.demand.names import is_demand
from emberlog.diagnostics import DataError
from emberlog.executors.prem import check_prem
from emberlog.executors.pushing import Pushing
from emberlog.executors.session import is_on_this_machine
from emberlog.memory import COPIES, NOISE, Budget
from emberlog.plan.entries import entering_parts, read_beside, why_empty
from emberlog.plan.logical import Group, Plan, Scan, Select, scans, walk
from emberlog.plan.names import given_part, positions
from emberlog.plan.strata import ProgramPlan, Stratum, plans
from emberlog.progress import announce_end
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.stats import Limits, Meter, Progress, Silent, StratumStats
from emberlog.stopping import Stop
from emberlog.store.kept import Kept
from emberlog.syntax.nodes import Comparison, Constant, Variable
from emberlog.thresholds import CHECKPOINT_SECONDS, SORTED_ROWS
from emberlog.types import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Choices

Answer = TypeVar("Answer")
Placement = Literal["auto", "local", "spark"]


@dataclass(frozen=True)
class Options:
    """How a run is to be done, apart from what it computes."""

    limits: Limits
    progress: Progress
    nulls: Literal["error", "drop"] = "error"
    placement: Placement = "auto"
    workers: int | None = None
    memory: str | int | None = None
    evaluator: Literal["auto", "sql", "kernel"] = "auto"
    check_prem: bool = False
    checkpoint: str | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    wishes: Wishes = field(default_factory=Wishes)
    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    kept: Kept = field(default_factory=lambda: Kept({}))

    @property
    def deadline(self) -> Deadline:
        """When the run must be done."""
        return Deadline(self.limits.seconds, self.clock.started, self.stop)

    @property
    def wished(self) -> Wishes:
        """The wishes. A user's limit is on plain rounds, in which every fact that waits is taken up."""
        return replace(self.wishes, ordered=self.wishes.ordered and self.limits.rounds is None)

    def choices(self) -> Choices:
        """What the kernels are told."""
        from emberlog.kernels.choices import Choices

        wished = {entry.name: getattr(self.wished, entry.name) for entry in fields(Wishes)}
        return Choices(
            **wished,
            workers=self.workers or os.cpu_count() or 1,
            checkpoint=self.checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
        )


@dataclass
class Given:
    """A relation whose rows come from outside or stand in the program as facts."""

    name: str  # of the relation; a predicate with rules too has its given rows under another name
    signature: Signature
    source: Source | None
    facts: tuple[tuple[Value, ...], ...]
    counts: bool  # does a sum, count or average read it? then duplicates are told

    @property
    def reading(self) -> Hashable:
        """What of its source is read: which columns, as which types."""
        return self.signature.columns, self.signature.reading

    def table(self, nulls: Literal["error", "drop"], warn: Callable[[str], None]) -> pa.Table:
        """Its rows, read in this process."""
        from emberlog.data.load import given_table

        signature, reading = self.signature, self.signature.reading
        whole, positions = (None, None) if reading is None else (reading.whole, reading.positions)
        return given_table(signature.name, self.source, signature.columns, self.facts, nulls, warn, whole, positions)


@dataclass
class Outcome:
    """What a run leaves beside its relations and the rows of its clock."""

    warnings: list[str] = field(default_factory=list)


class Executor(ABC):
    """Evaluates one plan. Used once; `close` lets go of everything it made."""

    name: Literal["local", "spark"]
    sql: SqlEvaluator

    def __init__(self, compiled: Compiled, workers: int, options: Options, scratch: Path, budget: Budget) -> None:
        self.budget = budget
        self.program = compiled.checked
        self.plan = compiled.plan
        self.wanted = compiled.wanted
        self.options = options
        self.scratch = scratch
        self.meter = Meter(options.limits, options.progress, clock=options.clock, stop=options.stop)
        self.outcome = Outcome()
        self.pushing = Pushing(compiled.wanted - compiled.sized)
        self.choices = self.chosen(compiled.choices, workers)

    def run(self, sources: Mapping[str, Source]) -> Outcome:
        """Evaluates every stratum of the plan. Of the relations that are wanted, rows that are not kept are computed
        again if they are read."""
        with announce_end(self.options.progress):
            for given in given_relations(self.program, self.plan, sources, self.wanted):
                with self.clock.step("load", given.signature.name), self.guarded(StratumStats((given.name,))):
                    self.load(given)
                    check_domains(self.home(given.name), given)
            for number, stratum in enumerate(self.plan.strata, 1):
                stats = StratumStats(stratum.names, asks=all(map(is_demand, stratum.names)))
                self.options.progress.stratum(stratum.names, number, len(self.plan.strata), "")
                if self.options.check_prem:
                    with self.clock.step("check PreM", ", ".join(stratum.names)):
                        check_prem(self, stratum, stats)
                with self.clock.time(stats):
                    self.evaluate(stratum, stats)
                    self._warn_of_no_entry(stratum, stats)
            self.meter.check(StratumStats(("the result",)), 0)
        return self.outcome

    def chosen(self, choices: Mapping[tuple[str, ...], Choice], workers: int) -> dict[tuple[str, ...], Choice]:
        """The choices where this executor evaluates, by so many workers."""
        return {
            stratum.names: with_setting(
                choice, stratum, self.plan, replace(choice.setting, executor=self.name, workers=workers)
            )
            for stratum in self.plan.strata
            for choice in [choices[stratum.names]]
        }

    @property
    def clock(self) -> Clock:
        """The rows of the run that this belongs to."""
        return self.meter.clock

    @abstractmethod
    def load(self, given: Given) -> None: ...

    def guarded(self, stats: StratumStats) -> AbstractContextManager[None]:
        """Holds all engines of this executor to the limits, see `SqlEvaluator.guarded`."""
        return self.sql.guarded(stats)

    def read(self, given: Given) -> pa.Table:
        """The rows of a given relation that this process can read, held to the time limit."""

        def rows() -> pa.Table:
            told = f"loading `{given.signature.name}`"
            return self.meter.deadline.bounded(lambda: given.table(self.options.nulls, self.warn), told)

        if given.source is None or given.facts or self.options.nulls == "drop":
            return rows()
        return self.options.kept.rows(given.signature.name, given.source, given.reading, rows)

    def home(self, relation: str) -> SqlEvaluator:
        """The evaluator that has the rows of a given relation."""
        return self.sql

    @abstractmethod
    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None: ...

    @abstractmethod
    def count(self, relation: str) -> int: ...

    @abstractmethod
    def fetch(self, relation: str) -> pa.Table: ...

    @abstractmethod
    def head(self, relation: str, count: int) -> pa.Table:
        """The first rows of a relation, in order; no others are fetched."""

    @abstractmethod
    def known_count(self, relation: str) -> int | None:
        """The number of rows where it is known, or soon found out; None where everything would be computed for it."""

    @abstractmethod
    def reader(self, relation: str) -> pa.RecordBatchReader:
        """The rows of a relation, piece by piece: they need not have room in memory."""

    @property
    def memory(self) -> str:
        """What the run may keep in memory, in words."""
        return f"memory: {self.budget.told}"

    def is_large(self, relation: str) -> bool:
        """Has a relation so many rows that they are better not all in memory at once?"""
        rows = self.known_count(relation)
        if rows is None:
            return False
        return rows > SORTED_ROWS or COPIES * rows * self._row(relation) > max(self.budget.total, NOISE)

    def check_room(self, relation: str, what: str, each: int = 0) -> None:
        """Raises where the rows of a relation have no room in memory as `what`, which takes `each` bytes a row besides
        those of Arrow."""
        rows = self.known_count(relation)
        if rows is not None:
            self.budget.check(rows * (self._row(relation) + each), f"`{relation}` ({rows:,} rows) as {what}")

    def _row(self, relation: str) -> int:
        signature = self.plan.signatures.get(relation)
        return 0 if signature is None else row_bytes(signature.columns)

    @abstractmethod
    def frame(self, relation: str, session: Any = None) -> Any:
        """The relation as a Spark DataFrame with the columns `c0`, `c1`, .., of the given session if there is one."""

    def copy_to_session(self, relation: str, session: Any) -> Any:
        """The relation as such a DataFrame of a session that does not have the rows."""
        from emberlog.sql.spark import to_frame

        if self.is_large(relation) and is_on_this_machine(session):
            path = self.scratch / f"frame{len(list(self.scratch.glob('frame*')))}.parquet"
            self.write_parquet(relation, path, field_names(len(self.plan.signatures[relation].columns)))
            return session.read.parquet(path.as_uri())
        return to_frame(session, self.fetch(relation))

    @abstractmethod
    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        """Writes a relation as Parquet, from where its rows are."""

    @abstractmethod
    def ready(self, relations: Collection[str]) -> SqlEvaluator:
        """The evaluator whose statements find the rows of these relations after the run, again and again."""

    def answer(self, relations: Collection[str], question: Callable[[SqlEvaluator], Answer]) -> Answer:
        """What a question about these relations of the finished run gives. The limits of the run do not hold for it;
        `engine.cancel()` and Ctrl-C end it."""
        evaluator = self.ready(relations)
        meter, evaluator.meter = evaluator.meter, Meter(Limits(), Silent(), stop=self.options.stop)
        try:
            with evaluator.guarded():
                return question(evaluator)
        finally:
            evaluator.meter = meter

    @abstractmethod
    def close(self) -> None: ...

    def have_rows(self, relation: str) -> None:
        """Computes a relation again whose rows were not kept. The limits of the run hold for this anew."""
        stratum = self.pushing.want(relation)
        if stratum is None:
            return
        self.meter.started, self.meter.rows = monotonic(), 0
        self.sql.meter = self.meter
        self.keep(stratum)
        names = ", ".join(stratum.names)
        with announce_end(self.options.progress), self.clock.step("compute again", names):
            self.evaluate(stratum, StratumStats(stratum.names))

    def keep(self, stratum: Stratum) -> None:
        """Decides again what is kept of a component."""
        self.choices[stratum.names] = keeping(self.choices[stratum.names], stratum, self.plan, self.pushing.rows)

    def _warn_of_no_entry(self, stratum: Stratum, stats: StratumStats) -> None:
        """Tells of a recursion that stays empty although its rules have something to work on, and not because nothing
        is asked of it."""
        beside = read_beside(stratum)
        if stratum.evaluation == "once" or stats.facts != 0 or any(map(is_demand, (*stratum.names, *beside))):
            return
        entering = entering_parts(stratum)
        if not entering or any(self.count(name) for name in beside):
            read = {scan.relation for part in entering for scan in scans(part)}
            self.warn(why_empty(stratum, {name for name in read if not self.count(name)}))

    def warn(self, message: str) -> None:
        self.outcome.warnings.append(message)


def check_obligations(
    run: SqlEvaluator, stratum: Stratum, stats: StratumStats, signatures: Mapping[str, Signature]
) -> None:
    """Checks, before the fixpoint starts, what conditional verdicts ask of the data, and whether a rule has a binding
    with a missing value that rounds would not meet."""
    for plan in (plan for relation in stratum.relations for plan in relation.checks):
        with run.guarded(stats):
            run.engine.first(run.statement(plan))
    for verdict in stratum.verdicts:
        for obligation in verdict.obligations:
            with run.guarded(stats):
                rows = _violations(
                    obligation.relation, signatures[obligation.relation], obligation.position, obligation.bound
                )
                row = run.engine.first(run.statement(rows))
            if row is not None:
                raise broken_obligation(verdict, obligation, signatures[obligation.relation], row)


def broken_obligation(
    verdict: Verdict, obligation: Obligation, signature: Signature, row: tuple[Any, ...]
) -> DataError:
    """The error for a row that breaks what a conditional verdict asks of the data."""
    return DataError(
        f"`{obligation.relation}({_shown(signature, row)})` breaks {obligation.text}, which `{verdict.aggregate}` in "
        f"the recursion of `{verdict.predicate}` relies on",
        span=verdict.span,
        fix=f"remove such rows, or filter them out where `{obligation.relation}` is read",
    )


def check_domains(run: SqlEvaluator, given: Given) -> None:
    """Checks the declared conditions on the columns of a relation, once it is loaded."""
    signature = given.signature
    declared = {} if signature.aggregates else signature.domains
    for position, bounds in declared.items():
        for bound in bounds:
            row = run.engine.first(run.statement(_violations(given.name, signature, position, bound)))
            if row is not None:
                raise broken_domain(signature, position, bound, row)


def broken_domain(signature: Signature, position: int, bound: Bound, row: tuple[Any, ...]) -> DataError:
    """The error for a row that breaks a declared condition on a column."""
    value = int(bound.value) if bound.value == int(bound.value) else bound.value
    name = signature.columns[position].name
    return DataError(
        f"`{signature.name}({_shown(signature, row)})` breaks `{name} {bound.operator} {value}`, which is declared",
        span=signature.span,
        fix="remove such rows, or the condition",
    )


def _shown(signature: Signature, row: tuple[Any, ...]) -> str:
    """A row as it is written in a program, with `_` for columns that were not read."""
    whole = signature.row(row)
    return ", ".join("_" if v is None else repr(v) if isinstance(v, str) else str(v) for v in whole)


def _violations(relation: str, signature: Signature, position: int, bound: Bound) -> Plan:
    """The rows of a relation that are not within a bound."""
    types = tuple(column.type.wide for column in signature.columns)
    names = positions(len(types))
    kind = types[position].kind
    rows = Scan(relation, names, types)
    if kind == "float":
        return Select(
            rows, (Comparison(_OPPOSITE[bound.operator], Variable(names[position]), Constant(bound.value * 1.0)),)
        )
    if bound.operator == "!=" and bound.value != int(bound.value):
        return Select(rows, (Comparison("=", Constant(True), Constant(False)),))
    # Of whole numbers, those below 0.5 are those below 1, and those above 0.5 are those above 0.
    value = ceil(bound.value) if bound.operator in (">=", "<") else floor(bound.value)
    if kind == "unsigned" and value < 0:
        always = bound.operator in ("<", "<=")  # no unsigned number is within the bound
        return Select(rows, (Comparison("=", Constant(always), Constant(True)),))
    constant = Constant(value, kind="unsigned" if kind == "unsigned" else "")
    return Select(rows, (Comparison(_OPPOSITE[bound.operator], Variable(names[position]), constant),))


_OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "!=": "="}


def given_relations(
    program: CheckedProgram, plan: ProgramPlan, sources: Mapping[str, Source], wanted: frozenset[str]
) -> list[Given]:
    """The relations that the plan reads, or somebody wants, and no stratum computes."""
    read = {node.relation for node in _nodes(plan) if isinstance(node, Scan)} | wanted
    derived = {name for stratum in plan.strata for name in stratum.made}
    counting = counted_relations(plan)
    result = []
    for name, signature in program.signatures.items():
        for relation in (name, given_part(name)):
            if relation in read and relation not in derived:
                facts = program.facts.get(name, ())
                # Without all of its columns nothing counts its rows: those that are equal may differ in the others.
                counts = relation in counting and signature.reading is None
                result.append(Given(relation, signature, sources.get(name), facts, counts))
    return result


def _nodes(plan: ProgramPlan) -> list[Plan]:
    return [n for stratum in plan.strata for relation in stratum.relations for p in plans(relation) for n in walk(p)]


def counted_relations(plan: ProgramPlan) -> set[str]:
    """The relations that are read below a sum, count or average, where a duplicate row would count twice."""
    groups = (node for node in _nodes(plan) if isinstance(node, Group))
    telling = (g for g in groups if any(fold.function in ("sum", "count", "avg") for fold in g.folds))
    direct = {node.relation for group in telling for node in walk(group) if isinstance(node, Scan)}
    totalled = {
        node.relation
        for stratum in plan.strata
        for relation in stratum.relations
        if relation.state == "total"
        for p in plans(relation)
        for node in walk(p)
        if isinstance(node, Scan)
    }
    return direct | totalled
