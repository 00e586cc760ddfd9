"""Shared by the tests of the analysis: programs from text, sources from text, core rules as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest

from emberlog.analysis.check import check
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
from emberlog.analysis.typenames import BUILT_IN
from emberlog.diagnostics import Diagnostic, ProgramError
from emberlog.source import Source
from emberlog.syntax.nodes import Term
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show
from emberlog.types import Column, Value

_LINE = re.compile(r"(\w+)\((.*)\)")


def read_sources(text: str) -> dict[str, tuple[Column, ...]]:
    """Registered sources, written as lines `name(column: type, ...)`; a type stands for `column: type` too."""
    found = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _LINE.fullmatch(line)
        assert match is not None, line
        columns = []
        for position, column in enumerate(match[2].split(", ")):
            name, _, type = column.rpartition(": ")
            columns.append(Column(name or f"c{position}", BUILT_IN[type]))
        found[match[1]] = tuple(columns)
    return found


def checked(
    text: str,
    sources: str = "",
    params: Mapping[str, Value] | None = None,
    *,
    naive: bool = False,
    require_sources: bool = True,
) -> CheckedProgram:
    """The checked program of this text."""
    program = parse(Source("test.dl", text))
    return check(program, read_sources(sources), params, naive=naive, require_sources=require_sources)


def mistakes(text: str, sources: str = "", params: Mapping[str, Value] | None = None) -> tuple[Diagnostic, ...]:
    """What is wrong with this text."""
    with pytest.raises(ProgramError) as raised:
        checked(text, sources, params)
    return raised.value.diagnostics()


def codes(text: str, sources: str = "") -> list[str]:
    """The codes of what is wrong with this text, in its order."""
    return [diagnostic.code for diagnostic in mistakes(text, sources)]


def component(program: CheckedProgram, predicate: str) -> Component:
    """The component of a predicate."""
    return next(part for part in program.components if predicate in part.predicates)


def rules(program: CheckedProgram, predicate: str) -> list[str]:
    """The rules of a predicate, as text."""
    return [show_rule(rule) for rule in component(program, predicate).rules if rule.predicate == predicate]


def rule(text: str, sources: str = "") -> str:
    """The only rule of a program, as text."""
    (part,) = checked(text, sources).components
    (only,) = part.rules
    return show_rule(only)


def show_rule(rule: CoreRule) -> str:
    """The rule in the syntax of the language, but for `:=` where a variable gets its value."""
    head = f"{rule.predicate}({_terms(rule.arguments)})"
    return f"{head} <- {_body(rule.body)}" if rule.body else head


def _body(body: Iterable[Literal]) -> str:
    return ", ".join(_literal(literal) for literal in body)


def _literal(literal: Literal) -> str:
    match literal:
        case Match(predicate, arguments):
            return f"{predicate}({_terms(arguments)})"
        case Absent(predicate, arguments):
            return f"!{predicate}({_terms(arguments)})"
        case Filter(condition):
            return show(condition)
        case Bind(variable, term):
            return f"{variable} := {show(term)}"
        case Spread(variable, start, stop, _):
            return f"{variable} := {show(start)}..{show(stop)}"
        case Gather(variable, function, target, bodies, injected, witnesses):
            value = "" if target is None else f" {show(target)}"
            inside = " ; ".join(_body(body) for body in bodies)
            notes = f"[{' '.join(injected)}|{' '.join(witnesses)}]" if injected or witnesses else ""
            return f"{variable} := {function}{value} {notes}{{{inside}}}"


def _terms(terms: Iterable[Term]) -> str:
    return ", ".join(show(term) for term in terms)


def types(program: CheckedProgram, predicate: str) -> list[str]:
    """The types of a predicate's columns."""
    return [str(column.type) for column in program.signatures[predicate].columns]


def names(program: CheckedProgram, predicate: str) -> list[str]:
    """The names of a predicate's columns."""
    return [column.name for column in program.signatures[predicate].columns]
