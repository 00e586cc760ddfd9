"""Whose turn it is: which variables of a body its equations define, and what can be evaluated next.

Variables that a plain equation makes equal are one. An equation of a variable (an aggregate and a range are such, too)
defines it if literals that do not mention the variable give values to all that the equation needs; but definitions in a
circle define nothing, they are conditions. Atoms wait for the definitions of the variables that they mention;
definitions that wait for atoms which wait for them are conditions, too. Nothing here depends on the order in which the
literals are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from emberlog.syntax import nodes
from naive.normal import Body, Computed, Gather, InvalidProgram, Literal, Spread, mentions, renamed, variables

Names: TypeAlias = frozenset[str]
Places: TypeAlias = frozenset[int]
NOTHING: Names = frozenset()
NO_PLACES: Places = frozenset()


@dataclass(frozen=True)
class Part:
    """A literal, with the variables of the body that it mentions. An aggregate needs the `outer` ones, and binds its
    `witnesses`.
    """

    literal: Literal
    mentioned: Names
    outer: Names = NOTHING
    witnesses: Names = NOTHING


class Gift(NamedTuple):
    """The literal at a place gives a value to a variable if those that it needs have one. `defines`: by an equation."""

    place: int
    name: str
    needs: Names
    defines: bool


@dataclass(frozen=True)
class Turn:
    """What to evaluate next: one literal, or all that define one variable.

    `name` is the variable that equations give a value to. If the parts have no value, or if there are none because what
    they mention has none, then the variables `loses` are missing.
    """

    places: Places
    parts: tuple[Part, ...] = ()
    name: str | None = None
    loses: Names = NOTHING


class Conjunction:
    """A body, with the variables `start` that have values before it and those `wanted` that are used outside of it.

    The literals `same` equate two variables of one kind; `aliases` says which variable stands for another one. The
    literals `compared` hold a number against a float or a decimal: they give no values.
    """

    def __init__(self, body: Body, start: Names, wanted: Names, same: Places, compared: Places) -> None:
        self.start = start
        self.compared = compared
        self.aliases = united((body[i] for i in sorted(same)), start)
        self.wanted = frozenset(self.aliases.get(name, name) for name in wanted)
        self.body = tuple(renamed(literal, self.aliases) for literal in body)
        self.conditions = set[int]()  # equations that define nothing
        self.set_apart(i for i, part in enumerate(self.body) if named(part) in (*start, *inside(part)))
        self.define()
        while waiting := self.stalled():
            self.conditions |= {place for place, name in self.definitions.items() if name in waiting}
            self.define()
        self.turns: dict[tuple[Places, Names, Names], Turn | None] = {}

    # --- what literals give ---

    def read(self) -> None:
        """Finds what each literal mentions and gives."""
        direct = (name for literal in self.body if not isinstance(literal, Gather) for name in mentions(literal))
        self.used = self.wanted | frozenset(direct)
        everywhere = range(len(self.body))
        self.parts = [self.part(literal, NOTHING) for literal in self.body]
        self.gifts = [gift for place in everywhere for gift in self.given_by(place)]
        given = [self.reached(everywhere[:place], everywhere[place + 1 :]) for place in everywhere]
        self.parts = [self.part(literal, names) for literal, names in zip(self.body, given, strict=True)]
        self.gifts = [gift for place in everywhere for gift in self.given_by(place)]
        inner = (part.mentioned - part.outer - part.witnesses - {named(part.literal)} for part in self.parts)
        hidden = NOTHING.union(*(names for place, names in enumerate(inner) if isinstance(self.body[place], Gather)))
        unsafe = (self.used - self.reached(everywhere)) | hidden  # no aggregate gives values to its own variables
        if unsafe:
            raise InvalidProgram(f"nothing gives values to {sorted(unsafe)}")
        self.without = cache(
            lambda name: self.reached(place for place in everywhere if name not in self.parts[place].mentioned)
        )

    def part(self, literal: Literal, given: Names) -> Part:
        """A part of the body. What other literals give (`given`) comes into an aggregate from outside. Of a min or max,
        the literals around may use other variables: they are those of a binding with the least or greatest value.
        """
        if not isinstance(literal, Gather):
            return Part(literal, frozenset(mentions(literal)))
        outer, shared = literal.mentioned & given, (literal.mentioned & self.used) - given
        witnesses = (name for name in shared if can_witness(literal, name, self.used))
        return Part(literal, frozenset({literal.name}) | outer | shared, outer, frozenset(witnesses))

    def given_by(self, place: int) -> Iterator[Gift]:
        part = self.parts[place]
        match part.literal:
            case nodes.Atom():
                yield from (Gift(place, name, NOTHING, False) for name in part.mentioned)
            case Spread(name):
                yield Gift(place, name, part.mentioned - {name}, True)
            case Gather(name):
                yield Gift(place, name, part.outer, True)
                yield from (Gift(place, witness, part.outer, False) for witness in part.witnesses)
            case literal if place not in self.compared:
                yield from (Gift(place, name, frozenset(variables(term)), True) for name, term in equations(literal))

    def reached(self, *places: Iterable[int]) -> Names:
        """The variables that the literals at these places give values to, in whatever order."""
        chosen = set(chain(*places))
        gifts = [gift for gift in self.gifts if gift.place in chosen]
        return closure(self.start, lambda bound: (gift.name for gift in gifts if gift.needs <= bound))

    # --- definitions ---

    def define(self) -> None:
        """Finds what defines variables. An aggregate or a range that does not is set apart."""
        self.read()
        found = [
            gift
            for gift in self.gifts
            if gift.defines and gift.place not in self.conditions and gift.name not in self.start
            if gift.needs <= self.without(gift.name)
        ]
        waits = {gift.name: NOTHING for gift in found}
        for gift in found:
            waits[gift.name] |= gift.needs & waits.keys()
        after = {name: closure(waits[name], lambda seen: (n for one in seen for n in waits[one])) for name in waits}
        self.conditions |= {
            gift.place for gift in found if any(gift.name in after[other] for other in gift.needs & waits.keys())
        }
        self.definitions = {gift.place: gift.name for gift in found if gift.place not in self.conditions}
        loose = [place for place, literal in enumerate(self.body) if named(literal) and place not in self.definitions]
        if loose:
            self.set_apart(loose)
            self.define()

    def set_apart(self, places: Iterable[int]) -> None:
        """Makes conditions of aggregates and ranges: `u = ?` with a variable of its own, which they define."""
        for place in list(places):
            literal, own = self.body[place], f"?{place}"
            assert isinstance(literal, Gather | Spread) and not is_own(literal.name)
            condition = nodes.Comparison("=", nodes.Variable(literal.name), nodes.Variable(own))
            self.body = (*self.body[:place], condition, *self.body[place + 1 :], replace(literal, name=own))
            self.conditions.add(place)

    def stalled(self) -> Names:
        """The variables whose definitions wait for atoms that wait for them, though no operation fails."""
        pending, bound = frozenset(range(len(self.body))), self.start
        while pending:
            turn = self.choose(pending, bound, NOTHING)
            if not turn.parts:
                waiting = frozenset(name for name in self.definitions.values() if name in turn.loses)
                if all(map(is_own, waiting)):
                    raise InvalidProgram(f"nothing gives values to {sorted(turn.loses)}")
                return frozenset(name for name in waiting if not is_own(name))
            pending -= turn.places
            bound |= {gift.name for gift in self.gifts if gift.place in turn.places}
        return NOTHING

    # --- turns ---

    def turn(self, pending: Places, bound: Names, missing: Names) -> Turn | None:
        """What to evaluate next where some variables have values and others are missing; None at the end."""
        key = pending, bound, missing
        if key not in self.turns:
            self.turns[key] = self.choose(pending, bound, missing) if pending else None
        return self.turns[key]

    def choose(self, pending: Places, bound: Names, missing: Names) -> Turn:
        """What mentions a missing variable is dropped. Then come definitions and conditions whose variables have
        values, then what may bind variables that have no definition.
        """
        waiting = sorted({self.definitions[place] for place in pending if place in self.definitions})
        singles = [place for place in sorted(pending) if place not in self.definitions]
        for name in waiting:
            if self.needs(name) & missing:
                return Turn(self.places(name), loses=frozenset({name}))
        for place in singles:
            if self.parts[place].mentioned & missing:
                return Turn(frozenset({place}))
        for name in waiting:
            if self.needs(name) <= bound:
                parts = tuple(self.parts[place] for place in sorted(self.places(name)))
                return Turn(self.places(name), parts, name, frozenset({name}))
        for place in singles:
            if self.parts[place].mentioned <= bound:
                return Turn(frozenset({place}), (self.parts[place],))
        free = [
            gift
            for gift in self.gifts
            if gift.place in singles and gift.needs <= bound and not self.parts[gift.place].mentioned & set(waiting)
        ]
        if free:
            best = max(free, key=lambda gift: len(self.parts[gift.place].mentioned & bound))
            return Turn(frozenset({best.place}), (self.parts[best.place],), best.name if best.defines else None)
        # Only literals that were dropped would have bound the others.
        lost = (self.parts[place].mentioned for place in pending)
        return Turn(NO_PLACES, loses=NOTHING.union(*lost) - bound - missing)

    def places(self, name: str) -> Places:
        return frozenset(place for place, defined in self.definitions.items() if defined == name)

    def needs(self, name: str) -> Names:
        """What the definitions of the variable need."""
        places = self.places(name)
        return frozenset(n for gift in self.gifts if gift.place in places and gift.name == name for n in gift.needs)


conjunction_of = lru_cache(maxsize=10_000)(Conjunction)


def united(literals: Iterable[Literal], start: Names) -> dict[str, str]:
    """The variables that equations of two variables make equal to another one, each with that one. What has a value
    before stands for the others; two such variables stay two.
    """
    stands = dict[str, str]()
    for literal in literals:
        one, other = (stands.get(name, name) for name in mentions(literal))
        if one in start:
            one, other = other, one
        if one not in start:
            stands = {name: other if by == one else by for name, by in (*stands.items(), (one, one))}
    return {name: by for name, by in stands.items() if name != by}


def is_own(name: str) -> bool:
    """Does the variable stand for an aggregate or a range that is set apart?"""
    return name.startswith("?")


def named(literal: Literal) -> str | None:
    """The variable of an aggregate or a range."""
    return literal.name if isinstance(literal, Gather | Spread) else None


def inside(literal: Literal) -> Iterator[str]:
    """The variables that an aggregate or a range is computed from, and those of its own."""
    match literal:
        case Gather():
            yield from literal.mentioned
        case Spread(_, arguments):
            yield from (name for argument in arguments for name in variables(argument))
        case _:
            pass


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


def can_witness(literal: Gather, name: str, used: Names) -> bool:
    """True if an extremum gives a variable a value, where the others that are used outside have one."""
    start = (literal.mentioned & used) - {name}
    return literal.function in ("min", "max") and all(name in given_inside(b, start) for b in literal.alternatives)


def given_inside(body: Body, start: Names) -> Names:
    gifts: list[tuple[str, Names]] = []
    for literal in body:
        match literal:
            case nodes.Atom():
                gifts += ((name, NOTHING) for name in mentions(literal))
            case Spread(name):
                gifts.append((name, frozenset(mentions(literal)) - {name}))
            case Gather(name):
                gifts.append((name, NOTHING))
            case _:
                gifts += ((name, frozenset(variables(term))) for name, term in equations(literal))
    return closure(start, lambda bound: (name for name, needs in gifts if needs <= bound))


def closure(start: Iterable[str], more: Callable[[Names], Iterable[str]]) -> Names:
    """The least set with `start` that has what `more` says of it."""
    found = frozenset(start)
    while not found >= (new := frozenset(more(found))):
        found |= new
    return found
