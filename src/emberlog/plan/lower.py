"""From the checked program to the logical plan.

`lower` walks the components; a component's relations are planned by how they are evaluated: computed once, recomputed
every round, or by deltas. Bodies are lowered in `bodies`, delta plans come from `deltas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Match, Signature
from emberlog.plan.bodies import Bodies, contributed_rows
from emberlog.plan.deltas import contribution, delta_bodies
from emberlog.plan.logical import (
    Distinct,
    Fold,
    Group,
    Guard,
    Plan,
    ProgramPlan,
    RelationPlan,
    Scan,
    Stratum,
    Top,
    Union,
    columns,
    keep,
)
from emberlog.plan.names import given_part, position, positions, state_part
from emberlog.syntax.nodes import Constant


def lower(program: CheckedProgram, wanted: Iterable[str] | None = None) -> ProgramPlan:
    """The plan of everything that the `wanted` predicates need (of all predicates when None)."""
    needed = _needed(program, wanted)
    return ProgramPlan(
        strata=tuple(
            _ComponentPlanner(program, component).stratum()
            for component in program.components
            if component.rules and not needed.isdisjoint(component.predicates)
        ),
        signatures=program.signatures,
        rules={rule.id: rule for component in program.components for rule in component.rules},
    )


def _needed(program: CheckedProgram, wanted: Iterable[str] | None) -> set[str]:
    needed = set(program.signatures if wanted is None else wanted)
    for component in reversed(program.components):
        if not needed.isdisjoint(component.predicates):
            needed.update(component.predicates)
            needed.update(name for rule in component.rules for name in rule.reads())
    return needed


class _ComponentPlanner:
    """Plans the relations of one component."""

    def __init__(self, program: CheckedProgram, component: Component) -> None:
        self.program = program
        self.component = component
        self.inside = frozenset(component.predicates) if component.recursive else frozenset[str]()
        working = {name: _without_index(program.signatures[name]) for name in self.inside if component.keeps_states}
        self.signatures: Mapping[str, Signature] = {**program.signatures, **working}
        self.bodies = Bodies(self.signatures)

    def stratum(self) -> Stratum:
        part = self.component
        return Stratum(
            relations=tuple(self._relation(name) for name in part.predicates),
            evaluation=part.evaluation,
            shape=part.shape,
            verdicts=part.verdicts,
            indexed=part.indexed,
            keeps_states=part.keeps_states,
            until=part.until,
            invents=part.invents,
        )

    def _relation(self, predicate: str) -> RelationPlan:
        signature = self.signatures[predicate]
        rules = [rule for rule in self.component.rules if rule.predicate == predicate]
        given = self._given(predicate)
        match self.component.evaluation:
            case "delta":
                return self._by_deltas(signature, rules, given)
            case "once":
                return RelationPlan(signature, "set", self._whole(signature, rules, given))
            case "naive" | "accumulate":
                first = [rule for rule in rules if rule.start]
                steady = [rule for rule in rules if not rule.start]
                indexed = self.component.indexed
                return RelationPlan(
                    signature,
                    _state(signature),
                    exit=self._whole(signature, steady, [] if indexed else given),
                    start=self._whole(signature, first, given) if indexed else None,
                    constant=union(
                        [self._contributed(rule) for rule in steady if not self._is_recursive(rule)]
                        + ([] if indexed else given)
                    ),
                    steps=self._changes(steady) if self.component.evaluation == "accumulate" else (),
                )

    def _by_deltas(self, signature: Signature, rules: list[CoreRule], given: list[Plan]) -> RelationPlan:
        exits = [rule for rule in rules if not self._is_recursive(rule)]
        recursive = [rule for rule in rules if self._is_recursive(rule)]
        state = _state(signature)
        if state == "total":
            return RelationPlan(
                signature,
                state,
                exit=union([self._contributed(rule) for rule in exits] + given),
                contributions=tuple(
                    contribution(rule, self.bodies, self.inside, self.signatures) for rule in recursive
                ),
            )
        return RelationPlan(
            signature,
            state,
            exit=self._whole(signature, exits, given),
            steps=tuple(
                contributed_rows(rule, body)
                for rule in recursive
                for body in delta_bodies(rule, self.bodies, self.inside)
            ),
        )

    def _changes(self, rules: list[CoreRule]) -> tuple[Plan, ...]:
        """What the recursive rules contribute when they read changes of sums in place of the sums."""
        return tuple(
            contributed_rows(rule, body)
            for rule in rules
            if self._is_recursive(rule)
            for body in delta_bodies(rule, self.bodies, self.inside)
        )

    def _whole(self, signature: Signature, rules: list[CoreRule], given: list[Plan]) -> Plan | None:
        """The relation computed in one go by these rules, None when nothing contributes."""
        rows = union([self._contributed(rule) for rule in rules] + given)
        if rows is None or not signature.aggregates:
            return rows and Distinct(rows)
        spot, function = next(iter(signature.aggregates.items()))
        if function == "topk":
            ties = tuple(name for name in positions(len(signature.columns)) if name != position(spot))
            return Top(Distinct(rows), ((position(spot), True),), ties, _limit_of_topk(rules))
        rows_count = not given and all(rule.aggregates for rule in rules)
        return totals(signature, rows, rules[0].id if rules else -1, rows_count=rows_count)

    def _contributed(self, rule: CoreRule) -> Plan:
        return by_contributor(rule, contributed_rows(rule, self.bodies.of_rule(rule)))

    def _given(self, predicate: str) -> list[Plan]:
        """The rows that a derived predicate has from facts and sources, if any."""
        signature = self.program.signatures[predicate]
        if not (signature.external or self.program.facts.get(predicate)):
            return []
        types = tuple(column.type for column in signature.columns)
        return [Scan(given_part(predicate), positions(len(types)), types)]

    def _is_recursive(self, rule: CoreRule) -> bool:
        return any(isinstance(literal, Match) and literal.predicate in self.inside for literal in rule.body)


def totals(signature: Signature, contributed: Plan, rule: int, *, rows_count: bool = False) -> Plan:
    """One row for each group of what was contributed.

    `rows_count` says that no rule brings a count of its own, so that counting rows is enough. `rule` is named when a
    sum leaves the range of its type.
    """
    folds = []
    for spot, function in signature.aggregates.items():
        if function == "count" and rows_count:
            folds.append(Fold(position(spot), "count", None))
        else:
            folds.append(Fold(position(spot), "sum" if function == "count" else function, position(spot)))
    groups = tuple(position(i) for i in signature.groups)
    grouped: Plan = Group(contributed, groups, tuple(folds))
    sums = tuple(fold.column for fold in folds if fold.function == "sum")
    if any(columns(grouped)[name].is_integer for name in sums):
        grouped = Guard(grouped, sums, (), groups, rule, "has a sum that does not fit in 64 bits")
    return keep(grouped, positions(len(signature.columns)))


def by_contributor(rule: CoreRule, rows: Plan) -> Plan:
    """For `sum<(K,V)>`: one row for each contributor K of a group (the largest, should one state give several)."""
    keyed = [spot for spot, aggregate in rule.aggregates if len(aggregate.arguments) == 2]
    if not keyed:
        return rows
    value = position(keyed[0])
    keys = tuple(name for name in columns(rows) if name != value)
    return keep(Group(rows, keys, (Fold(value, "max", value),)), positions(len(rule.arguments)))


def union(parts: list[Plan]) -> Plan | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _limit_of_topk(rules: list[CoreRule]) -> int:
    limits = (aggregate.limit for rule in rules for _, aggregate in rule.aggregates)
    return int(next(limit.value for limit in limits if isinstance(limit, Constant)))


def _state(signature: Signature) -> Literal["set", "extremum", "total"]:
    functions = set(signature.aggregates.values())
    if not functions:
        return "set"
    return "extremum" if functions <= {"min", "max"} and len(signature.aggregates) == 1 else "total"


def _without_index(signature: Signature) -> Signature:
    """The working relation of an iteration whose states are kept: the relation without its index."""
    return replace(
        signature,
        name=state_part(signature.name),
        columns=signature.columns[1:],
        aggregates={spot - 1: function for spot, function in signature.aggregates.items()},
    )
