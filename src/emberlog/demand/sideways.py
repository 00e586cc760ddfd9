"""In which order a body hands on what is known, and what it then knows of the atoms that it reads.

Known are the variables of the lead atom, which has what is asked for, and those that equal constants. From there atoms
are taken up, the one with the fewest open columns first, and give values to their variables. For
`sg(X,Y) <- up(X,A), sg(A,B), down(B,Y)` with X known: `up` gives A, so `sg` is read by its first column, and the rule
of that demand is `demand(A) <- demand(X), up(X,A)`.

Any part of a body may give a demand: less of it asks for more, which is never wrong. So the part leaves out what could
make an error that the rule would not (a term that may have no value), negation and body aggregates, and values computed
from values that no relation bounds: a demand of those might grow for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from emberlog.analysis.functions import constant_type, fallible
from emberlog.analysis.program import Absent, Bind, Filter, Gather, Literal, Match
from emberlog.analysis.terms import literal_terms, map_term, names
from emberlog.demand.names import Bound
from emberlog.rules.changes import Place, literal_at
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable
from emberlog.types import Type

LEAD: Place = ()  # where the lead atom stands


@dataclass(frozen=True, slots=True)
class Handed:
    """What is known of the atom at a place: the positions of its columns, and the literals that give their values.

    `lists` are the relations among these that were taken up without anything being known of them.
    """

    at: Place
    bound: Bound
    prefix: tuple[Place, ...] = ()
    led: bool = False  # the lead atom is one of the literals
    lists: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """A body to be walked: the literals, the types of its variables, the variables that the lead atom gives values to.

    `usable` says which atoms may give values; `may_list`, which of them also if nothing is known of them.
    """

    literals: Sequence[Literal]
    types: Mapping[str, Type]
    lead: Collection[str]
    usable: Callable[[str], bool]
    may_list: Callable[[str], bool]

    def walk(self) -> Iterator[Handed]:
        """What is known of each atom, those inside of body aggregates too."""
        walk = _Walk(self, constants_of(self.literals, self.types, self.lead), dict.fromkeys(self.lead, LEAD))
        yield from walk.go([((index,), literal) for index, literal in enumerate(self.literals)])


def constants_of(body: Sequence[Literal], types: Mapping[str, Type], lead: Collection[str]) -> dict[str, Constant]:
    """The variables that equal constants, apart from those of the lead atom."""
    found: dict[str, Constant] = {}
    for literal in body:
        match literal:
            case Bind(name, Constant() as value) | Filter(
                Comparison("=", Variable(name), Constant() as value)
                | Comparison("=", Constant() as value, Variable(name))
            ) if name not in lead and constant_type(value) == types[name].wide and types[name].kind != "decimal":
                found.setdefault(name, value)
            case _:
                pass
    return found


@dataclass
class _Walk:
    """What is known so far. `given` has the place that gives each variable its value; `bounded`, for the variables that
    relations bound, the place that does."""

    body: Body
    constants: dict[str, Constant]
    given: dict[str, Place]

    def __post_init__(self) -> None:
        self.taken: list[Place] = []
        self.lists: dict[Place, str] = {}  # relations that were taken up without anything known of them
        self.bounded: dict[str, Place] = {}

    def go(self, literals: Sequence[tuple[Place, Literal]]) -> Iterator[Handed]:
        waiting = dict(literals)
        while True:
            self._compute(waiting)
            at = self._next(waiting)
            if at is None:
                break
            atom = waiting.pop(at)
            assert isinstance(atom, Match)
            yield self.handed(at, atom)
            self._take(at, atom)
        for at, literal in waiting.items():
            match literal:
                case Match() | Absent():
                    yield self.handed(at, literal)
                case Gather():
                    yield from self._gathered(at, literal)
                case _:
                    pass

    def _gathered(self, at: Place, gather: Gather) -> Iterator[Handed]:
        """The atoms inside of a body aggregate: what is known outside is known there, and it comes no further."""
        for number, inner in enumerate(gather.bodies):
            own = {name for literal in inner for name in names(literal_terms(literal))} - {*gather.injected}
            walk = _Walk(self.body, {}, {})
            if own.isdisjoint(self.known):  # else a name stands for two variables
                walk.constants, walk.given = dict(self.constants), dict(self.given)
                walk.taken, walk.lists, walk.bounded = [*self.taken], {**self.lists}, {**self.bounded}
            yield from walk.go([((*at, number, index), literal) for index, literal in enumerate(inner)])

    # --- taking up ---

    def _compute(self, waiting: dict[Place, Literal]) -> None:
        """Takes up equations whose variables are bounded, until there are no more."""
        ready = True
        while ready:
            ready = False
            for at, literal in list(waiting.items()):
                if isinstance(literal, Bind) and literal.variable not in self.known and self._is_bounded(literal.term):
                    del waiting[at]
                    self.given[literal.variable] = self.bounded[literal.variable] = at
                    self.taken.append(at)
                    ready = True

    @property
    def known(self) -> Collection[str]:
        return self.given.keys() | self.constants.keys()

    def _is_bounded(self, term: Term) -> bool:
        return names((term,)) <= self.bounded.keys() | self.constants.keys() and not fallible(term, self.body.types)

    def _next(self, waiting: Mapping[Place, Literal]) -> Place | None:
        """The atom to take up next: the one with the fewest open columns of those that something is known of, else a
        list."""
        atoms = [(at, one) for at, one in waiting.items() if isinstance(one, Match) and self._can_take(one)]
        linked = [(at, one) for at, one in atoms if self._bound(one) or not one.arguments]
        if not linked:
            linked = [(at, one) for at, one in atoms if self.body.may_list(one.predicate)]
        if not linked:
            return None
        at, _ = min(linked, key=lambda found: len(found[1].arguments) - len(self._bound(found[1])))
        return at

    def _can_take(self, atom: Match) -> bool:
        computed = [term for term in atom.arguments if not isinstance(term, Variable)]
        sure = not any(fallible(term, self.body.types) for term in computed)
        return sure and names(computed) <= set(self.known) and self.body.usable(atom.predicate)

    def _take(self, at: Place, atom: Match) -> None:
        if atom.arguments and not self._bound(atom):
            self.lists[at] = atom.predicate
        for name in names(atom.arguments):
            if name not in self.constants:
                self.given.setdefault(name, at)
                self.bounded.setdefault(name, at)
        self.taken.append(at)

    def _bound(self, atom: Match | Absent) -> Bound:
        """The positions whose values are known."""
        known = set(self.known)
        return tuple(
            spot
            for spot, term in enumerate(atom.arguments)
            if (isinstance(term, Variable) and term.name in known)
            or (isinstance(term, Constant | Call) and self._is_bounded(term))
        )

    # --- what gives a demand ---

    def handed(self, at: Place, atom: Match | Absent) -> Handed:
        bound = self._bound(atom)
        places, led, variables = self._chain([atom.arguments[spot] for spot in bound])
        lists = tuple(self.lists[place] for place in places if place in self.lists)
        restricting = [place for place in self._conditions(variables) if place not in places]
        return Handed(at, bound, (*places, *restricting), led, lists)

    def _literal(self, at: Place) -> Literal:
        return literal_at(self.body.literals, at)

    def _chain(self, terms: Sequence[Term]) -> tuple[list[Place], bool, set[str]]:
        """The literals that give the variables of these terms their values, in order, whether the lead atom is one of
        them, and all their variables."""
        seen, places, waiting = set[str](), set[Place](), [*self._givers(terms)]
        while waiting:
            name, place = waiting.pop()
            seen.add(name)
            if place != LEAD and place not in places:
                places.add(place)
                literal = self._literal(place)
                waiting += self._givers(literal_terms(literal), computed=isinstance(literal, Bind))
        led = any(self.given[name] == LEAD for name in seen)
        return [place for place in self.taken if place in places], led, seen

    def _givers(self, terms: Sequence[Term], *, computed: bool = False) -> Iterator[tuple[str, Place]]:
        """The variables of these terms, each with the place that gives its value and, where a value is computed from
        it, with the place that bounds it."""
        for term in terms:
            for name in names((term,)) - self.constants.keys():
                yield name, self.given[name]
                if computed or isinstance(term, Call):
                    yield name, self.bounded[name]

    def _conditions(self, variables: Collection[str]) -> Iterator[Place]:
        """Comparisons of these variables."""
        for index, literal in enumerate(self.body.literals):
            if isinstance(literal, Filter):
                terms = literal_terms(literal)
                used = names(terms)
                if used and used <= set(variables) and not any(fallible(term, self.body.types) for term in terms):
                    yield (index,)


def with_constants(literal: Literal, constants: Mapping[str, Constant]) -> Literal:
    """A literal that hands on values, with constants in place of variables that equal them."""

    def value(term: Term) -> Term:
        return map_term(term, lambda one: constants.get(one.name, one) if isinstance(one, Variable) else one)

    match literal:
        case Match(_, arguments) | Absent(_, arguments):
            return replace(literal, arguments=tuple(map(value, arguments)))
        case Bind(_, term):
            return replace(literal, term=value(term))
        case _:
            return literal
