"""What workers can compute over their own rows of a relation, so that nobody needs the rows themselves.

Workers own different rows. So a count, sum, minimum or maximum is that of the parts; a projection or the first rows of
an order are found among those of the parts. `decide` looks at everything that reads a relation: where all of it can be
done in parts, each such node of a plan becomes a `Partial`, and the rows are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from emberlog.analysis.functions import type_of
from emberlog.deep import Deep, run_deep
from emberlog.plan.logical import (
    Columns,
    Condition,
    Distinct,
    Extend,
    Fold,
    Group,
    Guard,
    Plan,
    Project,
    Scan,
    Select,
    Top,
    children,
    columns,
    rebuild,
    replace_parts,
    scans,
    walk,
)
from emberlog.plan.strata import ProgramPlan, Stratum, map_plans, plans
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable
from emberlog.types import Type

MOST_FIRST = 100_000  # rows of a limit that every worker finds

# The positions of a relation's columns that say which worker has a row: none where one worker has all rows, and None
# where nothing is known. Rows that agree there are in one place.
Split: TypeAlias = Mapping[str, tuple[int, ...] | None]

# For each column the position of the relation that it copies, None where it is computed.
Origins: TypeAlias = Mapping[str, int | None]

PUT_TOGETHER = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Partial:
    """A node of a plan that each worker evaluates over its own rows of `table`.

    `relation` is the name of what all of them find, and `rest` stands for the node afterwards: it reads that relation.
    `origins` tell which columns are copies. `counts` says that the number of rows is all that is asked.
    """

    relation: str
    table: str
    node: Plan
    rest: Plan
    origins: tuple[int | None, ...]
    counts: bool = False

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(columns(self.node).values())

    @property
    def parts(self) -> Scan:
        """What workers found, row by row."""
        return _scan_of(self.relation, self.node)


@dataclass(frozen=True)
class Decision:
    """The relations of a component whose rows are kept, and what workers compute in place of the others'."""

    keep: frozenset[str]
    partials: tuple[Partial, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)  # what becomes of each relation's rows, where it matters

    @property
    def text(self) -> str:
        one = len(self.keep | self.told.keys()) == 1
        return "; ".join(told if one else f"{name}: {told}" for name, told in self.told.items())


class _Needed(Exception):
    """Why rows of a relation are needed. `asked` where something was to be done in parts, and could not."""

    def __init__(self, reason: str, asked: bool = False) -> None:
        super().__init__(reason)
        self.asked = asked


def decide(
    stratum: Stratum, plan: ProgramPlan, rows: frozenset[str], split: Split, *, only_counts: bool = False
) -> Decision:
    """What to do with the rows of a recursive component; those of the relations `rows` are asked for.

    With `only_counts` nothing but numbers of rows is done in parts: rows need not be kept to be read one by one.
    """
    keep: set[str] = set()
    partials: list[Partial] = []
    told: dict[str, str] = {}
    for relation in stratum.relations:
        name = relation.name
        values = relation.signature.aggregates
        keys = frozenset(spot for spot in range(len(relation.signature.columns)) if spot not in values)
        try:
            found = _found(name, keys, plan, stratum, split.get(name))
            if name in rows:
                raise _Needed("they are asked for", asked=bool(found))
            if only_counts and not all(partial.counts for _, partial in found):
                raise _Needed("they are read piece by piece", asked=True)
        except _Needed as reason:
            keep.add(name)
            if reason.asked:
                told[name] = f"rows kept: {reason}"
            continue
        partials += [partial for _, partial in found]
        told[name] = _told(found)
    return Decision(frozenset(keep), tuple(partials), told)


def substituted(stratum: Stratum, made: Mapping[Plan, Plan]) -> Stratum:
    """The stratum with what was done in parts in the places of the nodes that asked for it."""

    return map_plans(stratum, lambda plan: replace_parts(plan, made.get)) if made else stratum


