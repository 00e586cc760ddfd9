"""The checked program: what planning starts from.

Rules here are in core form: one head, one conjunction, literals in an order in which every variable is bound before it
is used, every implicit conversion written out as a call. A rule keeps the span of the rule it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias, assert_never

from emberlog.diagnostics import Diagnostic
from emberlog.source import NOWHERE, Span
from emberlog.syntax.nodes import Aggregate, Comparison, Directive, Goal, Term, Test, Until
from emberlog.tables import html_table
from emberlog.types import Column, Type, Value


@dataclass(frozen=True, slots=True)
class Match:
    """A positive atom. Its arguments are variables, or terms whose variables are bound by earlier literals.

    An anonymous variable has become a variable with a fresh name; a variable may occur more than once.
    """

    predicate: str
    arguments: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom: no row matches. `Anonymous` arguments match anything; all variables are bound earlier."""

    predicate: str
    arguments: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """A comparison or boolean function, both sides bound, both of one type."""

    condition: Comparison | Test


@dataclass(frozen=True, slots=True)
class Bind:
    """`variable` gets the value of `term`, whose variables are bound earlier."""

    variable: str
    term: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """`variable` takes each value from `start` up to, without, `stop`, in steps of `step` (a `range`)."""

    variable: str
    start: Term
    stop: Term
    step: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Gather:
    """An aggregate over bodies of its own (Souffle's): `variable = function target : { bodies }`.

    `bodies` are the disjuncts. `injected` are the variables that the literals before bind and the bodies mention: the
    groups. `witnesses` (min and max only) are variables of the bodies that the rule uses outside: they take their
    values from the bindings that reach the extremum. A `function` is count, sum, min, max or avg.
    """

    variable: str
    function: str
    target: Term | None
    bodies: tuple[tuple[Literal, ...], ...]
    injected: tuple[str, ...]
    witnesses: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Literal: TypeAlias = Match | Absent | Filter | Bind | Spread | Gather


def atoms(body: tuple[Literal, ...]) -> Iterator[Match | Absent]:
    """Every atom of a body, negated ones and those inside aggregates too."""
    for literal in body:
        match literal:
            case Match() | Absent():
                yield literal
            case Gather():
                for inner in literal.bodies:
                    yield from atoms(inner)
            case Filter() | Bind() | Spread():
                pass
            case _:
                assert_never(literal)


