"""The bindings that satisfy a body, by the text of the semantics: literal by literal, for one binding at a time.

A value is *missing* where an expression has none (a division by zero, an overflow, a sum that does not fit). Then

- a variable has no value if one of the equations that define it has none, or mentions a variable without one; atoms
  that would give it a value have no say,
- a literal that mentions a variable without a value is dropped,
- a variable that only dropped literals would bind has no value either,
- a binding that satisfies what is left is undefined: `Satisfied.undefined` says why, and it is an error.

`turns` says what is evaluated next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain, product
from typing import NamedTuple, TypeAlias, assert_never

from emberlog.syntax import nodes
from naive.aggregates import aggregate
from naive.kinds import PLAIN, Columns, convert, kind_of, variable_kinds
from naive.normal import Body, Computed, Gather, Literal, Spread, variables
from naive.turns import NOTHING, Conjunction, Names, Part, Turn, conjunction_of, equations, named
from naive.values import FUNCTIONS, INT64, Row, Undefined, Unsigned, Value, canonical, compare, equal, is_nan, steps

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


def satisfy(body: Body, start: Binding, wanted: Names, scope: Scope) -> Iterator[Satisfied]:
    """The bindings of `body` that extend `start`. `wanted` are the variables that are used outside of the body."""
    same, compared = set[int](), set[int]()
    for place, literal in enumerate(body):
        for name, term in equations(literal):
            one, other = scope.kinds.get(name, ""), kind_of(term, scope.kinds)
            if one != other and (other == "float" or "decimal" in (one, other)):
                compared.add(place)
            if one == other and isinstance(term, nodes.Variable):
                same.add(place)
    conjunction = conjunction_of(body, frozenset(start), wanted, frozenset(same), frozenset(compared))
    pending = frozenset(range(len(conjunction.body)))
    for binding, undefined in rest(conjunction, pending, Partial(start, NOTHING, None), scope):
        equal_ones = {name: binding[other] for name, other in conjunction.aliases.items() if other in binding}
        yield Satisfied({**binding, **equal_ones}, undefined)


class Partial(NamedTuple):
    """A binding on its way: the values so far, the variables that have none, and why."""

    binding: Binding
    missing: Names
    undefined: str | None


def rest(conjunction: Conjunction, pending: frozenset[int], partial: Partial, scope: Scope) -> Iterator[Satisfied]:
    """The bindings that extend a partial one and satisfy the pending literals, as far as these have values."""
    binding, missing, undefined = partial
    turn = conjunction.turn(pending, frozenset(binding), missing)
    if turn is None:
        yield Satisfied(binding, undefined)
        return
    following = [Partial(binding, missing | turn.loses, undefined)]
    if turn.parts:
        try:
            following = [Partial(extended, missing, undefined) for extended in extend(turn, binding, scope)]
        except Undefined as reason:
            following = [Partial(binding, missing | turn.loses, str(reason))]
    for extended in following:
        yield from rest(conjunction, pending - turn.places, extended, scope)


# --- what it gives ---------------------------------------------------------------------------------------------------


def extend(turn: Turn, binding: Binding, scope: Scope) -> list[Binding]:
    """The bindings that a turn makes of one; none if it is false. Raises `Undefined` where it has no value."""
    literal = turn.parts[0].literal
    if isinstance(literal, nodes.Atom):
        return list(join(literal.predicate, literal.arguments, binding, scope))
    if turn.name is None:
        return [binding] if holds(literal, binding, scope) else []
    # Each of them must have a value before they are compared.
    found = [list(values_of(part, turn.name, binding, scope)) for part in turn.parts]
    return [
        extended
        for choice in product(*found)
        if all(equal(choice[0][turn.name], other[turn.name]) for other in choice[1:])
        for extended in [dict(chain(binding.items(), *(given.items() for given in choice)))]
        if all(holds(part.literal, extended, scope) for part in turn.parts if named(part.literal) is None)
    ]


def values_of(part: Part, name: str, binding: Binding, scope: Scope) -> Iterator[dict[str, Value]]:
    """The values that an equation of the variable gives: one, or those of a range, or an aggregate with its
    witnesses.
    """
    kind = scope.kinds.get(name, "")
    match part.literal:
        case Gather():
            yield from gather(part, part.literal, binding, scope)
        case Spread(_, arguments):
            bounds = (convert(value_of(argument, binding), kind) for argument in arguments)
            yield from ({name: value} for value in steps(*bounds))
        case literal:
            term = next(term for target, term in equations(literal) if target == name)
            yield {name: convert(value_of(term, binding), kind)}


def value_of(term: nodes.Term, binding: Binding) -> Value:
    match term:
        case nodes.Variable(name):
            return binding[name]
        case nodes.Constant(value, kind):
            large = isinstance(value, int) and value > INT64[1]
            return Unsigned(value) if kind == "unsigned" or large else canonical(value)
        case nodes.Call(function, arguments):
            return canonical(FUNCTIONS[function](*operands(arguments, binding)))
        case _:
            raise ValueError(f"no value: {term}")


def operands(terms: Sequence[nodes.Term], binding: Binding) -> list[Value]:
    """The values of terms that meet: beside a decimal, a number of the text is one, as it is written."""
    values = [value_of(term, binding) for term in terms]
    if not any(isinstance(value, Decimal) for value in values):
        return values
    return [
        Decimal(repr(value)) if isinstance(term, nodes.Constant) and isinstance(value, float) else value
        for term, value in zip(terms, values, strict=True)
    ]


def join(predicate: str, arguments: Sequence[nodes.Term], binding: Binding, scope: Scope) -> Iterator[Binding]:
    places, key, free = [], [], []
    for i, argument in enumerate(arguments):
        if isinstance(argument, nodes.Variable) and argument.name not in binding:
            free.append((i, argument.name))
        else:
            places.append(i)
            key.append(sought(predicate, i, argument, binding, scope))
    for row in scope.relations.get(predicate, EMPTY).find(tuple(places), tuple(key)):
        extended = dict(binding)
        for i, name in free:
            if name not in extended:
                extended[name] = row[i]
            elif not equal(extended[name], row[i]):
                break
        else:
            yield extended


def sought(predicate: str, place: int, argument: nodes.Term, binding: Binding, scope: Scope) -> Value:
    """The value of an argument as the column of an atom holds it."""
    return convert(value_of(argument, binding), scope.columns.get((predicate, place), PLAIN).kind)


def gather(part: Part, literal: Gather, binding: Binding, scope: Scope) -> Iterator[dict[str, Value]]:
    """The aggregate, with each choice of witnesses. `Undefined` if one inner binding is."""
    given = {name: binding[name] for name in part.outer}
    target_names = frozenset() if literal.target is None else frozenset(variables(literal.target))
    # Named variables only where there are several alternatives: what stands for `_` in one is not in the other.
    named_only = len(literal.alternatives) > 1
    found: dict[frozenset[tuple[str, Value]], tuple[Value, Binding]] = {}
    for alternative in literal.alternatives:
        for inner in satisfy(alternative, given, target_names | part.witnesses, scope.inside(alternative)):
            if inner.undefined is not None:
                raise Undefined(inner.undefined)
            key = frozenset(item for item in inner.binding.items() if not (named_only and item[0][0] in "#?"))
            value = 1 if literal.target is None else value_of(literal.target, inner.binding)
            found[key] = value, inner.binding
    result = aggregate(literal.function, [value for value, _ in found.values()])
    if result is None:
        return
    for choice in (
        {
            tuple((name, inner_binding[name]) for name in sorted(part.witnesses))
            for value, inner_binding in found.values()
            if equal(value, result)
        }
        if part.witnesses
        else [()]
    ):
        yield {**dict(choice), literal.name: convert(result, scope.kinds.get(literal.name, ""))}


def holds(literal: Literal, binding: Binding, scope: Scope) -> bool:
    """True if the condition is true. Raises `Undefined` where it has no value."""
    match literal:
        case nodes.Comparison(operator, left, right):
            return compare(operator, *operands((left, right), binding))
        case Computed(name, term):
            return equal(binding[name], value_of(term, binding))
        case nodes.Test(call):
            return bool(value_of(call, binding))
        case nodes.Truth(value):
            return value
        case nodes.Not(nodes.Atom(predicate, arguments)):
            tested = [i for i, argument in enumerate(arguments) if not isinstance(argument, nodes.Anonymous)]
            key = tuple(sought(predicate, i, arguments[i], binding, scope) for i in tested)
            return not scope.relations.get(predicate, EMPTY).find(tuple(tested), key)
        case nodes.Not(nodes.Comparison() | nodes.Test() as inner):
            return not holds(inner, binding, scope)
        case nodes.Not() | nodes.Atom() | Spread() | Gather():
            raise ValueError(f"no condition: {literal}")
        case _:
            assert_never(literal)
