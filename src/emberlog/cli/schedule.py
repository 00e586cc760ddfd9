"""`emberlog schedule`: simulate schedulers of maintenance over traces, generate traces, compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emberlog.diagnostics import UsageError, cannot_write

if TYPE_CHECKING:
    from emberlog.schedule.picture import Chart
    from emberlog.schedule.tables import Table
    from emberlog.schedule.trace import Trace

commands = typer.Typer(help="Schedulers of maintenance: simulate, generate traces, compare.", no_args_is_help=True)

Processors = Annotated[int, typer.Option(help="Processors of the simulated machine.", min=1, max=1_000_000)]
Cost = Annotated[float, typer.Option(help="Seconds that a step of a scheduler takes.", min=0)]
Seed = Annotated[int, typer.Option(help="Same seed, same trace.", min=0)]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]
Svg = Annotated[Path | None, typer.Option(help="Write a picture to this file.")]
Durations = Annotated[Path | None, typer.Option(help="Draw durations from the tasks of this recorded trace.")]


@commands.command()
def simulate(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace file (docs/scheduling.md).")],
    scheduler: Annotated[
        list[str] | None,
        typer.Option(help="level, lookahead:K, logicblox, signal, hybrid, meta:BUDGET; may be given again."),
    ] = None,
    processors: Processors = 8,
    cost: Cost = 1e-9,
    markdown: Markdown = False,
) -> None:
    """Replay a trace under one or several schedulers."""
    from emberlog.schedule.files import read
    from emberlog.schedule.interface import DEFAULT
    from emberlog.schedule.interface import scheduler as by_name
    from emberlog.schedule.simulate import simulate as replay
    from emberlog.schedule.tables import outcome_table

    chosen = [(spec, by_name(spec)) for spec in scheduler or [DEFAULT]]  # a wrong name is told before the work
    given = read(trace)
    outcomes = {spec: replay(given, made, processors, cost) for spec, made in chosen}
    _print([outcome_table(f"{trace} on {processors} processors", outcomes)], markdown)


@commands.command()
def generate(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write; compressed if it ends in .gz.")],
    like: Annotated[int | None, typer.Option(help="As this trace of the paper's Table I: 1 to 11.")] = None,
    fig2: Annotated[bool, typer.Option("--fig2", help="The paper's Fig. 2.")] = False,
    worst: Annotated[bool, typer.Option("--worst", help="Short tasks side by side: the worst for logicblox.")] = False,
    size: Annotated[
        int | None, typer.Option(help="Levels of --fig2 [100], or tasks of --worst [20000].", max=1_000_000)
    ] = None,
    distribution: Annotated[str, typer.Option(help="Of --like: constant, exponential or heavy.")] = "exponential",
    durations: Durations = None,
    seed: Seed = 0,
) -> None:
    """Write a trace."""
    from emberlog.schedule import examples
    from emberlog.schedule.files import write
    from emberlog.schedule.tables import figures_table

    if (like is not None) + fig2 + worst != 1:
        raise UsageError("say one of --like, --fig2 and --worst")
    if like is not None:
        if size is not None:
            raise UsageError("--size belongs to --fig2 and --worst", fix="a trace of Table I has its own size")
        made = _like(like, distribution, durations, seed)
    elif fig2:
        made = examples.fig2(100 if size is None else size)
    else:
        made = examples.worst(20_000 if size is None else size)
    write(made, out)
    _print([figures_table(str(out), made)], markdown=False)


@commands.command()
def tables(
    trace: Annotated[list[int] | None, typer.Option(help="Only this trace of Table I; may be given again.")] = None,
    processors: Processors = 8,
    cost: Cost = 1e-9,
    distribution: Annotated[
        list[str] | None, typer.Option(help="Only these durations: constant, exponential, heavy; may be given again.")
    ] = None,
    durations: Durations = None,
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(help="Processes [one for each core].", min=1)] = None,
    svg: Svg = None,
    markdown: Markdown = False,
) -> None:
    """Every scheduler on traces as in the paper's Table I: its Tables II and III in form."""
    from emberlog.schedule import tables as code
    from emberlog.schedule.durations import DISTRIBUTIONS, known_distribution
    from emberlog.schedule.files import read
    from emberlog.schedule.shapes import SHAPES

    numbers = set(trace or SHAPES)
    if unknown := numbers - SHAPES.keys():
        raise UsageError(f"Table I has no trace {min(unknown)}", fix=f"its traces are 1 to {len(SHAPES)}")
    given = None if durations is None else read(durations)
    chosen = tuple(map(known_distribution, distribution or DISTRIBUTIONS))
    settings = code.Settings(processors, cost, seed, chosen, given)
    found = code.compare(numbers, settings, workers or os.cpu_count() or 1)
    _print(code.tables(found), markdown)
    _draw(code.overhead_chart(found), svg)


@commands.command()
def slopes(svg: Svg = None, markdown: Markdown = False) -> None:
    """Fig. 2 of the paper at growing sizes: how the makespan grows under each scheduler."""
    from emberlog.schedule import slopes as code

    found = code.makespans()
    _print([code.table(found)], markdown)
    _draw(code.chart(found), svg)


def _like(number: int, distribution: str, durations: Path | None, seed: int) -> Trace:
    from emberlog.schedule.durations import drawn, recorded
    from emberlog.schedule.files import read
    from emberlog.schedule.shapes import SHAPES, like

    made = like(number, seed)
    if durations is not None:
        return recorded(made, read(durations), seed)
    return drawn(made, distribution, SHAPES[number].mean, seed)


def _draw(chart: Chart, path: Path | None) -> None:
    if path is None:
        return
    try:
        path.write_text(chart.to_svg(), encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error
    print(f"wrote {path}")


def _print(shown: list[Table], markdown: bool) -> None:
    if markdown:
        print("\n\n".join(table.to_markdown() for table in shown))
        return
    from rich.markup import escape
    from rich.table import Table as Grid

    from emberlog.cli.show import console

    for table in shown:
        grid = Grid(title=escape(table.title), title_justify="left")
        for heading in table.headings:
            grid.add_column(escape(heading), overflow="fold")
        for row in table.rows:
            grid.add_row(*map(escape, row))
        console().print(grid)
