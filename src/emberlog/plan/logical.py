"""The logical plan: relational algebra over named columns. `strata` holds plans together.

A plan node is a frozen value; `columns(plan)` gives its output columns and their types. A column is named after the
variable that it binds, so `Join` and `Antijoin` are natural: they match the columns that both sides have. The columns
that a relation is made of have the names `#0`, `#1`, .. which no variable can have.

Nodes are bags, as in SQL: `Distinct` says where duplicates go away. What scans read are sets.

A plan is as deep as a body is long, so nothing here, and no pass over plans, recurses on Python's stack: `rebuild`,
`replace_parts` and `walk` go through plans, and other passes are `deep` calls. A node remembers its hash and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, TypeAlias, assert_never

from emberlog.analysis.functions import aggregate_type, type_of
from emberlog.deep import Deep, run_deep
from emberlog.syntax.nodes import Comparison, Constant, Term, Test, Variable
from emberlog.types import NUMBER, Type

Condition: TypeAlias = Comparison | Test

# What a scan of a relation reads while its component is being evaluated: all rows so far, those of the last round, or
# those before the last round. Outside its component a relation is always read in `all`.
Version: TypeAlias = Literal["all", "recent", "stable"]


class _Node:
    """Equality and hash by value. Both are asked of large plans again and again: the hash is computed once."""

    __slots__ = ("_columns", "_hash", "_unsure")
    _columns: Columns
    _hash: int
    _unsure: frozenset[str]  # see `plan.missing.unsure`

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if type(one) is not type(two) or hash(one) != hash(two) or _own_fields(one) != _own_fields(two):
                return False
            mine, others = children(one), children(two)
            if len(mine) != len(others):
                return False
            pairs.extend(zip(mine, others, strict=True))
        return True

    def __hash__(self) -> int:
        if hasattr(self, "_hash"):
            return self._hash
        for node in bottom_up(self, lambda node: hasattr(node, "_hash")):  # type: ignore[arg-type]
            below = tuple(child._hash for child in children(node))
            object.__setattr__(node, "_hash", hash((type(node), _own_fields(node), below)))
        return self._hash


def _own_fields(node: Plan) -> tuple[object, ...]:
    """The values of a node's fields, without those that hold its inputs."""
    return tuple(getattr(node, name) for name in node.__dataclass_fields__ if name not in _INPUTS)


_INPUTS = frozenset({"input", "left", "right", "inputs"})


@dataclass(frozen=True, slots=True, eq=False)
class Unit(_Node):
    """One row without columns: the empty body."""


@dataclass(frozen=True, slots=True, eq=False)
class Scan(_Node):
    """The rows of a relation; `columns` name its positions in order, None where a position is not read."""

    relation: str
    columns: tuple[str | None, ...]
    types: tuple[Type, ...]
    version: Version = "all"


@dataclass(frozen=True, slots=True, eq=False)
class Select(_Node):
    """The rows for which every condition holds; a condition that mentions a missing value lets the row pass."""

    input: Plan
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Extend(_Node):
    """One more column: the value of `term`, null where it has none."""

    input: Plan
    column: str
    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Expand(_Node):
    """One row for each value of the range `start`, `start + step`, .. before `stop`; where that is no range, one row
    without a value."""

    input: Plan
    column: str
    start: Term
    stop: Term
    step: Term


