"""Which columns of base relations a program uses, and the program without the others.

A column is used if some rule has anything but `_` there (or a variable that begins with `_` and stands once in its
rule), if it is declared with a condition, and always in a relation that is asked for or has rules or facts. Where a
rule counts, sums or averages, `_` is one of the bindings that it ranges over, and so used; under a negation it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

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
    Reading,
    Signature,
    Spread,
    Verdict,
)
from emberlog.analysis.terms import children, is_ground, walk
from emberlog.syntax.nodes import (
    Aggregate,
    Anonymous,
    Atom,
    Collect,
    Declaration,
    Directive,
    Formula,
    Goal,
    Not,
    Program,
    Rule,
    Term,
    Variable,
)

Unread: TypeAlias = Mapping[str, frozenset[int]]
"""Positions of the columns of a relation that nothing uses."""

_COUNTING = ("sum", "count", "avg")


def unread_columns(program: Program) -> dict[str, frozenset[int]]:
    """The columns that the program does not use, of the base relations that have such."""
    used: dict[str, set[int]] = {}
    widths: dict[str, int] = {}
    whole = set(_whole(program))
    counted = {
        head.predicate
        for item in program.items
        if isinstance(item, Rule) and item.body is not None
        for head in item.heads
        if any(isinstance(node, Aggregate) and node.function in _COUNTING for node in head.arguments)
    }
    for item in program.items:
        match item:
            case Rule() if not is_ground(item):
                counts = any(head.predicate in counted for head in item.heads)
                for atom, positions in _used_by_rule(item, counts, whole):
                    used.setdefault(atom.predicate, set()).update(positions)
                    widths.setdefault(atom.predicate, len(atom.arguments))
            case Declaration(name, attributes):
                used.setdefault(name, set()).update(i for i, attribute in enumerate(attributes) if attribute.where)
            case _:
                pass
    spare = {name: frozenset(range(width)) - used[name] for name, width in widths.items() if name not in whole}
    return {name: positions for name, positions in spare.items() if positions}


def _whole(program: Program) -> Iterator[str]:
    """The relations that are asked for, or that rules and facts add rows to."""
    for item in program.items:
        match item:
            case Rule(heads):
                yield from (head.predicate for head in heads)
            case Directive("output" | "printsize", relation):
                yield relation
            case Goal(atom):
                yield atom.predicate
            case _:
                pass


def _used_by_rule(rule: Rule, counts: bool, whole: Container[str]) -> Iterator[tuple[Atom, set[int]]]:
    """Every atom of a body with the positions that it uses, but for those of relations that are read as a `whole`."""
    roots: tuple[Term | Formula, ...] = tuple(argument for head in rule.heads for argument in head.arguments)
    if rule.body is not None:
        roots = (*roots, rule.body)
    atoms = [(atom, binds) for root in roots for atom, binds in _atoms(root, counts) if atom.predicate not in whole]
    if not atoms:
        return
    times = Counter(node.name for root in roots for node in walk(root) if isinstance(node, Variable))

    def matches_anything(term: Term) -> bool:
        match term:
            case Anonymous():
                return True
            case Variable(name):
                return name.startswith("_") and times[name] == 1
            case _:
                return False

    for atom, binds in atoms:
        yield atom, {i for i, term in enumerate(atom.arguments) if binds or not matches_anything(term)}


def _atoms(node: Term | Formula, counts: bool) -> Iterator[tuple[Atom, bool]]:
    """Every atom, and whether each of its bindings counts."""
    pending: list[tuple[Term | Formula, bool]] = [(node, counts)]
    while pending:
        found, binds = pending.pop()
        match found:
            case Not(Atom() as atom):
                yield atom, False
                pending += [(argument, binds) for argument in atom.arguments]
            case Atom():
                yield found, binds
                pending += [(argument, binds) for argument in found.arguments]
            case Collect(function, target, body):
                inner = function in _COUNTING
                pending += [(part, inner) for part in (target, body) if part is not None]
            case _:
                pending += [(child, binds) for child in children(found)]


# --- the program without them ----------------------------------------------------------------------------------------


def project(program: CheckedProgram, unread: Unread) -> CheckedProgram:
    """The program with base relations that have only the columns that are used.

    Rows that differ in other columns alone become one, which no rule can tell: none counts them.
    """
    kept = {
        name: tuple(i for i in range(len(signature.columns)) if i not in unread[name])
        for name, signature in program.signatures.items()
        if name in unread and signature.external
    }
    if not kept:
        return program
    signatures = {
        name: _narrow(signature, kept[name]) if name in kept else signature
        for name, signature in program.signatures.items()
    }
    components = tuple(_project_component(component, kept) for component in program.components)
    return replace(program, signatures=signatures, components=components)


_Kept: TypeAlias = Mapping[str, tuple[int, ...]]


def _narrow(signature: Signature, kept: tuple[int, ...]) -> Signature:
    return replace(
        signature,
        columns=tuple(signature.columns[i] for i in kept),
        domains={new: signature.domains[old] for new, old in enumerate(kept) if old in signature.domains},
        reading=Reading(signature.columns, kept),
    )


def _project_component(component: Component, kept: _Kept) -> Component:
    return replace(
        component,
        rules=tuple(_project_rule(rule, kept) for rule in component.rules),
        verdicts=tuple(_project_verdict(verdict, kept) for verdict in component.verdicts),
    )


def _project_rule(rule: CoreRule, kept: _Kept) -> CoreRule:
    return replace(rule, body=_project_body(rule.body, kept))


def _project_verdict(verdict: Verdict, kept: _Kept) -> Verdict:
    obligations = tuple(
        replace(one, position=kept[one.relation].index(one.position)) if one.relation in kept else one
        for one in verdict.obligations
    )
    return replace(verdict, obligations=obligations)


def _project_body(body: Iterable[Literal], kept: _Kept) -> tuple[Literal, ...]:
    return tuple(_project_literal(literal, kept) for literal in body)


def _project_literal(literal: Literal, kept: _Kept) -> Literal:
    match literal:
        case Match(predicate, arguments) | Absent(predicate, arguments):
            if predicate not in kept:
                return literal
            return replace(literal, arguments=tuple(arguments[i] for i in kept[predicate]))
        case Gather(bodies=bodies):
            return replace(literal, bodies=tuple(_project_body(inner, kept) for inner in bodies))
        case Filter() | Bind() | Spread():
            return literal
        case _:
            assert_never(literal)
