"""The bindings that satisfy a body.

First all candidates are enumerated: positive atoms are joined, `=` gives values to the variables that no atom binds,
body aggregates and ranges are computed. Then each candidate is judged: a false goal drops it; otherwise a goal without
a truth value (because an expression in it is undefined) makes the whole binding undefined. A variable that is missing
from a binding is one whose defining expression is undefined. The order of the goals does not matter.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, assert_never

from emberlog.syntax import nodes
from naive.aggregates import aggregate
from naive.kinds import Columns, convert, variable_kinds
from naive.normal import Body, Computed, Gather, Literal, Spread, mentions, variables
from naive.values import FUNCTIONS, INT64, Row, Undefined, Unsigned, Value, compare, equal, is_nan, steps

Binding: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True)
class Relation:
    """A set of rows, with the indexes that joins have asked for."""

    rows: frozenset[Row]
    indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = field(default_factory=dict, compare=False)

    def find(self, places: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows that have `key` at `places`."""
        if any(is_nan(value) for value in key):
            return ()
        if places not in self.indexes:
            index = self.indexes[places] = defaultdict(list)
            for row in self.rows:
                index[tuple(row[place] for place in places)].append(row)
        return self.indexes[places].get(key, ())


EMPTY = Relation(frozenset())


@dataclass(frozen=True)
class Scope:
    """What a body is evaluated in: the relations, their columns, and the kinds of the body's variables."""

    relations: Mapping[str, Relation]
    columns: Columns
    kinds: Mapping[str, str]

    def inside(self, body: Body) -> Scope:
        """The scope of a body within this one's."""
        return replace(self, kinds=variable_kinds(body, self.columns, self.kinds))


class Satisfied(NamedTuple):
    """A binding of the body that no goal refutes. `undefined` is why it has no truth value, or None."""

    binding: Binding
    undefined: str | None


def satisfy(body: Body, start: Binding, wanted: frozenset[str], scope: Scope) -> Iterator[Satisfied]:
    """The bindings of `body` that extend `start`. `wanted` are the variables that are used outside of the body."""
    bindings: Iterable[Binding] = [start]
    for step in order(body, frozenset(start), wanted):
        bindings = [extended for binding in bindings for extended in extend(step, binding, scope)]
    conditions = [literal for literal in body if not isinstance(literal, nodes.Atom | Computed | Spread | Gather)]
    for binding in bindings:
        undefined = judge(conditions, binding, scope)
        if undefined != FALSE:
            yield Satisfied(binding, undefined)


# --- terms -----------------------------------------------------------------------------------------------------------


def value_of(term: nodes.Term, binding: Binding) -> Value:
    match term:
        case nodes.Variable(name):
            if name not in binding:
                raise Undefined(f"{name} has no value")
            return binding[name]
        case nodes.Constant(value, kind):
            large = isinstance(value, int) and value > INT64[1]
            return Unsigned(value) if kind == "unsigned" or large else value
        case nodes.Call(function, arguments):
            result = FUNCTIONS[function](*(value_of(argument, binding) for argument in arguments))
            return math.nan if is_nan(result) else result
        case _:
            raise ValueError(f"no value: {term}")


# --- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A literal whose turn it is: the variables bound before it, and the witnesses that an aggregate is to bind."""

    literal: Literal
    bound: frozenset[str]
    witnesses: frozenset[str]


@lru_cache(maxsize=10_000)
def order(body: Body, start: frozenset[str], wanted: frozenset[str]) -> tuple[Step, ...]:
    """The literals in an order in which each can be evaluated. Cheap ones first, then atoms, then aggregates."""
    bound, pending, ordered = set(start), list(body), list[Step]()
    while pending:
        ready = [literal for literal in pending if is_ready(literal, bound, body, start, wanted)]
        if not ready:
            raise ValueError(f"unsafe: {pending}")
        chosen = min(ready, key=lambda literal: cost(literal, bound))
        pending.remove(chosen)
        bindings = binds(chosen, bound, body, wanted)
        taken = bindings - bound - {chosen.name} if isinstance(chosen, Gather) else set()
        ordered.append(Step(chosen, frozenset(bound), frozenset(taken)))
        bound |= bindings
    return tuple(ordered)


