"""What an executor does: it loads sources, evaluates strata in order and keeps their relations until it is closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from emberlog.analysis.program import CheckedProgram, Obligation, Signature
from emberlog.data.sources import Source
from emberlog.diagnostics import DataError
from emberlog.plan.logical import Group, Plan, ProgramPlan, Scan, Select, Stratum, plans, walk
from emberlog.plan.names import given_part, positions
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.stats import Limits, Meter, Progress, StratumStats
from emberlog.syntax.nodes import Comparison, Constant, Variable
from emberlog.types import Value

if TYPE_CHECKING:
    import pyarrow as pa

Placement = Literal["auto", "local", "spark"]


@dataclass(frozen=True)
class Options:
    """How a run is to be done, apart from what it computes."""

    limits: Limits
    progress: Progress
    nulls: Literal["error", "drop"] = "error"
    placement: Placement = "auto"
    workers: int | None = None
    memory: str | None = None


@dataclass
class Given:
    """A relation whose rows come from outside or stand in the program as facts."""

    name: str  # of the relation; a predicate with rules too has its given rows under another name
    signature: Signature
    source: Source | None
    facts: tuple[tuple[Value, ...], ...]
    counts: bool  # does a sum, count or average read it? then duplicates are told


@dataclass
class Outcome:
    """What a run leaves: figures, warnings."""

    stats: list[StratumStats] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Executor(ABC):
    """Evaluates one plan. Used once; `close` lets go of everything it made."""

    sql: SqlEvaluator

    def __init__(self, program: CheckedProgram, plan: ProgramPlan, options: Options, scratch: Path) -> None:
        self.program = program
        self.plan = plan
        self.options = options
        self.scratch = scratch
        self.meter = Meter(options.limits, options.progress)
        self.outcome = Outcome()
        self.wanted: frozenset[str] = frozenset()

    def run(self, sources: Mapping[str, Source], wanted: frozenset[str]) -> Outcome:
        """Evaluates every stratum of the plan; `wanted` are the relations that somebody will read."""
        self.wanted = wanted
        try:
            for given in given_relations(self.program, self.plan, sources, wanted):
                with self.sql.guarded(StratumStats((given.name,))):
                    self.load(given)
            for number, stratum in enumerate(self.plan.strata, 1):
                stats = StratumStats(stratum.names)
                self.outcome.stats.append(stats)
                self.options.progress.stratum(stratum.names, number, len(self.plan.strata), "")
                self.evaluate(stratum, stats)
            self.meter.check(StratumStats(("the result",)), 0)
        finally:
            self.options.progress.done()
        return self.outcome

    @abstractmethod
    def load(self, given: Given) -> None: ...

    @abstractmethod
    def evaluate(self, stratum: Stratum, stats: StratumStats) -> None: ...

    @abstractmethod
    def count(self, relation: str) -> int: ...

    @abstractmethod
    def fetch(self, relation: str) -> pa.Table: ...

    @abstractmethod
    def frame(self, relation: str) -> Any:
        """The relation as a Spark DataFrame with the columns `c0`, `c1`, .."""

    @abstractmethod
    def write_parquet(self, relation: str, path: Path, names: list[str]) -> None:
        """Writes a relation as Parquet, from where its rows are."""

    @abstractmethod
    def close(self) -> None: ...

    def warn(self, message: str) -> None:
        self.outcome.warnings.append(message)


def check_obligations(run: SqlEvaluator, stratum: Stratum, signatures: Mapping[str, Signature]) -> None:
    """Checks what conditional verdicts ask of the data, before the fixpoint starts."""
    for verdict in stratum.verdicts:
        for obligation in verdict.obligations:
            with run.guarded():
                row = run.engine.first(run.statement(_violations(signatures[obligation.relation], obligation)))
            if row is not None:
                shown = ", ".join(repr(value) if isinstance(value, str) else str(value) for value in row)
                raise DataError(
                    f"`{obligation.relation}({shown})` breaks {obligation.text}, which `{verdict.aggregate}` in the "
                    f"recursion of `{verdict.predicate}` relies on",
                    span=verdict.span,
                    fix=f"remove such rows, or filter them out where `{obligation.relation}` is read",
                )


def _violations(signature: Signature, obligation: Obligation) -> Plan:
    types = tuple(column.type.wide for column in signature.columns)
    names = positions(len(types))
    type = types[obligation.position]
    value = float(obligation.minimum) if type.kind == "float" else obligation.minimum
    bound = Constant(value, kind="unsigned" if type.kind == "unsigned" else "")
    small = Comparison("<", Variable(names[obligation.position]), bound)
    return Select(Scan(signature.name, names, types), (small,))


def given_relations(
    program: CheckedProgram, plan: ProgramPlan, sources: Mapping[str, Source], wanted: frozenset[str]
) -> list[Given]:
    """The relations that the plan reads, or somebody wants, and no stratum computes."""
    read = {node.relation for node in _nodes(plan) if isinstance(node, Scan)} | wanted
    derived = {name for stratum in plan.strata for name in stratum.names}
    counted = _counted(plan)
    result = []
    for name, signature in program.signatures.items():
        for relation in (name, given_part(name)):
            if relation in read and relation not in derived:
                facts = program.facts.get(name, ())
                result.append(Given(relation, signature, sources.get(name), facts, relation in counted))
    return result


def _nodes(plan: ProgramPlan) -> list[Plan]:
    return [n for stratum in plan.strata for relation in stratum.relations for p in plans(relation) for n in walk(p)]


def _counted(plan: ProgramPlan) -> set[str]:
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
