"""Bodies of rules as plans: literals in their order, joined from left to right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import count

from emberlog.analysis.functions import FIRST, MISSING, UNLESS, fallible
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
from emberlog.analysis.terms import gives, names, needs
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
from emberlog.plan.missing import unsure
from emberlog.plan.names import position
from emberlog.rules.spelling import spelled_out
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Comparison, Constant, Term, Test, Variable
from emberlog.types import Type

KEY = "#key"  # the column that names the contributor of `sum<(K,V)>`
LACKS = "#lacks"  # the column of a body aggregate that marks bindings with a missing value


class Bodies:
    """Lowers bodies over relations with these signatures."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self.signatures = signatures
        self._fresh = (f"?{number}" for number in count())

    def of_rule(self, rule: CoreRule, versions: Mapping[int, Version] | None = None) -> Plan:
        """The bindings of the rule's variables; `versions` says what the atom at an index of the body reads."""
        return self._literals(Unit(), rule.body, rule, versions or {})

    def without_atoms(self, rule: CoreRule, inside: Collection[str]) -> Plan | None:
        """The error for bindings in which every atom of `inside`, the rule's component, mentions a missing value.

        Such atoms are not asked, so that the rule has a binding before its component has a row: rounds, which start
        from rows, would not meet it. None where some atom mentions no value that may be missing.
        """
        body = spelled_out(rule.body, rule.types)
        atoms = [literal for literal in body if isinstance(literal, Match) and literal.predicate in inside]
        computed = {name for literal in body for name in gives(literal)}
        if any(computed.isdisjoint(names(atom.arguments)) for atom in atoms):
            return None
        plan = self._literals(Unit(), _bound_literals(literal for literal in body if literal not in atoms), rule, {})
        for atom in atoms:
            named = dict.fromkeys(name for term in atom.arguments for name in variables(term))
            lacking = _lacking(plan, (name for name in named if name in computed))
            if not lacking:
                return None
            plan = Select(plan, (Comparison("=", _lacks(lacking), Constant(1)),))
        return keep(guarded(plan, rule), ())

    def _literals(self, plan: Plan, body: Iterable[Literal], rule: CoreRule, versions: Mapping[int, Version]) -> Plan:
        waiting = dict(enumerate(spelled_out(body, rule.types)))
        pending = Counter(name for literal in waiting.values() for name in gives(literal))
        computed = {*columns(plan), *pending}
        while waiting:
            open_ = unsure(plan) - computed
            index = _next(waiting, columns(plan), unsure(plan), pending, open_)
            pending.subtract(gives(waiting[index]))
            plan = self._literal(plan, waiting.pop(index), rule, versions.get(index, "all"), open_)
        return plan

    def _literal(
        self, plan: Plan, literal: Literal, rule: CoreRule, version: Version, open_: Collection[str] = ()
    ) -> Plan:
        match literal:
            case Match(predicate, arguments):
                plan, rows = self._scan(plan, predicate, arguments, version)
                return rows if isinstance(plan, Unit) else self._joined(plan, rows, open_)
            case Absent(predicate, arguments):
                plan, rows = self._scan(plan, predicate, arguments, "all")
                return Antijoin(plan, rows)
            case Filter(condition):
                return Select(plan, (condition,))
            case Bind(variable, term):
                return Extend(plan, variable, term)
            case Spread(variable, start, stop, step):
                return Expand(plan, variable, start, stop, step)
            case Gather():
                return self._gather(plan, literal, rule)

    def _joined(self, plan: Plan, rows: Plan, open_: Collection[str]) -> Plan:
        """The bindings so far with the rows of an atom. `open_` are variables that an atom gave their values, which may
        not have been asked: this one gives them where they have none."""
        shared = {name: next(self._fresh) for name in columns(rows) if name in open_}
        if not shared:
            return Join(plan, rows, _lacking(plan, columns(rows)))
        rows = Project(rows, tuple((shared.get(name, name), Variable(name)) for name in columns(rows)))
        kept = dict.fromkeys(name for name in (*columns(plan), *columns(rows)) if name not in shared.values())
        joined: Plan = Join(plan, rows, _lacking(plan, columns(rows)))
        joined = Select(joined, tuple(Comparison("=", Variable(one), Variable(two)) for one, two in shared.items()))
        values = {one: Call(FIRST, (Variable(one), Variable(two))) for one, two in shared.items()}
        return Project(joined, tuple((name, values.get(name, Variable(name))) for name in kept))

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

    def _gather(self, outer: Plan, gather: Gather, rule: CoreRule) -> Plan:
        """An aggregate over its own bodies, evaluated for the groups that the outer bindings ask for.

        Where a binding of the bodies lacks a value, or a sum does not fit, the aggregate has no value.
        """
        asked: Plan = Distinct(keep(outer, gather.injected)) if gather.injected else Unit()
        inner = self._gathered(asked, gather, rule)
        value, spares = gather.variable, _lacking(outer, gather.injected)
        folds = [Fold(value, gather.function, None if gather.function == "count" else position(0))]
        if LACKS in columns(inner):
            folds.append(Fold(LACKS, "max", LACKS))
        grouped: Plan = Group(inner, gather.injected, tuple(folds))
        type = columns(grouped)[value]
        if LACKS in columns(inner):
            whole = Call(UNLESS, (Variable(value), Variable(LACKS)))
            grouped = Project(grouped, (*((name, Variable(name)) for name in gather.injected), (value, whole)))
        if gather.witnesses:
            bindings = [(name, Variable(name)) for name in (*gather.injected, *gather.witnesses)]
            reached = Distinct(Project(inner, (*bindings, (value, Variable(position(0))))))
            grouped = Join(grouped, reached, _lacking(grouped, (value,)))
        if gather.function in ("count", "sum"):
            return Lookup(outer, grouped, value, _zero(type), spares)
        return Join(outer, grouped, spares)

    def _gathered(self, asked: Plan, gather: Gather, rule: CoreRule) -> Plan:
        """The bindings that an aggregate ranges over: the aggregated value in `#0`; in `LACKS`, where values may be
        missing, 1 for a binding in which one is."""
        disjuncts = [self._literals(asked, body, rule, {}) for body in gather.bodies]
        if gather.target is not None:
            disjuncts = [Extend(disjunct, position(0), gather.target) for disjunct in disjuncts]
        if any(unsure(disjunct) for disjunct in disjuncts):
            disjuncts = [Extend(disjunct, LACKS, _lacks(unsure(disjunct))) for disjunct in disjuncts]
        inner = disjuncts[0]
        if len(disjuncts) > 1:
            shared = tuple(name for name in columns(inner) if all(name in columns(other) for other in disjuncts))
            inner = Distinct(Union(tuple(keep(disjunct, shared) for disjunct in disjuncts)))
        return inner


