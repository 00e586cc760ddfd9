"""Relations and figures as tables on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from emberlog.diagnostics import counted
from emberlog.relation import Relation
from emberlog.stats import HEADINGS, NUMERIC, Stats
from emberlog.workers.stats import Coordinated

MOST_ROWS = 20
WIDEST = 100_000  # columns of a table that goes to no terminal


def show_relation(relation: Relation, rows: int = MOST_ROWS) -> None:
    """The first rows of a relation, in order, and how many there are."""
    out = console()
    count = len(relation)
    if not relation.schema:
        out.print(f"{escape(relation.name)}: {'true' if count else 'false'}")
        return
    # Not the title of the table, which would be broken to the table's width.
    out.print(f"{escape(relation.name)}: {counted(count, 'row')}")
    table = Table()
    for column in relation.schema:
        table.add_column(escape(column.name), justify="right" if column.type.is_numeric else "left")
    for row in relation.head(rows):
        table.add_row(*(escape(str(value)) for value in row))
    out.print(table)
    if count > rows:
        out.print(f"... and {count - rows:,} more; .output writes them all")


def show_stats(stats: Stats) -> None:
    """A line for each stratum of a run and for each step that is none, and what they come to."""
    table = Table(title="what the run took", title_justify="left")
    for name in HEADINGS:
        table.add_column(name, justify="right" if name in NUMERIC else "left")
    for row in stats.table():
        table.add_row(*map(escape, row))
    out = console(stderr=True)
    out.print(table)
    for stratum in stats.strata:
        if stratum.coordination is not None:
            out.print(escape(f"{', '.join(stratum.predicates)}: {stratum.coordination}"))
            out.print(_lanes(stratum.coordination))
    out.print(escape(stats.memory))


def _lanes(ran: Coordinated) -> Table:
    """A line for each worker."""
    headings, *lanes = ran.table()
    table = Table()
    for name in headings:
        table.add_column(name, justify="right")
    for lane in lanes:
        table.add_row(*lane)
    return table


def console(*, stderr: bool = False) -> Console:
    """A terminal has a width, into which tables are folded; a pipe or a file has none."""
    made = Console(highlight=False, stderr=stderr)
    return made if made.is_terminal else Console(highlight=False, stderr=stderr, width=WIDEST)
