"""The picture of a plan: strata as frames, from the sources at the bottom to the results at the top.

Frames stand in layers; each reads only frames in layers below. A relation that is read further up passes the layers
between in a lane of its own. Between two layers every relation has a track for its horizontal lines.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from emberlog.explain.boxes import Link, Placed, place, stratum_tree, tree_height, tree_width
from emberlog.explain.canvas import Canvas, Point, text_width
from emberlog.explain.strata import StratumReport, producers
from emberlog.plan.strata import ProgramPlan

LINES, BACK, MOVES = "#7b8794", "#7c3aed", "#c2570c"
FILLS = {
    "operator": ("#ffffff", "#9aa5b1"),
    "recursion": ("#ede9fe", "#7c3aed"),
    "relation": ("#f5f3ff", "#a78bfa"),
    "own": ("#f5f3ff", "#a78bfa"),
    "other": ("#e6f6ff", "#62a8d8"),
}
MARGIN, HEAD, GAP, TRACK, LANE = 16.0, 50.0, 26.0, 9.0, 18.0
ROOM = 20.0  # between a layer and the tracks below it, and between those and the next layer
WIDEST = 1500.0  # of a layer; more frames make one more layer


@dataclass
class _Item:
    """Something in a layer: a frame, a source, or the lane of a relation that only passes."""

    name: str  # what it gives to others: the stratum or source
    width: float
    height: float
    report: StratumReport | None = None
    reads: tuple[str, ...] = ()
    lane: bool = False
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def draw(plan: ProgramPlan, reports: list[StratumReport], executor: str) -> str:
    """The plan as an SVG document."""
    if not reports:
        canvas = Canvas()
        canvas.text((MARGIN, 32), "nothing to evaluate")
        return canvas.svg((240, 56), "How the program is evaluated")
    items = _items(plan, reports, executor)
    layers = _layers(items)
    _order(layers)
    size = _place(layers)
    canvas = Canvas()
    _connect(canvas, layers)
    for layer in layers:
        for item in layer:
            if item.report is not None:
                _draw_frame(canvas, item, executor)
            elif not item.lane:
                _draw_source(canvas, item)
    words = _legend(canvas, size[1], executor)
    return canvas.svg((max(size[0], words), size[1] + 30), "How the program is evaluated")


# --- what there is ---------------------------------------------------------------------------------------------------


def _items(plan: ProgramPlan, reports: list[StratumReport], executor: str) -> list[_Item]:
    """Sources, then strata in the order of evaluation."""
    home = producers(plan)
    sources: dict[str, None] = {}
    strata = []
    for report in reports:
        reads = []
        for relation in report.reads:
            if relation in home:
                reads.append(f"stratum {home[relation]}")
            else:
                sources[relation] = None
                reads.append(f"source {relation}")
        width, height = _frame_size(report, executor)
        name = f"stratum {report.number - 1}"
        strata.append(_Item(name, width, height, report, tuple(dict.fromkeys(reads))))
    bases = [_Item(f"source {name}", text_width(name) + 28, 30) for name in sources]
    return [*bases, *strata]


def _subtitle(report: StratumReport, executor: str) -> str:
    how = {
        "once": "computed once",
        "delta": "semi-naive rounds",
        "naive": "naive rounds",
        "accumulate": "rounds that hand on changes",
    }[report.stratum.evaluation]
    words = [f"{report.stratum.shape} recursion"] * bool(report.stratum.shape) + [how]
    if executor == "spark" and report.physical is not None:
        once, rounds = report.physical.exchanges_once, report.physical.exchanges_a_round
        moves = f"{once} + {rounds} a round" if report.physical.recursive else f"{once}"
        words.append(f"exchanges on Spark: {moves}")
    return ", ".join(words)


def _frame_size(report: StratumReport, executor: str) -> Point:
    tree = stratum_tree(report, executor)
    recursive = report.stratum.evaluation != "once"
    texts = max(text_width(f"{report.number}. {report.title}", 13), text_width(_subtitle(report, executor), 11))
    width = max(texts, tree_width(tree) + (2 * LANE if recursive else 0)) + 2 * MARGIN
    return width, HEAD + tree_height(tree) + MARGIN + (LANE if recursive else 0)


# --- layers ----------------------------------------------------------------------------------------------------------


def _layers(items: list[_Item]) -> list[list[_Item]]:
    """Layers from bottom to top, with lanes for what is read further up."""
    level: dict[str, int] = {}
    widths: defaultdict[int, float] = defaultdict(float)
    for item in items:
        at = max((level[name] + 1 for name in item.reads), default=0)
        while widths[at] and widths[at] + item.width > WIDEST:
            # A source goes below the others: whoever reads it stands above them all.
            at += 1 if item.report is not None else -1
        level[item.name] = at
        widths[at] += item.width + GAP
    lowest = min(level.values(), default=0)
    layers: list[list[_Item]] = [[] for _ in range(max(level.values(), default=0) - lowest + 1)]
    for item in items:
        layers[level[item.name] - lowest].append(item)
    highest = {name: max((level[i.name] for i in items if name in i.reads), default=level[name]) for name in level}
    for name, own in level.items():
        for between in range(own + 1, highest[name]):
            layers[between - lowest].append(_Item(name, LANE, 0, lane=True, reads=(name,)))
    return layers


def _order(layers: list[list[_Item]]) -> None:
    """Within a layer, things stand above what they read, and below what reads them, as far as they can."""
    for sweep in range(6):
        for lower, upper in pairwise(layers) if sweep % 2 == 0 else reversed(list(pairwise(layers))):
            if sweep % 2 == 0:
                spots = {item.name: float(spot) for spot, item in enumerate(lower)}
                upper.sort(key=lambda item: _mean([spots[n] for n in item.reads if n in spots], 0.0))
            else:
                read_by = defaultdict(list)
                for spot, item in enumerate(upper):
                    for name in item.reads:
                        read_by[name].append(float(spot))
                lower.sort(key=lambda item: _mean(read_by[item.name], 0.0))


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _place(layers: list[list[_Item]]) -> Point:
    """Gives everything its corner; returns the size of the whole."""
    for layer in layers:
        x = 0.0
        for item in layer:
            item.x = x
            x += item.width + GAP
    for _ in range(3):
        for lower, upper in pairwise(layers):
            _pull(upper, {item.name: item.middle for item in lower})
        for lower, upper in reversed(list(pairwise(layers))):
            wanted = defaultdict(list)
            for item in upper:
                for name in item.reads:
                    wanted[name].append(item.middle)
            _pull(lower, {}, {name: _mean(spots, 0.0) for name, spots in wanted.items()})
    left = min(item.x for layer in layers for item in layer)
    y = MARGIN
    for spot in range(len(layers) - 1, -1, -1):
        height = max(item.height for item in layers[spot])
        for item in layers[spot]:
            item.x += MARGIN - left
            item.y = y + height - item.height
            if item.lane:
                item.y, item.height = y, height
        y += height
        if spot:
            y += 2 * ROOM + TRACK * len(_tracks(layers[spot]))
    right = max(item.x + item.width for layer in layers for item in layer)
    return right + MARGIN, y + MARGIN


def _pull(layer: list[_Item], below: dict[str, float], above: dict[str, float] | None = None) -> None:
    """Moves things toward the middle of what they are connected with, in their order and without overlap."""
    wanted = []
    for item in layer:
        near = [below[name] for name in item.reads if name in below]
        if above is not None and item.name in above:
            near = [above[item.name]]
        wanted.append(_mean(near, item.middle) - item.width / 2)
    x = float("-inf")
    for item, want in zip(layer, wanted, strict=True):
        item.x = max(want, x)
        x = item.x + item.width + GAP
    shift = _mean([want - item.x for item, want in zip(layer, wanted, strict=True)], 0.0)
    for item in layer:
        item.x += shift


# --- lines between frames --------------------------------------------------------------------------------------------


def _tracks(layer: list[_Item]) -> dict[str, int]:
    """The number of the track that each relation has below this layer."""
    return {name: spot for spot, name in enumerate(dict.fromkeys(name for item in layer for name in item.reads))}


def _connect(canvas: Canvas, layers: list[list[_Item]]) -> None:
    for lower, upper in pairwise(layers):
        given = {item.name: item for item in lower}
        tracks = _tracks(upper)
        floor = max(item.y + item.height for item in upper)
        for item in upper:
            ordered = sorted(item.reads, key=lambda name: given[name].middle)
            for spot, name in enumerate(ordered, 1):
                start = given[name]
                x = item.middle if item.lane else item.x + item.width * spot / (len(ordered) + 1)
                y = floor + ROOM + TRACK * tracks[name]
                end = item.y + item.height
                points = [(start.middle, start.y), (start.middle, y), (x, y), (x, end)]
                canvas.line(points, stroke=LINES)
                if not item.lane:
                    canvas.arrow_up((x, end), fill=LINES)
        for item in lower:
            if item.lane:
                canvas.line([(item.middle, item.y), (item.middle, item.y + item.height)], stroke=LINES)


# --- frames ----------------------------------------------------------------------------------------------------------


def _draw_source(canvas: Canvas, item: _Item) -> None:
    name = item.name.removeprefix("source ")
    fill, stroke = FILLS["other"]
    canvas.rect((item.x, item.y), (item.width, item.height), fill=fill, stroke=stroke, radius=15)
    canvas.text((item.middle, item.y + 19), name, middle=True, bold=True)


def _draw_frame(canvas: Canvas, item: _Item, executor: str) -> None:
    report = item.report
    assert report is not None
    canvas.rect((item.x, item.y), (item.width, item.height), fill="#f1f4f8", stroke="#cbd2d9", radius=8)
    left = item.x + MARGIN
    canvas.text((left, item.y + 20), f"{report.number}. {report.title}", size=13, bold=True)
    canvas.text((left, item.y + 37), _subtitle(report, executor), size=11, fill="#52606d")
    tree = stratum_tree(report, executor)
    room = item.width - 2 * MARGIN
    placed = list(place(tree, left, item.y + HEAD, room))
    for box, below in placed:
        for link, target in zip(box.node.links, below, strict=True):
            _draw_link(canvas, box, link, target)
    if report.stratum.evaluation != "once":
        _draw_back(canvas, item, [box for box, _ in placed])
    for box, _ in placed:
        _draw_box(canvas, box)


def _draw_box(canvas: Canvas, box: Placed) -> None:
    fill, stroke = FILLS[box.node.kind]
    table = box.node.kind in ("own", "other")
    canvas.rect((box.x, box.y), (box.node.width, box.node.height), fill=fill, stroke=stroke, radius=12 if table else 4)
    for spot, line in enumerate(box.node.lines):
        canvas.text((box.x + 8, box.y + 16 + 16 * spot), line, bold=box.node.kind == "recursion")


def _draw_link(canvas: Canvas, box: Placed, link: Link, target: Placed) -> None:
    """From an input up to the box that reads it."""
    bend = box.bottom + 8
    points = [(target.middle, target.y), (target.middle, bend), (box.middle, bend), (box.middle, box.bottom)]
    canvas.line(points, stroke=MOVES if link.moved else LINES)
    half = 0.0
    if link.moved:
        half = (text_width(link.moved, 10) + 8) / 2
        canvas.rect((target.middle - half, target.y - 20), (2 * half, 15), fill="#fff4e6", stroke=MOVES, radius=7)
        canvas.text((target.middle, target.y - 9), link.moved, size=10, fill=MOVES, middle=True)
    if link.caption:
        canvas.text((target.middle + half + 5, target.y - 8), link.caption, size=11, fill="#52606d")


def _draw_back(canvas: Canvas, item: _Item, boxes: list[Placed]) -> None:
    """What a round found is what the next one reads: dashed, round the right side of the trees."""
    root, own = boxes[0], [box for box in boxes if box.node.kind == "own"]
    side, floor = item.x + item.width - LANE, item.y + item.height - LANE
    enters = root.y + root.node.height / 2
    if not own:
        return
    canvas.line(
        [(root.x + root.node.width, enters), (side, enters), (side, floor), (min(box.middle for box in own), floor)],
        stroke=BACK,
        dashed=True,
    )
    for box in own:
        canvas.line([(box.middle, floor), (box.middle, box.bottom)], stroke=BACK, dashed=True)
        canvas.arrow_up((box.middle, box.bottom), fill=BACK)


def _legend(canvas: Canvas, top: float, executor: str) -> float:
    """What the colours mean; returns how wide it is."""
    x = MARGIN
    meanings = [(*FILLS["other"], "table of a source or another stratum"), (*FILLS["own"], "table of this recursion")]
    if executor == "spark":
        meanings.append(("#fff4e6", MOVES, "exchange on Spark"))
    for fill, stroke, text in meanings:
        canvas.rect((x, top + 4), (18, 12), fill=fill, stroke=stroke, radius=6)
        canvas.text((x + 24, top + 14), text, size=11, fill="#52606d")
        x += 24 + text_width(text, 11) + 18
    return x
