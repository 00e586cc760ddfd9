"""`emberlog papers`: what each of the five papers shows, and the command that shows it here."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from emberlog.cli.bench import from_checkout
from emberlog.diagnostics import UsageError


def papers(
    paper: Annotated[str | None, typer.Argument(help="bigdatalog, powerlog, ssp, dcdatalog or scheduling.")] = None,
    run: Annotated[bool, typer.Option("--run", help="Run its programs on generated data.")] = False,
    executor: Annotated[str, typer.Option(help="Where: local or spark.")] = "local",
) -> None:
    """List what the papers behind Emberlog show and how to see it here, or run a paper's programs (from a checkout)."""
    code = from_checkout("papers")
    known = {one.name: one for one in code.PAPERS}
    if paper is not None and paper not in known:
        raise UsageError(f"there is no paper {paper!r}", fix=f"one of: {', '.join(known)}")
    chosen = list(known) if paper is None else [paper]
    if not run:
        _list([known[name] for name in chosen])
        return
    with_programs = [name for name in chosen if any(code.programs(name))]
    if not with_programs:
        raise UsageError(f"{paper} has no programs of its own", fix=f"emberlog papers {paper}")
    for name in with_programs:
        _show(name, code.run(name, executor, lambda text: print(text, file=sys.stderr)))


def _list(papers: list[Any]) -> None:
    from rich.table import Table

    from emberlog.cli.show import console

    for paper in papers:
        table = Table("shows", "here", title=f"{paper.name}: {paper.title}", title_justify="left", box=None)
        for shown, command in paper.shows:
            table.add_row(shown, command)
        console().print(table)
        console().print()


def _show(paper: str, ran: list[Any]) -> None:
    from rich.table import Table

    from emberlog.cli.show import console

    table = Table("program", "computes", "aggregates in recursion", title=paper, title_justify="left", box=None)
    table.add_column("rows", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("the longest stratum")
    for one in ran:
        program = one.program
        table.add_row(program.path, program.computes, one.verdicts, f"{one.rows:,}", f"{one.seconds:.3f}", one.how)
    console().print(table)
