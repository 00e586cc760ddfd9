"""Strata: how relations that depend on each other are computed, as plans, and the program that is made of strata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from emberlog.analysis.program import CoreRule, Signature, Verdict
from emberlog.plan.logical import Plan, scans
from emberlog.plan.names import stateless
from emberlog.syntax.nodes import Until


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
    (`extremum`); or contributions from which groups are totalled (`total`). `exit` reads only lower strata, and so does
    `plain`: rows that bring counts to a `countd`, whose type is not that of the values which it counts. `steps` are the
    delta plans: each reads the last round's rows in one place. A relation that is computed once, and one that is
    recomputed every round, has only `exit`. `checks` are evaluated before all others, for their errors alone: they have
    no rows. `start` is the first state of an iteration, and `constant` that part of
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
    plain: Plan | None = None
    checks: tuple[Plan, ...] = ()

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
    def reads(self) -> frozenset[str]:
        """The relations that its plans read, its own among them."""
        constants = (relation.constant for relation in self.relations if relation.constant is not None)
        roots = chain(constants, *(plans(relation) for relation in self.relations))
        return frozenset(scan.relation for root in roots for scan in scans(root))

    @property
    def made(self) -> frozenset[str]:
        """The relations that have rows after it: where states are kept, also those that keep them."""
        return frozenset((*self.names, *(stateless(name) for name in self.names)))


@dataclass(frozen=True)
class ProgramPlan:
    """Strata in evaluation order, and what their plans refer to: signatures of all relations, rules by number."""

    strata: tuple[Stratum, ...]
    signatures: Mapping[str, Signature]
    rules: Mapping[int, CoreRule] = field(repr=False)

    @cached_property
    def rules_of(self) -> Mapping[str, tuple[CoreRule, ...]]:
        """The rules of each predicate."""
        found: dict[str, list[CoreRule]] = {}
        for rule in self.rules.values():
            found.setdefault(rule.predicate, []).append(rule)
        return {name: tuple(rules) for name, rules in found.items()}

    @cached_property
    def derived(self) -> frozenset[str]:
        """The relations that strata compute."""
        return frozenset(name for stratum in self.strata for name in stratum.names)

    @cached_property
    def readers(self) -> Mapping[str, tuple[Stratum, ...]]:
        """For each relation the strata that read it."""
        found: dict[str, list[Stratum]] = {}
        for stratum in self.strata:
            for name in stratum.reads:
                found.setdefault(name, []).append(stratum)
        return {name: tuple(strata) for name, strata in found.items()}

    def map(self, change: Callable[[Plan], Plan]) -> ProgramPlan:
        """The program with `change` applied to the root of every plan in it."""
        return replace(self, strata=tuple(map_plans(stratum, change) for stratum in self.strata))


def plans(relation: RelationPlan) -> Iterator[Plan]:
    """Every plan of a relation."""
    yield from relation.checks
    if relation.start is not None:
        yield relation.start
    if relation.exit is not None:
        yield relation.exit
    if relation.plain is not None:
        yield relation.plain
    yield from relation.steps
    for contribution in relation.contributions:
        yield from contribution.steps


def map_plans(stratum: Stratum, change: Callable[[Plan], Plan]) -> Stratum:
    """The stratum with `change` applied to the root of every plan in it."""

    def optional(plan: Plan | None) -> Plan | None:
        return None if plan is None else change(plan)

    def relation(old: RelationPlan) -> RelationPlan:
        return with_plans(
            old,
            start=optional(old.start),
            exit=optional(old.exit),
            constant=optional(old.constant),
            plain=optional(old.plain),
            checks=tuple(change(plan) for plan in old.checks),
            steps=tuple(change(plan) for plan in old.steps),
            contributions=tuple(
                replace(part, steps=tuple(change(plan) for plan in part.steps)) for part in old.contributions
            ),
        )

    return with_relations(stratum, relation)


def with_relations(stratum: Stratum, change: Callable[[RelationPlan], RelationPlan]) -> Stratum:
    """The stratum with `change` applied to each relation; the same value where nothing changes."""
    made = tuple(change(relation) for relation in stratum.relations)
    same = all(new is old for new, old in zip(made, stratum.relations, strict=True))
    return stratum if same else replace(stratum, relations=made)


def with_plans(relation: RelationPlan, **fields: Any) -> RelationPlan:
    """The relation with other plans; the same value where they are what it has."""
    return (
        relation
        if all(_same(getattr(relation, name), new) for name, new in fields.items())
        else replace(relation, **fields)
    )


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, tuple):
        return len(old) == len(new) and all(one is other for one, other in zip(old, new, strict=True))
    return old is new
