"""The plans of an iteration that hands on changes (MRA): sums of which both properties of MRA evaluation are proved.

A relation is a table of groups with two numbers: what the group has handed on, and what it still has to hand on. A
round takes up each change that counts: it is added to the first number, taken from the second one, and what the rules
make of it is added to the changes of other groups. All of this is one plan. The first change is what the first round
would change of the start. The state of an iteration is at any time the sum of the two numbers.

A group that is new hands on a change of zero too: groups come to be by contributions, whatever these are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emberlog.plan.logical import Antijoin, Fold, Group, Plan, Project, Scan, Select, Union, columns, keep, rebuild
from emberlog.plan.names import position, positions
from emberlog.plan.strata import RelationPlan
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Until, Variable
from emberlog.types import FLOAT

WAITS = "#waits"  # what a group still has to hand on
TIMES = "#times"  # 1 for a group that has handed something on, 0 for one that is new
TOLERANCE = 1e-12  # a smaller part of a sum is lost in its digits
LARGEST = 1e300  # a change of a value beyond this counts always: such an iteration does not end


def start_table(relation: str) -> str:
    """The relation that holds the start."""
    return f"{relation}/start"


def changes_table(relation: str) -> str:
    """The relation that holds groups and changes."""
    return f"{relation}/changes"


@dataclass(frozen=True, slots=True)
class ChangePlans:
    """What is computed of one relation: at the start (groups of the start that nothing contributes to, the first
    changes), in every round (the changes after it; how many groups there are, how many changes count, how many groups
    are new, how large all changes are), and at the end. `outside` is None where there is nothing that could be."""

    outside: Plan | None
    first: Plan
    round: Plan
    figures: tuple[tuple[str, Plan], ...]
    whole: Plan


def change_plans(relation: RelationPlan, component: Iterable[RelationPlan], until: Until | None) -> ChangePlans:
    """The plans of a relation of a component."""
    return _Changes(relation).plans({other.name: _Changes(other) for other in component}, until)


class _Changes:
    def __init__(self, relation: RelationPlan) -> None:
        self.relation = relation
        self.types = tuple(column.type.wide for column in relation.signature.columns)
        self.names = positions(len(self.types))
        self.groups = tuple(position(i) for i in relation.signature.groups)
        self.value = position(relation.aggregate[0])

    def plans(self, component: Mapping[str, _Changes], until: Until | None) -> ChangePlans:
        state, start, constant = self.state(), self.start(), self.relation.constant
        begun = self._row(start, Variable(self.value), Call("neg", (Variable(self.value),)), 1.0)
        always = [] if constant is None else [self._contributed(constant)]
        from_start = self._steps({name: other.start() for name, other in component.items()})
        handed = Call("+", (Variable(self.value), Variable(WAITS)))
        taken = self._row(Select(state, (self._counts(),)), handed, Constant(0.0), 1.0)
        held = keep(Select(state, (self._counts(holds=False),)), tuple(columns(taken)))
        from_changes = self._steps({name: other.changes() for name, other in component.items()})
        whole = Project(state, tuple((name, handed if name == self.value else Variable(name)) for name in self.names))
        return ChangePlans(
            Antijoin(keep(start, self.groups), keep(constant, self.groups)) if constant is not None else None,
            self._summed([begun, *always, *from_start]),
            self._summed([taken, held, *from_changes]),
            self._figures(until),
            whole,
        )

    def start(self) -> Scan:
        return Scan(start_table(self.relation.name), self.names, self.types)

    def state(self) -> Scan:
        return Scan(changes_table(self.relation.name), (*self.names, WAITS, TIMES), (*self.types, FLOAT, FLOAT))

    def changes(self) -> Plan:
        """The changes that are taken up, in the place of the values."""
        rows = Select(self.state(), (self._counts(),))
        return Project(rows, tuple((n, Variable(WAITS if n == self.value else n)) for n in self.names))

    def _steps(self, recent: Mapping[str, Plan]) -> list[Plan]:
        return [self._contributed(_reading(step, recent)) for step in self.relation.steps]

    def _contributed(self, rows: Plan) -> Plan:
        """Contributions wait."""
        return self._row(rows, Constant(0.0), Variable(self.value), 0.0)

    def _row(self, rows: Plan, value: Term, waits: Term, times: float) -> Plan:
        kept = tuple((name, Variable(name)) for name in self.groups)
        return Project(rows, (*kept, (self.value, value), (WAITS, waits), (TIMES, Constant(times))))

    def _summed(self, parts: list[Plan]) -> Plan:
        folds = tuple(Fold(name, "sum", name) for name in (self.value, WAITS, TIMES))
        rows = parts[0] if len(parts) == 1 else Union(tuple(parts))
        return keep(Group(rows, self.groups, folds), (*self.names, WAITS, TIMES))

    def _figures(self, until: Until | None) -> tuple[tuple[str, Plan], ...]:
        state = self.state()
        new = Select(state, (Comparison("=", Variable(TIMES), Constant(0.0)),))
        figures = [("#facts", _counted(state)), ("#waiting", _counted(Select(state, (self._counts(),))))]
        figures.append(("#new", _counted(new)))
        if until is not None:
            sizes = Project(state, (("#size", Call("abs", (Variable(WAITS),))),))
            figures.append(("#norm", Group(sizes, (), (Fold("#norm", until.function, "#size"),))))
        return tuple(figures)

    def _counts(self, *, holds: bool = True) -> Comparison:
        """The condition that a change is taken up: its group is new, or the change is not lost in the sum's digits."""
        new = Call("-", (Constant(1.0), Variable(TIMES)))
        size = Call("min", (Call("abs", (Variable(self.value),)), Constant(LARGEST)))
        least = Call("*", (Call("*", (Constant(TOLERANCE), size)), Variable(TIMES)))
        waits = Call("+", (Call("abs", (Variable(WAITS),)), new))
        return Comparison("!<=" if holds else "<=", waits, least)


def _counted(rows: Plan) -> Plan:
    number = Group(rows, (), (Fold("#n", "count", None),))
    return Project(number, (("#n", Call("to_float", (Variable("#n"),))),))


def _reading(plan: Plan, recent: Mapping[str, Plan]) -> Plan:
    """The plan in which what the last round brought is read from these plans."""

    def read(node: Plan) -> Plan:
        match node:
            case Scan(relation, names, _, "recent"):
                pairs = zip(names, columns(recent[relation]), strict=True)
                return Project(recent[relation], tuple((n, Variable(m)) for n, m in pairs if n is not None))
            case _:
                return node

    return rebuild(plan, read)
