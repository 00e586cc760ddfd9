"""`emberlog maintain`: a view of a program, changed by a script."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emberlog.diagnostics import EmberlogError, UsageError, render
from emberlog.notices import chosen

if TYPE_CHECKING:
    from emberlog.maintain.view import View


def maintain(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="A program file (.dl).")],
    script: Annotated[
        Path | None,
        typer.Argument(metavar="SCRIPT", help="Changes, a line each; else they are read from the terminal."),
    ] = None,
    facts: Annotated[Path | None, typer.Option("-F", "--facts", help="Folder that .input reads from.")] = None,
    path: Annotated[
        Path | None, typer.Option("--path", help="Folder that keeps the view: the next start goes on from there.")
    ] = None,
    change_rules: Annotated[
        bool, typer.Option("--change-rules", help="Change the rules of the view in --path to those of PROGRAM.")
    ] = False,
    scheduler: Annotated[str, typer.Option(help="The order of the tasks of a change.")] = "hybrid",
    param: Annotated[list[str] | None, typer.Option("--param", help="A value for $K: K=V.")] = None,
    rows: Annotated[int | None, typer.Option(help="Stop with an error at so many derived rows.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop a change with an error after so many seconds.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write what the tasks of the last change took: `emberlog schedule simulate`.")
    ] = None,
    warnings: Annotated[str, typer.Option("--warnings", help="show, error or ignore.")] = "show",
    explain: Annotated[bool, typer.Option("--explain", help="Print how each relation is maintained.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Print what each change took.")] = False,
) -> None:
    """Keep a program's relations current: read changes (+arc(1,2).  -arc(3,4).  commit  abort  +rule ...  -rule ...
    ?- goal.) and print what they change. The end of the script commits."""
    from emberlog.cli import _params
    from emberlog.engine import Engine, read_program
    from emberlog.maintain.script import Script
    from emberlog.schedule.files import write as write_trace
    from emberlog.syntax.parser import parse

    lines = sys.stdin if script is None else _lines(script)
    asks = script is None and sys.stdin.isatty()
    limits = {name: value for name, value in (("rows", rows), ("seconds", seconds)) if value is not None}
    with Engine(executor="local", limits=limits or None, warnings=chosen(warnings)) as engine:
        view = engine.maintain(
            parse(read_program(program)),
            scheduler,
            _params(param),
            path=path,
            change_rules=change_rules,
            facts_dir=facts or Path(),
        )
        if explain:
            print(view.explain())
        reader = Script(view)
        try:
            for number, line in enumerate(lines, 1):
                _tell(view, reader.read(line), f"line {number}", asks, stats)
        except UnicodeDecodeError as error:
            raise UsageError("the script is not a text in UTF-8") from error
        if reader.waits:
            _tell(view, reader.commit(), "the end", asks, stats)
        if trace is not None:
            write_trace(view.stats.trace(), trace)


def _lines(script: Path) -> list[str]:
    try:
        with script.open(encoding="utf-8-sig") as file:
            return list(file)
    except UnicodeDecodeError as error:
        raise UsageError(f"{script} is not a text file in UTF-8") from error
    except OSError as error:
        raise UsageError(f"cannot read {script}: {error.strerror or error}") from error


def _tell(view: View, answers: Iterable[str], place: str, asks: bool, stats: bool) -> None:
    """Prints what a place of the script answers, and what its change took. At a terminal a mistake is told, and the
    next line may do better; else it ends the script."""
    seen = view.stats
    try:
        for answer in answers:
            print(answer, flush=asks)
    except EmberlogError as error:
        if not asks:
            print(f"at {place} of the script:", file=sys.stderr)
            raise
        for diagnostic in error.diagnostics():
            print(render(diagnostic), file=sys.stderr)
    if stats and view.stats is not seen:
        print(view.stats, file=sys.stderr)
