"""The loops of one rule as a value: from the rows of a change, or from a given head, to what follows.

A nest has its steps in the order in which they are taken. Rows are found through the columns that are known by then. A
literal that mentions a value which may be missing comes after all that do not: so an operation without a value is met
for every binding that satisfies the rest of the body, and the ordinary engine decides what it means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from emberlog.analysis.functions import fallible, type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
from emberlog.analysis.terms import names
from emberlog.rules.changes import computed_from
from emberlog.rules.heads import ordered
from emberlog.rules.spelling import spelled_out
from emberlog.syntax.nodes import Anonymous, Comparison, Term, Test, Variable
from emberlog.types import Type

IN_BODY = "an aggregate in a body"
MOST_LOOPS = 15  # nested in a function of Python, which takes 20


class Unsupported(Exception):
    """A rule has something that no nest evaluates. The text says what."""


@dataclass(frozen=True, slots=True)
class Look:
    """The rows of a relation that have the values of `key` at `columns`. Other columns are bound to variables, or equal
    one that was bound before them (`equal`). `atom` is the index of the literal in the rule's body."""

    relation: str
    atom: int
    columns: tuple[int, ...]
    key: tuple[Term, ...]
    binds: tuple[tuple[int, str], ...]
    equal: tuple[tuple[int, str], ...]
    width: int
    floats: tuple[bool, ...]  # of the key: NaN equals nothing


@dataclass(frozen=True, slots=True)
class Lack:
    """No row of a relation has the values of `key` at `columns`."""

    relation: str
    atom: int
    columns: tuple[int, ...]
    key: tuple[Term, ...]
    width: int
    floats: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """A variable gets the value of a term."""

    variable: str
    term: Term


@dataclass(frozen=True, slots=True)
class Each:
    """A variable takes the values of a range of whole numbers."""

    variable: str
    start: Term
    stop: Term
    step: Term


@dataclass(frozen=True, slots=True)
class Check:
    """A condition."""

    condition: Comparison | Test


Step: TypeAlias = Look | Lack | Let | Each | Check


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a rule's own component that its body reads: where its rank is found."""

    relation: str
    key: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over rows whose values are given to the variables `inputs`, through `steps`, to `outputs`: tuples of terms.
    With `ranked`, the last output is a rank above that of each of these facts."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[tuple[Term, ...], ...]
    ranked: tuple[Fact, ...] | None
    types: Mapping[str, Type] = field(compare=False, repr=False)

    @property
    def looks(self) -> tuple[Look | Lack, ...]:
        """The steps that read relations."""
        return tuple(step for step in self.steps if isinstance(step, Look | Lack))


Signatures: TypeAlias = Mapping[str, Signature]


def change_nest(
    rule: CoreRule,
    carrier: int | None,
    outputs: tuple[tuple[Term, ...], ...],
    signatures: Signatures,
    inside: Collection[str] | None = None,
) -> Nest:
    """The rule from the rows of its atom at `carrier` (None: it has no atom). Rows that turn a negated atom have values
    for its columns but those of `_`. With `inside`, the predicates of its component, ranks are asked for."""
    body = spelled_out(rule.body, rule.types)
    types = {**rule.types, **{lit.variable: type_of(lit.term, rule.types) for lit in body if isinstance(lit, Bind)}}
    inputs, rest = _from_carrier(body, carrier)
    indexed = {id(literal): index for index, literal in enumerate(body)}
    order = ordered(rest, set(inputs), _unsure(body, rule.types))
    steps = tuple(_steps(((literal, indexed.get(id(literal), -1)) for literal in order), set(inputs), signatures))
    ranked = None if inside is None else tuple(ranked_facts(rule.body, inside, signatures))
    return _checked(Nest(inputs, steps, outputs, ranked, types))


def head_nest(
    rule: CoreRule,
    inputs: tuple[str, ...],
    body: Sequence[Literal],
    outputs: tuple[tuple[Term, ...], ...],
    signatures: Signatures,
    inside: Collection[str],
) -> Nest:
    """The rule from given values of variables, through literals that are in order already."""
    steps = tuple(_steps(((literal, -1) for literal in body), set(inputs), signatures))
    return _checked(Nest(inputs, steps, outputs, tuple(ranked_facts(rule.body, inside, signatures)), rule.types))


