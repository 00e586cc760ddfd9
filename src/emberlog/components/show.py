"""Loops as text: what is done with each fact that is taken up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from emberlog.components.nests import Meet, Nest, Probe, Step, Walk
from emberlog.components.program import Check, KernelProgram, Let
from emberlog.syntax.nodes import Term
from emberlog.syntax.printer import show


def show_nest(nest: Nest, program: KernelProgram) -> list[str]:
    """The loops that start from a fact, one line each, each inside of the one before."""
    facts = "finished" if nest.above else "new"
    lines = [f"for each {facts} {nest.table}({_columns(_arity(nest.table, program), (), (), nest.binds)})"]
    lines += [f"if {show(check.condition)}" for check in nest.checks]
    for step in nest.steps:
        lines += _step(step, program)
    head = program.table(nest.rule.head)
    put = "put" if head is None or head.fold == "set" else f"{head.fold} into"
    lines.append(f"{put} {nest.rule.head}({', '.join(map(show, nest.rule.arguments))})")
    return ["  " * depth + line for depth, line in enumerate(lines)]


def _step(step: Step, program: KernelProgram) -> Iterator[str]:
    match step:
        case Probe(relation, bound, terms, binds, exists, absent):
            word = "unless" if absent else "if" if exists or not binds else "for each"
            yield f"{word} {relation}({_columns(_arity(relation, program), bound, terms, binds)})"
        case Walk(relation, bound, terms, binds, absent):
            word = "unless" if absent else "for each known"
            yield f"{word} {relation}({_columns(_arity(relation, program), bound, terms, binds)})"
        case Meet(variable, one, other):
            yield f"for each {variable} in both"
            yield from (f"  {line}" for probe in (one, other) for line in _step(probe, program))
        case Check(condition):
            yield f"if {show(condition)}"
        case Let(variable, term):
            yield f"let {variable} = {show(term)}"
        case _:
            assert_never(step)


def _arity(relation: str, program: KernelProgram) -> int:
    return len(program.kinds(relation))


def _columns(arity: int, bound: tuple[int, ...], terms: tuple[Term, ...], binds: tuple[tuple[int, str], ...]) -> str:
    known = dict(zip(bound, map(show, terms), strict=True)) | {spot: name for spot, name in binds if spot not in bound}
    return ", ".join(known.get(spot, "_") for spot in range(arity))
