"""A picture of a run: a lane for each worker, dark while it works and light while it waits."""

from __future__ import annotations

from emberlog.workers.stats import Coordinated

WIDTH, LANE, LEFT, TOP = 960, 18, 48, 28
COLOURS = {"compute": "#2f6f9f", "wait": "#e9d8a6"}


def timeline(run: Coordinated) -> str:
    """The lanes of a run as SVG."""
    spans = [span for lane in run.lanes for span in lane.spans]
    start, end = min((s.start for s in spans), default=0.0), max((s.end for s in spans), default=1.0)
    scale = (WIDTH - LEFT) / max(end - start, 1e-12)
    height = TOP + LANE * len(run.lanes) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="11">',
        f'<text x="{LEFT}" y="16">{_escaped(run.mode)}: {end - start:.4g} s; dark is work, light is waiting</text>',
    ]
    for number, lane in enumerate(run.lanes):
        top = TOP + LANE * number
        lines.append(f'<text x="4" y="{top + 12}">{lane.rank}</text>')
        lines += [
            f'<rect x="{LEFT + (span.start - start) * scale:.2f}" y="{top + 1}" '
            f'width="{max((span.end - span.start) * scale, 0.2):.2f}" height="{LANE - 3}" fill="{COLOURS[span.what]}"/>'
            for span in lane.spans
        ]
    return "\n".join([*lines, "</svg>"])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
