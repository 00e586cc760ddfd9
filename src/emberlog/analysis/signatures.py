"""Signatures: what is known of each predicate in the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from emberlog.analysis.draft import Draft
from emberlog.analysis.infer import Columns
from emberlog.analysis.layout import Layout
from emberlog.analysis.names import Scope
from emberlog.analysis.program import Bound, Signature
from emberlog.syntax.nodes import Aggregate, Term, Variable
from emberlog.types import NUMBER, Column

_MADE_UP = re.compile(r"_\d+")


def make_signatures(
    scope: Scope,
    columns: Columns,
    layout: Layout,
    drafts: Iterable[Draft],
    aggregates: Mapping[str, Mapping[int, str]],
) -> dict[str, Signature]:
    """The signature of every predicate of the program."""
    rules: dict[str, list[Draft]] = {}
    for draft in drafts:
        rules.setdefault(draft.predicate, []).append(draft)
    signatures = {}
    for name, predicate in scope.predicates.items():
        arity = layout.arity(name)
        own = rules.get(name, [])
        names = layout.names(name) or column_names(own[0].arguments if own else (), arity)
        types = (columns.types.get((name, position)) or NUMBER for position in range(arity))
        shift = layout.shift(name, name)
        signatures[name] = Signature(
            name,
            tuple(Column(column, type) for column, type in zip(names, types, strict=True)),
            {position + shift: function for position, function in aggregates.get(name, {}).items()},
            predicate.external,
            predicate.declared,
            predicate.span,
            predicate.domains or _counted(own, shift),
        )
    return signatures


def _counted(rules: Iterable[Draft], shift: int) -> dict[int, tuple[Bound, ...]]:
    """A count is at least 1, where every rule counts: a plain head contributes any value."""
    columns = zip(*(draft.arguments for draft in rules), strict=True)
    return {
        position + shift: (Bound(">=", 1),)
        for position, arguments in enumerate(columns)
        if all(isinstance(a, Aggregate) and a.function in ("count", "countd") for a in arguments)
    }


def column_names(head: tuple[Term, ...], arity: int) -> tuple[str, ...]:
    """Names after the variables of the first rule's head where these are distinct, else `c0`, `c1`, ..."""
    numbered = tuple(f"c{position}" for position in range(arity))
    if not head:
        return numbered
    # The states of an iteration that are kept have the index in front, which the rules do not mention.
    names = ["i"] * (arity - len(head)) + [_name(argument) for argument in head]
    return tuple(names) if all(names) and len(set(names)) == arity else numbered


def _name(argument: Term) -> str:
    match argument:
        case Aggregate(_, arguments):
            return _name(arguments[-1])
        case Variable(name) if not _MADE_UP.fullmatch(name):
            return name
        case _:
            return ""
