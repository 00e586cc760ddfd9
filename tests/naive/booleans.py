"""`true`, `false`, `True` and `False`: constants, unless one of them stands for a column of another type in its rule.

A column is known not to be boolean if it is declared so, if a fact has something else there, or if a rule puts
something else there. In a rule with an atom (not negated) that has the word in such a column, it is a variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from emberlog.syntax import nodes
from naive.values import Row

WORDS = {"true": True, "false": False, "True": True, "False": False}
Place = tuple[str, int]


def read_booleans(program: nodes.Program, facts: Mapping[str, Collection[Row]]) -> nodes.Program:
    """The program with these words as what they mean in their rules."""
    others = other_columns(program, facts)
    items = (read_rule(item, others) if isinstance(item, nodes.Rule) else item for item in program.items)
    return replace(program, items=tuple(items))


def other_columns(program: nodes.Program, facts: Mapping[str, Collection[Row]]) -> set[Place]:
    """The columns that are known to hold something else than booleans."""
    found = {
        (item.name, i)
        for item in program.items
        if isinstance(item, nodes.Declaration)
        for i, attribute in enumerate(item.attributes)
        if attribute.type != "bool"
    }
    found |= {
        (name, i)
        for name, rows in facts.items()
        for row in rows
        for i, value in enumerate(row)
        if not isinstance(value, bool)
    }
    rules = [item for item in program.items if isinstance(item, nodes.Rule)]
    while True:
        more = {place for rule in rules for place in filled(rule, found)} - found
        if not more:
            return found
        found |= more


def filled(rule: nodes.Rule, others: set[Place]) -> Iterator[Place]:
    """The columns of the heads that this rule puts something else into."""
    bound = {
        term.name for atom, i, term in matched(rule) if is_other(atom, i, others) if isinstance(term, nodes.Variable)
    }
    for head in rule.heads:
        for i, term in enumerate(head.arguments):
            if gives_other(term, bound):
                yield head.predicate, i


def gives_other(term: nodes.Term, bound: Collection[str]) -> bool:
    """True if the term is known to give no boolean. `bound` are the variables that are known to have none."""
    match term:
        case nodes.Constant(value):
            return not isinstance(value, bool)
        case nodes.Variable(name):
            return name in bound
        case nodes.Call("land" | "lor" | "lnot" | "min" | "max", arguments):
            return any(gives_other(argument, bound) for argument in arguments)
        case nodes.Aggregate("min" | "max" | "topk") | nodes.Call("match" | "contains" | "starts_with" | "ends_with"):
            return False
        case _:
            return True


def is_other(atom: nodes.Atom, position: int, others: set[Place]) -> bool:
    return (atom.predicate, position) in others


def read_rule(rule: nodes.Rule, others: set[Place]) -> nodes.Rule:
    names = {word(term) for atom, i, term in matched(rule) if is_other(atom, i, others)}

    def read(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(read(part) for part in node)
        name = word(node)
        if name is not None:
            return nodes.Variable(name) if name in names else nodes.Constant(WORDS[name])
        if not is_dataclass(node) or isinstance(node, type):
            return node
        parts = {field.name: getattr(node, field.name) for field in fields(node) if field.name not in ("span", "named")}
        return replace(node, **{name: read(part) for name, part in parts.items()})

    changed: nodes.Rule = read(rule)
    return changed


def word(node: object) -> str | None:
    match node:
        case nodes.Variable(name) if name in WORDS:
            return name
        case nodes.Constant(bool(value)):
            return "true" if value else "false"
        case _:
            return None


def matched(rule: nodes.Rule) -> Iterator[tuple[nodes.Atom, int, nodes.Term]]:
    """The arguments of the atoms of a body that are not negated."""

    def atoms(node: Any) -> Iterator[nodes.Atom]:
        match node:
            case nodes.Not():
                return
            case nodes.Atom():
                yield node
            case tuple():
                for part in node:
                    yield from atoms(part)
            case _ if is_dataclass(node) and not isinstance(node, type):
                for field in fields(node):
                    if field.name not in ("span", "named"):
                        yield from atoms(getattr(node, field.name))
            case _:
                return

    for atom in atoms(rule.body):
        for i, term in enumerate(atom.arguments):
            yield atom, i, term