def _found(
    name: str, keys: frozenset[int], plan: ProgramPlan, own: Stratum, split: tuple[int, ...] | None
) -> list[tuple[str, Partial]]:
    """Every reader of a relation with what is done in parts for it. Raises `_Needed` where that is not all."""
    found: list[tuple[str, Partial]] = []
    for stratum in plan.readers.get(name, ()):
        if set(stratum.names) <= set(own.names):
            continue
        for relation in stratum.relations:
            roots = list(plans(relation)) + ([] if relation.constant is None else [relation.constant])
            if not any(scan.relation == name for root in roots for scan in scans(root)):
                continue
            if stratum.evaluation != "once":
                raise _Needed(f"the recursion of `{relation.name}` reads them")
            for root in roots:
                for node in run_deep(_search(root, name, keys, split, relation.name)):
                    if all(node.node != other.node for _, other in found):
                        node = replace(node, relation=f"{name}/part{len(found)}")
                        found.append((relation.name, replace(node, rest=_renamed(node.rest, node.relation))))
    return found


def _told(found: list[tuple[str, Partial]]) -> str:
    if not found:
        return "counted in the workers; rows not kept"
    doing: dict[str, list[str]] = {}
    for reader, partial in found:
        readers = doing.setdefault(_DOING[type(partial.node)] if not partial.counts else "counted", [])
        shown = "a goal" if reader.startswith("goal/") else reader
        if shown not in readers:
            readers.append(shown)
    done = " and ".join(f"{verb} in the workers for {', '.join(names)}" for verb, names in doing.items())
    return f"{done}; rows not kept"


_DOING: dict[type, str] = {Group: "aggregated", Distinct: "projected", Top: "cut to a limit", Select: "selected"}


def _search(
    plan: Plan, name: str, keys: frozenset[int], split: tuple[int, ...] | None, reader: str
) -> Deep[list[Partial]]:
    """The outermost nodes of a plan that can be done in parts. Raises `_Needed` where a row is read otherwise."""
    why: _Needed | None = None
    if isinstance(plan, Group | Distinct | Top | Select) and any(scan.relation == name for scan in scans(plan)):
        try:
            return [_partial(plan, name, keys, split)]
        except _Needed as reason:
            why = reason if reason.asked else None
    if isinstance(plan, Scan) and plan.relation == name:
        raise _Needed(f"`{reader}` reads them")
    found: list[Partial] = []
    try:
        for child in children(plan):
            found += yield _search(child, name, keys, split, reader)
    except _Needed as reason:
        raise (_Needed(f"`{reader}` {why}", asked=True) if why is not None else reason) from None
    return found


def _partial(
    node: Group | Distinct | Top | Select, name: str, keys: frozenset[int], split: tuple[int, ...] | None
) -> Partial:
    """A node as one that workers evaluate; raises `_Needed` where they cannot, or where it would save nothing."""
    if not columns(node):
        raise _Needed("only asks if there are any", asked=True)
    origins = _origins(node if isinstance(node, Select) else node.input, name)
    alone = split == ()
    if any(isinstance(below, Distinct) for below in walk(node.input)) and not (alone or isinstance(node, Top)):
        raise _Needed("counts what is different among the rows of all workers", asked=True)
    read = _scan_of("", node)
    match node:
        case Group(_, groups, folds):
            apart = _saving({origins[key] for key in groups}, keys, split)
            made = {key: origins[key] for key in groups} | {f.column: _folded(f, node, origins, apart) for f in folds}
            rest: Plan = read if apart else Group(read, groups, tuple(_put_together(fold) for fold in folds))
            only = not groups and all(fold.function == "count" for fold in folds) and _copies_all_rows(node.input)
            return Partial("", name, node, rest, tuple(made.values()), counts=only)
        case Distinct():
            apart = _saving(set(origins.values()), keys, split)
            return Partial("", name, node, read if apart else Distinct(read), tuple(origins.values()))
        case Top(below, _, _, limit):
            if limit is None or limit > MOST_FIRST:
                raise _Needed("sorts them all" if limit is None else f"takes {limit:,} of them", asked=True)
            if node.groups:
                raise _Needed("takes the first ones of each group", asked=True)
            again = any(isinstance(part, Distinct) for part in walk(below))
            rest = replace(node, input=Distinct(read) if again else read)
            return Partial("", name, node, rest, tuple(origins.values()))
        case Select(_, conditions):
            if not any(_is_point(condition) for condition in conditions):
                raise _Needed("reads them")
            return Partial("", name, node, read, tuple(origins.values()))


