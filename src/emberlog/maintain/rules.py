"""Programs with other rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff

from emberlog.diagnostics import UsageError
from emberlog.source import Source
from emberlog.syntax.nodes import Attribute, Declaration, Program, Rule
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show
from emberlog.types import Column


def heads_of(text: Source) -> set[str]:
    """The predicates that the rules of a text are for."""
    return {head.predicate for rule in _rules(text) for head in rule.heads}


def with_rules(program: Program, text: Source) -> Program:
    """The program with more rules."""
    return replace(program, items=(*program.items, *_rules(text)))


def without_rules(program: Program, text: Source) -> Program:
    """The program without some rules. Raises `UsageError` for one that it does not have."""
    items = list(program.items)
    for rule in _rules(text):
        if rule not in items:
            raise UsageError(f"the program has no rule `{show(rule)}`", fix="a rule is removed as it was written")
        items.remove(rule)
    return replace(program, items=tuple(items))


def with_declarations(program: Program, relations: Mapping[str, Sequence[Column]]) -> Program:
    """The program with declarations of more relations."""
    made = [
        Declaration(name, tuple(Attribute(column.name, str(column.type)) for column in columns))
        for name, columns in sorted(relations.items())
    ]
    return replace(program, items=(*program.items, *made))


def difference(old: Program, new: Program) -> str:
    """What stands in one program only, line by line: `-` in the old one, `+` in the new one."""
    lines = unified_diff(show(old).splitlines(), show(new).splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _rules(text: Source) -> list[Rule]:
    """The rules that a text consists of."""
    items = parse(text).items
    rules = [item for item in items if isinstance(item, Rule)]
    if len(rules) < len(items) or not rules:
        raise UsageError("only rules and facts can be added and removed", fix="p(X) <- q(X).")
    return rules
