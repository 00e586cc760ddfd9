"""Tables as HTML, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

_TABLE = "border-collapse:collapse;margin:.3em 0"
_CELL = "padding:.15em .7em;border-bottom:1px solid #d8dce1;vertical-align:top;"


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], numeric: Collection[int] = (), caption: str = ""
) -> str:
    """A table with these headings. Columns whose places are in `numeric` stand at the right."""

    def line(tag: str, cells: Sequence[object]) -> str:
        return "".join(
            f'<{tag} style="{_CELL}text-align:{"right" if i in numeric else "left"}">{escape(str(cell))}</{tag}>'
            for i, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{line('th', headings)}</tr></thead>" if headings else ""
    above = f"<div>{caption}</div>" if caption else ""
    return f'{above}<table style="{_TABLE}">{head}<tbody>{body}</tbody></table>'


def html_title(name: str, told: str) -> str:
    """The line above a table: a name, and what is to be said of it."""
    return f'<code style="font-weight:bold">{escape(name)}</code> <span style="color:#667">{escape(told)}</span>'
