"""Calls of functions that the caller gives, tied to what is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from emberlog.analysis.terms import map_formula, map_term
from emberlog.callables import PythonFunction
from emberlog.syntax.nodes import Atom, Call, Goal, Item, Program, Rule, Term


def with_functions(program: Program, functions: Mapping[str, PythonFunction]) -> Program:
    """The program, with every call of one of these functions tied to it."""
    if not functions:
        return program

    def change(term: Term) -> Term:
        if isinstance(term, Call) and term.function in functions:
            return replace(term, given=functions[term.function])
        return term

    def atom(written: Atom) -> Atom:
        return replace(written, arguments=tuple(map_term(argument, change) for argument in written.arguments))

    def item(written: Item) -> Item:
        match written:
            case Rule(heads, body):
                changed = None if body is None else map_formula(body, change)
                return replace(written, heads=tuple(map(atom, heads)), body=changed)
            case Goal(_, rest) if rest is not None:
                return replace(written, rest=map_formula(rest, change))
            case _:
                return written

    return replace(program, items=tuple(map(item, program.items)))
