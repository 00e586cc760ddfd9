"""The bindings that satisfy a body, by the text of the semantics: literal by literal, for one binding at a time.

A value is *missing* where an expression has none (a division by zero, an overflow, a sum that does not fit). Then

- a variable that an equation, an aggregate or a range defines has no value if its definition has none or mentions a
  variable without one; atoms that would give it a value have no say,
- a literal that mentions a variable without a value is dropped,
- a variable that only dropped literals would bind has no value either,
- a binding that satisfies what is left is undefined: `Satisfied.undefined` says why, and it is an error.

An equation `V = term` defines V if literals without V bind the variables of `term`; else it is a condition. The order
of the literals does not matter: each waits until the variables that it mentions are settled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, assert_never

from emberlog.syntax import nodes
from naive.aggregates import aggregate
from naive.kinds import PLAIN, Columns, convert, kind_of, variable_kinds
from naive.normal import Body, Computed, Gather, InvalidProgram, Literal, Spread, mentions, variables
from naive.values import FUNCTIONS, INT64, Row, Undefined, Unsigned, Value, canonical, compare, equal, is_nan, steps

Binding: TypeAlias = Mapping[str, Value]
Names: TypeAlias = frozenset[str]


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
    compared = frozenset(
        i
        for i, literal in enumerate(body)
        for target, term in equations(literal)
        if kind_of(term, scope.kinds) == "float" != scope.kinds.get(target, "")
    )
    conjunction = conjunction_of(body, frozenset(start), wanted, compared)
    yield from rest(conjunction, frozenset(range(len(body))), Partial(start, frozenset(), None), scope)


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
    following: list[Partial]
    if turn.needs & missing or not turn.places:
        following = [Partial(binding, missing | turn.loses, undefined)]
    else:
        try:
            following = [Partial(extended, missing, undefined) for extended in extend(turn, binding, scope)]
        except Undefined as reason:
            following = [Partial(binding, missing | turn.loses, str(reason))]
    for extended in following:
        yield from rest(conjunction, pending - turn.places, extended, scope)


# --- whose turn it is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """What to evaluate next: one literal, or the equations that define one variable.

    `needs` are the variables that must be settled for that. If one of them is missing, or the literal has no value,
    then the variables `loses` are missing. Without literals there is nothing to evaluate: `loses` is what gets lost.
    """

    places: frozenset[int]
    literals: tuple[Literal, ...]
    needs: Names
    loses: Names = frozenset()
    witnesses: Names = frozenset()


class Conjunction:
    """A body, with the variables `start` that have values before it and those that are used outside of it.

    The literals `compared` define nothing: they hold a number against a float.
    """

    def __init__(self, body: Body, start: Names, wanted: Names, compared: frozenset[int]) -> None:
        self.body = body
        self.start = start
        self.wanted = wanted
        self.compared = compared
        used = wanted | {name for literal in body if not isinstance(literal, Gather) for name in mentions(literal)}
        if not used <= self.reached(body):
            raise InvalidProgram(f"unsafe: {sorted(used - self.reached(body))}")
        sources = {literal.name for literal in body if isinstance(literal, Gather | Spread)}
        self.defined = {name: self.definitions(name) for name in used - start - sources}
        self.turns: dict[tuple[frozenset[int], Names, Names], Turn | None] = {}

    def reached(self, literals: Iterable[Literal]) -> Names:
        """The variables that the literals give values to, in whatever order."""
        literals, bound, before = list(literals), set(self.start), -1
        while len(bound) > before:
            before = len(bound)
            for literal in literals:
                bound |= self.given_by(literal, bound)
        return frozenset(bound)

    def given_by(self, literal: Literal, bound: set[str]) -> set[str]:
        match literal:
            case nodes.Atom():
                return set(mentions(literal))
            case Spread(name, arguments):
                return {name} if all(bound.issuperset(variables(argument)) for argument in arguments) else set()
            case Gather(name):
                return {name} | self.witnesses(literal)
            case _:
                return {name for name, term in equations(literal) if bound.issuperset(variables(term))}

    def definitions(self, name: str) -> frozenset[int]:
        """The equations that define the variable: literals without it bind what they mention.

        One with another variable defines it only where no other does: `M = N` compares what has values of its own.
        """
        others = self.reached(literal for literal in self.body if name not in mentions(literal))
        found = [
            (i, term)
            for i, literal in enumerate(self.body)
            for target, term in equations(literal)
            if i not in self.compared and target == name and others.issuperset(variables(term))
        ]
        computed = [(i, term) for i, term in found if not isinstance(term, nodes.Variable)]
        return frozenset(i for i, _ in computed or found)

    def witnesses(self, gather: Gather) -> set[str]:
        """The variables of a min or max that the goals around it use."""
        if gather.function not in ("min", "max"):
            return set()
        around = {name for other in self.body if not isinstance(other, Gather) for name in mentions(other)}
        return set(gather.mentioned) & (around | self.wanted)

    # --- turns ---

    def turn(self, pending: frozenset[int], bound: Names, missing: Names) -> Turn | None:
        """What to evaluate next where some variables have values and others are missing; None at the end."""
        key = pending, bound, missing
        if key not in self.turns:
            self.turns[key] = self.choose(pending, bound, missing) if pending else None
        return self.turns[key]

    def choose(self, pending: frozenset[int], bound: Names, missing: Names) -> Turn:
        """What is settled already, then definitions, then atoms that bind no variable with a definition."""
        settled = bound | missing
        waiting = {name for name, places in self.defined.items() if places & pending} - settled
        singles = [self.single(i) for i in sorted(pending)]
        whole = [self.definition(name, self.defined[name] & pending) for name in sorted(waiting)]
        for turn in (*singles, *whole):
            if turn.needs & missing or (turn.needs <= settled and not isinstance(turn.literals[0], nodes.Atom)):
                return turn
        atoms = [turn for turn in singles if isinstance(turn.literals[0], nodes.Atom)]
        atoms.sort(key=lambda turn: len(turn.needs - bound) - len(turn.needs))
        parts = (
            self.definition(name, frozenset({i})) for name in sorted(waiting) for i in self.defined[name] & pending
        )
        for turn in (
            *(atom for atom in atoms if not atom.needs & waiting),
            *(part for part in parts if part.needs <= settled),  # definitions in a circle: the first that can be
            *atoms,
        ):
            return turn
        # Only literals that were dropped would have bound the others.
        lost = frozenset(name for turn in singles for name in turn.needs - settled)
        return Turn(frozenset(), (), frozenset(), lost)

    def single(self, i: int) -> Turn:
        literal = self.body[i]
        match literal:
            case Gather(name):
                outside = self.reached(other for other in self.body if other is not literal)
                witnesses = frozenset(self.witnesses(literal)) - outside
                return Turn(frozenset({i}), (literal,), literal.mentioned & outside, frozenset({name}), witnesses)
            case Spread(name):
                return Turn(frozenset({i}), (literal,), frozenset(mentions(literal)) - {name}, frozenset({name}))
            case _:
                return Turn(frozenset({i}), (literal,), frozenset(mentions(literal)))

    def definition(self, name: str, places: frozenset[int]) -> Turn:
        literals = tuple(self.body[i] for i in sorted(places))
        terms = (term for literal in literals for target, term in equations(literal) if target == name)
        needs = frozenset(used for term in terms for used in variables(term))
        return Turn(places, literals, needs, frozenset({name}))


conjunction_of = lru_cache(maxsize=10_000)(Conjunction)


def equations(literal: Literal) -> Iterator[tuple[str, nodes.Term]]:
    """The variables that the literal equates with terms that do not mention them."""
    sides: list[tuple[nodes.Term, nodes.Term]]
    match literal:
        case Computed(name, term):
            sides = [(nodes.Variable(name), term)]
        case nodes.Comparison("=", left, right):
            sides = [(left, right), (right, left)]
        case _:
            return
    for target, value in sides:
        if isinstance(target, nodes.Variable) and target.name not in variables(value):
            yield target.name, value


# --- what it gives ---------------------------------------------------------------------------------------------------


def extend(turn: Turn, binding: Binding, scope: Scope) -> list[Binding]:
    """The bindings that a turn makes of one; none if it is false. Raises `Undefined` where it has no value."""
    literal = turn.literals[0]
    match literal:
        case nodes.Atom(predicate, arguments):
            return list(join(predicate, arguments, binding, scope))
        case Gather():
            return list(gather(turn, literal, binding, scope))
        case Spread(name, arguments):
            bounds = (convert(value_of(argument, binding), scope.kinds.get(name, "")) for argument in arguments)
            return [{**binding, name: value} for value in steps(*bounds)]
        case _:
            for name in turn.loses:
                terms = [term for each in turn.literals for target, term in equations(each) if target == name]
                values = [convert(value_of(term, binding), scope.kinds.get(name, "")) for term in terms]
                binding = {**binding, name: values[0]}
            return [binding] if all([holds(each, binding, scope) for each in turn.literals]) else []


def value_of(term: nodes.Term, binding: Binding) -> Value:
    match term:
        case nodes.Variable(name):
            return binding[name]
        case nodes.Constant(value, kind):
            large = isinstance(value, int) and value > INT64[1]
            return Unsigned(value) if kind == "unsigned" or large else canonical(value)
        case nodes.Call(function, arguments):
            return canonical(FUNCTIONS[function](*(value_of(argument, binding) for argument in arguments)))
        case _:
            raise ValueError(f"no value: {term}")


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


def gather(turn: Turn, literal: Gather, binding: Binding, scope: Scope) -> Iterator[Binding]:
    """The binding with the aggregate, and with each choice of witnesses. `Undefined` if one inner binding is."""
    given = {name: binding[name] for name in turn.needs}
    target_names = frozenset() if literal.target is None else frozenset(variables(literal.target))
    # Named variables only where there are several alternatives: what stands for `_` in one is not in the other.
    named_only = len(literal.alternatives) > 1
    found: dict[frozenset[tuple[str, Value]], tuple[Value, Binding]] = {}
    for alternative in literal.alternatives:
        for inner in satisfy(alternative, given, target_names | turn.witnesses, scope.inside(alternative)):
            if inner.undefined is not None:
                raise Undefined(inner.undefined)
            key = frozenset(item for item in inner.binding.items() if not (named_only and item[0].startswith("#")))
            value = 1 if literal.target is None else value_of(literal.target, inner.binding)
            found[key] = value, inner.binding
    result = aggregate(literal.function, [value for value, _ in found.values()])
    if result is None:
        return
    extended = {**binding, literal.name: convert(result, scope.kinds.get(literal.name, ""))}
    if not turn.witnesses:
        yield extended
        return
    for choice in {
        tuple((name, inner_binding[name]) for name in sorted(turn.witnesses))
        for value, inner_binding in found.values()
        if equal(value, result)
    }:
        yield extended | dict(choice)


def holds(literal: Literal, binding: Binding, scope: Scope) -> bool:
    """True if the condition is true. Raises `Undefined` where it has no value."""
    match literal:
        case nodes.Comparison(operator, left, right):
            return compare(operator, value_of(left, binding), value_of(right, binding))
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
