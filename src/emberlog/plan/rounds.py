"""What a stratum computes, statement by statement: once, at the start, and every round.

The logical plan says what follows from the last round. An evaluator adds what makes rounds of it: it takes away what is
known, merges what is better into its groups, totals contributions, compares a state with the one before. These steps
move rows too, so the physical plan has them. They are those of the relational evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from emberlog.analysis.program import CoreRule, Signature
from emberlog.plan.changes import change_plans
from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Fold,
    Group,
    Join,
    Plan,
    Project,
    Scan,
    Union,
    Version,
    columns,
    keep,
)
from emberlog.plan.lower import brings_counts, by_contributor, totals
from emberlog.plan.names import position, positions
from emberlog.plan.physical import Operator, Physical, exchanges, hashed, physical
from emberlog.plan.strata import Contribution, ProgramPlan, RelationPlan, Stratum
from emberlog.syntax.nodes import Call, Comparison, Term, Until, Variable

OLD = "#old"  # the value that a group had


@dataclass(frozen=True, slots=True)
class Step:
    """One statement: what it is for, its plan, and whether every round repeats it."""

    title: str
    plan: Physical
    repeated: bool


@dataclass(frozen=True, slots=True)
class PhysicalStratum:
    """The statements of a stratum in the order in which they run."""

    names: tuple[str, ...]
    recursive: bool
    steps: tuple[Step, ...]

    @property
    def exchanges_once(self) -> int:
        return sum(exchanges(step.plan) for step in self.steps if not step.repeated)

    @property
    def exchanges_a_round(self) -> int:
        return sum(exchanges(step.plan) for step in self.steps if step.repeated)


def physical_stratum(stratum: Stratum, program: ProgramPlan, *, distributed: bool = True) -> PhysicalStratum:
    """The physical plan of a stratum of the program."""
    planner = _Planner(program, distributed)
    match stratum.evaluation:
        case "once":
            steps = [step for relation in stratum.relations for step in planner.once("", relation.exit)]
        case "delta":
            steps = [step for relation in stratum.relations for step in planner.by_deltas(relation)]
        case "naive":
            steps = [step for relation in stratum.relations for step in planner.by_states(relation, stratum.until)]
        case "accumulate":
            steps = [step for relation in stratum.relations for step in planner.by_changes(relation, stratum)]
        case _:
            assert_never(stratum.evaluation)
    ordered = sorted(steps, key=lambda step: step.repeated)
    return PhysicalStratum(stratum.names, stratum.evaluation != "once", tuple(ordered))


class _Planner:
    def __init__(self, program: ProgramPlan, distributed: bool) -> None:
        self.rules = program.rules
        self.distributed = distributed

    def once(self, title: str, plan: Plan | None) -> Iterator[Step]:
        if plan is not None:
            yield Step(title, physical(plan, distributed=self.distributed), repeated=False)

    def each_round(self, title: str, plan: Plan) -> Step:
        return Step(title, physical(plan, distributed=self.distributed), repeated=True)

    # --- rounds of deltas ----------------------------------------------------------------------------------------

    def by_deltas(self, relation: RelationPlan) -> Iterator[Step]:
        yield from self.once(f"exit of {relation.name}", relation.exit)
        match relation.state:
            case "set":
                if relation.steps:
                    new = Antijoin(Distinct(_together(relation.steps)), _scan(relation.signature))
                    yield self.each_round(f"new rows of {relation.name}", new)
            case "extremum":
                if relation.steps:
                    yield self.each_round(f"better rows of {relation.name}", _better(relation))
                    yield self._merge(relation.signature)
            case "total":
                yield from self._total(relation)
            case _:
                assert_never(relation.state)

    def _merge(self, signature: Signature) -> Step:
        groups = tuple(position(spot) for spot in signature.groups)
        return self._merged(signature.name, _scan(signature), _scan(signature, version="recent"), groups)

    def _merged(self, name: str, known: Scan, new: Scan, keys: tuple[str, ...]) -> Step:
        """New rows take the place of those with the same keys."""
        sides = tuple(physical(scan, distributed=self.distributed) for scan in (known, new))
        if not keys:
            return Step(f"merged into {name}", Operator("Merge", "", sides, None), repeated=True)
        merge = Operator("Merge", f"by {', '.join(keys)}", tuple(hashed(side, keys) for side in sides), None)
        return Step(f"merged into {name}", merge, repeated=True)

    def _total(self, relation: RelationPlan) -> Iterator[Step]:
        """Contributions by identity, then the total of each group that they touch."""
        signature, parts = relation.signature, relation.contributions
        rule = parts[0].rule if parts else -1
        first, counts = (
            None
            if plan is None
            else Scan(f"{relation.name}/{name}", tuple(columns(plan)), tuple(columns(plan).values()))
            for name, plan in (("exits", relation.exit), ("plain", relation.plain))
        )
        yield from self.once(f"counts that {relation.name} is given", relation.plain)
        yield from self.once(f"first totals of {relation.name}", totals(signature, first, counts, rule))
        kept = [_Kept(relation.name, part, spot if len(parts) > 1 else None) for spot, part in enumerate(parts)]
        for part in kept:
            yield self.each_round(f"contributions to {relation.name}", Distinct(_together(part.of.steps)))
            yield self._merged(f"the contributions to {relation.name}", part.all, part.fresh, part.of.identity)
        if kept:
            groups = tuple(position(spot) for spot in signature.groups)
            touched = Distinct(_together([keep(part.fresh, groups) for part in kept]))

            def rows(of_counts: bool) -> Plan | None:
                given = counts if of_counts else first
                found: list[Plan] = [] if given is None else [given]
                rules = [(part, self.rules[part.of.rule]) for part in kept]
                found += [part.rows(rule) for part, rule in rules if brings_counts(rule, signature) == of_counts]
                return Join(_together(found), touched) if found else None

            now = totals(signature, rows(False), rows(True), rule)
            assert now is not None
            yield self.each_round(f"changed totals of {relation.name}", _unlike(now, signature))
            yield self._merge(signature)

    # --- rounds that replace the state ---------------------------------------------------------------------------

    def by_states(self, relation: RelationPlan, until: Until | None) -> Iterator[Step]:
        signature, name = relation.signature, relation.name
        yield from self.once(f"start of {name}", relation.start)
        if relation.exit is not None:
            yield self.each_round(f"next state of {name}", relation.exit)
        state, following = _scan(signature), _scan(signature, name=f"{name}/next")
        for title, these, others in (("rows that came", following, state), ("rows that went", state, following)):
            counted = Group(_unlike(these, signature, others.relation), (), (Fold("#n", "count", None),))
            yield self.each_round(f"{title}, {name}", counted)
        if until is not None and signature.aggregates:
            yield self.each_round(f"size of the change of {name}", _distance(state, following, signature, until))

    # --- rounds that hand on changes -----------------------------------------------------------------------------

    def by_changes(self, relation: RelationPlan, stratum: Stratum) -> Iterator[Step]:
        name, plans = relation.name, change_plans(relation, stratum.relations, stratum.until)
        yield from self.once(f"start of {name}", relation.start)
        if relation.start is not None:
            yield from self.once(f"groups that {name} has at the start only", plans.outside)
        yield from self.once(f"first changes of {name}", plans.first)
        yield self.each_round(f"next changes of {name}", plans.round)
        for title, (_, figure) in zip(
            ("groups", "changes that count", "new groups", "size"), plans.figures, strict=False
        ):
            yield self.each_round(f"{title} of {name}", figure)
        yield from self.once(f"end of {name}", plans.whole)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The tables of one rule's contributions to a total: all of them, and those of this round."""

    relation: str
    of: Contribution
    number: int | None  # None when only one rule contributes

    def _scan(self, name: str) -> Scan:
        types = columns(self.of.steps[0])
        numbered = name if self.number is None else f"{name} {self.number + 1}"
        return Scan(f"{self.relation}/{numbered}", tuple(types), tuple(types.values()))

    @property
    def all(self) -> Scan:
        return self._scan("contributions")

    @property
    def fresh(self) -> Scan:
        return self._scan("changed contributions")

    def rows(self, rule: CoreRule) -> Plan:
        """All contributions as rows of the relation."""
        own = tuple(name for name in columns(self.all) if name.startswith("#"))
        return keep(by_contributor(rule, keep(self.all, own)), positions(len(rule.arguments)))