def contributed_rows(rule: CoreRule, body: Plan, kept: tuple[str, ...] = ()) -> Plan:
    """The rows that the head makes of the body's bindings: for an aggregated column the value that goes in.

    `kept` are variables that stay beside the row's positions.
    """
    items: list[tuple[str, Term]] = [(name, Variable(name)) for name in kept]
    counted: list[tuple[str, Term]] = []  # their values do not matter, but each must have one
    for spot, argument in enumerate(rule.arguments):
        match argument:
            case Aggregate("count", terms):
                items.append((position(spot), Constant(1)))
                counted += [(f"{position(spot)}.{i}", term) for i, term in enumerate(terms)]
            case Aggregate(_, (key, value)):
                items.append((KEY, key))
                items.append((position(spot), value))
            case Aggregate(_, (value,)):
                items.append((position(spot), value))
            case _:
                items.append((position(spot), argument))
    computed = [(name, term) for name, term in (*items, *counted) if fallible(term, columns(body))]
    for name, term in computed:
        body = Extend(body, f"!{name}", term)
    checked = guarded(body, rule, tuple(name for _, term in computed for name in variables(term)))
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


def guarded(plan: Plan, rule: CoreRule, told: tuple[str, ...] = ()) -> Plan:
    """The bindings of a rule's body, with an error for each in which a value is missing.

    The error tells the values that missing ones were computed from, and those of the variables `told`.
    """
    lacking = _lacking(plan, columns(plan))
    if not lacking:
        return plan
    origins = {name: _origins(literal) for literal in spelled_out(rule.body, rule.types) for name in gives(literal)}
    shown = [*told, *(origin for name in lacking for origin in origins.get(name, ()))]
    known = tuple(name for name in dict.fromkeys(shown) if name in columns(plan) and name not in lacking)
    return Guard(plan, lacking, known, rule.id)


