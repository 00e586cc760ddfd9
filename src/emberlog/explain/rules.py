"""Rules in core form as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.syntax import nodes
from emberlog.syntax.printer import show


def rule_text(rule: CoreRule) -> str:
    """`tc(X, Y) :- tc(X, Z), arc(Z, Y).`, in one line."""
    parts = [_formula(literal) for literal in rule.body]
    if rule.order:
        parts.append(nodes.Sort(tuple((nodes.Variable(name), descends) for name, descends in rule.order)))
    if rule.limit is not None:
        parts.append(nodes.Limit(nodes.Constant(rule.limit)))
    head = nodes.Atom(rule.predicate, rule.arguments)
    return show(nodes.Rule((head,), nodes.And(tuple(parts)) if parts else None))


def _formula(literal: Literal) -> nodes.Formula:
    match literal:
        case Match(predicate, arguments):
            return nodes.Atom(predicate, arguments)
        case Absent(predicate, arguments):
            return nodes.Not(nodes.Atom(predicate, arguments))
        case Filter(condition):
            return condition
        case Bind(variable, term):
            return nodes.Comparison("=", nodes.Variable(variable), term)
        case Spread(variable, start, stop, step):
            return nodes.Comparison("=", nodes.Variable(variable), nodes.Call("range", (start, stop, step)))
        case Gather(variable, function, target, bodies):
            parts = tuple(_conjunction(body) for body in bodies)
            body = parts[0] if len(parts) == 1 else nodes.Or(parts)
            return nodes.Comparison("=", nodes.Variable(variable), nodes.Collect(function, target, body))
        case _:
            assert_never(literal)


def _conjunction(body: Iterable[Literal]) -> nodes.Formula:
    return nodes.And(tuple(_formula(literal) for literal in body))
