"""The logical plan: relational algebra over named columns, plus the strata that hold it together.

A plan node is a frozen value; `columns(plan)` gives its output columns and their types. A column is named after the
variable that it binds, so `Join` and `Antijoin` are natural: they match the columns that both sides have. The columns
that a relation is made of have the names `#0`, `#1`, .. which no variable can have.

Nodes are bags, as in SQL: `Distinct` says where duplicates go away. What scans read are sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import CoreRule, Signature, Verdict
from emberlog.plan.names import stateless
from emberlog.syntax.nodes import Comparison, Constant, Term, Test, Until, Variable
from emberlog.types import FLOAT, NUMBER, Type

Condition: TypeAlias = Comparison | Test

# What a scan of a relation reads while its component is being evaluated: all rows so far, those of the last round, or
# those before the last round. Outside its component a relation is always read in `all`.
Version: TypeAlias = Literal["all", "recent", "stable"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One row without columns: the empty body."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a relation; `columns` name its positions in order, None where a position is not read."""

    relation: str
    columns: tuple[str | None, ...]
    types: tuple[Type, ...]
    version: Version = "all"


@dataclass(frozen=True, slots=True)
class Select:
    """The rows for which every condition holds; a row for which one has no value stays, for a `Guard` to see."""

    input: Plan
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """One more column: the value of `term`, null where it has none."""

    input: Plan
    column: str
    term: Term


@dataclass(frozen=True, slots=True)
class Expand:
    """One row for each value of the range `start`, `start + step`, .. before `stop`."""

    input: Plan
    column: str
    start: Term
    stop: Term
    step: Term
    rule: int = -1  # whose error it is when there is no such range


