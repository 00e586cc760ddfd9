"""The command line: the only place that prints, and the only one that picks exit codes."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from emberlog.analysis.booleans import WORDS
from emberlog.cli.bench import commands as bench_commands
from emberlog.cli.generate import generate
from emberlog.cli.maintain import maintain
from emberlog.cli.papers import papers
from emberlog.cli.repl import repl
from emberlog.cli.schedule import commands as schedule_commands
from emberlog.cli.streams import OutputClosed, flush_output, guarded_streams
from emberlog.deadline import COMPILER
from emberlog.diagnostics import EmberlogError, EmberlogWarning, InternalError, UsageError, cannot_write, render
from emberlog.loading import INTERRUPTED, Loading
from emberlog.notices import chosen
from emberlog.thresholds import CHECKPOINT_SECONDS
from emberlog.why.limits import BUDGET, DEPTH, WIDTH

# What is imported stays: looking through it for garbage again and again takes a tenth of a second of every command.
gc.set_threshold(200_000, 20, 20)

app = typer.Typer(
    help="Datalog for Spark: recursive rules over your tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("generate")(generate)
app.command("maintain")(maintain)
app.command("papers")(papers)
app.command("repl")(repl)
app.add_typer(bench_commands, name="bench")
app.add_typer(schedule_commands, name="schedule")


def _version(asked: bool) -> None:
    if asked:
        import emberlog

        print(f"emberlog {emberlog.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Datalog for Spark: recursive rules over your tables."""


ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM", help="A program file (.dl).")]
Placement = Annotated[str, typer.Option(help="auto, local (in the driver) or spark.")]
Naive = Annotated[bool, typer.Option(help="Recompute aggregates in recursion every round.")]
Evaluator = Annotated[str, typer.Option(help="auto, sql or kernel: who evaluates recursion.")]
Storage = Annotated[str, typer.Option(help="Of the kernels: auto, hash, rows, loops or columns.")]
Decompose = Annotated[bool, typer.Option(help="Of the kernels: use pivots where there are any.")]
Exchange = Annotated[bool, typer.Option(help="Of the kernels: workers own facts and swap them each round.")]
Ordered = Annotated[bool, typer.Option(help="Of the kernels: take up small values first.")]
Partition = Annotated[
    list[str] | None, typer.Option(help="Of the kernels: divide a predicate by an argument (from 0): tc=1.")
]
Join = Annotated[str, typer.Option(help="Of Spark SQL: auto, broadcast or shuffle.")]
Coordination = Annotated[
    str | None,
    typer.Option(
        help="Workers share recursion out, each with its part, and keep in step so: bsp, ssp:S:T, async, dws, aap, "
        "adaptive or auto."
    ),
]
Straggle = Annotated[
    str | None, typer.Option(metavar="RATE,DURATION,SHARE", help="Of workers that coordinate: disturb them at random.")
]
Simulate = Annotated[
    str | None,
    typer.Option(metavar="COSTS", help="Of workers that coordinate: under a simulated clock; latency=0.001,seed=3."),
]
Functions = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A Python file: its annotated functions can be called by rules.")
]
Warnings = Annotated[str, typer.Option("--warnings", help="show, error (end with an error) or ignore.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", help="A value for $K: K=V, or a list: K=[1,2]. May be given more than once."),
]


