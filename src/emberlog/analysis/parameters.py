"""Parameters: `$NAME` becomes the constant that the caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.terms import is_ground, map_formula, map_term, walk
from emberlog.diagnostics import Diagnostic, Label, did_you_mean
from emberlog.syntax.nodes import Atom, Constant, Formula, Goal, Item, Parameter, Program, Rule, Term
from emberlog.types import Value


def substitute(program: Program, params: Mapping[str, Value]) -> Program:
    """The program with each parameter that is given replaced by its constant; the others stay."""

    def change(term: Term) -> Term:
        if isinstance(term, Parameter) and term.name in params:
            return Constant(params[term.name], span=term.span)
        return term

    def atom(written: Atom) -> Atom:
        return replace(written, arguments=tuple(map_term(a, change) for a in written.arguments))

    def item(written: Item) -> Item:
        match written:
            case Rule(heads, body) if any(True for _ in _parameters(written)):
                changed = None if body is None else map_formula(body, change)
                return replace(written, heads=tuple(atom(head) for head in heads), body=changed)
            case Goal(goal):
                return replace(written, atom=atom(goal))
            case _:
                return written

    return replace(program, items=tuple(item(written) for written in program.items))


def missing_parameters(program: Program, params: Mapping[str, Value]) -> Iterator[tuple[int, Diagnostic]]:
    """Each parameter that nobody gave, with the number of the item it stands in."""
    given = ", ".join(f"${name}" for name in sorted(params)) or "none"
    for number, item in enumerate(program.items):
        for parameter in _parameters(item):
            near = did_you_mean(f"${parameter.name}", (f"${name}" for name in params))
            advice = f"give it with params={{{parameter.name!r}: ...}} or --param {parameter.name}=VALUE"
            help = f"{near} given: {given}" if near else f"{advice}; given: {given}"
            labels = (Label(parameter.span, "no value is given"),)
            yield number, Diagnostic("E0210", f"the parameter `${parameter.name}` has no value", labels, help)


def _parameters(item: Item) -> Iterator[Parameter]:
    roots: tuple[Atom | Formula, ...]
    match item:
        case Rule() if is_ground(item):
            return
        case Rule(heads, body):
            roots = (*heads, body) if body is not None else heads
        case Goal(atom):
            roots = (atom,)
        case _:
            roots = ()
    for root in roots:
        yield from (node for node in walk(root) if isinstance(node, Parameter))
