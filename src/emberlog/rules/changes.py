"""A rule seen from one change: what follows for the head when rows of one atom are inserted or deleted.

Some relations change together, each from an `old` to a `new` state. The atoms of a rule that read them are taken up in
the order of the text, and the change of the head is the sum of what each of them brings: an atom that carries its
change reads `new` at all atoms taken up before it and `old` at those after it. So every combination of rows that holds
a changed one is met exactly once. For `tc(X,Y) <- tc(X,Z), tc(Z,Y)`:

    +tc(X,Y) <- +tc(X,Z), old tc(Z,Y).
    +tc(X,Y) <- new tc(X,Z), +tc(Z,Y).

Semi-naive rounds are the case in which the relations of a component change by the rows of the last round.

A change of a negated atom has the other sign in the head. A change inside a body aggregate changes the groups that it
falls into (`regroup`): their old value goes, their new one comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias, TypeVar

from emberlog.analysis.program import Absent, Bind, CoreRule, Gather, Literal, Match, Signature
from emberlog.analysis.terms import gives, names
from emberlog.rules.spelling import spelled_out
from emberlog.syntax.nodes import Anonymous, Variable

Sign: TypeAlias = OneOf["+", "-"]
State: TypeAlias = OneOf["old", "new"]
# Where an atom stands: the index of its literal; inside a body aggregate followed by a disjunct and an index there.
Place: TypeAlias = tuple[int, ...]
Key = TypeVar("Key")

OPPOSITE: Mapping[Sign, Sign] = {"+": "-", "-": "+"}


@dataclass(frozen=True, slots=True)
class DeltaRule:
    """A rule whose atom at `at` reads the rows that a change inserts (`sign` "+") or deletes ("-").

    `reads` has the state that each other atom of a changing relation reads; all else does not change. `effect` is what
    the change does to the head: a sign, or `regroup`. `identity` are the variables that tell one contribution to an
    aggregate of the head from another, and `moved` those whose value may change while the contribution stays.
    `idempotent` says that meeting a contribution twice does no harm: the head is a set, a minimum or a maximum.
    """

    rule: CoreRule
    at: Place
    sign: Sign
    effect: Sign | OneOf["regroup"]
    reads: tuple[tuple[Place, State], ...]
    identity: tuple[str, ...]
    moved: frozenset[str]
    idempotent: bool

    @property
    def carrier(self) -> Match | Absent:
        """The atom that carries the change."""
        atom = literal_at(self.rule.body, self.at)
        assert isinstance(atom, Match | Absent)
        return atom

    @property
    def needs_first(self) -> bool:
        """True if the change counts only where no other row matches: `!p(X, _)` turns with the first row of X."""
        return isinstance(self.carrier, Absent) and any(
            isinstance(argument, Anonymous) for argument in self.carrier.arguments
        )

    def reading_new(self) -> DeltaRule:
        """The rule in which all other atoms read `new`: some combinations are met twice, which an insertion into an
        idempotent head, or a contribution that replaces the one of its identity, allows."""
        return replace(self, reads=tuple((place, "new") for place, _ in self.reads))


def delta_rules(
    rule: CoreRule, changing: Collection[str], signatures: Mapping[str, Signature], sign: Sign = "+"
) -> tuple[DeltaRule, ...]:
    """The rule seen from each of its atoms that reads a relation of `changing`."""
    atoms = [(place, atom) for place, atom in atoms_of(rule.body) if atom.predicate in changing]
    moved = moved_variables(rule, changing, signatures)
    identity = tuple(name for name in bound_variables(spelled_out(rule.body, rule.types)) if name not in moved)
    idempotent = set(signatures[rule.predicate].aggregates.values()) <= {"min", "max"}
    return tuple(
        DeltaRule(rule, at, sign, _effect(at, atom, sign), reads, identity, moved, idempotent)
        for (at, reads), (_, atom) in zip(turns([place for place, _ in atoms]), atoms, strict=True)
    )


def turns(atoms: Sequence[Key]) -> Iterator[tuple[Key, tuple[tuple[Key, State], ...]]]:
    """Each of some atoms as the one that carries the change, with the state that each other one reads."""
    for turn, at in enumerate(atoms):
        before: list[tuple[Key, State]] = [(other, "new") for other in atoms[:turn]]
        after: list[tuple[Key, State]] = [(other, "old") for other in atoms[turn + 1 :]]
        yield at, (*before, *after)


def _effect(at: Place, atom: Match | Absent, sign: Sign) -> Sign | OneOf["regroup"]:
    if len(at) > 1:
        return "regroup"
    return OPPOSITE[sign] if isinstance(atom, Absent) else sign


def atoms_of(body: Iterable[Literal], within: Place = ()) -> Iterator[tuple[Place, Match | Absent]]:
    """Every atom of a body with its place, also negated ones and those inside aggregates, in the order of the text."""
    for index, literal in enumerate(body):
        match literal:
            case Match() | Absent():
                yield (*within, index), literal
            case Gather(bodies=bodies):
                for number, inner in enumerate(bodies):
                    yield from atoms_of(inner, (*within, index, number))
            case _:
                pass


def literal_at(body: Sequence[Literal], place: Place) -> Literal:
    """The literal at a place of a body."""
    literal = body[place[0]]
    if len(place) == 1:
        return literal
    assert isinstance(literal, Gather)
    return literal_at(literal.bodies[place[1]], place[2:])


# --- contributions ---------------------------------------------------------------------------------------------------


def moved_variables(rule: CoreRule, changing: Collection[str], signatures: Mapping[str, Signature]) -> frozenset[str]:
    """The variables that hold an aggregated value of a changing relation, and those that are computed from one."""
    values = (
        argument.name
        for literal in rule.body
        if isinstance(literal, Match) and literal.predicate in changing
        for spot, argument in enumerate(literal.arguments)
        if spot in signatures[literal.predicate].aggregates and isinstance(argument, Variable)
    )
    computed = (lit for lit in spelled_out(rule.body, rule.types) if isinstance(lit, Bind))
    return computed_from(values, ((bind.variable, names((bind.term,))) for bind in computed))


def computed_from(values: Iterable[str], equations: Iterable[tuple[str, Iterable[str]]]) -> frozenset[str]:
    """These variables, and those that equations (a variable and what it is computed from, in order) make of them."""
    found = set(values)
    for variable, terms in equations:
        if not found.isdisjoint(terms):
            found.add(variable)
    return frozenset(found)


def bound_variables(body: Iterable[Literal]) -> Iterator[str]:
    """The variables that the literals of a body bind, each once, in the order of the text."""
    seen: set[str] = set()
    for literal in body:
        terms = literal.arguments if isinstance(literal, Match) else ()
        for name in (*(term.name for term in terms if isinstance(term, Variable)), *gives(literal)):
            if name not in seen:
                seen.add(name)
                yield name
