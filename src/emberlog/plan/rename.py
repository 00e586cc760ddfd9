"""Plans with other column names, and without any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    rebuild,
    walk,
)
from emberlog.syntax.nodes import Call, Comparison, Term, Test, Variable


def rename(plan: Plan, names: Mapping[str, str]) -> Plan:
    """The plan with every column `n` called `names[n]`."""
    return rebuild(plan, lambda node: _rename_node(node, names))


def canonical(plan: Plan) -> Plan:
    """The plan with columns numbered in the order of a walk."""
    names = dict.fromkeys(name for node in walk(plan) for name in columns(node))
    return rename(plan, {name: f"${i}" for i, name in enumerate(names)})


def shape(plan: Plan) -> object:
    """What a node does with its inputs, without any names: a column is its position among the inputs' columns.

    Two nodes of one kind and shape whose inputs are alike give the same rows, with columns in the same order.
    """
    match plan:
        case Unit() | Distinct() | Union():
            return ()
        case Scan(relation, names, types, version):
            return relation, tuple(name is None for name in names), types, version
        case Select(child, conditions):
            return _renamed(conditions, _spots(columns(child)))
        case Extend(child, column, term):
            return _place(column, child), _rename_term(term, _spots(columns(child)))
        case Expand(child, column, start, stop, step):
            spots = _spots(columns(child))
            return _place(column, child), *(_rename_term(term, spots) for term in (start, stop, step))
        case Join(left, right, spares):
            return _matched(left, right), tuple(_place(name, left) for name in spares)
        case Antijoin(left, right, where):
            both = {**_spots(columns(right), "$r"), **_spots(columns(left), "$l")}
            return _matched(left, right), _renamed(where, both)
        case Lookup(left, right, column, default, spares):
            places = tuple(_place(name, left) for name in spares)
            return _matched(left, right), _place(column, right), default, places
        case Project(child, items):
            return tuple(_rename_term(term, _spots(columns(child))) for _, term in items)
        case Group(child, keys, folds):
            spots = _spots(columns(child))
            folded = tuple((fold.function, fold.argument and spots[fold.argument]) for fold in folds)
            return tuple(spots[key] for key in keys), folded
        case Top(child, order, ties, limit, groups):
            spots = _spots(columns(child))
            kept = tuple(spots[name] for name in ties), tuple(spots[name] for name in groups)
            return tuple((spots[name], down) for name, down in order), kept, limit
        case Guard(child, terms, shown):
            spots = _spots(columns(child))
            named = tuple(spots[name] for name in terms), tuple(spots[name] for name in shown)
            return named, plan.rule, plan.complaint
        case _:
            assert_never(plan)


def _spots(names: Iterable[str], prefix: str = "$") -> dict[str, str]:
    return {name: f"{prefix}{spot}" for spot, name in enumerate(names)}


def _place(column: str, plan: Plan) -> int | None:
    """The position of a column in a plan, None where it has no such column."""
    return next((spot for spot, name in enumerate(columns(plan)) if name == column), None)


def _matched(left: Plan, right: Plan) -> tuple[int | None, ...]:
    """For each column of the right side the position of the one on the left that it is matched with."""
    spots = {name: spot for spot, name in enumerate(columns(left))}
    return tuple(spots.get(name) for name in columns(right))


def _rename_node(plan: Plan, names: Mapping[str, str]) -> Plan:
    """One node with other names; its inputs have them already."""

    def name(old: str) -> str:
        return names.get(old, old)

    match plan:
        case Unit() | Distinct() | Union():
            return plan
        case Scan(_, kept):
            return replace(plan, columns=tuple(None if column is None else name(column) for column in kept))
        case Select(child, conditions):
            return Select(child, _renamed(conditions, names))
        case Extend(child, column, value):
            return Extend(child, name(column), _rename_term(value, names))
        case Expand(child, column, start, stop, step):
            bounds = [_rename_term(term, names) for term in (start, stop, step)]
            return Expand(child, name(column), bounds[0], bounds[1], bounds[2])
        case Join(spares=spares):
            return replace(plan, spares=tuple(name(spare) for spare in spares)) if spares else plan
        case Antijoin(left, right, where):
            return Antijoin(left, right, _renamed(where, names))
        case Lookup(column=column, spares=spares):
            return replace(plan, column=name(column), spares=tuple(name(spare) for spare in spares))
        case Project(child, items):
            return Project(child, tuple((name(column), _rename_term(value, names)) for column, value in items))
        case Group(child, keys, folds):
            made = tuple(Fold(name(f.column), f.function, f.argument and name(f.argument)) for f in folds)
            return Group(child, tuple(name(key) for key in keys), made)
        case Top(child, order, ties, limit, groups):
            keys_ = tuple((name(column), descends) for column, descends in order)
            return Top(child, keys_, tuple(map(name, ties)), limit, tuple(map(name, groups)))
        case Guard(_, terms, shown):
            return replace(
                plan,
                terms=tuple(name(column) for column in terms),
                shown=tuple(name(column) for column in shown),
            )
        case _:
            assert_never(plan)


def _renamed(conditions: Iterable[Condition], names: Mapping[str, str]) -> tuple[Condition, ...]:
    return tuple(_rename_condition(condition, names) for condition in conditions)


def _rename_condition(old: Condition, names: Mapping[str, str]) -> Condition:
    match old:
        case Comparison(operator, left, right):
            return Comparison(operator, _rename_term(left, names), _rename_term(right, names), span=old.span)
        case Test(call):
            made = _rename_term(call, names)
            assert isinstance(made, Call)
            return Test(made, span=old.span)


def _rename_term(old: Term, names: Mapping[str, str]) -> Term:
    match old:
        case Variable(variable):
            return Variable(names.get(variable, variable), span=old.span)
        case Call(_, arguments):
            return replace(old, arguments=tuple(_rename_term(argument, names) for argument in arguments))
        case _:
            return old
