"""The engine: what users call.

An engine holds sources under names, runs programs over them on its executor, and lets go of everything when it closes.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import local
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from emberlog.analysis.check import check, check_aggregates
from emberlog.analysis.columns import unread_columns
from emberlog.analysis.functions import FUNCTIONS, NARROWING
from emberlog.analysis.given import with_functions
from emberlog.analysis.names import mentioned
from emberlog.analysis.parameters import check_parameters, lists_of
from emberlog.analysis.plain import written_out
from emberlog.analysis.program import CheckedProgram, Verdict, Verdicts
from emberlog.analysis.typenames import built_in_type
from emberlog.asked import (
    conditions_as_rules,
    declared,
    directives,
    goals_as_rules,
    input_directives,
    with_goal,
)
from emberlog.callables import PythonFunction, functions_of_file, python_function
from emberlog.choose.strata import Setting
from emberlog.choose.wishes import Wishes
from emberlog.clock import OTHER, Clock
from emberlog.compiled import Compiled, compile_program
from emberlog.data.paths import make_folder, path_of
from emberlog.deadline import Deadline
from emberlog.diagnostics import Diagnostic, Label, UsageError, did_you_mean, warning
from emberlog.notices import Notices, chosen, tell_of_data, tell_of_program
from emberlog.source import Source as Text
from emberlog.stats import Limits, Progress, Stats
from emberlog.stopping import Stop
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse, parse_goal
from emberlog.thresholds import CHECKPOINT_SECONDS
from emberlog.types import Column, Params, Type

if TYPE_CHECKING:
    from emberlog.answer import Answer
    from emberlog.data.sources import Source
    from emberlog.executors.base import Executor, Options
    from emberlog.explain.report import Plan
    from emberlog.maintain.view import View
    from emberlog.progress import ProgressFunction
    from emberlog.result import LiveRun, Result
    from emberlog.store.kept import Kept

EXECUTORS = ("spark", "local")
PLACEMENTS = ("auto", "local", "spark")
EVALUATORS = ("auto", "sql", "kernel")


@dataclass(frozen=True)
class _Asked:
    """A program that was run and what it was run with: a later query asks it again."""

    program: Program
    facts_dir: Path | None
    params: dict[str, Any]
    naive: bool


@dataclass(frozen=True)
class _Prepared:
    """A program that is ready to be run: compiled, with the sources that it was compiled for. `told` are warnings about
    the program."""

    compiled: Compiled
    sources: Mapping[str, Source]
    options: Options
    tell: Notices
    told: tuple[Diagnostic, ...]


class _Last(local):
    """The last program that a thread ran."""

    asked: _Asked | None = None


class Engine:
    """Runs Datalog programs over registered tables.

    `executor` is "spark" (the given session, the active one, or a new one on this machine) or "local" (DuckDB in this
    process, no JVM). `workers` are threads of the local executor, or cores of a new session. `coordination` makes them
    share recursive components out, each with its part of the facts, and says how they keep in step: bsp, ssp:S:T,
    async, dws, aap, adaptive, or auto, which chooses while it runs. `limits` is a `Limits` or a mapping with rounds,
    rows and seconds. `memory` bounds the data that a run
    keeps in memory ("4GB"; else a share of what is free), Spark's heap apart. `run_dir` is
    where scratch files go. `checkpoint` is a folder, or an address that Arrow knows, to which workers that coordinate
    write their parts every `checkpoint_seconds`; a run that was interrupted goes on from there. `nulls="drop"` drops
    rows with nulls in place of refusing them. `warnings` about programs and data are shown (by Python's `warnings`,
    as `emberlog.EmberlogWarning`), or made errors ("error"), or left to `result.warnings` ("ignore"). `progress` is a
    function, called with a `ProgressEvent` (`print` will do) whenever there is something to tell, or an object with
    the methods of `stats.Progress`; what it raises ends the run and reaches the caller. Without it a terminal shows a
    line. `files="confined"` is for programs of others: their `.input`s read files of the facts folder only, and their
    `.output`s write to the output folder only (no `..`, no absolute path, no link that leads out, no table or
    database).

    Threads may share an engine. Each has its own last program, which `query` without a program asks.
    """

    def __init__(
        self,
        spark: Any = None,
        executor: str = "spark",
        workers: int | None = None,
        coordination: str | None = None,
        limits: Limits | Mapping[str, float] | None = None,
        memory: str | int | None = None,
        run_dir: str | Path | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        nulls: Literal["error", "drop"] = "error",
        progress: Progress | ProgressFunction | None = None,
        warnings: Notices = "show",
        files: Literal["anywhere", "confined"] = "anywhere",
    ) -> None:
        _choose("files", files, ("anywhere", "confined"))
        _choose("executor", executor, EXECUTORS)
        self._coordination = Wishes.of({"coordination": coordination}).coordination
        _choose("nulls", nulls, ("error", "drop"))
        if workers is not None and not (isinstance(workers, int) and workers >= 1):
            raise UsageError(f"workers is a number of at least 1, not {workers!r}")
        if memory is not None:
            from emberlog.memory import bytes_of

            bytes_of(memory)  # raises for what is not a size
        if not isinstance(checkpoint_seconds, int | float) or not checkpoint_seconds >= 0:
            raise UsageError(f"checkpoint_seconds is a number of at least 0, not {checkpoint_seconds!r}")
        self._checkpoint = None if checkpoint is None else _address(checkpoint)
        self._checkpoint_seconds = float(checkpoint_seconds)
        self.executor = executor
        self._spark = spark
        self._own_session = False
        self._workers = workers
        self._limits = Limits.of(limits)
        self._memory = memory
        self._nulls = nulls
        self._progress = progress
        self._notices = chosen(warnings)
        self._files: Literal["anywhere", "confined"] = files
        self._run_dir = None if run_dir is None else path_of(run_dir, "run_dir")
        self._sources: dict[str, Source] = {}
        self._kept: Kept | None = None  # what runs made of them
        self._functions: dict[str, PythonFunction] = {}
        self._last = _Last()
        self._runs: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stops: weakref.WeakSet[Stop] = weakref.WeakSet()  # of runs, as long as somebody holds their relations
        self._closed = False

    # --- sources -------------------------------------------------------------------------------------------------

    def register(self, name: str, source: object, *, header: bool | None = None, delimiter: str | None = None) -> None:
        """Gives the rows of a base relation: a Spark, pandas or Polars frame, an Arrow table, a path (csv, tsv, facts,
        parquet), a list of tuples, or a relation of an earlier run (its rows stay where they are, so the engine that
        made them must be open while a run reads them). A name that is registered again has the new rows from then on.
        """
        from emberlog.data.sources import RelationSource, source_of
        from emberlog.relation import Relation

        self._check_open()
        if not isinstance(name, str) or not name:
            raise UsageError(f"the name of a relation is a text, not {name!r}")
        if isinstance(source, Relation) and header is None and delimiter is None:
            self._sources[name] = RelationSource(source)
        else:
            self._sources[name] = source_of(name, source, header=header, delimiter=delimiter)
        self.forget(name)

    def unregister(self, name: str) -> None:
        """Forgets a registered source. Results of earlier runs stay."""
        self._check_open()
        if name not in self._sources:
            listed = ", ".join(sorted(self._sources)) or "none"
            raise UsageError(
                f"`{name}` is not registered", fix=did_you_mean(name, self._sources) or f"registered: {listed}"
            )
        del self._sources[name]
        self.forget(name)

    def forget(self, name: str) -> None:
        """Lets go of what earlier runs made of a registered source and kept for the next one: its rows, sorted and as
        numbers. The source stays registered, and is read again."""
        self._check_open()
        if self._kept is not None:
            self._kept.forget(name)

    # --- functions -----------------------------------------------------------------------------------------------

    def function(
        self, name: str, fn: Callable[..., Any], result: str | None = None, *parameters: str, vectorized: bool = False
    ) -> None:
        """Gives programs a function of Python under this name: `p(X, score(X, Y)) <- q(X, Y).`

        `result` is its type and `parameters` those of its arguments ("number", "float", "symbol", "decimal(10,2)", ..);
        what is not said is what its annotations say, or, of arguments, any type. It is called with the values of one
        row; if it is `vectorized`, with arrays of Arrow, and gives an array of the same length. It must give equal
        values for equal arguments. A row for which it raises, or gives None, has no value there, which is an error
        that names the rule and the row. A name that is given again stands for the new function from then on.
        """
        types = [_function_type(word) for word in ((result,) if result is not None else ()) + parameters]
        first, others = (types[0], types[1:]) if result is not None else (None, types)
        self._give(python_function(name, fn, first, tuple(others), vectorized))

    def functions_from(self, path: str | Path) -> list[str]:
        """Gives programs the functions that a Python file defines, with the types of their annotations, and returns
        their names: `def score(x: float, name: str) -> float: ...`"""
        found = functions_of_file(path_of(path, "the file of functions"))
        for function in found:
            self._give(function)
        return [function.name for function in found]

    def _give(self, function: PythonFunction) -> None:
        self._check_open()
        if function.name in FUNCTIONS or function.name in NARROWING:
            raise UsageError(f"`{function.name}` is a function of the language", fix="give it another name")
        self._functions[function.name] = function

    def drop_function(self, name: str) -> None:
        """Takes a function of Python back."""
        self._check_open()
        if name not in self._functions:
            listed = ", ".join(sorted(self._functions)) or "none"
            raise UsageError(
                f"`{name}` is no function of Python", fix=did_you_mean(name, self._functions) or f"given: {listed}"
            )
        del self._functions[name]

    @property
    def spark(self) -> Any:
        """The Spark session of the `spark` executor; made on first use if none was given."""
        return self._session(Clock())

    def _session(self, clock: Clock) -> Any:
        if self._spark is None:
            with clock.step("start Spark"):
                from emberlog.executors.session import local_session

                self._spark, self._own_session = local_session(self._workers)
        return self._spark

    # --- running -------------------------------------------------------------------------------------------------

    def run(
        self,
        text: str | Program,
        params: Params | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        persist: str | Path | None = None,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | ProgressFunction | None = None,
        check_prem: bool = False,
        warnings: Notices | None = None,
        **options: Any,
    ) -> Result:
        """Evaluates what the program asks for: its `.output`, `.printsize` and `?-`, or else every derived predicate.
        The program is a text, or one that was parsed before.

        `naive` recomputes aggregates in recursion every round, and so allows those that are not known to be right by
        deltas. `placement` forces strata of the spark executor into the driver ("local") or onto Spark ("spark").
        `persist` writes the results as Parquet to a folder, so that they can be read after the engine is closed.
        `check_prem` checks in every round that a min or max may stand inside its recursion, on the data at hand: in
        plain Python, for samples of data.
        `warnings` is what becomes of them in this run, see `Engine`.
        `evaluator` forces "sql" or "kernel" for recursive strata; `options` choose among the ways of the kernels, see
        `choose.wishes.Wishes`.
        """
        clock = Clock()
        with clock.step(OTHER):
            how = self._options(evaluator, placement, limits, progress, options, clock)
            how = replace(how, check_prem=check_prem)
            with self._working(how) as stop:
                with clock.step("check"), how.deadline.enforced("reading the program"):
                    program = _parsed(text)
                result = self._run(program, None, params, how, naive, self._tell(warnings), persist=persist)
                stop.check()
                return result

    def cancel(self) -> None:
        """Ends what this engine is running, from another thread: runs and queries, and relations that are being read.

        What is ended raises `CancelledError`. The engine can be used as before. With nothing running, nothing is done.
        """
        for stop in list(self._stops):
            stop.cancel()

    @contextmanager
    def _working(self, options: Options) -> Iterator[Stop]:
        """Work for a run, which `cancel` ends."""
        self._stops.add(options.stop)
        with options.stop.working():
            yield options.stop

    def run_file(
        self,
        path: str | Path,
        facts_dir: str | Path | None = None,
        output_dir: str | Path | None = None,
        params: Params | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        persist: str | Path | None = None,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | ProgressFunction | None = None,
        check_prem: bool = False,
        warnings: Notices | None = None,
        **options: Any,
    ) -> Result:
        """Runs a program from a file: `.input` reads from `facts_dir`, `.output` writes to `output_dir`."""
        from emberlog.data.directives import output_path, write_directive

        facts = path_of(facts_dir, "facts_dir") if facts_dir is not None else None
        folder = path_of(output_dir, "output_dir") if output_dir is not None else None
        clock = Clock()
        with clock.step(OTHER):
            how = self._options(evaluator, placement, limits, progress, options, clock)
            how = replace(how, check_prem=check_prem)
            with self._working(how) as stop:
                with clock.step("check"), how.deadline.enforced("reading the program"):
                    program = parse(read_program(path))
                    outputs = list(directives(program, "output")) if folder is not None else []
                    for directive in outputs:
                        output_path(directive, folder, self._files)  # tells of what cannot be written before all else
                result = self._run(program, facts, params, how, naive, self._tell(warnings), persist=persist)
                for directive in outputs:
                    relation, name = result[directive.relation], directive.relation
                    with clock.step("write", name), how.deadline.held(f"writing `{name}`"):
                        write_directive(directive, folder, relation._to_write(), relation.schema, self._files, stop)
                    stop.check()
            return result

    def query(
        self,
        goal: str,
        program: str | None = None,
        params: Params | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        *,
        limits: Limits | Mapping[str, float] | None = None,
        progress: Progress | ProgressFunction | None = None,
        warnings: Notices | None = None,
        **options: Any,
    ) -> Answer:
        """The rows of a predicate that match a goal such as `tc(1, Y)` or `tc(X, Y), wanted(X)`, of the given program,
        or of the last one that this thread ran.

        Mistakes in the program and the goal are told now; nothing is evaluated before the answer is read. What the goal
        binds restricts what is derived. The time limit counts from when the evaluation begins.
        """
        if not isinstance(goal, str):
            raise UsageError(f"a goal is a text, not {type(goal).__name__}", fix='query("tc(1, Y)")')
        tell, last = self._tell(warnings), self._last.asked
        if program is None and last is None:
            raise UsageError(
                "there is no program to query: this thread has run none",
                fix="pass program=text, or run a program in this thread first",
            )
        how = self._options(evaluator, placement, limits, progress, options, Clock())
        with self._working(how):
            with how.clock.step("check"), how.deadline.enforced("reading the program"):
                if program is not None:
                    asked = _Asked(parse(_program(program)), None, _params(params), naive)
                else:
                    assert last is not None
                    tell = "ignore" if tell == "show" else tell  # its run has told already
                    asked = replace(last, params={**last.params, **_params(params)}, naive=naive or last.naive)
                asking = with_goal(asked.program, parse_goal(goal, bigdatalog=asked.program.bigdatalog))
            prepared = self._prepare(asking, asked.facts_dir, asked.params, how, asked.naive, tell)
        self._last.asked = asked
        return self._answer(prepared)

    def _answer(self, prepared: _Prepared) -> Answer:
        """The answer of a program's one goal, which is evaluated when it is read."""
        from emberlog.answer import Answer, Deferred
        from emberlog.result import RunHolder

        ((name, predicate),) = prepared.compiled.goals
        clock = prepared.options.clock
        stats = Stats(clock)

        def evaluate() -> RunHolder:
            clock.started = monotonic()
            with self._working(prepared.options), clock.step(OTHER):
                live, _ = self._evaluate(prepared)
                stats.memory = live.executor.memory
            return RunHolder(live, name)

        return Answer(predicate, prepared.compiled.checked.signatures[predicate].columns, Deferred(evaluate), stats)

    def _run(
        self,
        program: Program,
        facts_dir: Path | None,
        params: Params | None,
        options: Options,
        naive: bool,
        tell: Notices,
        *,
        persist: str | Path | None = None,
    ) -> Result:
        folder = None if persist is None else path_of(persist, "persist")
        prepared = self._prepare(program, facts_dir, params, options, naive, tell, keep_rows=folder is not None)
        live, about_data = self._evaluate(prepared)
        self._last.asked = _Asked(program, facts_dir, _params(params), naive)
        told = [found.summary for found in (*prepared.told, *about_data)]
        result = _result(prepared.compiled, Stats(options.clock, live.executor.memory), told, live)
        if folder is not None:
            with options.deadline.held("writing the results"):
                result.persist(folder, options.stop)
        return result

    def _prepare(
        self,
        program: Program,
        facts_dir: Path | None,
        params: Params | None,
        options: Options,
        naive: bool,
        tell: Notices,
        *,
        keep_rows: bool = False,
    ) -> _Prepared:
        """The program, compiled for the sources that there are now. Raises what is wrong with it."""
        self._check_open()
        given, clock = _params(params), options.clock
        with clock.step("look at sources"):
            sources = {**self._all_sources(program, facts_dir), **_list_sources(given)}
            program = self._written_out(program, sources, clock, options.deadline)
            catalog = self._whole_catalog(goals_as_rules(program)[0], sources, given, options)
        about_program: list[Diagnostic] = []

        def tell_warnings(checked: CheckedProgram) -> None:
            about_program.extend((*checked.warnings, *self._shadowed(checked)))
            tell_of_program(about_program, tell)

        @contextmanager
        def stage(name: str) -> Iterator[None]:
            with clock.step(name), options.deadline.enforced("planning" if name == "plan" else "checking the program"):
                yield

        compiled = compile_program(
            program,
            catalog,
            self._setting(options),
            given,
            naive=naive,
            keep_rows=keep_rows,
            checked_as=tell_warnings,
            stage=stage,
            rows=_known_rows(sources),
        )
        return _Prepared(compiled, sources, options, tell, tuple(about_program))

    def _evaluate(self, prepared: _Prepared) -> tuple[LiveRun, list[Diagnostic]]:
        """The run of a program, done, and warnings about its data."""
        from emberlog.result import LiveRun

        self._check_open()
        scratch = Path(tempfile.mkdtemp(prefix="emberlog-", dir=self._scratch_root()))
        try:
            executor = self._executor(prepared.compiled, prepared.options, scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        live = LiveRun(executor, scratch, None if self._own_session else self._spark)
        self._runs.add(live)
        try:
            outcome = executor.run(prepared.sources)
            about_data = [warning("W0800", message) for message in outcome.warnings]
            tell_of_data(about_data, prepared.tell)
        except BaseException:
            with suppress(Exception):  # what went wrong first is what to tell
                live.close()
            raise
        return live, about_data

    def _tell(self, warnings: Notices | None) -> Notices:
        """What becomes of the warnings of a call."""
        return self._notices if warnings is None else chosen(warnings)

    def _shadowed(self, checked: CheckedProgram) -> list[Diagnostic]:
        """A warning for each registered relation that the program has rules for: it might be left over."""
        rules = [rule for component in checked.components for rule in component.rules]
        first = {rule.predicate: rule.span for rule in reversed(rules) if rule.predicate in self._sources}
        return [
            warning("W0203", f"`{name}` has rules and a registered source: its rows are those of both", [Label(span)])
            for name, span in first.items()
        ]

    def _executor(self, compiled: Compiled, options: Options, scratch: Path) -> Executor:
        if self.executor == "local":
            with options.clock.step("load modules"):
                from emberlog.executors.local import LocalExecutor

            return LocalExecutor(compiled, options, scratch, self._spark)
        with options.clock.step("load modules"):
            from emberlog.executors.spark import SparkExecutor

        return SparkExecutor(self._session(options.clock), compiled, options, scratch)

    def _options(
        self,
        evaluator: str,
        placement: str,
        limits: Limits | Mapping[str, float] | None,
        progress: Progress | ProgressFunction | None,
        wishes: Mapping[str, Any],
        clock: Clock,
    ) -> Options:
        with clock.step("load modules"):
            from emberlog.executors.base import Options
            from emberlog.progress import progress_of

        _choose("evaluator", evaluator, EVALUATORS)
        _choose("placement", placement, PLACEMENTS)
        if self.executor == "local" and placement == "spark":
            raise UsageError("the local executor places nothing on Spark", fix='use executor="spark"')
        wishes = {"coordination": self._coordination, **wishes}
        if self.executor == "spark" and wishes.get("simulate") is not None and placement != "local":
            raise UsageError("a simulated clock is of one process, not of Spark's tasks", fix='use executor="local"')
        if self._checkpoint is not None and (wishes["coordination"] is None or wishes.get("simulate") is not None):
            raise UsageError(
                "checkpoints are of workers that coordinate in real time",
                fix='add coordination="bsp", or leave out checkpoint',
            )
        return Options(
            limits=self._limits if limits is None else Limits.of(limits),
            progress=progress_of(self._progress if progress is None else progress),
            nulls=self._nulls,
            placement=placement,  # type: ignore[arg-type]
            workers=self._workers,
            memory=self._memory,
            evaluator=evaluator,  # type: ignore[arg-type]
            checkpoint=self._checkpoint,
            checkpoint_seconds=self._checkpoint_seconds,
            wishes=Wishes.of(wishes),
            clock=clock,
            kept=self._kept_of_sources(),
        )

    def _setting(self, options: Options) -> Setting:
        from emberlog.kernels.cache import INTERPRETS

        executor: Literal["local", "spark"] = "local" if self.executor == "local" else "spark"
        return Setting(executor, options.evaluator, options.wished, options.workers, interprets=INTERPRETS)

    def _kept_of_sources(self) -> Kept:
        if self._kept is None:
            from emberlog.store.kept import Kept

            self._kept = Kept(self._sources)
        return self._kept

    def _all_sources(self, program: Program, facts_dir: Path | None) -> dict[str, Source]:
        """Registered sources, and what the program's `.input`s name where nothing is registered."""
        from emberlog.data.directives import source_of_directive

        found = {
            directive.relation: source_of_directive(directive, facts_dir, self._files)
            for directive in input_directives(program, files=facts_dir is not None)
            if directive.relation not in self._sources
        }
        return {**found, **self._sources}

    def _catalog(
        self, program: Program, sources: Mapping[str, Source], clock: Clock, deadline: Deadline
    ) -> dict[str, tuple[Column, ...] | None]:
        """The columns of the sources; None where the program has to tell them, or does not mention the source."""
        from emberlog.executors.schemas import columns_of_source

        with deadline.enforced("checking the program"):
            named, known, unread = mentioned(program), declared(program), unread_columns(program)
        session = None if self.executor == "local" else lambda: self._session(clock)
        return {
            name: columns_of_source(name, source, session, name in known, deadline, unread.get(name, ()))
            if name in named
            else None
            for name, source in sources.items()
        }

    def _whole_catalog(
        self, program: Program, sources: Mapping[str, Source], params: Params, options: Options
    ) -> dict[str, tuple[Column, ...] | None]:
        """The catalog of a run: where neither source nor declaration tells the columns, the relation's use does."""
        from emberlog.executors.usage import columns_by_use

        catalog = self._catalog(program, sources, options.clock, options.deadline)
        if None not in catalog.values():
            return catalog
        with options.deadline.enforced("checking the program"):
            open_names = mentioned(program) - declared(program)
            unknown = [name for name, columns in catalog.items() if columns is None and name in open_names]
            if not unknown:
                return catalog
            loose = check(program, catalog, params, naive=True, require_sources=False)
        return {**catalog, **columns_by_use(loose, unknown)}

    # --- views ---------------------------------------------------------------------------------------------------

    def maintain(
        self,
        text: str | Program,
        scheduler: str = "hybrid",
        params: Params | None = None,
        *,
        path: str | Path | None = None,
        change_rules: bool = False,
        placement: str = "auto",
        facts_dir: str | Path | None = None,
        limits: Limits | Mapping[str, float] | None = None,
        warnings: Notices | None = None,
    ) -> View:
        """A view of the program: it is evaluated once, and its relations follow the changes that `view.apply` makes.

        Base relations begin with the rows of their sources, or empty. `scheduler` chooses the order of the tasks of a
        change: level, lookahead:K, logicblox, signal, hybrid or meta:BUDGET. `.input` reads from `facts_dir`. The
        limits hold for the first evaluation, and for each change anew.

        With a `path`, a folder, the view outlives the process: who opens the path again, with the same program, gets
        it as the last change left it, and sources are not read any more. One process at a time has it open. With
        `change_rules`, another program changes the rules of the view that is there.

        On the spark executor the view is kept in the driver if there is room for it; else, or with `placement="spark"`,
        its relations are Parquet files of Spark, and its tasks Spark's queries.
        """
        from emberlog.views import open_view

        self._check_open()
        program, given = _parsed(text), _params(params)
        facts = None if facts_dir is None else path_of(facts_dir, "facts_dir")
        view = open_view(
            self,
            program,
            scheduler,
            {**self._all_sources(program, facts), **_list_sources(given)},
            given,
            None if path is None else path_of(path, "path"),
            change_rules,
            lambda: self._options("auto", placement, limits, None, {}, Clock()),
            self._tell(warnings),
        )
        self._runs.add(view)
        return view

    # --- looking, without running --------------------------------------------------------------------------------

    def check(
        self, text: str | Program, params: Params | None = None, *, warnings: Notices | None = None
    ) -> list[Verdict]:
        """A verdict for each aggregate that stands inside recursion."""
        program = self._written_out(_parsed(text), self._sources, Clock(), Deadline())
        program = conditions_as_rules(program)
        checked = check_aggregates(program, self._known(program, params), _params(params))
        tell_of_program((*checked.warnings, *self._shadowed(checked)), self._tell(warnings))
        return Verdicts(checked.verdicts)

    def explain(
        self,
        text: str | Program,
        params: Params | None = None,
        evaluator: str = "auto",
        placement: str = "auto",
        naive: bool = False,
        *,
        warnings: Notices | None = None,
        **options: Any,
    ) -> Plan:
        """How the program would be evaluated with these options, which are those of `run`: text by `str()`, HTML in a
        notebook, a picture by `to_svg()`."""
        program = _parsed(text)
        from emberlog.explain.report import Plan

        how = self._options(evaluator, placement, None, None, options, Clock())
        tell, rows = self._tell(warnings), _known_rows(self._sources)
        program = self._written_out(program, self._sources, how.clock, how.deadline)
        compiled = compile_program(
            program,
            self._known(program, params),
            self._setting(how),
            params,
            naive=naive,
            require_sources=False,
            checked_as=lambda checked: tell_of_program((*checked.warnings, *self._shadowed(checked)), tell),
            rows=rows,
        )
        facts = compiled.checked.facts
        known = {name: count + len(facts.get(name, ())) for name, count in rows.items()}
        return Plan(compiled, known, placement)

    def _known(self, program: Program, params: Params | None) -> dict[str, tuple[Column, ...] | None]:
        sources = {**self._sources, **_list_sources(params)}
        return self._catalog(goals_as_rules(program)[0], sources, Clock(), Deadline())

    def _written_out(
        self, program: Program, sources: Mapping[str, Source], clock: Clock, deadline: Deadline
    ) -> Program:
        """The program written out; sources tell the names of their columns."""
        from emberlog.executors.schemas import names_of_source

        session = None if self.executor == "local" else lambda: self._session(clock)
        program = with_functions(program, self._functions)
        return written_out(program, lambda name: names_of_source(name, sources.get(name), session, deadline), sources)

    # --- the end -------------------------------------------------------------------------------------------------

    def _scratch_root(self) -> Path | None:
        if self._run_dir is not None:
            make_folder(self._run_dir, "run_dir")
        return self._run_dir

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the engine is closed", fix="make a new Engine")

    def close(self) -> None:
        """Drops every relation that was not written or persisted, and a session that the engine made itself."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as closing:  # whatever one of them raises, all are closed
            if self._own_session:
                closing.callback(self._stop_session)
            for run in list(self._runs):
                closing.callback(run.close)

    def _stop_session(self) -> None:
        from emberlog.sessions import is_gone

        try:
            self._spark.stop()
        except Exception as error:
            if not is_gone(self._spark, error):
                raise

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _choose(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UsageError(f"{what} {value!r} is not known", fix=f"{what} is one of {', '.join(known)}")


def _address(folder: str | Path) -> str:
    """A folder in full, or an address as it is."""
    return folder if isinstance(folder, str) and "://" in folder else str(path_of(folder, "checkpoint").absolute())


def _function_type(word: object) -> Type:
    """The type of this name, as functions of Python have it."""
    found = built_in_type(word) if isinstance(word, str) else None
    if found is None or found.bits != 64:
        raise UsageError(
            f"{word!r} is no type of a function",
            fix="number, unsigned, float, symbol, bool, date, timestamp, decimal(P,S)",
        )
    return found


def _parsed(text: str | Program) -> Program:
    return text if isinstance(text, Program) else parse(_program(text))


def _program(text: str) -> Text:
    """The text of a program that a caller gave."""
    if not isinstance(text, str):
        raise UsageError(f"a program is a text, not {type(text).__name__}", fix="run_file() takes the path of a file")
    return Text("<program>", text)


def _params(params: Params | None) -> dict[str, Any]:
    """The parameters of a call. Raises UsageError for values that none can have."""
    given = {} if params is None else params
    check_parameters(given)
    return dict(given)


def _list_sources(params: Params | None) -> dict[str, Source]:
    """The relations `$NAME` that lists among the parameters are. Raises UsageError for values that none can have."""
    params = _params(params)
    lists = lists_of(params)
    if not lists:
        return {}
    from emberlog.data.sources import source_of

    return {name: source_of(name, rows) for name, rows in lists.items()}


def _known_rows(sources: Mapping[str, Source]) -> dict[str, int]:
    """The numbers of rows of sources that are known without reading them."""
    from emberlog.data.sources import known_rows

    found = {name: known_rows(source) for name, source in sources.items()}
    return {name: rows for name, rows in found.items() if rows is not None}


def read_program(path: str | Path) -> Text:
    """The text of a program file."""
    try:
        return Text(str(path), path_of(path, "the program").read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def _result(compiled: Compiled, stats: Stats, warnings: list[str], live: Any) -> Result:
    from emberlog.relation import Relation
    from emberlog.result import Result, RunHolder

    signatures, goals = compiled.checked.signatures, compiled.goals
    names = {name for name, _ in goals}
    relations = {
        name: Relation(name, signatures[name].columns, RunHolder(live, name))
        for name in sorted(compiled.wanted)
        if name not in names
    }
    answers = [Relation(predicate, signatures[predicate].columns, RunHolder(live, name)) for name, predicate in goals]
    return Result(relations, answers, stats, warnings, live)
