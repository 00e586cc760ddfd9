"""Bodies of rules as plans: literals in their order, joined from left to right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count

from emberlog.analysis.functions import fallible
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
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
    Version,
    columns,
    keep,
)
from emberlog.plan.names import position
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Comparison, Constant, Term, Test, Variable
from emberlog.types import Type

KEY = "#key"  # the column that names the contributor of `sum<(K,V)>`


class Bodies:
    """Lowers bodies over relations with these signatures."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self.signatures = signatures
        self._fresh = (f"?{number}" for number in count())

    def of_rule(self, rule: CoreRule, versions: Mapping[int, Version] | None = None) -> Plan:
        """The bindings of the rule's variables; `versions` says what the atom at an index of the body reads."""
        return self._literals(Unit(), rule.body, rule.id, versions or {})

    def _literals(self, plan: Plan, body: Iterable[Literal], rule: int, versions: Mapping[int, Version]) -> Plan:
        waiting = dict(enumerate(spelled_out(body)))
        while waiting:
            # Aggregates over their own bodies come as late as they can: they see only bindings that got so far.
            ready = [index for index, literal in waiting.items() if _is_bound(literal, columns(plan))]
            index = min(ready, key=lambda spot: (isinstance(waiting[spot], Gather), spot))
            plan = self._literal(plan, waiting.pop(index), rule, versions.get(index, "all"))
        return plan

    def _literal(self, plan: Plan, literal: Literal, rule: int, version: Version) -> Plan:
        match literal:
            case Match(predicate, arguments):
                plan, rows = self._scan(plan, predicate, arguments, version)
                return rows if isinstance(plan, Unit) else Join(plan, rows)
            case Absent(predicate, arguments):
                plan, rows = self._scan(plan, predicate, arguments, "all")
                return Antijoin(plan, rows)
            case Filter(condition):
                return Select(plan, (condition,))
            case Bind(variable, term):
                return Extend(plan, variable, term)
            case Spread(variable, start, stop, step):
                return Expand(plan, variable, start, stop, step, rule)
            case Gather():
                return self._gather(plan, literal, rule)

    def _scan(self, plan: Plan, predicate: str, arguments: tuple[Term, ...], version: Version) -> tuple[Plan, Plan]:
        """The rows of an atom, and the plan so far with the columns that the atom's terms need.

        A variable names its column. A constant, or a variable that stands a second time, is a condition on a column of
        its own; another term is computed on the left and joined.
        """
        names: list[str | None] = []
        conditions: list[Condition] = []
        for argument in arguments:
            match argument:
                case Anonymous():
                    names.append(None)
                case Variable(name) if name not in names:
                    names.append(name)
                case Variable() | Constant():
                    fresh = next(self._fresh)
                    names.append(fresh)
                    conditions.append(Comparison("=", Variable(fresh), argument))
                case _:
                    fresh = next(self._fresh)
                    names.append(fresh)
                    plan = Extend(plan, fresh, argument)
        signature = self.signatures[predicate]
        types = tuple(column.type.wide for column in signature.columns)
        rows: Plan = Scan(signature.name, tuple(names), types, version)
        return plan, Select(rows, tuple(conditions)) if conditions else rows

    def _gather(self, outer: Plan, gather: Gather, rule: int) -> Plan:
        """An aggregate over its own bodies, evaluated for the groups that the outer bindings ask for."""
        asked: Plan = Distinct(keep(outer, gather.injected)) if gather.injected else Unit()
        inner = self._gathered(asked, gather, rule)
        value, witnesses = gather.variable, gather.witnesses
        folded = Fold(value, gather.function, None if gather.function == "count" else position(0))
        grouped: Plan = Group(inner, gather.injected, (folded,))
        type = columns(grouped)[value]
        if gather.function == "sum" and type.is_integer:
            grouped = Guard(grouped, (value,), (), gather.injected, rule, "has a sum that does not fit in 64 bits")
        if witnesses:
            bindings = [(name, Variable(name)) for name in (*gather.injected, *witnesses)]
            reached = Distinct(Project(inner, (*bindings, (value, Variable(position(0))))))
            grouped = Join(grouped, reached)
        if gather.function in ("count", "sum"):
            return Lookup(outer, grouped, value, _zero(type))
        return Join(outer, grouped)

    def _gathered(self, asked: Plan, gather: Gather, rule: int) -> Plan:
        """The bindings that an aggregate ranges over, with the aggregated value in `#0`."""
        disjuncts = [guarded(self._literals(asked, body, rule, {}), body, rule) for body in gather.bodies]
        inner = disjuncts[0]
        if len(disjuncts) > 1:
            shared = tuple(name for name in columns(inner) if all(name in columns(other) for other in disjuncts))
            inner = Distinct(Union(tuple(keep(disjunct, shared) for disjunct in disjuncts)))
        if gather.target is None:
            return inner
        inner = Extend(inner, position(0), gather.target)
        if fallible(gather.target, columns(inner)):
            inner = Guard(inner, (position(0),), (), tuple(variables(gather.target)), rule)
        return inner


