"""Answers as values: trees of rows, conditions and what is to be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "given",  # a row of a base relation, or a fact of the program
    "rule",  # a row that a rule derives: the children are the literals of its body
    "total",  # a row that all contributions to its group make; a state of an iteration
    "contribution",  # one of them: the children are the literals of its body
    "aggregate",  # an aggregate in a body: the children are what it ranges over
    "condition",  # a comparison, an equation or a function
    "absence",  # a negated atom: no row matches
    "rest",  # contributions that are not shown
    "repeat",  # a row that is unfolded at another place of the tree
    "cut",  # a row that is not unfolded
    "missing",  # a row that does not hold: the children are the rules that might have given it
    "attempt",  # such a rule: the literals that hold, and the first one that does not
    "holds",  # a literal that can be satisfied
    "fails",  # the first one that cannot
    "near",  # a row that is nearly the one that is missing
]


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an answer: what it is, the text of it, and what is to be said besides.

    A row has its `relation` and `values`, with None in columns that the run did not read. What a rule gives has the
    rule as text and the place where it stands.
    """

    kind: Kind
    text: str
    note: str = ""
    relation: str = ""
    values: tuple[Any, ...] | None = None
    rule: str = ""
    place: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A tree that prints as text; HTML, SVG and JSON are made when they are asked for."""

    root: Node

    @property
    def title(self) -> str:
        """What was asked."""
        return self.root.text

    @property
    def remark(self) -> str:
        """What is to be said of the whole tree."""
        return ""

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """The tree as lines."""
        from emberlog.why.show import text

        return text(self)

    def to_html(self) -> str:
        """A page on which rows fold and unfold."""
        from emberlog.why.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from emberlog.why.page import fragment

        return fragment(self)

    def to_svg(self) -> str:
        """The tree as a picture."""
        from emberlog.why.picture import picture

        return picture(self)

    def to_json(self) -> str:
        """The tree as JSON: dates and decimals as texts."""
        from emberlog.why.show import as_json

        return as_json(self)


@dataclass(frozen=True)
class Why(Answer):
    """Why a row holds. `height` is that of the tree, base rows having 0 and what an aggregate ranges over not being
    counted; `smallest` says that no derivation has a smaller one. `examined` derivations were looked at."""

    height: int
    smallest: bool
    examined: int

    @property
    def title(self) -> str:
        return f"why {self.root.text}"

    @property
    def remark(self) -> str:
        return "" if self.smallest else "there may be a derivation of a smaller height: more were not looked at"


@dataclass(frozen=True)
class WhyNot(Answer):
    """Why a row does not hold: for each rule how far its body can be satisfied."""

    @property
    def title(self) -> str:
        return f"why not {self.root.text}"


def walk(node: Node) -> Iterator[tuple[int, Node]]:
    """The node and everything below it, with the depth, parents first."""
    waiting = [(0, node)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting.extend((depth + 1, child) for child in reversed(node.children))
