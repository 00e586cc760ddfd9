"""The words `true`, `false`, `True` and `False`: booleans where a boolean can stand, and names like others elsewhere.

Types are known only at the end of the analysis. So all of these words are read as constants first; if the types tell
that one stands in a column of another type, the word is read as a name in that rule, and the analysis is done again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from emberlog.analysis.terms import is_ground, map_formula, map_term, walk
from emberlog.diagnostics import Diagnostic
from emberlog.syntax.nodes import Atom, Constant, Formula, Goal, Item, Not, Program, Rule, Term, Variable

WORDS = {"true": True, "false": False, "True": True, "False": False}

Name: TypeAlias = tuple[int, str]
"""The number of an item, and a word that is a name there."""


def read_booleans(program: Program, names: Container[Name] = ()) -> Program:
    """The program with these words as constants, but for those that are `names`."""

    def item(number: int, written: Item) -> Item:
        def change(term: Term) -> Term:
            word = word_of(term)
            if word is None:
                return term
            if (number, word) not in names:
                return Constant(WORDS[word], span=term.span)
            # In BigDatalog's dialect a lower-case name is a text.
            as_text = program.bigdatalog and word.islower()
            return Constant(word, span=term.span) if as_text else Variable(word, span=term.span)

        def atom(inner: Atom) -> Atom:
            return replace(inner, arguments=tuple(map_term(argument, change) for argument in inner.arguments))

        match written:
            case Rule(heads, body) if not is_ground(written) and any(True for _ in _words(written)):
                changed = None if body is None else map_formula(body, change)
                return replace(written, heads=tuple(map(atom, heads)), body=changed)
            case Goal(goal):
                return replace(written, atom=atom(goal))
            case _:
                return written

    return replace(program, items=tuple(item(number, written) for number, written in enumerate(program.items)))


def misread(program: Program, found: Iterable[Diagnostic]) -> frozenset[Name]:
    """The words that stand for columns of other types, as the type conflicts tell: arguments of atoms that would bind
    a variable of that name. Elsewhere the conflict is all there is to say."""
    places = {diagnostic.span for diagnostic in found if diagnostic.code == "E0501"}
    return frozenset(
        (number, word)
        for number, item in enumerate(program.items)
        if places and isinstance(item, Rule) and item.body is not None
        for argument in _bound_arguments(item.body)
        if argument.span in places and (word := word_of(argument)) is not None
    )


def _bound_arguments(body: Formula) -> Iterator[Term]:
    """The arguments of the atoms that are not negated."""
    negated = {id(inner) for node in walk(body) if isinstance(node, Not) for inner in walk(node)}
    for node in walk(body):
        if isinstance(node, Atom) and id(node) not in negated:
            yield from node.arguments


def _words(rule: Rule) -> Iterator[str]:
    for root in rule.heads if rule.body is None else (*rule.heads, rule.body):
        for node in walk(root):
            word = word_of(node)
            if word is not None:
                yield word


def word_of(node: Term | Formula) -> str | None:
    """The word that this is, if it is one of them."""
    match node:
        case Variable(name) if name in WORDS:
            return name
        case Constant(bool(value)):
            return "true" if value else "false"
        case _:
            return None
