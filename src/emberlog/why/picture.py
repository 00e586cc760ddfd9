"""Answers as a picture: a line for each node, joined to those below it."""

from __future__ import annotations

from emberlog.explain.canvas import SIZE, Canvas, text_width
from emberlog.why.show import label, remarks
from emberlog.why.tree import Answer, Node, walk

LINE, INDENT, EDGE, PAD, GAP = 26.0, 24.0, 16.0, 7.0, 14.0
SMALL = 11.0  # size of what is said of a node
_FILLS = {
    **dict.fromkeys(("given", "near", "holds"), "#e3f5ea"),
    **dict.fromkeys(("rule", "total"), "#e4edfd"),
    **dict.fromkeys(("absence", "condition", "aggregate"), "#fbf3dc"),
    **dict.fromkeys(("fails", "missing"), "#fde4e1"),
    **dict.fromkeys(("contribution", "attempt"), "#f0f2f5"),
    **dict.fromkeys(("cut", "repeat", "rest"), "#ffffff"),
}
_DASHED = ("cut", "repeat", "rest")
_LINES, _SAID = "#9aa5b1", "#616e7c"


def picture(answer: Answer) -> str:
    """The tree as SVG."""
    canvas = Canvas()
    width = 2 * EDGE + text_width(answer.title)
    above: list[float] = []  # where the node of each depth on the way to this one begins below its box
    row = 0
    for row, (depth, node) in enumerate(walk(answer.root)):
        top = EDGE + row * LINE
        del above[depth:]
        if above:
            _join(canvas, (EDGE + (depth - 1) * INDENT + 8, above[-1]), (EDGE + depth * INDENT, top + LINE / 2 - 2))
        above.append(top + LINE - 4)
        width = max(width, _draw(canvas, node, (EDGE + depth * INDENT, top)) + EDGE)
    height = EDGE * 2 + (row + 1) * LINE
    if answer.remark:
        canvas.text((EDGE, height), answer.remark, fill=_SAID, size=SMALL)
        width, height = max(width, 2 * EDGE + text_width(answer.remark, SMALL)), height + LINE
    return canvas.svg((width, height), answer.title)


def _join(canvas: Canvas, start: tuple[float, float], end: tuple[float, float]) -> None:
    canvas.line([start, (start[0], end[1]), end], stroke=_LINES, width=1)


def _draw(canvas: Canvas, node: Node, at: tuple[float, float]) -> float:
    """Paints a node and returns where it ends on the right."""
    x, y = at
    text, said = label(node), remarks(node)
    width = text_width(text) + 2 * PAD
    canvas.rect(at, (width, LINE - 4), fill=_FILLS[node.kind], stroke=_LINES, dashed=node.kind in _DASHED)
    canvas.text((x + PAD, y + SIZE + 3), text)
    if said:
        canvas.text((x + width + GAP, y + SIZE + 3), said, fill=_SAID, size=SMALL)
    return x + width + (GAP + text_width(said, SMALL) if said else 0)
