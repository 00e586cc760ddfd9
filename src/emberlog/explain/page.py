"""The plan as HTML: a page of its own, or a part of a notebook. No scripts, nothing from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberlog.explain.canvas import safe
from emberlog.explain.strata import notes
from emberlog.syntax.printer import show

if TYPE_CHECKING:
    from emberlog.explain.report import Plan

_STYLE = """
body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; background: #fff; color: #1f2933;
       font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
pre { background: #f5f7fa; border: 1px solid #e4e7eb; border-radius: 6px; padding: .8rem 1rem; overflow-x: auto;
      font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
.picture { overflow: auto; max-height: 85vh; border: 1px solid #e4e7eb; border-radius: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0;
        border-bottom: 1px solid #e4e7eb; } th { white-space: nowrap; }
"""


def page(plan: Plan) -> str:
    """A complete document."""
    title = f"How the program is evaluated ({plan.executor} executor)"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{safe(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{safe(title)}</h1>",
        f'<div class="picture">{plan.to_svg()}</div>',
        "<h2>Program</h2>",
        f"<pre>{safe(show(plan.program))}</pre>",
        "<h2>Strata, in the order of evaluation</h2>",
        _strata(plan),
        *(_section(name, lines) for name, lines in plan.sections if not name.startswith("Strata")),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def fragment(plan: Plan) -> str:
    """The picture, and the text folded away, for a notebook."""
    text = f'<pre style="overflow-x:auto">{safe(str(plan))}</pre>'
    return (
        f'<div style="overflow:auto;max-height:700px">{plan.to_svg()}</div>'
        f"<details><summary>plan as text</summary>{text}</details>"
    )


def _section(title: str, lines: list[str]) -> str:
    text = "\n".join(lines)
    return f"<h2>{safe(title)}</h2>\n<pre>{safe(text)}</pre>"


def _strata(plan: Plan) -> str:
    if not plan.strata:
        return "<p>nothing to evaluate</p>"
    headings = "".join(f"<th>{safe(name)}</th>" for name in ("", "relations", *(n for n, _ in plan.strata[0].rows())))
    body = "\n".join(
        f"<tr><td>{report.number}</td><td><b>{safe(report.title)}</b></td>"
        + "".join(f"<td>{safe(text)}</td>" for _, text in report.rows())
        + "</tr>"
        for report in plan.strata
    )
    told = "".join(f"<p>{safe(note)}</p>" for note in notes(plan.executor))
    table = f"<table><thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="wide">{table}</div>\n{told}'