def cost(literal: Literal, bound: set[str]) -> tuple[int, int]:
    match literal:
        case nodes.Atom(_, arguments):
            free = sum(isinstance(a, nodes.Variable) and a.name not in bound for a in arguments)
            return 1, free - len(arguments)
        case Spread() | Gather():
            return 2, 0
        case _:
            return 0, 0


def is_ready(literal: Literal, bound: set[str], body: Body, start: frozenset[str], wanted: frozenset[str]) -> bool:
    match literal:
        case nodes.Atom():
            return True
        case nodes.Comparison("=", left, right):
            return any(
                bound.issuperset(variables(value)) and (isinstance(target, nodes.Variable) or known(target, bound))
                for target, value in ((left, right), (right, left))
            )
        case Computed(_, term):
            return known(term, bound)
        case Spread(_, arguments):
            return all(known(argument, bound) for argument in arguments)
        case Gather():
            return bound.issuperset(literal.mentioned & bindable(literal, body, start, wanted))
        case _:
            return bound.issuperset(mentions(literal))


def known(term: nodes.Term, bound: set[str]) -> bool:
    return bound.issuperset(variables(term))


def binds(literal: Literal, bound: set[str], body: Body, wanted: frozenset[str]) -> set[str]:
    """The variables that have a value after the literal."""
    match literal:
        case Gather(name):
            return {name} | (witnesses(literal, body, wanted) - bound)
        case nodes.Not() | nodes.Test() | nodes.Truth():
            return set()
        case nodes.Comparison(operator):
            return set(mentions(literal)) if operator == "=" else set()
        case _:
            return set(mentions(literal))