@dataclass(frozen=True, slots=True, eq=False)
class Join(_Node):
    """The pairs of rows that match; a row of `left` in which one of `spares` has no value passes without a match."""

    left: Plan
    right: Plan
    spares: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Antijoin(_Node):
    """The rows of `left` that match no row of `right`; `where` may compare columns of both sides besides."""

    left: Plan
    right: Plan
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Lookup(_Node):
    """A join with at most one match for a row of `left`. Rows without one stay, with `default` in `column`; one in
    which one of `spares` has no value has none in `column` either."""

    left: Plan
    right: Plan
    column: str
    default: Constant
    spares: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Project(_Node):
    """Exactly these columns, each the value of a term. Duplicates stay."""

    input: Plan
    columns: tuple[tuple[str, Term], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(_Node):
    input: Plan


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate over a group. `function` is min max sum count countd avg; count has no argument."""

    column: str
    function: str
    argument: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Group(_Node):
    """One row for each value of the keys that occurs; nothing gives nothing, without keys too."""

    input: Plan
    keys: tuple[str, ...]
    folds: tuple[Fold, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Union(_Node):
    """The rows of all inputs, column by column in the order of the first."""

    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Top(_Node):
    """The first `limit` rows of each of the `groups` in an order (column, descends); what the order leaves open is
    settled by `ties`."""

    input: Plan
    order: tuple[tuple[str, bool], ...]
    ties: tuple[str, ...]
    limit: int | None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Guard(_Node):
    """The rows of `input`; a row in which one of the columns `terms` has no value is an error of rule `rule`.

    `shown` are the columns whose values the error names.
    """

    input: Plan
    terms: tuple[str, ...]
    shown: tuple[str, ...]
    rule: int
    complaint: str = "has no value"


def too_large(type: Type) -> str:
    """The complaint of a sum of this type that has none of its values."""
    return f"has a sum that does not fit in {'38 digits' if type.kind == 'decimal' else '64 bits'}"


Plan: TypeAlias = (
    Unit | Scan | Select | Extend | Expand | Join | Antijoin | Lookup | Project | Distinct | Group | Union | Top | Guard
)

Columns: TypeAlias = Mapping[str, Type]


def columns(plan: Plan) -> Columns:
    """Name and type of each output column, in order. A node remembers them."""
    if not hasattr(plan, "_columns"):
        for node in bottom_up(plan, lambda node: hasattr(node, "_columns")):
            object.__setattr__(node, "_columns", _columns_above(node))
    return plan._columns


def _columns_above(plan: Plan) -> Columns:
    """The columns of a node whose inputs know theirs."""
    match plan:
        case Unit():
            return {}
        case Scan():
            return {name: type for name, type in zip(plan.columns, plan.types, strict=True) if name is not None}
        case Select(child, _) | Distinct(child) | Top(child) | Guard(child) | Antijoin(child, _):
            return child._columns
        case Extend(child, column, term):
            return {**columns(child), column: type_of(term, columns(child))}
        case Expand(child, column, start):
            return {**columns(child), column: type_of(start, columns(child))}
        case Join(left, right):
            return _joined_types(columns(left), columns(right))
        case Lookup(left, right, column):
            return {**columns(left), column: columns(right)[column]}
        case Project(child, items):
            return {name: type_of(term, columns(child)) for name, term in items}
        case Group(child, keys, folds):
            types = columns(child)
            return {key: types[key] for key in keys} | {fold.column: _fold_type(fold, types) for fold in folds}
        case Union(inputs):
            return _union_types(inputs)
        case _:
            assert_never(plan)


def _joined_types(left: Columns, right: Columns) -> Columns:
    """The columns of both sides; decimals that they share have room for the digits of both."""
    shared = {name: left[name].with_room_for(type) for name, type in right.items() if name in left}
    return {**left, **right, **{name: type for name, type in shared.items() if type.kind == "decimal"}}


def _union_types(inputs: tuple[Plan, ...]) -> Columns:
    """The columns of the first input, of types that have room for the values of all."""
    first, *others = (columns(child) for child in inputs)
    found = dict(first)
    for other in others:
        for name, type in zip(found, other.values(), strict=True):
            found[name] = found[name].with_room_for(type)
    return found


def _fold_type(fold: Fold, types: Columns) -> Type:
    match fold.function:
        case "count" | "countd":
            return NUMBER
        case function:
            assert fold.argument is not None
            type = types[fold.argument]
            return aggregate_type(function, type) if function == "avg" or type.kind == "decimal" else type


# The fields of nodes that are other nodes. A plan is walked so often that to match its nodes would take long.
_CHILDREN: dict[type[_Node], Callable[[Any], tuple[Plan, ...]]] = {
    **dict.fromkeys((Unit, Scan), lambda plan: ()),
    **dict.fromkeys((Join, Antijoin, Lookup), attrgetter("left", "right")),
    **dict.fromkeys((Select, Extend, Expand, Project, Distinct, Group, Top, Guard), lambda plan: (plan.input,)),
    Union: attrgetter("inputs"),
}


def children(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs of a node."""
    return _CHILDREN[type(plan)](plan)


def map_children(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """`plan` with `change` applied to each direct input."""
    return with_children(plan, [change(child) for child in children(plan)])


def with_children(plan: Plan, inputs: Sequence[Plan]) -> Plan:
    """`plan` with other direct inputs; the same value where they are what it has."""
    if all(new is old for new, old in zip(inputs, children(plan), strict=True)):
        return plan
    match plan:
        case Unit() | Scan():
            return plan
        case Join() | Antijoin() | Lookup():
            return replace(plan, left=inputs[0], right=inputs[1])
        case Union():
            return Union(tuple(inputs))
        case Select() | Extend() | Expand() | Project() | Distinct() | Group() | Top() | Guard():
            return replace(plan, input=inputs[0])
        case _:
            assert_never(plan)


def bottom_up(plan: Plan, is_done: Callable[[Plan], bool]) -> Iterator[Plan]:
    """The node and everything below it that is not done, each after its inputs and once."""
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        below = () if is_done(node) else tuple(child for child in children(node) if not is_done(child))
        if below:
            waiting.extend(below)
        else:
            waiting.pop()
            if not is_done(node):
                yield node


def rebuild(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """`plan` with `change` applied to every node, to the inputs before what reads them. A node that several others
    share is changed once, and is shared afterwards."""
    made: dict[int, Plan] = {}
    for node in bottom_up(plan, lambda node: id(node) in made):
        made[id(node)] = change(map_children(node, lambda child: made[id(child)]))
    return made[id(plan)]


def replace_parts(plan: Plan, part: Callable[[Plan], Plan | None]) -> Plan:
    """`plan` with `part(node)` in the place of the outermost nodes for which there is one."""
    found: dict[int, Plan] = {}

    def below(node: Plan) -> Deep[Plan]:
        if id(node) not in found:
            other = part(node)
            if other is None:
                inputs = []
                for child in children(node):
                    inputs.append((yield below(child)))
                other = with_children(node, inputs)
            found[id(node)] = other
        return found[id(node)]

    return run_deep(below(plan))


def nodes(plan: Plan) -> list[Plan]:
    """The node and everything below it, each once and after its inputs."""
    seen: dict[int, Plan] = {}
    for node in bottom_up(plan, lambda node: id(node) in seen):
        seen[id(node)] = node
    return list(seen.values())


def walk(plan: Plan) -> Iterator[Plan]:
    """The node and everything below it, once for each way that leads to it."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def scans(plan: Plan) -> Iterator[Scan]:
    """Every scan in the plan."""
    return (node for node in walk(plan) if isinstance(node, Scan))


def keep(plan: Plan, names: tuple[str, ...]) -> Plan:
    """`plan` with just these columns, in this order."""
    if tuple(columns(plan)) == names:
        return plan
    return Project(plan, tuple((name, Variable(name)) for name in names))
