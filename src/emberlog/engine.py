"""The engine: what users call.

An engine holds sources under names, runs programs over them on its executor, and lets go of everything when it closes.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from emberlog.analysis.check import check, check_aggregates
from emberlog.analysis.names import mentioned
from emberlog.analysis.program import CheckedProgram, Verdict
from emberlog.analysis.pushdown import push_aggregates
from emberlog.asked import (
    declared,
    directives,
    goals_as_rules,
    input_directives,
    sized_relations,
    wanted_relations,
    with_goal,
)
from emberlog.diagnostics import UsageError
from emberlog.plan.compiler import plan_program
from emberlog.source import Source as Text
from emberlog.stats import Limits, Progress
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse, parse_goal
from emberlog.types import Column, Value

if TYPE_CHECKING:
    from emberlog.data.sources import Source
    from emberlog.executors.base import Executor, Options
    from emberlog.explain.report import Plan
    from emberlog.relation import Relation
    from emberlog.result import Result

EXECUTORS = ("spark", "local")
PLACEMENTS = ("auto", "local", "spark")
EVALUATORS = ("auto", "sql", "kernel")


@dataclass(frozen=True)
class _Asked:
    """A program that was run and what it was run with: a later query asks it again."""

    program: Program
    facts_dir: Path | None
    params: dict[str, Value]
    naive: bool


class Engine:
    """Runs Datalog programs over registered tables.

    `executor` is "spark" (the given session, the active one, or a new one on this machine) or "local" (DuckDB in this
    process, no JVM). `workers` are threads of the local executor, or cores of a new session. `limits` is a `Limits` or
    a mapping with rounds, rows and seconds. `memory` bounds what DuckDB and the kernels keep ("4GB"). `run_dir` is
    where scratch files go. `nulls="drop"` drops rows with nulls in place of refusing them.
    """

    def __init__(
        self,
        spark: Any = None,
        executor: str = "spark",
        workers: int | None = None,
        coordination: str = "auto",
        limits: Limits | Mapping[str, float] | None = None,
        memory: str | None = None,
        run_dir: str | Path | None = None,
        checkpoint: str | Path | None = None,
        nulls: Literal["error", "drop"] = "error",
        progress: Progress | None = None,
    ) -> None:
        _choose("executor", executor, EXECUTORS)
        _choose("coordination", coordination, ("auto",))
        _choose("nulls", nulls, ("error", "drop"))
        if workers is not None and workers < 1:
            raise UsageError(f"workers must be at least 1, not {workers}")
        if memory is not None:
            from emberlog.kernels.memory import bytes_of

            bytes_of(memory)  # raises for what is not a size
        if checkpoint is not None:
            raise UsageError("checkpoints of running kernels are not in this version")
        self.executor = executor
        self._spark = spark
        self._own_session = False
        self._workers = workers
        self._limits = Limits.of(limits)
        self._memory = memory
        self._nulls = nulls
        self._progress = progress
        self._run_dir = None if run_dir is None else Path(run_dir)
        self._sources: dict[str, Source] = {}
        self._last: _Asked | None = None
        self._runs: weakref.WeakSet[Any] = weakref.WeakSet()
        self._closed = False

    # --- sources -------------------------------------------------------------------------------------------------

    def register(self, name: str, source: object, *, header: bool | None = None, delimiter: str | None = None) -> None:
        """Gives the rows of a base relation: a Spark, pandas or Polars frame, an Arrow table, a path (csv, tsv, facts,
        parquet), or a list of tuples. A name that is registered again has the new rows from then on."""
        from emberlog.data.sources import source_of

        self._check_open()
        if not name:
            raise UsageError("a relation needs a name")
        self._sources[name] = source_of(name, source, header=header, delimiter=delimiter)

    @property
    def spark(self) -> Any:
        """The Spark session of the `spark` executor; made on first use if none was given."""
        if self._spark is None:
            from emberlog.executors.session import local_session

            self._spark, self._own_session = local_session(self._workers)
        return self._spark

    # --- running -------------------------------------------------------------------------------------------------

    def run(
        self,
        text: str,
        params: Mapping[str, Value] | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        persist: str | Path | None = None,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | None = None,
        check_prem: bool = False,
        **options: Any,
    ) -> Result:
        """Evaluates what the program asks for: its `.output`, `.printsize` and `?-`, or else every derived predicate.

        `naive` recomputes aggregates in recursion every round, and so allows those that are not known to be right by
        deltas. `placement` forces strata of the spark executor into the driver ("local") or onto Spark ("spark").
        `persist` writes the results as Parquet to a folder, so that they can be read after the engine is closed.
        `check_prem` checks in every round that a min or max may stand inside its recursion, on the data at hand: in
        plain Python, for samples of data.
        `evaluator` forces "sql" or "kernel" for recursive strata; `options` choose among the ways of the kernels, see
        `executors.base.Variants`.
        """
        program = parse(Text("<program>", text))
        how = replace(self._options(evaluator, placement, limits, progress, options), check_prem=check_prem)
        return self._run(program, None, params, how, naive, persist=persist)

    def run_file(
        self,
        path: str | Path,
        facts_dir: str | Path | None = None,
        output_dir: str | Path | None = None,
        params: Mapping[str, Value] | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        persist: str | Path | None = None,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | None = None,
        check_prem: bool = False,
        **options: Any,
    ) -> Result:
        """Runs a program from a file: `.input` reads from `facts_dir`, `.output` writes to `output_dir`."""
        from emberlog.data.directives import write_directive

        program = parse(read_program(path))
        facts = Path(facts_dir) if facts_dir is not None else None
        how = replace(self._options(evaluator, placement, limits, progress, options), check_prem=check_prem)
        result = self._run(program, facts, params, how, naive, persist=persist)
        if output_dir is not None:
            folder = Path(output_dir)
            for directive in directives(program, "output"):
                relation = result[directive.relation]
                write_directive(directive, folder, relation._bare(), relation.schema)
        return result

    def query(
        self,
        goal: str,
        program: str | None = None,
        params: Mapping[str, Value] | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Relation:
        """The rows of a predicate that match a goal such as `tc(1, Y)`, of the given program or the last one run."""
        if program is not None:
            asked = _Asked(parse(Text("<program>", program)), None, dict(params or {}), naive)
        elif self._last is not None:
            last = self._last
            asked = replace(last, params={**last.params, **(params or {})}, naive=naive or last.naive)
        else:
            raise UsageError("there is no program to query", fix="pass program=text, or run a program first")
        asking = with_goal(asked.program, parse_goal(goal, bigdatalog=asked.program.bigdatalog))
        how = self._options(evaluator, placement, limits, progress, options)
        result = self._run(asking, asked.facts_dir, asked.params, how, asked.naive)
        self._last = asked
        (answer,) = result.goals
        return answer

    def _run(
        self,
        program: Program,
        facts_dir: Path | None,
        params: Mapping[str, Value] | None,
        options: Options,
        naive: bool,
        *,
        persist: str | Path | None = None,
    ) -> Result:
        from emberlog.result import LiveRun

        self._check_open()
        given = dict(params or {})
        sources = self._all_sources(program, facts_dir)
        spelled, goals = goals_as_rules(program)
        checked = check(spelled, self._whole_catalog(spelled, sources, given), given, naive=naive)
        wanted = wanted_relations(program, checked) | {name for name, _ in goals}
        checked = push_aggregates(checked, wanted)
        plan = plan_program(checked, wanted)
        scratch = Path(tempfile.mkdtemp(prefix="emberlog-", dir=self._scratch_root()))
        try:
            executor = self._executor(checked, plan, options, scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        live = LiveRun(executor, scratch, None if self._own_session else self._spark)
        self._runs.add(live)
        try:
            sized = sized_relations(program) if persist is None else ()
            outcome = executor.run(sources, frozenset(wanted), frozenset(sized))
        except BaseException:
            with suppress(Exception):  # what went wrong first is what to tell
                live.close()
            raise
        self._last = _Asked(program, facts_dir, given, naive)
        outcome.warnings[:0] = [*checked.warnings, *self._shadowed(checked)]
        result = _result(checked, wanted, goals, outcome.stats, outcome.warnings, live)
        if persist is not None:
            result.persist(Path(persist))
        return result

    def _shadowed(self, checked: CheckedProgram) -> list[str]:
        """A warning for each registered relation that the program has rules for: it might be left over."""
        ruled = {rule.predicate for component in checked.components for rule in component.rules}
        return [
            f"`{name}` has rules and a registered source: its rows are those of both"
            for name in self._sources
            if name in ruled
        ]

    def _executor(self, checked: CheckedProgram, plan: Any, options: Options, scratch: Path) -> Executor:
        if self.executor == "local":
            from emberlog.executors.local import LocalExecutor

            return LocalExecutor(checked, plan, options, scratch, self._spark)
        from emberlog.executors.spark import SparkExecutor

        return SparkExecutor(self.spark, checked, plan, options, scratch)

    def _options(
        self,
        evaluator: str,
        placement: str,
        limits: Limits | Mapping[str, float] | None,
        progress: Progress | None,
        variants: Mapping[str, Any],
    ) -> Options:
        from emberlog.executors.base import Options, Variants
        from emberlog.progress import default_progress

        _choose("evaluator", evaluator, EVALUATORS)
        _choose("placement", placement, PLACEMENTS)
        if self.executor == "local" and placement == "spark":
            raise UsageError("the local executor places nothing on Spark", fix='use executor="spark"')
        return Options(
            limits=self._limits if limits is None else Limits.of(limits),
            progress=progress or self._progress or default_progress(),
            nulls=self._nulls,
            placement=placement,  # type: ignore[arg-type]
            workers=self._workers,
            memory=self._memory,
            evaluator=evaluator,  # type: ignore[arg-type]
            variants=Variants.of(variants),
        )

    def _all_sources(self, program: Program, facts_dir: Path | None) -> dict[str, Source]:
        """Registered sources, and what the program's `.input`s name where nothing is registered."""
        from emberlog.data.directives import source_of_directive

        found = {
            directive.relation: source_of_directive(directive, facts_dir)
            for directive in input_directives(program, files=facts_dir is not None)
            if directive.relation not in self._sources
        }
        return {**found, **self._sources}

    def _catalog(self, program: Program, sources: Mapping[str, Source]) -> dict[str, tuple[Column, ...] | None]:
        """The columns of the sources; None where the program has to tell them, or does not mention the source."""
        from emberlog.executors.schemas import columns_of_source

        named, known = mentioned(program), declared(program)
        session = None if self.executor == "local" else self
        return {
            name: columns_of_source(name, source, session, name in known) if name in named else None
            for name, source in sources.items()
        }

    def _whole_catalog(
        self, program: Program, sources: Mapping[str, Source], params: Mapping[str, Value]
    ) -> dict[str, tuple[Column, ...] | None]:
        """The catalog of a run: where neither source nor declaration tells the columns, the relation's use does."""
        from emberlog.executors.usage import columns_by_use

        catalog = self._catalog(program, sources)
        open_names = mentioned(program) - declared(program)
        unknown = [name for name, columns in catalog.items() if columns is None and name in open_names]
        if not unknown:
            return catalog
        loose = check(program, catalog, params, naive=True, require_sources=False)
        return {**catalog, **columns_by_use(loose, unknown)}

    # --- looking, without running --------------------------------------------------------------------------------

    def check(self, text: str, params: Mapping[str, Value] | None = None) -> list[Verdict]:
        """A verdict for each aggregate that stands inside recursion."""
        program = parse(Text("<program>", text))
        return list(check_aggregates(program, self._known(program), params or {}))

    def explain(self, text: str, params: Mapping[str, Value] | None = None) -> Plan:
        """How the program would be evaluated: text by `str()`, HTML in a notebook, a picture by `to_svg()`."""
        return self.explain_program(parse(Text("<program>", text)), params)

    def explain_program(self, program: Program, params: Mapping[str, Value] | None = None) -> Plan:
        from emberlog.explain.report import Plan

        spelled, goals = goals_as_rules(program)
        checked = check(spelled, self._known(program), params or {}, require_sources=False)
        wanted = wanted_relations(program, checked) | {name for name, _ in goals}
        checked = push_aggregates(checked, wanted)
        rows = frozenset(wanted - sized_relations(program))
        return Plan(program, checked, plan_program(checked, wanted), self.executor, rows)

    def _known(self, program: Program) -> dict[str, tuple[Column, ...] | None]:
        return self._catalog(program, self._sources)

    # --- the end -------------------------------------------------------------------------------------------------

    def _scratch_root(self) -> Path | None:
        if self._run_dir is not None:
            self._run_dir.mkdir(parents=True, exist_ok=True)
        return self._run_dir

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the engine is closed", fix="make a new Engine")

    def close(self) -> None:
        """Drops every relation that was not written or persisted, and a session that the engine made itself."""
        if self._closed:
            return
        self._closed = True
        for run in list(self._runs):
            run.close()
        if self._own_session:
            self._spark.stop()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _choose(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UsageError(f"{what} {value!r} is not known", fix=f"{what} is one of {', '.join(known)}")


def read_program(path: str | Path) -> Text:
    """The text of a program file."""
    try:
        return Text(str(path), Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def _result(
    checked: CheckedProgram,
    wanted: Iterable[str],
    goals: list[tuple[str, str]],
    stats: list[Any],
    warnings: list[str],
    live: Any,
) -> Result:
    from emberlog.relation import Relation
    from emberlog.result import Result, RunHolder

    names = {name for name, _ in goals}
    relations = {
        name: Relation(name, checked.signatures[name].columns, RunHolder(live, name))
        for name in sorted(wanted)
        if name not in names
    }
    answers = [
        Relation(predicate, checked.signatures[predicate].columns, RunHolder(live, name)) for name, predicate in goals
    ]
    return Result(relations, answers, stats, warnings, live)
