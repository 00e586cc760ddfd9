"""The command line: the only place that prints, and the only one that picks exit codes."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from emberlog.cli.bench import commands as bench_commands
from emberlog.cli.generate import generate
from emberlog.diagnostics import EmberlogError, InternalError, UsageError, render
from emberlog.types import Value

# What is imported stays: looking through it for garbage again and again takes a tenth of a second of every command.
gc.set_threshold(200_000, 20, 20)

app = typer.Typer(
    help="Datalog for Spark: recursive rules over your tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("generate")(generate)
app.add_typer(bench_commands, name="bench")


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
Params = Annotated[list[str] | None, typer.Option("--param", help="A value for $K: K=V. May be given more than once.")]


@app.command()
def run(
    program: ProgramFile,
    facts: Annotated[Path | None, typer.Option("-F", "--facts", help="Folder that .input reads from.")] = None,
    output: Annotated[Path | None, typer.Option("-D", "--output", help="Folder that .output writes to.")] = None,
    executor: Annotated[str, typer.Option(help="spark, or local (DuckDB in this process, no JVM).")] = "spark",
    master: Annotated[str | None, typer.Option(help="Spark master URL, or sc://host:port for Connect.")] = None,
    workers: Annotated[int | None, typer.Option(help="Threads (local) or cores of a new session (spark).")] = None,
    coordination: Annotated[str, typer.Option(help="How workers keep in step; `auto` decides.")] = "auto",
    param: Params = None,
    placement: Annotated[str, typer.Option(help="auto, local (in the driver) or spark.")] = "auto",
    naive: Annotated[bool, typer.Option(help="Recompute aggregates in recursion every round.")] = False,
    check_prem: Annotated[
        bool, typer.Option("--check-prem", help="Check in every round that a min or max may stand in its recursion.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(help="Stop with an error after so many rounds of a stratum.")] = None,
    rows: Annotated[int | None, typer.Option(help="Stop with an error at so many derived rows.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop with an error after so many seconds.")] = None,
    nulls: Annotated[str, typer.Option(help="error, or drop rows with nulls.")] = "error",
    evaluator: Annotated[str, typer.Option(help="auto, sql or kernel: who evaluates recursion.")] = "auto",
    storage: Annotated[str, typer.Option(help="Of the kernels: auto, hash, rows, loops or columns.")] = "auto",
    decompose: Annotated[bool, typer.Option(help="Of the kernels: use pivots where there are any.")] = True,
    exchange: Annotated[bool, typer.Option(help="Of the kernels: workers own facts and swap them each round.")] = False,
    ordered: Annotated[bool, typer.Option(help="Of the kernels: take up small values first.")] = True,
    partition: Annotated[
        list[str] | None, typer.Option(help="Of the kernels: divide a predicate by an argument (from 0): tc=1.")
    ] = None,
    join: Annotated[str, typer.Option(help="Of Spark SQL: auto, broadcast or shuffle.")] = "auto",
    memory: Annotated[str | None, typer.Option(help="What a run may keep in memory, such as 4GB.")] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print what each stratum took.")] = False,
) -> None:
    """Evaluate a program and write its outputs."""
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
        nulls=nulls,  # type: ignore[arg-type]
    ) as engine:
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
        )
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
) -> None:
    """Check programs, and prove of each aggregate in recursion that it may stand there, or show facts that break it."""
    from emberlog.cli.check import as_json, check_file, print_text

    given = _params(param)
    found = [check_file(program, given) for program in programs]
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
    svg: Annotated[Path | None, typer.Option(help="Write a picture of the plan to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plan and picture to this file.")] = None,
) -> None:
    """Show how a program would be evaluated."""
    from emberlog.engine import Engine, read_program
    from emberlog.syntax.parser import parse

    with Engine(executor=executor) as engine:
        plan = engine.explain_program(parse(read_program(program)), _params(param))
    for path, text in ((svg, plan.to_svg), (html, plan.to_html)):
        if path is not None:
            path.write_text(text(), encoding="utf-8")
            print(f"wrote {path}")
    if svg is None and html is None:
        print(plan)


def _params(pairs: list[str] | None) -> dict[str, Value]:
    """`K=V` options as values: a number where V reads as one, else text (also when it is quoted)."""
    params: dict[str, Value] = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {pair!r} is not of the form K=V")
        params[name] = _value(text)
    return params


def _partition(pairs: list[str] | None) -> dict[str, int] | None:
    """`PREDICATE=ARGUMENT` options as numbers."""
    found = {}
    for pair in pairs or []:
        name, _, text = pair.partition("=")
        if not name or not text.isdigit():
            raise UsageError(f"--partition {pair!r} is not of the form PREDICATE=ARGUMENT")
        found[name] = int(text)
    return found or None


def _value(text: str) -> Value:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _session(master: str) -> Any:
    import os

    from emberlog.executors.session import new_session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return new_session(master)


def _report(result: Any, program: Path, wrote: Path) -> None:
    """What a run has to say: warnings, sizes that were asked for, goals, and the result when no `.output` took it."""
    from emberlog.engine import read_program
    from emberlog.syntax.nodes import Directive
    from emberlog.syntax.parser import parse

    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
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
    # Spark's Python side logs a trace of its own for every call that fails or is interrupted; we tell what matters.
    logging.disable(logging.CRITICAL)
    try:
        code = app(standalone_mode=False)
        if code == 130:
            raise KeyboardInterrupt
        sys.exit(code)
    except EmberlogError as error:
        _fail(error)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "show"):  # a mistake in the arguments
            error.show()
            sys.exit(2)
        _fail(InternalError(f"{type(error).__name__}: {error}", fix="please report this with the program"), error)


def _fail(error: EmberlogError, cause: BaseException | None = None) -> None:
    import traceback

    if cause is not None:
        traceback.print_exception(cause)
    for diagnostic in error.diagnostics():
        print(render(diagnostic), file=sys.stderr)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
