"""Relations and figures as tables on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from emberlog.diagnostics import counted
from emberlog.relation import Relation
from emberlog.stats import StratumStats

MOST_ROWS = 20


def show_relation(relation: Relation, rows: int = MOST_ROWS) -> None:
    """The first rows of a relation, in order, and how many there are."""
    console = Console(highlight=False)
    count = len(relation)
    if not relation.schema:
        console.print(f"{escape(relation.name)}: {'true' if count else 'false'}")
        return
    # Not the title of the table, which would be broken to the table's width.
    console.print(f"{escape(relation.name)}: {counted(count, 'row')}")
    table = Table()
    for column in relation.schema:
        table.add_column(escape(column.name), justify="right" if column.type.is_numeric else "left")
    for row in relation.head(rows):
        table.add_row(*(escape(str(value)) for value in row))
    console.print(table)
    if count > rows:
        console.print(f"... and {count - rows:,} more; .output writes them all")


def show_stats(stats: list[StratumStats]) -> None:
    """One line for each stratum of a run."""
    table = Table(title="strata", title_justify="left")
    for name in ("predicates", "evaluator", "where", "why", "rounds", "facts", "seconds", "stopped"):
        table.add_column(name, justify="right" if name in ("rounds", "facts", "seconds") else "left")
    for entry in stats:
        facts = "" if entry.facts is None else f"{entry.facts:,}"
        table.add_row(
            escape(", ".join(entry.predicates)),
            escape(f"{entry.evaluator}: {told}" if (told := _told(entry)) else entry.evaluator),
            entry.placement,
            escape(entry.why),
            str(entry.rounds),
            facts,
            f"{entry.seconds:.3f}",
            escape(entry.stopped),
        )
    Console(highlight=False, stderr=True).print(table)


def _told(entry: StratumStats) -> str:
    return "; ".join(filter(None, (entry.how or entry.because, entry.kept)))