@app.command()
def run(
    program: ProgramFile,
    facts: Annotated[Path | None, typer.Option("-F", "--facts", help="Folder that .input reads from.")] = None,
    output: Annotated[Path | None, typer.Option("-D", "--output", help="Folder that .output writes to.")] = None,
    executor: Annotated[str, typer.Option(help="spark, or local (DuckDB in this process, no JVM).")] = "spark",
    master: Annotated[str | None, typer.Option(help="Spark master URL, or sc://host:port for Connect.")] = None,
    workers: Annotated[int | None, typer.Option(help="Threads (local) or cores of a new session (spark).")] = None,
    coordination: Coordination = None,
    straggle: Straggle = None,
    simulate: Simulate = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Of workers that coordinate: the folder for their checkpoints; go on from there.")
    ] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = CHECKPOINT_SECONDS,
    timeline: Annotated[Path | None, typer.Option(help="Write what each worker did and when, as SVG.")] = None,
    param: Params = None,
    placement: Placement = "auto",
    naive: Naive = False,
    check_prem: Annotated[
        bool, typer.Option("--check-prem", help="Check in every round that a min or max may stand in its recursion.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(help="Stop with an error after so many rounds of a stratum.")] = None,
    rows: Annotated[int | None, typer.Option(help="Stop with an error at so many derived rows.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop with an error after so many seconds.")] = None,
    nulls: Annotated[str, typer.Option(help="error, or drop rows with nulls.")] = "error",
    evaluator: Evaluator = "auto",
    storage: Storage = "auto",
    decompose: Decompose = True,
    exchange: Exchange = False,
    ordered: Ordered = True,
    partition: Partition = None,
    join: Join = "auto",
    memory: Annotated[
        str | None,
        typer.Option(
            help="Data that a run may keep in memory, such as 4GB (else a share of what is free); Spark's heap apart."
        ),
    ] = None,
    functions: Functions = None,
    warnings: Warnings = "show",
    confine: Annotated[
        bool,
        typer.Option("--confine", help="For programs of others: .input and .output stay inside the folders -F and -D."),
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Print what each stratum took.")] = False,
) -> None:
    """Evaluate a program and write its outputs."""
    with Loading():
        from emberlog.engine import Engine

    given = {"rounds": rounds, "rows": rows, "seconds": seconds}
    limits = {name: value for name, value in given.items() if value is not None}
    session = _session(master) if master is not None and executor == "spark" else None
    with Engine(
        session,
        executor,
        workers,
        coordination,
        limits=limits or None,
        memory=memory,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        nulls=nulls,  # type: ignore[arg-type]
        warnings=chosen(warnings),
        files="confined" if confine else "anywhere",
    ) as engine:
        if functions is not None:
            engine.functions_from(functions)
        result = engine.run_file(
            program,
            facts or Path(),
            output or Path(),
            _params(param),
            evaluator,
            placement,
            naive,
            check_prem=check_prem,
            storage=storage,
            decompose=decompose,
            exchange=exchange,
            ordered=ordered,
            partition=_partition(partition),
            join=join,
            straggle=straggle,
            simulate=simulate,
        )
        if timeline is not None:
            _write_timeline(result, timeline)
        _report(result, program, wrote=output or Path())
        if stats:
            _show_stats(result)
    if session is not None:
        session.stop()


@app.command()
def check(
    programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM...", help="Program files (.dl).")],
    param: Params = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    functions: Functions = None,
    warnings: Warnings = "show",
) -> None:
    """Check programs, and prove of each aggregate in recursion that it may stand there, or show facts that break it."""
    with Loading():
        from emberlog.cli.check import as_json, check_file, print_text

    given = _params(param)
    found = [check_file(program, given, chosen(warnings), functions) for program in programs]
    if json:
        from json import dumps

        print(dumps(as_json(found), indent=2))
    else:
        print_text(found)
    if not all(checked.right for checked in found):
        raise typer.Exit(1)


@app.command()
def explain(
    program: ProgramFile,
    executor: Annotated[str, typer.Option(help="spark or local.")] = "spark",
    param: Params = None,
    placement: Placement = "auto",
    naive: Naive = False,
    evaluator: Evaluator = "auto",
    storage: Storage = "auto",
    decompose: Decompose = True,
    exchange: Exchange = False,
    ordered: Ordered = True,
    partition: Partition = None,
    join: Join = "auto",
    coordination: Coordination = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture of the plan to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plan and picture to this file.")] = None,
    functions: Functions = None,
    warnings: Warnings = "show",
) -> None:
    """Show how a program would be evaluated with these options, which are those of `run`."""
    with Loading():
        from emberlog.engine import Engine, read_program
        from emberlog.syntax.parser import parse
    with Engine(executor=executor, warnings=chosen(warnings)) as engine:
        if functions is not None:
            engine.functions_from(functions)
        plan = engine.explain(
            parse(read_program(program)),
            _params(param),
            evaluator,
            placement,
            naive,
            storage=storage,
            decompose=decompose,
            exchange=exchange,
            ordered=ordered,
            partition=_partition(partition),
            join=join,
            coordination=coordination,
        )
    for path, text in ((svg, plan.to_svg), (html, plan.to_html)):
        if path is not None:
            _write(path, text())
            print(f"wrote {path}")
    if svg is None and html is None:
        print(plan)


@app.command()
def why(
    program: ProgramFile,
    row: Annotated[str, typer.Argument(metavar="ROW", help='The row to ask about, such as "tc(1, 5)".')],
    facts: Annotated[Path | None, typer.Option("-F", "--facts", help="Folder that .input reads from.")] = None,
    absent: Annotated[bool, typer.Option("--not", help="Tell why the row does not hold.")] = False,
    all: Annotated[int, typer.Option("--all", help="Show up to so many derivations.")] = 1,
    executor: Annotated[str, typer.Option(help="spark, or local (DuckDB in this process, no JVM).")] = "spark",
    param: Params = None,
    depth: Annotated[int, typer.Option(help="Levels of a derivation that are shown.")] = DEPTH,
    width: Annotated[int, typer.Option(help="Contributions of a total, and nearest rows, that are shown.")] = WIDTH,
    budget: Annotated[int, typer.Option(help="Bodies of rules that are looked at.")] = BUDGET,
    naive: Naive = False,
    evaluator: Evaluator = "auto",
    html: Annotated[Path | None, typer.Option(help="Write the answer as a page to this file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the answer as a picture to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    functions: Functions = None,
    warnings: Warnings = "show",
) -> None:
    """Run a program and tell why a row holds, or with --not why it does not."""
    with Loading():
        from emberlog.cli.why import answers, joined
        from emberlog.engine import Engine

    with Engine(executor=executor, warnings=chosen(warnings)) as engine:
        if functions is not None:
            engine.functions_from(functions)
        result = engine.run_file(program, facts or Path(), None, _params(param), evaluator, naive=naive)
        found = answers(result, row, absent, all, {"depth": depth, "width": width, "budget": budget})
    for path, text in ((svg, joined(found, "svg")), (html, joined(found, "html"))):
        if path is not None:
            _write(path, text)
            print(f"wrote {path}")
    if svg is None and html is None:
        print(joined(found, "json" if json else "text"))


def _write_timeline(result: Any, path: Path) -> None:
    """The lanes of the first stratum that workers shared out."""
    ran = next((row.coordination for row in result.stats.strata if row.coordination is not None), None)
    if ran is None:
        raise UsageError("there is no timeline: no workers coordinated", fix="add --coordination bsp")
    _write(path, ran.to_svg())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def _params(pairs: list[str] | None) -> dict[str, Any]:
    """`K=V` options as values: numbers and truths as programs write them, a list as JSON writes it, else text (also
    when it is quoted)."""
    params: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {pair!r} is not of the form K=V")
        params[name] = _value(name, text)
    return params


def _partition(pairs: list[str] | None) -> dict[str, int] | None:
    """`PREDICATE=ARGUMENT` options as numbers."""
    found = {}
    for pair in pairs or []:
        name, _, text = pair.partition("=")
        if not name or not (text.isascii() and text.isdigit()):
            raise UsageError(f"--partition {pair!r} is not of the form PREDICATE=ARGUMENT")
        found[name] = _integer(f"--partition {name}", text)
    return found or None


_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _value(name: str, text: str) -> Any:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text in WORDS:
        return WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(f"--param {name}", text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if not text.startswith("["):
        return text
    fix = f"""write {name}='[1, 2]' or {name}='["a", "b"]'; a text that begins with [ stands in quotes"""
    try:
        return json.loads(text, parse_int=lambda digits: _integer(f"--param {name}", digits))
    except json.JSONDecodeError as error:
        wrong = f"--param {name}: {_short(text)} is not a list as JSON writes it: {error.msg}"
        raise UsageError(wrong, fix=fix) from error
    except RecursionError as error:
        raise UsageError(f"--param {name}: {_short(text)} has lists inside of lists", fix=fix) from error


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python reads no more than a few thousand digits
        raise UsageError(f"{option}: a number of {len(text):,} digits does not fit in 64 bits") from error


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _session(master: str) -> Any:
    import os

    from emberlog.executors.session import new_session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return new_session(master)


def _report(result: Any, program: Path, wrote: Path) -> None:
    """What a run has to say: sizes that were asked for, goals, and the result when no `.output` took it."""
    from emberlog.engine import read_program
    from emberlog.syntax.nodes import Directive
    from emberlog.syntax.parser import parse

    directives = [item for item in parse(read_program(program)).items if isinstance(item, Directive)]
    for directive in directives:
        if directive.kind == "printsize":
            print(f"{directive.relation}\t{len(result[directive.relation])}")
    shown = list(result.goals)
    if not shown and not any(directive.kind in ("output", "printsize") for directive in directives):
        shown = [result[name] for name in result]
    if shown:
        from emberlog.cli.show import show_relation  # rich takes a while to load

        for relation in shown:
            show_relation(relation)


def _show_stats(result: Any) -> None:
    from emberlog.cli.show import show_stats

    show_stats(result.stats)


def main() -> None:
    """Runs the command line; every error becomes a message and an exit code."""
    try:
        with guarded_streams():
            _run_command()
    except SystemExit as end:
        if any(thread.name == COMPILER for thread in threading.enumerate()):
            # The run ended without its loops: nobody is to wait until they are compiled.
            os._exit(end.code if isinstance(end.code, int) else 0)
        raise


def _run_command() -> None:
    # Spark's Python side logs a trace of its own for every call that fails or is interrupted; we tell what matters.
    logging.disable(logging.CRITICAL)
    try:
        with _warnings_on_the_error_stream():
            code = app(standalone_mode=False)
        flush_output()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except EmberlogError as error:
        _fail(error)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OutputClosed:
        sys.exit(141)  # as a shell tells it of programs that SIGPIPE ends
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "show"):  # a mistake in the arguments
            error.show()
            sys.exit(2)
        _fail(InternalError(f"{type(error).__name__}: {error}", fix="please report this with the program"), error)


@contextmanager
def _warnings_on_the_error_stream() -> Iterator[None]:
    """Prints our own warnings as errors are printed, without the line of Python that they come from."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **where: Any) -> None:
            if issubclass(category, EmberlogWarning):
                print(message, file=sys.stderr)
            else:
                show_others(message, category, *place, **where)

        warnings.simplefilter("always", EmberlogWarning)
        warnings.showwarning = show
        yield


def _fail(error: EmberlogError, cause: BaseException | None = None) -> None:
    import traceback

    if cause is not None:
        traceback.print_exception(cause)
    for diagnostic in error.diagnostics():
        print(render(diagnostic), file=sys.stderr)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