def ranked_facts(body: Iterable[Literal], inside: Collection[str], signatures: Signatures) -> Iterator[Fact]:
    """The facts of a component that a body reads."""
    for literal in body:
        if isinstance(literal, Match) and literal.predicate in inside:
            groups = signatures[literal.predicate].groups
            yield Fact(literal.predicate, tuple(literal.arguments[position] for position in groups))


def carried_columns(atom: Match | Absent) -> tuple[int, ...]:
    """The columns of an atom that a change gives values for: those of a negated atom that are not `_`."""
    return tuple(i for i, argument in enumerate(atom.arguments) if not isinstance(argument, Anonymous))


def _checked(nest: Nest) -> Nest:
    if sum(isinstance(step, Look | Each) for step in nest.steps) > MOST_LOOPS:
        raise Unsupported(f"a body of more than {MOST_LOOPS} atoms")
    return nest


def _from_carrier(body: tuple[Literal, ...], carrier: int | None) -> tuple[tuple[str, ...], list[Literal]]:
    """The variables that the rows of the carrier give values to, and the other literals, with the conditions that the
    carrier has on its rows."""
    if carrier is None:
        return (), list(body)
    atom = body[carrier]
    if not isinstance(atom, Match | Absent):
        raise Unsupported(IN_BODY)
    inputs: list[str] = []
    conditions: list[Literal] = []
    for column in carried_columns(atom):
        argument = atom.arguments[column]
        if isinstance(argument, Variable) and argument.name not in inputs:
            inputs.append(argument.name)
        else:
            inputs.append(f"@{column}")
            conditions.append(Filter(Comparison("=", Variable(f"@{column}"), argument)))
    return tuple(inputs), [*conditions, *(lit for index, lit in enumerate(body) if index != carrier)]


def _unsure(body: Sequence[Literal], types: Mapping[str, Type]) -> frozenset[str]:
    """The variables that may have no value."""
    binds = [literal for literal in body if isinstance(literal, Bind)]
    spread = [literal.variable for literal in body if isinstance(literal, Spread)]
    failing = [bind.variable for bind in binds if fallible(bind.term, types)]
    return computed_from((*failing, *spread), ((bind.variable, names((bind.term,))) for bind in binds))


def _steps(body: Iterable[tuple[Literal, int]], known: set[str], signatures: Signatures) -> Iterator[Step]:
    """The literals as steps."""
    for literal, index in body:
        match literal:
            case Match():
                step = _look(literal, index, known, signatures)
                known |= {name for _, name in step.binds}
                yield step
            case Absent(predicate, arguments):
                columns = carried_columns(literal)
                key = tuple(arguments[column] for column in columns)
                yield Lack(predicate, index, columns, key, len(arguments), _floats(signatures[predicate], columns))
            case Filter(condition):
                yield Check(condition)
            case Bind(variable, term):
                known.add(variable)
                yield Let(variable, term)
            case Spread(variable, start, stop, step_):
                known.add(variable)
                yield Each(variable, start, stop, step_)
            case Gather():
                raise Unsupported(IN_BODY)
            case _:
                assert_never(literal)


def _look(atom: Match, index: int, known: set[str], signatures: Signatures) -> Look:
    columns, key = [], []
    binds: dict[str, int] = {}
    equal = []
    for column, argument in enumerate(atom.arguments):
        if not isinstance(argument, Variable) or argument.name in known:
            columns.append(column)
            key.append(argument)
        elif argument.name in binds:
            equal.append((column, argument.name))
        else:
            binds[argument.name] = column
    floats = _floats(signatures[atom.predicate], columns)
    bound = tuple((column, name) for name, column in binds.items())
    return Look(atom.predicate, index, tuple(columns), tuple(key), bound, tuple(equal), len(atom.arguments), floats)


def _floats(signature: Signature, columns: Iterable[int]) -> tuple[bool, ...]:
    return tuple(signature.columns[column].type.kind == "float" for column in columns)
