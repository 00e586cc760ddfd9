"""From the checked program to the logical plan.

`lower` walks the components; a component's relations are planned by how they are evaluated: computed once, recomputed
every round, or by deltas. Bodies are lowered in `bodies`, delta plans come from `deltas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from emberlog.analysis.functions import DIGITS, MEAN
from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Match, Signature
from emberlog.plan.bodies import Bodies, contributed_rows
from emberlog.plan.deltas import contribution, delta_body
from emberlog.plan.logical import (
    Distinct,
    Fold,
    Group,
    Guard,
    Plan,
    Project,
    Scan,
    Top,
    Union,
    columns,
    keep,
    too_large,
)
from emberlog.plan.names import given_part, position, positions, state_part
from emberlog.plan.strata import ProgramPlan, RelationPlan, Stratum
from emberlog.rules.changes import delta_rules
from emberlog.syntax.nodes import Call, Constant, Term, Variable
from emberlog.types import Type


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
        self.signatures: Mapping[str, Signature] = program.signatures
        if component.keeps_states:
            working = {name: _without_index(program.signatures[name]) for name in self.inside}
            self.signatures = {**program.signatures, **working}
        self.bodies = Bodies(self.signatures)
        self.rules: dict[str, list[CoreRule]] = {}
        for rule in component.rules:
            self.rules.setdefault(rule.predicate, []).append(rule)

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
        rules = self.rules.get(predicate, [])
        checks = (self.bodies.without_atoms(rule, self.inside) for rule in rules if self._is_recursive(rule))
        return replace(self._evaluated(predicate, rules), checks=tuple(plan for plan in checks if plan is not None))

    def _evaluated(self, predicate: str, rules: list[CoreRule]) -> RelationPlan:
        signature = self.signatures[predicate]
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
            counted, plain = self._contributions(signature, exits, given)
            return RelationPlan(
                signature,
                state,
                exit=counted,
                plain=plain,
                contributions=tuple(
                    contribution(rule, self.bodies, self.inside, self.signatures) for rule in recursive
                ),
            )
        return RelationPlan(
            signature,
            state,
            exit=self._whole(signature, exits, given),
            steps=tuple(
                contributed_rows(rule, delta_body(delta, self.bodies))
                for rule in recursive
                for delta in delta_rules(rule, self.inside, self.signatures)
            ),
        )

    def _changes(self, rules: list[CoreRule]) -> tuple[Plan, ...]:
        """What the recursive rules contribute when they read changes of sums in place of the sums."""
        return tuple(
            contributed_rows(rule, delta_body(delta, self.bodies))
            for rule in rules
            if self._is_recursive(rule)
            for delta in delta_rules(rule, self.inside, self.signatures)
        )

    def _whole(self, signature: Signature, rules: list[CoreRule], given: list[Plan]) -> Plan | None:
        """The relation computed in one go by these rules, None when nothing contributes."""
        rows, plain = self._contributions(signature, rules, given)
        if not signature.aggregates:
            return rows and Distinct(rows)
        spot, function = next(iter(signature.aggregates.items()))
        if function in ("topk", "top"):
            others = tuple(name for name in positions(len(signature.columns)) if name != position(spot))
            ties = others if function == "topk" else (position(spot + 1),)
            groups = tuple(name for name in others if name not in ties)
            return rows and Top(Distinct(rows), ((position(spot), True),), ties, _limit_of_topk(rules), groups)
        rows_count = not given and all(rule.aggregates for rule in rules)
        return totals(signature, rows, plain, rules[0].id if rules else -1, rows_count=rows_count)

    def _contributions(
        self, signature: Signature, rules: list[CoreRule], given: list[Plan]
    ) -> tuple[Plan | None, Plan | None]:
        """What rules and given rows contribute; apart from it, for a `countd`, the rows that bring counts."""
        counts = [rule for rule in rules if brings_counts(rule, signature)]
        others = [rule for rule in rules if not brings_counts(rule, signature)]
        apart = given if "countd" in signature.aggregates.values() else []
        together = [] if apart else given
        return (
            union([self._contributed(rule) for rule in others] + together),
            union([self._contributed(rule) for rule in counts] + apart),
        )

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


def brings_counts(rule: CoreRule, signature: Signature) -> bool:
    """Does the rule give counts to the `countd` of its predicate, not values to be counted?"""
    counted = {spot for spot, function in signature.aggregates.items() if function == "countd"}
    return bool(counted) and counted.isdisjoint(spot for spot, _ in rule.aggregates)


def totals(
    signature: Signature, contributed: Plan | None, plain: Plan | None, rule: int, *, rows_count: bool = False
) -> Plan | None:
    """One row for each group of what was contributed, None where nothing is.

    `plain` are the rows that bring counts to a `countd`: they are added to what is counted. `rows_count` says that no
    rule brings a count of its own, so that counting rows is enough. `rule` is named when a sum leaves the range of its
    type.
    """
    if plain is not None:
        return _added_totals(signature, contributed, plain, rule)
    if contributed is None:
        return None
    folds = [
        Fold(position(spot), "count", None)
        if function == "count" and rows_count
        else Fold(position(spot), "sum" if function == "count" else function, position(spot))
        for spot, function in signature.aggregates.items()
    ]
    return _entered(
        signature, keep(_folded(contributed, signature, folds, rule), positions(len(signature.columns))), rule
    )


def _entered(signature: Signature, rows: Plan, rule: int) -> Plan:
    """Totals as the columns of the relation hold them: checked, or rounded, where these are narrower than 64 bits, and
    with all digits of its decimals where a part of the rules has fewer.

    What goes into a minimum or maximum was so before.
    """
    rows = with_digits(signature, rows)
    narrow = {
        position(spot): signature.columns[spot].type
        for spot, function in signature.aggregates.items()
        if signature.columns[spot].type.bits != 64 and function not in ("min", "max")
    }
    if not narrow:
        return rows
    names = columns(rows)
    made = Project(
        rows, tuple((n, Call(str(narrow[n]), (Variable(n),)) if n in narrow else Variable(n)) for n in names)
    )
    checked = tuple(name for name, type in narrow.items() if type.is_integer)
    groups = tuple(position(i) for i in signature.groups)
    return Guard(made, checked, groups, rule, "has a total that does not fit its column") if checked else made


def with_digits(signature: Signature, rows: Plan) -> Plan:
    """Rows of a relation with as many digits behind the point as its decimals have. Left to themselves, engines may
    round decimals of different types to put them together."""
    types = columns(rows)
    wanted = dict(zip(types, (column.type for column in signature.columns), strict=True))
    short = {name for name, type in types.items() if type.kind == "decimal" and type.scale < wanted[name].scale}
    if not short:
        return rows
    items = ((n, Call(DIGITS, (Variable(n), Constant(wanted[n].scale))) if n in short else Variable(n)) for n in types)
    return Project(rows, tuple(items))


def _added_totals(signature: Signature, contributed: Plan | None, plain: Plan, rule: int) -> Plan:
    """Totals of a predicate with a `countd` to which rows bring counts, too: values are counted first, then added up.

    An average is put together from a sum and a number of values.
    """
    names = positions(len(signature.columns))
    sizes = {position(spot): f"{position(spot)}/n" for spot, name in signature.aggregates.items() if name == "avg"}
    kept: list[tuple[str, Term]] = [(name, Variable(name)) for name in names]
    parts: list[Plan] = [Project(plain, (*kept, *((size, Constant(1)) for size in sizes.values())))]
    if contributed is not None:
        folds = [
            Fold(position(spot), "sum" if name in ("count", "avg") else name, position(spot))
            for spot, name in signature.aggregates.items()
        ]
        folds += [Fold(size, "count", None) for size in sizes.values()]
        parts.append(keep(_folded(contributed, signature, folds, rule), (*names, *sizes.values())))
    again = [
        Fold(position(spot), name if name in ("min", "max") else "sum", position(spot))
        for spot, name in signature.aggregates.items()
    ]
    again += [Fold(size, "sum", size) for size in sizes.values()]
    whole = _folded(Union(tuple(parts)), signature, again, rule)
    types = dict(zip(names, (column.type for column in signature.columns), strict=True))
    means = {name: _mean(name, size, types[name]) for name, size in sizes.items()}
    return _entered(signature, Project(whole, tuple((name, means.get(name, term)) for name, term in kept)), rule)


def _mean(total: str, size: str, type: Type) -> Term:
    """An average from the columns of a sum and a number of values."""
    if type.kind == "decimal":
        return Call(MEAN, (Variable(total), Variable(size), Constant(type.precision), Constant(type.scale)))
    return Call("/", (Variable(total), Call("to_float", (Variable(size),))))


def _folded(rows: Plan, signature: Signature, folds: list[Fold], rule: int) -> Plan:
    """One row for each group of the rows, with an error of `rule` for a sum that is too large."""
    groups = tuple(position(i) for i in signature.groups)
    grouped = Group(rows, groups, tuple(folds))
    sums = tuple(fold.column for fold in folds if fold.function in ("sum", "avg"))
    types = [columns(grouped)[name] for name in sums]
    bounded = [type for type in types if type.is_integer or type.kind == "decimal"]
    return Guard(grouped, sums, groups, rule, too_large(bounded[0])) if bounded else grouped


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