def _saving(groups: set[int | None], keys: frozenset[int], split: tuple[int, ...] | None) -> bool:
    """Is each group in the hands of one worker? Raises `_Needed` where there are as many groups as rows."""
    if keys <= groups:
        raise _Needed("has a row for each of them", asked=True)
    return split is not None and set(split) <= groups


def _folded(fold: Fold, group: Group, origins: Origins, apart: bool) -> int | None:
    """The position that an aggregate's value is from, None where it is computed."""
    if fold.argument is None or fold.function == "count":
        return None
    if fold.function not in PUT_TOGETHER and not apart:
        raise _Needed(f"takes {fold.function} over the rows of all workers", asked=True)
    type = columns(group.input)[fold.argument]
    if fold.function in ("sum", "avg") and not _is_plain(type):
        raise _Needed(f"takes {fold.function} of values of type {type}", asked=True)
    return origins[fold.argument] if fold.function in ("min", "max") else None


def _put_together(fold: Fold) -> Fold:
    return Fold(fold.column, PUT_TOGETHER[fold.function], fold.column)


def _copies_all_rows(plan: Plan) -> bool:
    return isinstance(plan, Scan) or (isinstance(plan, Project) and _copies_all_rows(plan.input))


def _is_point(condition: Condition) -> bool:
    """Does it leave just a few rows: those with one value?"""
    if not isinstance(condition, Comparison) or condition.operator != "=":
        return False
    return {type(condition.left), type(condition.right)} == {Variable, Constant}


# --- row by row ------------------------------------------------------------------------------------------------------


def _origins(plan: Plan, name: str) -> Origins:
    """Where the columns come from of a plan that looks at rows of a relation one by one.

    Workers know numbers; of other values they know codes, which they copy and compare with each other, no more.
    """
    return run_deep(_origins_of(plan, name))


def _origins_of(plan: Plan, name: str) -> Deep[Origins]:
    match plan:
        case Scan(relation, names, _, "all") if relation == name:
            return {column: spot for spot, column in enumerate(names) if column is not None}
        case Distinct(child):
            known: Origins = yield _origins_of(child, name)
            return known
        case Select(child, conditions):
            for condition in conditions:
                for side in _sides(condition):
                    _check(side, columns(child))
            known = yield _origins_of(child, name)
            return known
        case Extend(child, column, term):
            _check(term, columns(child), value=True)
            known = yield _origins_of(child, name)
            return {**known, column: None}
        case Project(child, items):
            known = yield _origins_of(child, name)
            for _, term in items:
                if not isinstance(term, Variable):
                    _check(term, columns(child), value=True)
            return {column: known[term.name] if isinstance(term, Variable) else None for column, term in items}
        case Guard():
            raise _Needed("has an operation that may have no value", asked=True)
        case _:
            raise _Needed("reads them together with other rows", asked=True)


def _sides(condition: Condition) -> tuple[Term, ...]:
    return (condition.left, condition.right) if isinstance(condition, Comparison) else (condition.call,)


def _check(term: Term, types: Columns, value: bool = False) -> None:
    """Raises `_Needed` for a term that workers cannot compute; a `value` must be a number too, and not a truth."""
    type = type_of(term, types)
    if not _is_plain(type) and (value or type.kind != "bool" or not isinstance(term, Call)):
        raise _Needed(f"computes or compares values of type {type}", asked=True)
    if isinstance(term, Call):
        for argument in term.arguments:
            _check(argument, types)


def _is_plain(type: Type) -> bool:
    """Do workers hold these values themselves?"""
    return type.kind in ("number", "float")


def _scan_of(relation: str, node: Plan) -> Scan:
    """What workers found by evaluating a node."""
    found = columns(node)
    return Scan(relation, tuple(found), tuple(found.values()))


def _renamed(plan: Plan, relation: str) -> Plan:
    """`plan` with a scan of this relation."""
    return rebuild(plan, lambda node: replace(node, relation=relation) if isinstance(node, Scan) else node)