def _together(parts: Sequence[Plan]) -> Plan:
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _scan(signature: Signature, *, name: str | None = None, version: Version = "all") -> Scan:
    types = tuple(column.type.wide for column in signature.columns)
    return Scan(name or signature.name, positions(len(types)), types, version)


def _better(relation: RelationPlan) -> Plan:
    """The best of what a round found, where it beats what is known."""
    signature = relation.signature
    spot, function = relation.aggregate
    value, groups = position(spot), tuple(position(i) for i in signature.groups)
    found = Group(_together(relation.steps), groups, (Fold(value, function, value),))
    best = keep(found, positions(len(signature.columns)))
    as_good = Comparison("<=" if function == "min" else ">=", Variable(OLD), Variable(value))
    return Antijoin(best, _with_old(_scan(signature), {value}), (as_good,))


def _unlike(rows: Plan, signature: Signature, other: str | None = None) -> Plan:
    """The rows that a relation (the one of the signature, or another like it) does not hold."""
    values = {position(spot) for spot in signature.aggregates}
    known = _with_old(_scan(signature, name=other), values)
    same = tuple(Comparison("=", Variable(name), Variable(OLD)) for name in sorted(values)[:1])
    return Antijoin(rows, known, same)


def _with_old(scan: Scan, values: set[str]) -> Scan:
    names = tuple(OLD if name in values else name for name in scan.columns)
    return Scan(scan.relation, names, scan.types, scan.version)


def _distance(state: Scan, following: Scan, signature: Signature, until: Until) -> Plan:
    """How far two states are apart: the sum, or the largest, of what groups changed by."""
    value = position(next(iter(signature.aggregates)))
    groups = tuple(position(spot) for spot in signature.groups)

    def signed(scan: Scan, term: Term) -> Plan:
        return Project(scan, (*((name, Variable(name)) for name in groups), ("#d", term)))

    both = Union((signed(following, Variable(value)), signed(state, Call("neg", (Variable(value),)))))
    change = Group(both, groups, (Fold("#d", "sum", "#d"),))
    sizes = Project(change, (("#size", Call("abs", (Variable("#d"),))),))
    return Group(sizes, (), (Fold("#norm", until.function, "#size"),))