def contributed_rows(rule: CoreRule, body: Plan, kept: tuple[str, ...] = ()) -> Plan:
    """The rows that the head makes of the body's bindings: for an aggregated column the value that goes in.

    `kept` are variables that stay beside the row's positions.
    """
    items: list[tuple[str, Term]] = [(name, Variable(name)) for name in kept]
    for spot, argument in enumerate(rule.arguments):
        match argument:
            case Aggregate("count"):
                items.append((position(spot), Constant(1)))
            case Aggregate(_, (key, value)):
                items.append((KEY, key))
                items.append((position(spot), value))
            case Aggregate(_, (value,)):
                items.append((position(spot), value))
            case _:
                items.append((position(spot), argument))
    computed = [(name, term) for name, term in items if fallible(term, columns(body))]
    for name, term in computed:
        body = Extend(body, f"!{name}", term)
    checked = guarded(body, rule.body, rule.id, tuple(f"!{name}" for name, _ in computed), [t for _, t in computed])
    done = {name: Variable(f"!{name}") for name, _ in computed}
    rows = Project(checked, tuple((name, done.get(name, term)) for name, term in items))
    return _first_rows(rule, rows, checked) if rule.order or rule.limit is not None else rows


def _first_rows(rule: CoreRule, rows: Project, body: Plan) -> Plan:
    """The rule's `sort` and `limit`: rows in order, what the order leaves open settled by the whole row."""
    order = tuple((f"order/{name}", descends) for name, descends in rule.order)
    extra = tuple((f"order/{name}", Variable(name)) for name, _ in rule.order)
    sortable = Distinct(Project(body, rows.columns + extra))
    everything = tuple(name for name, _ in rows.columns)
    return keep(Top(sortable, order, everything, rule.limit), everything)


def guarded(
    plan: Plan, body: Iterable[Literal], rule: int, terms: tuple[str, ...] = (), sources: Iterable[Term] = ()
) -> Plan:
    """`plan`, with an error for each binding in which a literal, or one of the columns `terms`, has no value."""
    types = columns(plan)
    conditions: list[Condition] = []
    unsure = list(terms)
    shown: list[str] = [name for source in sources for name in variables(source)]
    for literal in spelled_out(body):
        match literal:
            case Filter(condition) if condition_fallible(condition, types):
                conditions.append(condition)
                shown.extend(variables(condition))
            case Bind(variable, term) if fallible(term, types):
                unsure.append(variable)
                shown.extend(variables(term))
            case _:
                pass
    if not conditions and not unsure:
        return plan
    return Guard(plan, tuple(unsure), tuple(conditions), tuple(dict.fromkeys(shown)), rule)


def spelled_out(body: Iterable[Literal]) -> tuple[Literal, ...]:
    """The body with each computed argument of a negated atom as a variable of its own.

    A computed argument without a value matches nothing, so a positive atom drops the binding; a negated one would keep
    it. As a binding of its own the value is checked like any other.
    """
    spelled: list[Literal] = []
    bindings: list[Literal] = []
    for index, literal in enumerate(body):
        if isinstance(literal, Absent) and any(isinstance(term, Call) for term in literal.arguments):
            arguments: list[Term] = []
            for spot, term in enumerate(literal.arguments):
                if isinstance(term, Call):
                    name = f"?{index}.{spot}"
                    bindings.append(Bind(name, term, literal.span))
                    term = Variable(name)
                arguments.append(term)
            literal = replace(literal, arguments=tuple(arguments))
        spelled.append(literal)
    return (*spelled, *bindings)


def condition_fallible(condition: Condition, types: Mapping[str, Type]) -> bool:
    """Can this condition have no value?"""
    match condition:
        case Comparison(_, left, right):
            return fallible(left, types) or fallible(right, types)
        case Test(call):
            return fallible(call, types)


def variables(node: Term | Condition) -> Iterable[str]:
    """The variables of a term or condition, in order, with repetitions."""
    match node:
        case Variable(name):
            yield name
        case Call(_, arguments):
            for argument in arguments:
                yield from variables(argument)
        case Comparison(_, left, right):
            yield from variables(left)
            yield from variables(right)
        case Test(call):
            yield from variables(call)
        case _:
            return


def _is_bound(literal: Literal, bound: Mapping[str, Type]) -> bool:
    """Can this literal be evaluated when only these variables are bound?"""
    match literal:
        case Match(_, arguments):
            terms: list[Term] = [argument for argument in arguments if not isinstance(argument, Variable)]
        case Absent(_, arguments):
            terms = list(arguments)
        case Filter(condition):
            return all(name in bound for name in variables(condition))
        case Bind(_, term):
            terms = [term]
        case Spread(_, start, stop, step):
            terms = [start, stop, step]
        case Gather():
            return all(name in bound for name in literal.injected)
    return all(name in bound for term in terms for name in variables(term))


def _zero(type: Type) -> Constant:
    if type.kind == "float":
        return Constant(0.0)
    return Constant(0, kind="" if type.kind == "number" else type.kind)