@dataclass(frozen=True, slots=True)
class Join:
    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Antijoin:
    """The rows of `left` that match no row of `right`; `where` may compare columns of both sides besides."""

    left: Plan
    right: Plan
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join in which rows of `left` without a match stay, with `default` in `column`."""

    left: Plan
    right: Plan
    column: str
    default: Constant


@dataclass(frozen=True, slots=True)
class Project:
    """Exactly these columns, each the value of a term. Duplicates stay."""

    input: Plan
    columns: tuple[tuple[str, Term], ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Plan


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate over a group. `function` is min max sum count countd avg; count has no argument."""

    column: str
    function: str
    argument: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """One row for each value of the keys that occurs; nothing gives nothing, without keys too."""

    input: Plan
    keys: tuple[str, ...]
    folds: tuple[Fold, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all inputs, column by column in the order of the first."""

    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Top:
    """The first `limit` rows in an order (column, descends); what the order leaves open is settled by `ties`."""

    input: Plan
    order: tuple[tuple[str, bool], ...]
    ties: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Guard:
    """The rows of `input`; a row in which one of `terms` or `conditions` has no value is an error of rule `rule`.

    `shown` are the columns whose values the error names.
    """

    input: Plan
    terms: tuple[str, ...]
    conditions: tuple[Condition, ...]
    shown: tuple[str, ...]
    rule: int
    complaint: str = "has no value"


Plan: TypeAlias = (
    Unit | Scan | Select | Extend | Expand | Join | Antijoin | Lookup | Project | Distinct | Group | Union | Top | Guard
)

Columns: TypeAlias = Mapping[str, Type]


@lru_cache(maxsize=65536)
def columns(plan: Plan) -> Columns:
    """Name and type of each output column, in order."""
    match plan:
        case Unit():
            return {}
        case Scan():
            return {name: type for name, type in zip(plan.columns, plan.types, strict=True) if name is not None}
        case Select(child, _) | Distinct(child) | Top(child) | Guard(child) | Antijoin(child, _):
            return columns(child)
        case Extend(child, column, term):
            return {**columns(child), column: type_of(term, columns(child))}
        case Expand(child, column, start):
            return {**columns(child), column: type_of(start, columns(child))}
        case Join(left, right):
            return {**columns(left), **columns(right)}
        case Lookup(left, right, column, _):
            return {**columns(left), column: columns(right)[column]}
        case Project(child, items):
            return {name: type_of(term, columns(child)) for name, term in items}
        case Group(child, keys, folds):
            types = columns(child)
            return {key: types[key] for key in keys} | {fold.column: _fold_type(fold, types) for fold in folds}
        case Union(inputs):
            return columns(inputs[0])
        case _:
            assert_never(plan)


def _fold_type(fold: Fold, types: Columns) -> Type:
    match fold.function:
        case "count" | "countd":
            return NUMBER
        case "avg":
            return FLOAT
        case _:
            assert fold.argument is not None
            type = types[fold.argument]
            if fold.function == "sum" and type.kind == "decimal":
                return Type("decimal", precision=38, scale=type.scale)
            return type


def children(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs of a node."""
    match plan:
        case Unit() | Scan():
            return ()
        case Join(left, right) | Antijoin(left, right) | Lookup(left, right):
            return (left, right)
        case Union(inputs):
            return inputs
        case Select() | Extend() | Expand() | Project() | Distinct() | Group() | Top() | Guard():
            return (plan.input,)
        case _:
            assert_never(plan)


def map_children(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """`plan` with `change` applied to each direct input."""
    match plan:
        case Unit() | Scan():
            return plan
        case Join(left, right) | Antijoin(left, right) | Lookup(left, right):
            return replace(plan, left=change(left), right=change(right))
        case Union(inputs):
            return Union(tuple(change(child) for child in inputs))
        case Select() | Extend() | Expand() | Project() | Distinct() | Group() | Top() | Guard():
            return replace(plan, input=change(plan.input))
        case _:
            assert_never(plan)


def walk(plan: Plan) -> Iterator[Plan]:
    """The node and everything below it."""
    yield plan
    for child in children(plan):
        yield from walk(child)


def scans(plan: Plan) -> Iterator[Scan]:
    """Every scan in the plan."""
    return (node for node in walk(plan) if isinstance(node, Scan))


def keep(plan: Plan, names: tuple[str, ...]) -> Plan:
    """`plan` with just these columns, in this order."""
    if tuple(columns(plan)) == names:
        return plan
    return Project(plan, tuple((name, Variable(name)) for name in names))


# --- strata ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a recursive rule gives to an aggregate in recursion: its identity, its group and its value.

    `steps` compute the contributions that follow from the rows of the last round. Columns of each: `identity`, then
    `#0`.. of the relation (with `#key` before the value of a `sum<(K,V)>`). The current value of an identity counts
    once.
    """

    rule: int
    identity: tuple[str, ...]
    steps: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class RelationPlan:
    """How one relation of a stratum is computed.

    `state` says what is kept while a component is evaluated: a `set` of rows; the best row of each group
    (`extremum`); or contributions from which groups are totalled (`total`). `exit` reads only lower strata, `steps` are
    the delta plans: each reads the last round's rows in one place. A relation that is computed once, and one that is
    recomputed every round, has only `exit`. `start` is the first state of an iteration, and `constant` that part of
    `exit` which every round contributes anew, before it is totalled. One that accumulates has `steps` too: what follows
    from changes, before it is totalled.
    """

    signature: Signature
    state: Literal["set", "extremum", "total"]
    exit: Plan | None
    steps: tuple[Plan, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    start: Plan | None = None
    constant: Plan | None = None

    @property
    def name(self) -> str:
        return self.signature.name

    @property
    def aggregate(self) -> tuple[int, str]:
        """Position and function of the aggregated column (of an `extremum` or `total`)."""
        return next(iter(self.signature.aggregates.items()))


@dataclass(frozen=True, slots=True)
class Stratum:
    """One component as plans. `evaluation`, `until` and the rest are as in `analysis.program.Component`.

    `auxiliary` marks a stratum that a rewrite made for a sub-plan that several rules share.
    """

    relations: tuple[RelationPlan, ...]
    evaluation: Literal["once", "delta", "naive", "accumulate"]
    shape: str = ""
    verdicts: tuple[Verdict, ...] = ()
    indexed: bool = False
    keeps_states: bool = False
    until: Until | None = None
    invents: bool = False
    auxiliary: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(relation.name for relation in self.relations)

    @property
    def made(self) -> frozenset[str]:
        """The relations that have rows after it: where states are kept, also those that keep them."""
        return frozenset((*self.names, *(stateless(name) for name in self.names)))


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """Strata in evaluation order, and what their plans refer to: signatures of all relations, rules by number."""

    strata: tuple[Stratum, ...]
    signatures: Mapping[str, Signature]
    rules: Mapping[int, CoreRule] = field(repr=False)

    def map(self, change: Callable[[Plan], Plan]) -> ProgramPlan:
        """The program with `change` applied to the root of every plan in it."""
        return replace(self, strata=tuple(map_plans(stratum, change) for stratum in self.strata))


def plans(relation: RelationPlan) -> Iterator[Plan]:
    """Every plan of a relation."""
    if relation.start is not None:
        yield relation.start
    if relation.exit is not None:
        yield relation.exit
    yield from relation.steps
    for contribution in relation.contributions:
        yield from contribution.steps


def map_plans(stratum: Stratum, change: Callable[[Plan], Plan]) -> Stratum:
    """The stratum with `change` applied to the root of every plan in it."""

    def optional(plan: Plan | None) -> Plan | None:
        return None if plan is None else change(plan)

    def relation(old: RelationPlan) -> RelationPlan:
        return replace(
            old,
            start=optional(old.start),
            exit=optional(old.exit),
            constant=optional(old.constant),
            steps=tuple(change(plan) for plan in old.steps),
            contributions=tuple(
                replace(part, steps=tuple(change(plan) for plan in part.steps)) for part in old.contributions
            ),
        )

    return replace(stratum, relations=tuple(relation(old) for old in stratum.relations))