@dataclass(frozen=True, slots=True)
class CoreRule:
    """`predicate(arguments) <- body`.

    An argument of the head is a term over bound variables, converted to the column's type, or an `Aggregate` of such
    terms. `types` has every variable of the rule, those inside a `Gather` too. `order` and `limit` are the rule's
    `sort` and `limit` goals (variable, descends). `start` marks a rule that gives the first state of an iteration
    (its index was 0) and takes no part afterwards; the index itself is gone from head and body.
    """

    id: int
    predicate: str
    arguments: tuple[Term, ...]
    body: tuple[Literal, ...]
    types: Mapping[str, Type] = field(compare=False, repr=False)
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    start: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def aggregates(self) -> tuple[tuple[int, Aggregate], ...]:
        """Position and aggregate of each aggregated column."""
        return tuple((i, arg) for i, arg in enumerate(self.arguments) if isinstance(arg, Aggregate))

    def reads(self) -> Iterator[str]:
        """Every predicate that the body mentions, as often as it does."""
        return (literal.predicate for literal in atoms(self.body))


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on the values of a column: `operator` is one of < <= > >= !=."""

    operator: str
    value: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a source: of all its columns, `whole`, those at `positions`."""

    whole: tuple[Column, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A predicate: its columns, and the aggregate that each aggregated column carries (canonical names).

    `external` says that rows come from a registered source or an `.input`, whatever rules add to them. `domains` are
    the declared conditions on columns (`w: float where w >= 0`), checked when the rows are loaded, and that a count
    that only rules derive is at least 1. `reading` is set where the source has columns that the program does not use:
    `columns` are the others then.
    """

    name: str
    columns: tuple[Column, ...]
    aggregates: Mapping[int, str]
    external: bool
    declared: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    domains: Mapping[int, tuple[Bound, ...]] = field(default_factory=dict)
    reading: Reading | None = None

    def row(self, values: Sequence[object]) -> tuple[object, ...]:
        """A row with None where its column is not read."""
        if self.reading is None:
            return tuple(values)
        known = dict(zip(self.reading.positions, values, strict=True))
        return tuple(known.get(i) for i in range(len(self.reading.whole)))

    @property
    def groups(self) -> tuple[int, ...]:
        """Positions of the columns that are not aggregated, nor what goes with the value of a `top`, which is in the
        column behind it."""
        return tuple(
            i for i in range(len(self.columns)) if i not in self.aggregates and self.aggregates.get(i - 1) != "top"
        )


@dataclass(frozen=True, slots=True)
class Obligation:
    """What a conditional verdict asks of the data: every value of a column is within `bound`."""

    relation: str
    position: int
    bound: Bound
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """May this aggregate stand inside recursion? `holds` is true for proved and conditional.

    `assumptions` name columns of lower strata (`w >= 0`); `obligations` are the same, in a form that is checked against
    the data before the fixpoint starts. `terminates` says what is known of ending. `reason` is one sentence. `facts`
    are those of the counter-example: rows of lower relations, and rows of the component before they are aggregated.
    `licence` says what the proof allows: "prem" is PreM (min, max: any order, better values replace worse ones), "mra"
    are both properties of MRA evaluation (sums: deltas through F' add up), and "monotone" says that what a group counts
    only grows, while a contribution must be told from a change of its value.
    """

    predicate: str
    aggregate: str
    status: OneOf["proved", "conditional", "refuted", "unknown"]
    theorem: str
    assumptions: tuple[str, ...] = ()
    terminates: str = ""
    counterexample: str | None = None
    reason: str = ""
    obligations: tuple[Obligation, ...] = field(default=(), repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    licence: OneOf["", "prem", "mra", "monotone"] = ""
    facts: tuple[tuple[str, tuple[Value, ...]], ...] = field(default=(), repr=False)

    @property
    def holds(self) -> bool:
        return self.status in ("proved", "conditional")


class Verdicts(list[Verdict]):
    """Verdicts; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        told = [(v.predicate, v.aggregate, v.status, _because(v), v.terminates) for v in self]
        return html_table(("predicate", "aggregate", "status", "because", "ends"), told)


def _because(verdict: Verdict) -> str:
    """The theorem with what it assumes, or what stands against it."""
    if not verdict.holds:
        return verdict.counterexample or verdict.reason
    return ", if ".join(filter(None, (verdict.theorem, " and ".join(verdict.assumptions))))


@dataclass(frozen=True, slots=True)
class Component:
    """A strongly connected component of the predicates, evaluated as one stratum.

    `evaluation`: `once` for a component that is not recursive; `delta` for semi-naive rounds; `naive` for rounds that
    recompute every predicate from the last state; `accumulate` for an iteration of sums that may hand on what they
    change by (MRA) in place of that. `shape` is "", "linear", "non-linear" or "mutual". `indexed` marks
    an iteration (`rank(i+1, ..) :- rank(i, ..)`): each round replaces the state; with `keeps_states` every state stays
    and the relation has the index as its first column. `until` is the iteration's end.
    """

    predicates: tuple[str, ...]
    rules: tuple[CoreRule, ...]
    recursive: bool
    shape: OneOf["", "linear", "non-linear", "mutual"]
    evaluation: OneOf["once", "delta", "naive", "accumulate"]
    verdicts: tuple[Verdict, ...] = ()
    indexed: bool = False
    keeps_states: bool = False
    until: Until | None = None
    invents: bool = False  # a recursive rule computes values: the domain may be infinite
    note: str = ""  # how the rules were changed, if they were


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program without mistakes. `components` come in an order in which each reads only earlier ones."""

    signatures: Mapping[str, Signature]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]
    components: tuple[Component, ...]
    directives: tuple[Directive, ...]
    goals: tuple[Goal, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on all aggregates inside recursion."""
        return tuple(verdict for component in self.components for verdict in component.verdicts)