@lru_cache(maxsize=10_000)
def bindable(gather: Gather, body: Body, start: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
    """The variables that get values outside of `gather`: inside it they are given, not free."""
    bound, others = set(start), [literal for literal in body if literal is not gather]
    progress = True
    while progress:
        size = len(bound)
        for literal in others:
            if isinstance(literal, Gather) or is_ready(literal, bound, body, start, wanted):
                bound |= binds(literal, bound, body, wanted)
        progress = len(bound) > size
    return frozenset(bound)


def witnesses(gather: Gather, body: Body, wanted: frozenset[str]) -> set[str]:
    """The variables of a min or max that the goals around it use."""
    if gather.function not in ("min", "max"):
        return set()
    around = {name for other in body if not isinstance(other, Gather) for name in mentions(other)}
    return set(gather.mentioned) & (around | wanted)


def extend(step: Step, binding: Binding, scope: Scope) -> Iterator[Binding]:
    """The bindings that one step makes of one binding. Goals that are false already end it here."""
    literal = step.literal
    match literal:
        case nodes.Atom(predicate, arguments):
            yield from join(arguments, scope.relations.get(predicate, EMPTY), binding)
        case Gather():
            yield from gather(step, literal, binding, scope)
        case Spread(name, arguments):
            try:
                values = list(steps(*(value_of(argument, binding) for argument in arguments)))
            except Undefined:
                yield binding
                return
            yield from ({**binding, name: value} for value in values)
        case Computed(name, term):
            try:
                value = value_of(term, binding)
            except Undefined:
                return
            if name not in binding or equal(binding[name], value):
                yield {**binding, name: value}
        case nodes.Comparison("=", left, right):
            extended = assign(left, right, assign(right, left, binding, scope), scope)
            if judge((literal,), extended, scope) != FALSE:
                yield extended
        case nodes.Comparison() | nodes.Not() | nodes.Test() | nodes.Truth():
            if judge((literal,), binding, scope) != FALSE:
                yield binding
        case _:
            assert_never(literal)


def assign(target: nodes.Term, term: nodes.Term, binding: Binding, scope: Scope) -> Binding:
    """The binding with the value of `term` for `target`, if that is a variable without a value and `term` has one."""
    if not isinstance(target, nodes.Variable) or target.name in binding:
        return binding
    try:
        value = convert(value_of(term, binding), scope.kinds.get(target.name, ""))
    except Undefined:
        return binding
    return {**binding, target.name: value}


def join(arguments: Sequence[nodes.Term], relation: Relation, binding: Binding) -> Iterator[Binding]:
    places, key, free = [], [], []
    for i, argument in enumerate(arguments):
        if isinstance(argument, nodes.Variable) and argument.name not in binding:
            free.append((i, argument.name))
        else:
            places.append(i)
            key.append(value_of(argument, binding))
    for row in relation.find(tuple(places), tuple(key)):
        extended = dict(binding)
        for i, name in free:
            if name not in extended:
                extended[name] = row[i]
            elif not equal(extended[name], row[i]):
                break
        else:
            yield extended


def gather(step: Step, literal: Gather, binding: Binding, scope: Scope) -> Iterator[Binding]:
    """The binding with the aggregate, and with each choice of witnesses; without it where it is undefined."""
    given = {name: binding[name] for name in literal.mentioned & step.bound if name in binding}
    target_names = frozenset() if literal.target is None else frozenset(variables(literal.target))
    # Named variables only where there are several alternatives: what stands for `_` in one is not in the other.
    named_only = len(literal.alternatives) > 1
    found: dict[frozenset[tuple[str, Value]], tuple[Value, Binding]] = {}
    try:
        if len(given) < len(literal.mentioned & step.bound):
            raise Undefined("an outer variable of an aggregate has no value")
        for alternative in literal.alternatives:
            for inner in satisfy(alternative, given, target_names | step.witnesses, scope.inside(alternative)):
                if inner.undefined is not None:
                    raise Undefined(inner.undefined)
                key = frozenset(item for item in inner.binding.items() if not (named_only and item[0].startswith("#")))
                value = 1 if literal.target is None else value_of(literal.target, inner.binding)
                found[key] = value, inner.binding
        result = aggregate(literal.function, [value for value, _ in found.values()])
    except Undefined:
        yield binding
        return
    if result is None:
        return
    extended = {**binding, literal.name: convert(result, scope.kinds.get(literal.name, ""))}
    if not step.witnesses:
        yield extended
        return
    for choice in {
        tuple((name, inner_binding[name]) for name in sorted(step.witnesses))
        for value, inner_binding in found.values()
        if equal(value, result)
    }:
        yield extended | dict(choice)


# --- judging ---------------------------------------------------------------------------------------------------------

FALSE = "false"


def judge(body: Iterable[Literal], binding: Binding, scope: Scope) -> str | None:
    """None if every goal holds, FALSE if one does not, else why there is no truth value."""
    undefined: str | None = None
    for literal in body:
        try:
            if not holds(literal, binding, scope):
                return FALSE
        except Undefined as reason:
            undefined = str(reason)
    return undefined


def holds(literal: Literal, binding: Binding, scope: Scope) -> bool:
    match literal:
        case nodes.Comparison(operator, left, right):
            return compare(operator, value_of(left, binding), value_of(right, binding))
        case nodes.Test(call):
            return bool(value_of(call, binding))
        case nodes.Truth(value):
            return value
        case nodes.Not(nodes.Atom(predicate, arguments)):
            tested = [(i, a) for i, a in enumerate(arguments) if not isinstance(a, nodes.Anonymous)]
            key = tuple(value_of(argument, binding) for _, argument in tested)
            return not scope.relations.get(predicate, EMPTY).find(tuple(i for i, _ in tested), key)
        case nodes.Not(nodes.Comparison() | nodes.Test() as inner):
            return not holds(inner, binding, scope)
        case nodes.Not():
            raise ValueError(f"not in normal form: {literal}")
        case nodes.Atom() | Computed() | Spread() | Gather():
            return True  # the candidate was made from these
        case _:
            assert_never(literal)
