"""What must hold for an aggregate inside recursion, as formulas whose solutions would break it.

For a rule that reads an aggregated value v, F' is the partial function from v to the row that the rule derives. With x
and y for two partial results of one group, Property 2 of MRA evaluation, G(F'(G({x, y}))) = G(F'({x, y})), comes apart:

- `guard`: the rule applies to the combined value whenever it applies to a part (for min and max the better one of the
  two is the combined value; a sum or count only grows, so it must pass every condition that a smaller one passes);
- `group`: what the rule derives goes to the same group, by the same contributor;
- `value`: what goes into the aggregate of the head is the same.

For min and max this is PreM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

import z3

from emberlog.analysis.program import Bound
from emberlog.analysis.proofs.bounds import Bounds, Needs
from emberlog.analysis.proofs.formulas import Z3, Encoder, better, combine, compare
from emberlog.analysis.proofs.steps import Differs, Guard, Origin, Step
from emberlog.analysis.terms import operands, term_variables
from emberlog.syntax.nodes import Term

Kind: TypeAlias = OneOf["guard", "group", "value"]


@dataclass(frozen=True)
class Property:
    """One of the three for the value `symbol` of a step, which an aggregate `function` made.

    `guards` are the conditions that `guard` is about (all of the step's, or one of them). `grows` says that a sum or
    count is known to add up only what is not negative.
    """

    step: Step
    symbol: str
    function: str
    kind: Kind
    guards: tuple[Guard, ...]
    grows: bool = True

    @property
    def picks(self) -> bool:
        """Is the combined value one of the parts?"""
        return self.function in ("min", "max")

    def parts(self, encoder: Encoder) -> tuple[Z3, Z3]:
        """The two partial results."""
        return encoder.symbol(f"{self.symbol}'1", self.symbol), encoder.symbol(f"{self.symbol}'2", self.symbol)

    def state(self, encoder: Encoder) -> tuple[Z3, Z3]:
        """Two rows of the group that show a breach: for a growing sum the first part and what is added to it."""
        x, y = self.parts(encoder)
        return (x, y - x) if self.kind == "guard" and not self.picks else (x, y)

    def breaks(self, encoder: Encoder) -> list[Z3]:
        x, y = self.parts(encoder)
        match self.kind:
            case "guard":
                first, then = (y, x) if self.picks else (x, y)
                return [*self._order(x, y), self.applies(encoder, first), z3.Not(self.applies(encoder, then))]
            case "group":
                return self._group(encoder, x, y)
            case "value":
                return self._value(encoder, x, y)

    def _order(self, x: Z3, y: Z3) -> list[Z3]:
        if self.picks:
            return [better(self.function, x, y)]
        return [x >= 0, x <= y] if self.grows else []

    def applies(self, encoder: Encoder, value: Z3) -> Z3:
        return z3.And([encoder.guard(guard, {self.symbol: value}) for guard in self.guards])

    def at(self, encoder: Encoder, term: Term, value: Z3) -> Z3:
        """A term of the step, with a value for the symbol."""
        return encoder.term(term, {self.symbol: value})

    def results(self) -> list[Term]:
        """What the rule derives from the value: the terms that must not change, or must change along with it."""
        if self.kind == "value" and self.step.value is not None:
            return [self.step.value]
        return [term for term in _identity(self.step) if _mentions(term, self.symbol)]

    def _group(self, encoder: Encoder, x: Z3, y: Z3) -> list[Z3]:
        points = [x, y] if self.picks else [x, y, x + y]
        at = [[self.at(encoder, term, point) for term in self.results()] for point in points]
        differ = [a != b for others in at[1:] for a, b in zip(at[0], others, strict=True)]
        applied = [self.applies(encoder, point) for point in points] if self.picks else []
        return [*self._order(x, y), *applied, z3.Or(differ)]

    def _value(self, encoder: Encoder, x: Z3, y: Z3) -> list[Z3]:
        (value,), head = self.results(), self.step.function or ""

        def at(point: Z3) -> Z3:
            return self.at(encoder, value, point)

        if not self.picks:
            return [at(x + y) != combine(head, at(x), at(y))]
        applied = [better(self.function, x, y), self.applies(encoder, x), self.applies(encoder, y)]
        if head in ("min", "max"):
            return [*applied, z3.Not(better(head, at(x), at(y)))]
        return [*applied, at(x) != at(x) + at(y)]

    def terms(self) -> Iterator[Term]:
        """The terms that the property is about."""
        yield from guard_terms(self.guards)
        if self.kind != "guard":
            yield from self.results()


@dataclass(frozen=True)
class Idle:
    """The value has no influence: a condition that makes it so proves nothing worth knowing."""

    of: Property

    @property
    def step(self) -> Step:
        return self.of.step

    def breaks(self, encoder: Encoder) -> list[Z3]:
        x, y = self.of.parts(encoder)
        if self.of.kind == "guard":
            return [self.of.applies(encoder, x), z3.Not(self.of.applies(encoder, y))]
        applied = [self.of.applies(encoder, x), self.of.applies(encoder, y)]
        return [
            *applied,
            z3.Or([self.of.at(encoder, term, x) != self.of.at(encoder, term, y) for term in self.of.results()]),
        ]

    def terms(self) -> Iterator[Term]:
        return self.of.terms()


@dataclass(frozen=True)
class Invariant:
    """Every row that a step derives keeps a column within bounds."""

    step: Step
    term: Term
    bounds: Bounds

    def breaks(self, encoder: Encoder) -> list[Z3]:
        value = encoder.term(self.term, {})
        applies = [encoder.guard(guard, {}) for guard in self.step.guards]
        return [*applies, z3.Not(z3.And([bounded(value, bound) for bound in self.bounds]))]

    def terms(self) -> Iterator[Term]:
        yield self.term


Query: TypeAlias = Property | Idle | Invariant


def constraints(query: Query, encoder: Encoder, needs: Needs) -> list[Z3]:
    """The formulas whose solutions break the query, given what is needed or known of columns."""
    formulas = query.breaks(encoder)
    formulas += [encoder.condition(condition, {}) for condition in query.step.context]
    for name, symbol in list(encoder.symbols().items()):
        origin = query.step.origins.get(name.split("'")[0])
        formulas += [bounded(symbol, bound) for bound in needs.get(origin, ())] if origin is not None else []
    return formulas + encoder.sides + encoder.known()


def bounded(value: Z3, bound: Bound) -> Z3:
    number = bound.value
    constant = z3.IntVal(int(number)) if z3.is_int(value) and number == int(number) else z3.RealVal(repr(number))
    return compare(bound.operator, value, constant)


def origins(query: Query) -> list[Origin]:
    """The columns whose numbers the query is about, each once, those of lower strata first."""
    step = query.step
    names = dict.fromkeys(v.name for term in query.terms() for v in term_variables(term))
    found = dict.fromkeys(step.origins[name] for name in names if step.types[name].is_numeric)
    order = {"lower": 0, "member": 1, "value": 2, "free": 3}
    return sorted((o for o in found if o.kind != "free"), key=lambda origin: order[origin.kind])


def guard_terms(guards: Iterable[Guard]) -> Iterator[Term]:
    for guard in guards:
        if isinstance(guard.condition, Differs):
            yield from (term for pair in guard.condition.pairs for term in pair)
        else:
            yield from operands(guard.condition)


def _identity(step: Step) -> tuple[Term, ...]:
    """What tells a derived row from others: the columns of the head but its aggregate, and who contributes."""
    groups = tuple(column for column in step.columns if column is not step.value)
    return groups if step.key is None else (*groups, step.key)


def uses(step: Step, symbol: str) -> Mapping[Kind, bool]:
    """Where a step uses a value: in conditions, in what tells rows apart, in what is aggregated."""
    return {
        "guard": any(_mentions(term, symbol) for term in guard_terms(step.guards)),
        "group": any(_mentions(term, symbol) for term in _identity(step)),
        "value": step.value is not None and step.function != "count" and _mentions(step.value, symbol),
    }


def _mentions(term: Term, symbol: str) -> bool:
    return any(variable.name == symbol for variable in term_variables(term))
