"""The operator tree of one stratum as boxes: what is in them, how they hang together, where they stand.

A chain of operators between which no rows move is one box. A box is wide enough for its text; a tree is as wide as its
leaves, and no tree stands below another, so that a line may leave a leaf downwards without crossing anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from emberlog.explain.canvas import folded, text_width
from emberlog.explain.strata import StratumReport
from emberlog.plan.logical import Plan, Scan, children, columns
from emberlog.plan.names import position
from emberlog.plan.physical import Exchange, Physical, clustered, inputs, physical
from emberlog.plan.show import label, parts, show_signature, show_stratum
from emberlog.plan.strata import RelationPlan, Stratum

LINE, PAD = 16.0, 8.0  # height of a line of text; space around the text of a box
DOWN, NEAR, ASIDE = 34.0, 20.0, 14.0  # space below a box with and without words on its lines, and between trees

Kind = Literal["operator", "recursion", "relation", "own", "other"]


@dataclass(frozen=True, slots=True)
class Link:
    """An input of a box. `moved` says how its rows are exchanged, `caption` what they are for."""

    node: Node
    caption: str = ""
    moved: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """`kind`: an operator; the recursion operator and its relations; a table of this stratum, or of another one."""

    lines: tuple[str, ...]
    kind: Kind
    links: tuple[Link, ...] = ()

    @property
    def width(self) -> float:
        return max(text_width(line) for line in self.lines) + 2 * PAD

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PAD

    @property
    def below(self) -> float:
        """The space between this box and its inputs."""
        return DOWN if any(link.moved or link.caption for link in self.links) else NEAR


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its upper left corner."""

    node: Node
    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + self.node.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.node.height


def stratum_tree(report: StratumReport, executor: str) -> Node:
    """The boxes of a stratum: its one tree, or the recursion operator over the trees of its relations."""
    stratum = report.stratum
    build = _Builder(stratum, distributed=executor == "spark")
    if stratum.evaluation == "once":
        exit = stratum.relations[0].exit
        return Node(("Nothing",), "operator") if exit is None else build.tree(exit)
    title = show_stratum(stratum).partition("\n")[0]
    if len(stratum.relations) == 1:
        return Node(tuple(folded(title, 56)), "recursion", build.parts(stratum.relations[0]))
    named = tuple(
        Link(Node((show_signature(relation.signature),), "relation", build.parts(relation)))
        for relation in stratum.relations
    )
    return Node((title.partition(" ")[0],), "recursion", named)


class _Builder:
    def __init__(self, stratum: Stratum, *, distributed: bool) -> None:
        self.stratum = stratum
        self.distributed = distributed

    def parts(self, relation: RelationPlan) -> tuple[Link, ...]:
        links = []
        for title, trees in parts(relation, self.stratum):
            caption = title.partition(",")[0]
            for tree in trees:
                moved = ""
                if caption == "recursive":
                    moved = self._gathered(relation, tree, alone=len(trees) == 1)
                links.append(Link(self.tree(tree), caption, moved))
        return tuple(links)

    def _gathered(self, relation: RelationPlan, step: Plan, *, alone: bool) -> str:
        """How the rows that a round finds move to where duplicates of them are found."""
        if not self.distributed:
            return ""
        names = tuple(columns(step))
        if relation.state == "extremum":
            names = tuple(position(spot) for spot in relation.signature.groups)
        # Several steps are appended first, and what was known of each is lost.
        return _moved(clustered(physical(step), names)) if alone else _by(names)

    def tree(self, plan: Plan) -> Node:
        return self._box(plan, physical(plan, distributed=self.distributed))

    def _box(self, plan: Plan, operator: Physical) -> Node:
        """The box that begins with `plan`, which `operator` does, and takes in what is below while no rows move."""
        if isinstance(plan, Scan):
            kind: Kind = "own" if plan.relation in self.stratum.names else "other"
            return Node(tuple(folded(label(plan).removeprefix("Scan "), 40)), kind)
        lines = folded(label(plan), 46)
        below, sources = children(plan), inputs(operator)
        while len(below) == 1 and not isinstance(sources[0], Exchange) and not isinstance(below[0], Scan):
            lines += folded(label(below[0]), 46)
            below, sources = children(below[0]), inputs(sources[0])
        links = tuple(self._link(child, source) for child, source in zip(below, sources, strict=True))
        return Node(tuple(lines), "operator", links)

    def _link(self, plan: Plan, source: Physical) -> Link:
        if isinstance(source, Exchange):
            return Link(self._box(plan, source.input), moved=_moved(source))
        return Link(self._box(plan, source))


def _moved(source: Physical) -> str:
    if not isinstance(source, Exchange):
        return ""
    match source.to:
        case "one":
            return "to one task"
        case "each":
            return "to each task"
        case names:
            return _by(names)


def _by(names: tuple[str, ...]) -> str:
    listed = ", ".join(names)
    return f"by {listed}" if len(listed) <= 16 else f"by {len(names)} columns"


# --- places ----------------------------------------------------------------------------------------------------------


def tree_width(node: Node) -> float:
    """How wide the tree is that begins with this box."""
    below = sum(link_width(link) for link in node.links) + ASIDE * max(len(node.links) - 1, 0)
    return max(node.width, below)


def link_width(link: Link) -> float:
    """A tree with room for what is written on the line that leads to it."""
    beside = 2 * (text_width(link.caption, 11) + text_width(link.moved, 10) / 2 + 12) if link.caption else 0.0
    return max(tree_width(link.node), text_width(link.moved, 10) + 12, beside)


def tree_height(node: Node) -> float:
    return node.height + (node.below + max(tree_height(link.node) for link in node.links) if node.links else 0.0)


def place(node: Node, left: float, top: float, width: float | None = None) -> Iterator[tuple[Placed, list[Placed]]]:
    """Every box of the tree, the root first, with the boxes of its inputs; the tree stands in `width` pixels."""
    width = tree_width(node) if width is None else width
    here = Placed(node, left + (width - node.width) / 2, top)
    widths = [link_width(link) for link in node.links]
    x = left + (width - sum(widths) - ASIDE * max(len(widths) - 1, 0)) / 2
    inner: list[tuple[Placed, list[Placed]]] = []
    roots: list[Placed] = []
    for link, room in zip(node.links, widths, strict=True):
        subtree = list(place(link.node, x, top + node.height + node.below, room))
        roots.append(subtree[0][0])
        inner += subtree
        x += room + ASIDE
    yield here, roots
    yield from inner
