"""The columns of a source that tells none (an empty list, a file without rows): what the program does with it decides.

Columns and variables that must have one type are put into one class: a variable with the columns that it stands for,
the two sides of a comparison. A class has the type that one of its members is known to have, or is a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from emberlog.analysis.functions import function_of, type_of
from emberlog.analysis.program import (
    Absent,
    Bind,
    CheckedProgram,
    Component,
    CoreRule,
    Filter,
    Gather,
    Literal,
    Match,
    Spread,
)
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Comparison, Term, Variable
from emberlog.types import NUMBER, Column, Type

Node: TypeAlias = tuple[str, int] | tuple[int, str]
"""A column of a predicate, or a variable of a rule."""


def columns_by_use(program: CheckedProgram, unknown: Iterable[str]) -> dict[str, tuple[Column, ...]]:
    """Columns for the relations `unknown`, of a program that was checked with their types left open."""
    classes = _Classes()
    opened = set(unknown)
    for name, signature in program.signatures.items():
        for position, column in enumerate(signature.columns):
            # A derived column that is a number may only be one because nothing told its type.
            if name not in opened and (signature.external or signature.declared or column.type != NUMBER):
                classes.give((name, position), column.type)
    for component in program.components:
        for rule in component.rules:
            _Reader(classes, component, rule).read()
    return {
        name: tuple(Column(f"c{i}", classes.type((name, i))) for i in range(len(program.signatures[name].columns)))
        for name in opened
    }


class _Classes:
    """Classes of nodes (union-find), with what is known of the type of each."""

    def __init__(self) -> None:
        self._parents: dict[Node, Node] = {}
        self._types: dict[Node, Type] = {}

    def _root(self, node: Node) -> Node:
        while (parent := self._parents.get(node, node)) != node:
            node = parent
        return node

    def same(self, one: Node, other: Node) -> None:
        kept, merged = self._root(one), self._root(other)
        if kept != merged:
            self._parents[merged] = kept
            if merged in self._types:
                self.give(kept, self._types.pop(merged))

    def give(self, node: Node, type: Type) -> None:
        """A whole number is also a float or unsigned where the class has one; else the first type stays."""
        root = self._root(node)
        if self._types.get(root, NUMBER).kind == "number":
            self._types[root] = type.wide

    def type(self, node: Node) -> Type:
        return self._types.get(self._root(node), NUMBER)


class _Reader:
    """What one rule says of types."""

    def __init__(self, classes: _Classes, component: Component, rule: CoreRule) -> None:
        self.classes = classes
        self.component = component
        self.rule = rule

    def read(self) -> None:
        self._body(self.rule.body)
        self._columns(self.rule.predicate, self.rule.arguments)

    def _body(self, body: Iterable[Literal]) -> None:
        for literal in body:
            match literal:
                case Match(predicate, arguments) | Absent(predicate, arguments):
                    self._columns(predicate, arguments)
                case Filter(condition):
                    if isinstance(condition, Comparison):
                        self._same(condition.left, condition.right)
                    else:
                        self._term(condition.call)
                case Bind(variable, term):
                    self._same(Variable(variable), term)
                case Gather(variable, function, target, bodies):
                    for inner in bodies:
                        self._body(inner)
                    if target is not None:
                        self._same(Variable(variable), Aggregate(function, (target,)))
                case Spread():
                    pass
                case _:
                    assert_never(literal)

    def _columns(self, predicate: str, arguments: tuple[Term, ...]) -> None:
        # Inside an iteration whose states are kept no rule mentions the index, which is the first column.
        inside = self.component.keeps_states and predicate in self.component.predicates
        for position, argument in enumerate(arguments, int(inside)):
            self._is((predicate, position), argument)

    def _same(self, left: Term, right: Term) -> None:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Variable):
                self._is((self.rule.id, one.name), other)
            else:
                self._term(one)

    def _is(self, node: Node, term: Term) -> None:
        """`node` has the type of `term`."""
        match term:
            case Variable(name):
                self.classes.same(node, (self.rule.id, name))
            case Aggregate("min" | "max" | "sum" | "topk" | "top", arguments):
                self._is(node, arguments[-1])
            case Anonymous():
                pass
            case _:
                self.classes.give(node, type_of(term, self.rule.types))
                self._term(term)

    def _term(self, term: Term) -> None:
        """Functions tell the types of their arguments."""
        match term:
            case Call(_, arguments):
                known = function_of(term)
                wanted = () if known is None else known.parameters
                types = (*wanted, *[wanted[-1]] * len(arguments)) if isinstance(wanted, tuple) and wanted else ()
                for argument, type in zip(arguments, types, strict=False):
                    if isinstance(argument, Variable):
                        self.classes.give((self.rule.id, argument.name), type)
                for argument in arguments:
                    self._term(argument)
            case _:
                pass
