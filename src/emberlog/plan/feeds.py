"""Which groups of a recursive component feed which: its rules as a graph between keys.

A recursive rule such as `cost(P, sum<C>) <- assbl(P, S, Q), cost(S, D), C = Q * D` has an edge from the group S of
`cost` to the group P for each binding of its body. Values that grow for ever do so along a cycle of this graph, or by
arithmetic alone. Edges are read off the delta plans (of naive rounds: off the whole plan), so they are what is
evaluated, whatever rewrites did to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from emberlog.plan.bodies import variables
from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Expand,
    Extend,
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
    Version,
    columns,
    keep,
    map_children,
)
from emberlog.plan.names import position
from emberlog.plan.strata import RelationPlan, Stratum
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable

Keys = Mapping[str, tuple[int, ...]]  # the positions of each relation that tell its groups apart

PRESENT = "#present"  # the value that a group has now
LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Feed:
    """Edges of one rule: the columns of `plan` are the keys of a group of `source`, then those of one of `target`.

    With a `function` (min or max) two more follow: the value that the edge brings, and the one that is there.
    """

    source: str
    target: str
    plan: Plan
    function: str | None


def feeds(stratum: Stratum, *, infinite: bool = False) -> list[Feed]:
    """The edges of a component, over all rows that its relations have. With `infinite`, of those that lead to sums of
    floats only the ones that bring an infinite value."""
    keys = keys_of(stratum)
    inside = {relation.name: relation for relation in stratum.relations}
    found = []
    for relation in stratum.relations:
        version: Version = "recent" if relation.steps or relation.contributions else "all"
        for step in _steps(relation):
            for source, plan in _reading(_unguarded(step), keys, version):
                if keys[source] and keys[relation.name]:
                    rows = _in_all(plan, keys)
                    if infinite and is_float_sum(relation):
                        rows = _infinite(rows, position(relation.aggregate[0]))
                    found.append(_feed(inside[source], relation, rows, keys))
    return found


def is_float_sum(relation: RelationPlan) -> bool:
    """True for a sum of floats in recursion: it may become infinite."""
    return relation.state == "total" and relation.signature.columns[relation.aggregate[0]].type.kind == "float"


def infinite_groups(relation: RelationPlan, keys: Keys) -> Plan:
    """The keys of the groups whose sum is infinite, or no number."""
    types = tuple(column.type.wide for column in relation.signature.columns)
    names = tuple(position(spot) for spot in range(len(types)))
    rows = _infinite(Scan(relation.name, names, types), position(relation.aggregate[0]))
    return Distinct(keep(rows, tuple(position(spot) for spot in keys[relation.name])))


def _infinite(rows: Plan, column: str) -> Plan:
    # To both engines, what is no number is larger than all numbers.
    beyond = Comparison(">", Call("abs", (Variable(column),)), Constant(LARGEST))
    return Select(rows, (beyond,)) if column in columns(rows) else rows


def _steps(relation: RelationPlan) -> Iterator[Plan]:
    """Every plan that derives rows of a relation from the component; in delta plans one scan is of recent rows."""
    yield from relation.steps
    for contribution in relation.contributions:
        yield from contribution.steps
    if not relation.steps and not relation.contributions and relation.exit is not None:
        yield relation.exit


def _feed(source: RelationPlan, target: RelationPlan, plan: Plan, keys: Keys) -> Feed:
    names = tuple(_key(spot) for spot in keys[source.name]) + tuple(position(spot) for spot in keys[target.name])
    if target.state != "extremum":
        return Feed(source.name, target.name, Distinct(keep(plan, names)), None)
    spot, function = target.aggregate
    types = tuple(column.type.wide for column in target.signature.columns)
    present = Scan(target.name, tuple(PRESENT if i == spot else position(i) for i in range(len(types))), types)
    return Feed(
        source.name, target.name, Distinct(keep(Join(plan, present), (*names, position(spot), PRESENT))), function
    )


def _key(spot: int) -> str:
    """The column that has a key of the row that an edge begins with."""
    return f"<{spot}"


def _unguarded(plan: Plan) -> Plan:
    """The plan without its errors: what has no value is null, or not there."""
    return _unguarded(plan.input) if isinstance(plan, Guard) else map_children(plan, _unguarded)


def _reading(plan: Plan, keys: Keys, version: Version) -> list[tuple[str, Plan]]:
    """For each place where the plan reads a relation of the component in this version: the plan with the keys of that
    row as columns too. Aggregation is left out: a row for each that would be aggregated."""
    match plan:
        case Scan(relation) if relation in keys and plan.version == version:
            names = tuple(name or f"<?{i}" for i, name in enumerate(plan.columns))
            rows: Plan = replace(plan, columns=names)
            for spot in keys[relation]:
                rows = Extend(rows, _key(spot), Variable(names[spot]))
            return [(relation, rows)]
        case Unit() | Scan():
            return []
        case Join(left, right):
            return [
                *((name, Join(rows, right)) for name, rows in _reading(left, keys, version)),
                *((name, Join(left, rows)) for name, rows in _reading(right, keys, version)),
            ]
        case Antijoin(left) | Lookup(left):
            return [(name, replace(plan, left=rows)) for name, rows in _reading(left, keys, version)]
        case Select(child) | Extend(child) | Expand(child) | Distinct(child):
            return [(name, replace(plan, input=rows)) for name, rows in _reading(child, keys, version)]
        case Guard(child) | Top(child):
            return _reading(child, keys, version)
        case Project(child, items):
            return [(name, _with_keys(rows, items)) for name, rows in _reading(child, keys, version)]
        case Group(child, groups, folds):
            items = tuple((name, Variable(name)) for name in groups)
            items += tuple((fold.column, Variable(fold.argument)) for fold in folds if fold.argument is not None)
            return [(name, _with_keys(rows, items)) for name, rows in _reading(child, keys, version)]
        case Union(inputs):
            first = tuple(columns(inputs[0]))
            return [
                (name, _with_keys(rows, tuple(zip(first, map(Variable, columns(part)), strict=True))))
                for part in inputs
                for name, rows in _reading(part, keys, version)
            ]
        case _:
            assert_never(plan)


def _with_keys(rows: Plan, items: tuple[tuple[str, Term], ...]) -> Plan:
    """A projection that keeps the keys of the row that was read, and of `items` what is there without aggregates."""
    there = columns(rows)
    kept = tuple((name, term) for name, term in items if all(read in there for read in variables(term)))
    return Project(rows, (*kept, *((name, Variable(name)) for name in there if name.startswith("<"))))


def _in_all(plan: Plan, keys: Keys) -> Plan:
    """The plan in which every relation of the component is read as it is now."""
    match plan:
        case Scan(relation) if relation in keys:
            return replace(plan, version="all")
        case _:
            return map_children(plan, lambda child: _in_all(child, keys))


# --- keys ------------------------------------------------------------------------------------------------------------


def keys_of(stratum: Stratum) -> Keys:
    """The columns of each relation that are neither aggregated nor computed: finitely many values, from the data."""
    keys = {relation.name: relation.signature.groups for relation in stratum.relations}
    while True:
        fewer = {
            relation.name: tuple(
                spot
                for spot in keys[relation.name]
                if all(_is_copied(step, position(spot), keys) for step in _steps(relation))
            )
            for relation in stratum.relations
        }
        if fewer == keys:
            return keys
        keys = fewer


def _is_copied(plan: Plan, column: str, keys: Keys) -> bool:
    """True if the values of a column are constants or come from other strata, as far as `keys` are such columns."""
    match plan:
        case Unit():
            return False
        case Scan(relation, names):
            return relation not in keys or names.index(column) in keys[relation]
        case Extend(child, made, term) if made == column:
            return isinstance(term, Constant) or (isinstance(term, Variable) and _is_copied(child, term.name, keys))
        case Expand(_, made) if made == column:
            return False
        case Join(left, right):
            return any(column in columns(side) and _is_copied(side, column, keys) for side in (left, right))
        case Antijoin(left) | Lookup(left):
            return column in columns(left) and _is_copied(left, column, keys)
        case Project(child, items):
            term = dict(items)[column]
            return isinstance(term, Constant) or (isinstance(term, Variable) and _is_copied(child, term.name, keys))
        case Group(child, groups):
            return column in groups and _is_copied(child, column, keys)
        case Union(inputs):
            spot = list(columns(inputs[0])).index(column)
            return all(_is_copied(part, list(columns(part))[spot], keys) for part in inputs)
        case Select(child) | Extend(child) | Expand(child) | Distinct(child) | Guard(child) | Top(child):
            return _is_copied(child, column, keys)
        case _:
            assert_never(plan)