def _lacking(plan: Plan, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these columns in which a row of the plan may lack a value."""
    found = unsure(plan)
    return tuple(name for name in names if name in found)


def _lacks(names: Iterable[str]) -> Term:
    """1 if one of these columns has no value, else 0."""
    found = tuple(Variable(name) for name in sorted(names))
    return Call(MISSING, found) if found else Constant(0)


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


def _bound_literals(body: Iterable[Literal]) -> list[Literal]:
    """The literals of a body without those that mention a variable which no other literal gives a value to."""
    waiting, kept, bound = list(body), list[Literal](), dict[str, None]()
    while ready := [literal for literal in waiting if needs(literal) <= bound.keys()]:
        waiting = [literal for literal in waiting if literal not in ready]
        kept += ready
        for literal in ready:
            terms = literal.arguments if isinstance(literal, Match) else ()
            bound |= dict.fromkeys([*gives(literal), *(name for term in terms for name in variables(term))])
    return kept


def _next(
    waiting: Mapping[int, Literal],
    bound: Collection[str],
    lacking: Collection[str],
    pending: Counter[str],
    open_: Collection[str],
) -> int:
    """The literal whose turn it is: of those that can be evaluated the first one of the lowest rank. Bodies come in an
    order that binds, so mostly the first literals are looked at, not all."""
    best, rank = -1, 5
    atoms = [literal for literal in waiting.values() if isinstance(literal, Match)] if open_ else []
    unsettled = {name for atom in atoms for name in names(atom.arguments) if name in open_}
    for index, literal in waiting.items():
        ready = all(name in bound for name in needs(literal))
        if ready and (own := _rank(literal, lacking, pending, unsettled)) < rank:
            best, rank = index, own
            if rank == 0:
                break
    return best


def _rank(literal: Literal, lacking: Collection[str], pending: Counter[str], unsettled: Collection[str]) -> int:
    """When it is a literal's turn among those that could be evaluated: the lowest first.

    An atom that mentions a missing value passes, so it comes after all that must hold; one that mentions a variable to
    which another literal is to give its value waits for that. Aggregates over bodies of their own come late: they are
    evaluated only for bindings that got so far. What mentions a variable that is `unsettled`, because an atom may still
    give it a value, comes last.
    """
    match literal:
        case Match(_, arguments):
            named = {name for argument in arguments for name in variables(argument)}
            if any(pending[name] for name in named):
                return 3
            return 0 if named.isdisjoint(lacking) else 1
        case _ if not needs(literal).isdisjoint(unsettled):
            return 4
        case Gather():
            return 2
        case _:
            return 0


def _origins(literal: Literal) -> tuple[str, ...]:
    """The variables that the values which a literal gives are computed from."""
    match literal:
        case Bind(_, term):
            return tuple(variables(term))
        case Spread(_, start, stop, step):
            return tuple(name for term in (start, stop, step) for name in variables(term))
        case Gather():
            return literal.injected
        case _:
            return ()


def _zero(type: Type) -> Constant:
    if type.kind == "float":
        return Constant(0.0)
    if type.kind == "decimal":
        return Constant(f"{0:.{type.scale}f}", kind="decimal")
    return Constant(0, kind="" if type.kind == "number" else type.kind)
