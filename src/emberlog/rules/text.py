"""Rules as text: in core form, seen from a change, seen from their head."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from emberlog.analysis.functions import DEFAULT_STEP
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import walk
from emberlog.rules.changes import DeltaRule, Place
from emberlog.rules.heads import HeadRule
from emberlog.syntax import nodes
from emberlog.syntax.printer import show

NO_MARKS: Mapping[Place, str] = MappingProxyType({})


def rule_text(rule: CoreRule) -> str:
    """`tc(X, Y) :- tc(X, Z), arc(Z, Y).`, in one line."""
    return _rule(rule, rule.predicate, [_formula(literal) for literal in rule.body])


def literal_text(literal: Literal) -> str:
    """`tc(X, Z)`, `!deny(X, _)`, `D = C + W`: one literal as it is written."""
    return show(_formula(literal))


def delta_text(delta: DeltaRule) -> str:
    """`+tc(X, Y) :- new tc(X, Z), +tc(Z, Y).`: the signs of the change and of its effect (`~` for groups that are
    computed again), and the states that other atoms read."""
    marks = {place: f"{state} " for place, state in delta.reads} | {delta.at: delta.sign}
    body = list(delta.rule.body)
    carrier = delta.carrier
    if len(delta.at) == 1:
        body[delta.at[0]] = Match(carrier.predicate, carrier.arguments)
    parts = [_formula(literal, marks, (index,)) for index, literal in enumerate(body)]
    if delta.needs_first:
        state = "old" if delta.sign == "+" else "new"
        parts.append(nodes.Not(nodes.Atom(f"{state} {carrier.predicate}", carrier.arguments)))
    effect = "~" if delta.effect == "regroup" else delta.effect
    return _rule(delta.rule, effect + delta.rule.predicate, parts)


def head_text(rule: HeadRule) -> str:
    """`tc(X, Y) given :- arc(Z, Y), lower tc(X, Z).`: the literals in the order in which a body is looked for."""
    marks: dict[Place, str] = {(index,): "lower " for index in rule.ranked}
    parts = [_formula(literal, marks, (index,)) for index, literal in enumerate(rule.body)]
    return _rule(rule.rule, rule.rule.predicate, parts)


def _rule(rule: CoreRule, predicate: str, parts: list[nodes.Formula]) -> str:
    if rule.order:
        parts.append(nodes.Sort(tuple((nodes.Variable(name), descends) for name, descends in rule.order)))
    if rule.limit is not None:
        parts.append(nodes.Limit(nodes.Constant(rule.limit)))
    head = nodes.Atom(predicate, rule.arguments)
    return show(nodes.Rule((head,), nodes.And(tuple(parts)) if parts else None))


def _formula(literal: Literal, marks: Mapping[Place, str] = NO_MARKS, at: Place = ()) -> nodes.Formula:
    """A literal as it is written; atoms have what `marks` says of their place before their name."""
    match literal:
        case Match(predicate, arguments):
            return nodes.Atom(marks.get(at, "") + predicate, arguments)
        case Absent(predicate, arguments):
            return nodes.Not(nodes.Atom(marks.get(at, "") + predicate, arguments))
        case Filter(condition):
            return condition
        case Bind(variable, term):
            return nodes.Comparison("=", nodes.Variable(variable), term)
        case Spread(variable, start, stop, step):
            unsaid = any(isinstance(part, nodes.Call) and part.function == DEFAULT_STEP for part in walk(step))
            arguments = (start, stop) if unsaid else (start, stop, step)
            return nodes.Comparison("=", nodes.Variable(variable), nodes.Call("range", arguments))
        case Gather(variable, function, target, bodies):
            parts = tuple(
                nodes.And(tuple(_formula(inner, marks, (*at, number, index)) for index, inner in enumerate(body)))
                for number, body in enumerate(bodies)
            )
            whole = parts[0] if len(parts) == 1 else nodes.Or(parts)
            return nodes.Comparison("=", nodes.Variable(variable), nodes.Collect(function, target, whole))
        case _:
            assert_never(literal)
