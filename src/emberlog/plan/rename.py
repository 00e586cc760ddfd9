"""Plans with other column names."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from emberlog.plan.logical import (
    Antijoin,
    Condition,
    Distinct,
    Expand,
    Extend,
    Fold,
    Group,
    Guard,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Select,
    Top,
    Union,
    Unit,
    columns,
    walk,
)
from emberlog.syntax.nodes import Call, Comparison, Term, Test, Variable


def canonical(plan: Plan) -> Plan:
    """The plan with columns numbered in the order of a walk: two plans that differ in names only become equal."""
    names = dict.fromkeys(name for node in walk(plan) for name in columns(node))
    return rename(plan, {name: f"${i}" for i, name in enumerate(names)})


def rename(plan: Plan, names: dict[str, str]) -> Plan:
    """The plan with every column `n` called `names[n]`."""

    def name(old: str) -> str:
        return names.get(old, old)

    def term(old: Term) -> Term:
        match old:
            case Variable(variable):
                return Variable(name(variable), span=old.span)
            case Call(function, arguments):
                return Call(function, tuple(term(argument) for argument in arguments), span=old.span)
            case _:
                return old

    def condition(old: Condition) -> Condition:
        match old:
            case Comparison(operator, left, right):
                return Comparison(operator, term(left), term(right), span=old.span)
            case Test(call):
                made = term(call)
                assert isinstance(made, Call)
                return Test(made, span=old.span)

    def down(old: Plan) -> Plan:
        return rename(old, names)

    match plan:
        case Unit():
            return plan
        case Scan(_, kept):
            return replace(plan, columns=tuple(None if column is None else name(column) for column in kept))
        case Select(child, conditions):
            return Select(down(child), tuple(condition(each) for each in conditions))
        case Extend(child, column, value):
            return Extend(down(child), name(column), term(value))
        case Expand(child, column, start, stop, step):
            return Expand(down(child), name(column), term(start), term(stop), term(step), plan.rule)
        case Join(left, right):
            return Join(down(left), down(right))
        case Antijoin(left, right, where):
            return Antijoin(down(left), down(right), tuple(condition(each) for each in where))
        case Lookup(left, right, column, default):
            return Lookup(down(left), down(right), name(column), default)
        case Project(child, items):
            return Project(down(child), tuple((name(column), term(value)) for column, value in items))
        case Distinct(child):
            return Distinct(down(child))
        case Group(child, keys, folds):
            made = tuple(Fold(name(f.column), f.function, f.argument and name(f.argument)) for f in folds)
            return Group(down(child), tuple(name(key) for key in keys), made)
        case Union(inputs):
            return Union(tuple(down(child) for child in inputs))
        case Top(child, order, ties, limit):
            keys_ = tuple((name(column), descends) for column, descends in order)
            return Top(down(child), keys_, tuple(name(column) for column in ties), limit)
        case Guard(child, terms, conditions, shown):
            return replace(
                plan,
                input=down(child),
                terms=tuple(name(column) for column in terms),
                conditions=tuple(condition(each) for each in conditions),
                shown=tuple(name(column) for column in shown),
            )
        case _:
            assert_never(plan)
