"""Asking Z3, and searching for conditions under which the answer is yes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from random import Random
from typing import Literal as OneOf

import z3

from emberlog.analysis.proofs.bounds import (
    ADDITIVE,
    FAMILY,
    FROM_ONE,
    MIXED,
    NOT_NEGATIVE,
    NOT_ZERO,
    OWN,
    POSITIVE,
    TOGETHER,
    Bounds,
    Knowledge,
    Needs,
    leaves_room,
    merged,
    within,
)
from emberlog.analysis.proofs.formulas import Z3, Encoder, NotReal, combine
from emberlog.analysis.proofs.properties import Idle, Invariant, Property, Query, constraints, origins
from emberlog.analysis.proofs.steps import Origin, Setting

EFFORT = 500_000
"""What one question to Z3 may cost, in its own units: a quarter of a second or so, whatever the machine does."""

TIME_LIMIT = 10_000
"""Milliseconds that one question may take where Z3 does not count its effort."""

PATIENCE = 4
"""How many questions of a component may go without an answer before the search for conditions ends."""

_SMALLEST = 8  # the largest of the small integers
_NUMBERS = (-2, -1, -1, 0, 1, 1, 2, 3, 5)
_GUESSES = 40

Model = Mapping[str, Fraction | bool]


@dataclass(frozen=True)
class Answer:
    """Does a property hold? `model` has values that break it; they are exact only if `exact`."""

    status: OneOf["holds", "fails", "unknown"]
    model: Model = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True)
class Solved:
    """What Z3 says of some formulas: `sat`, with the values of the terms that were asked for, `unsat` or `unknown`."""

    status: str
    values: Model = field(default_factory=dict)


_solved: dict[str, Solved] = {}
_MOST_SOLVED = 5000


def solve(formulas: Iterable[Z3], terms: Mapping[str, Z3] | None = None) -> Solved:
    """Asks Z3 whether the formulas have a solution, and for the values of terms in it.

    The same question has the same answer throughout a process, also where it is a matter of effort: a program is
    checked more than once on its way.
    """
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.set("timeout", TIME_LIMIT)
    solver.set("ctrl_c", False)  # else Z3 would take Ctrl-C for itself, and go on without an answer
    solver.add(*formulas)
    terms = terms or {}
    question = "\n".join((solver.sexpr(), *(f"{name}: {term.sexpr()}" for name, term in terms.items())))
    if question not in _solved:
        if len(_solved) >= _MOST_SOLVED:
            _solved.clear()
        status = str(solver.check())
        model = solver.model() if status == "sat" else None
        values = {name: _number(model.eval(term, model_completion=True)) for name, term in terms.items() if model}
        _solved[question] = Solved(status, values)
    return _solved[question]


def _number(value: Z3) -> Fraction | bool:
    if z3.is_bool(value):
        return bool(z3.is_true(value))
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    if z3.is_rational_value(value):
        return Fraction(value.numerator_as_long(), value.denominator_as_long())
    return Fraction(value.as_long())


def ask(query: Query, needs: Needs) -> Answer:
    """Is there anything that breaks the query, within what is needed or known?

    Reals are tried first: what holds for them holds for integers. For a breach, guessing is often quicker than solving.
    """
    whole = any(type.is_integer for type in query.step.types.values())
    for how in (_solved_loosely, _guessed, _solved_small, _solved_exactly) if whole else (_solved_loosely,):
        encoder = Encoder(query.step.types, loose=how is _solved_loosely, small=how in (_guessed, _solved_small))
        try:
            found = how(constraints(query, encoder, needs), encoder)
        except NotReal:
            continue
        if found.status == "unsat":
            return Answer("holds")
        if found.status == "sat" and not (whole and how is _solved_loosely):
            return Answer("fails", found.values, not encoder.inexact)
    return Answer("unknown")


def _solved_loosely(formulas: list[Z3], encoder: Encoder) -> Solved:
    return solve(formulas, encoder.symbols())


def _solved_exactly(formulas: list[Z3], encoder: Encoder) -> Solved:
    return solve(formulas, encoder.symbols())


def _solved_small(formulas: list[Z3], encoder: Encoder) -> Solved:
    """A solution in small integers; that there is none says nothing."""
    found = solve(formulas + encoder.range(_SMALLEST), encoder.symbols())
    return found if found.status == "sat" else Solved("unknown")


def _guessed(formulas: list[Z3], encoder: Encoder) -> Solved:
    """A solution among a few dozen points."""
    whole, symbols = z3.And(formulas), encoder.symbols()
    if encoder.inexact:
        return Solved("unknown")
    for point in _points(len(symbols)):
        # A float is an integer inside of a conversion here.
        constants = [term.arg(0) if z3.is_to_real(term) else term for term in symbols.values()]
        chosen = [
            z3.BoolVal(number > 0) if z3.is_bool(c) else z3.IntVal(number)
            for c, number in zip(constants, point, strict=True)
        ]
        if z3.is_true(z3.simplify(z3.substitute(whole, *zip(constants, chosen, strict=True)))):
            return Solved("sat", {name: _number(value) for name, value in zip(symbols, chosen, strict=True)})
    return Solved("unknown")


@cache
def _points(size: int) -> list[tuple[int, ...]]:
    """The same points each time, so that verdicts do not change from run to run."""
    draw = Random(size)
    return [tuple(draw.choice(_NUMBERS) for _ in range(size)) for _ in range(_GUESSES)]


@cache
def combines(function: str) -> bool:
    """Property 1: G({x, y}) = G({y, x}) and G(G({x, y}), z) = G(x, G({y, z})), for the partial results of G."""
    x, y, z = z3.Reals("x y z")
    once = combine(function, combine(function, x, y), z)
    breaks = z3.Or(
        combine(function, x, y) != combine(function, y, x), once != combine(function, x, combine(function, y, z))
    )
    return solve([breaks]).status == "unsat"


class Prover:
    """Proves properties of the steps of a component, from what is known of columns or with conditions on them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.knowledge = Knowledge(setting)
        self._patience = PATIENCE
        self._kept: dict[tuple[Origin, Bounds], Needs | None] = {}

    def prove(self, query: Property, among: Iterable[str] = ("lower", "member", "value")) -> tuple[Answer, Needs]:
        """Whether the query holds, and the conditions on lower columns under which it does.

        `among` are the kinds of columns on which conditions may be put; those on columns of the component count only
        if every rule keeps them.
        """
        known = self.knowledge.of_step(query.step)
        answer = self._ask(query, known)
        if answer.status == "holds":
            return answer, {}
        targets = [origin for origin in origins(query) if origin.kind in among]

        def accept(needs: Needs) -> Needs | None:
            idle = ask(Idle(query), merged([known, needs])).status != "fails"
            return None if idle else self._discharged(needs)

        found = self._weakest(query, known, targets, answer, accept)
        return (answer, {}) if found is None else (Answer("holds"), found)

    def _weakest(
        self, query: Query, known: Needs, targets: list[Origin], answer: Answer, accept: Callable[[Needs], Needs | None]
    ) -> Needs | None:
        """Conditions on `targets` under which the query holds and that are accepted: on one column, on as few of
        several as suffice, on two with different signs. `answer` is that without conditions."""
        models = [answer.model]

        def holds(needs: Needs) -> bool:
            if self._patience <= 0 or any(_allows(model, needs, query) for model in models):
                return False
            tried = self._ask(query, merged([known, needs]))
            models.append(tried.model)
            return tried.status == "holds"

        single = ({t: bounds} for bounds in FAMILY for t in targets if t.kind == "lower" or bounds in OWN)
        together = (dict.fromkeys(group, bounds) for group in _groups(targets) for bounds in TOGETHER)
        signs = (dict(zip(pair, two, strict=True)) for pair in combinations(targets[:4], 2) for two in MIXED)
        for needs in chain(single, together, signs):
            if holds(needs):
                found = accept(_fewest(needs, holds))
                if found is not None:
                    return found
        return None

    def _ask(self, query: Query, needs: Needs) -> Answer:
        answer = ask(query, needs)
        self._patience -= answer.status == "unknown"
        return answer

    def _discharged(self, needs: Needs) -> Needs | None:
        """Conditions on lower columns that give the needed ones; None if there are none."""
        found: list[Needs] = []
        for origin, bounds in needs.items():
            if origin.kind == "lower":
                found.append({origin: bounds})
                continue
            kept = self.keeps(origin, bounds)
            if kept is None:
                return None
            found.append(kept)
        return _with_room(merged(found))

    # --- invariants ---

    def keeps(self, origin: Origin, bounds: Bounds) -> Needs | None:
        """The conditions on lower columns under which all rules keep a column of the component within bounds."""
        question = (origin, bounds)
        if question not in self._kept:
            self._kept[question] = self._inductive(origin, bounds)
        return self._kept[question]

    def _inductive(self, origin: Origin, bounds: Bounds) -> Needs | None:
        """By induction on the rounds: each rule keeps the bounds if the rows that it reads are within theirs."""
        found: list[Needs] = []
        assumed: dict[tuple[Origin, Bounds], None] = {(origin, bounds): None}
        done: set[tuple[Origin, Bounds]] = set()
        while pending := [each for each in assumed if each not in done]:
            column, wanted = pending[0]
            done.add(pending[0])
            if not self._starts_within(column, wanted):
                return None
            for query in self._derivations(column, wanted):
                inner, needs = self._kept_by(query)
                if needs is None:
                    return None
                found.append(needs)
                assumed.update(dict.fromkeys(inner.items()))
        return _with_room(merged(found))

    def _derivations(self, column: Origin, bounds: Bounds) -> Iterator[Invariant]:
        counts = column.kind == "value" and self.setting.spots[column.relation][1] in ("count", "countd")
        for rule in self.setting.rules:
            if rule.predicate == column.relation and not (counts and rule.aggregates):
                for step in self.setting.steps(rule):
                    yield Invariant(step, step.columns[column.position], bounds)

    def _starts_within(self, column: Origin, bounds: Bounds) -> bool:
        """Do the facts meet the bounds, and does aggregating keep them?"""
        function = self.setting.spots[column.relation][1] if column.kind == "value" else ""
        if function == "sum" and bounds not in ADDITIVE:
            return False
        if function in ("count", "countd") and bounds not in (NOT_NEGATIVE, POSITIVE, FROM_ONE, NOT_ZERO):
            return False
        if self.setting.signatures[column.relation].external:
            return False
        given = (row[column.position] for row in self.setting.facts.get(column.relation, ()))
        return all(not isinstance(value, str) and within(value, bounds) for value in given)

    def _kept_by(self, query: Invariant) -> tuple[Needs, Needs | None]:
        """What a derivation needs of columns of the component, and of lower ones; None if the bounds are not kept."""
        if query.step.opaque:
            return {}, None
        known = self.knowledge.of_step(query.step)
        own = [origin for origin in origins(query) if origin.kind in ("member", "value")]
        lower = [origin for origin in origins(query) if origin.kind == "lower"]
        choices: list[Needs] = [{}, *(dict.fromkeys(own, bounds) for bounds in (query.bounds, *TOGETHER) if own)]
        for inner in choices:
            assumed = merged([known, inner])
            answer = self._ask(query, assumed)
            if answer.status == "holds":
                return inner, {}
            needs = self._weakest(query, assumed, lower, answer, lambda needs: needs)
            if needs is not None:
                return inner, needs
        return {}, None


def _with_room(needs: Needs) -> Needs | None:
    """The conditions; None if they leave no choice, so that no data worth having meet them."""
    return needs if leaves_room(needs) else None


def _groups(targets: list[Origin]) -> Iterator[list[Origin]]:
    """Columns on which the same condition is put: those of lower strata, then all."""
    lower = [target for target in targets if target.kind == "lower"]
    if len(lower) > 1:
        yield lower
    if len(lower) < len(targets) > 1:
        yield targets


def _fewest(needs: Needs, holds: Callable[[Needs], bool]) -> Needs:
    """The conditions without those that are not needed."""
    for origin in list(needs):
        rest = {other: bounds for other, bounds in needs.items() if other != origin}
        if rest and holds(rest):
            needs = rest
    return needs


def _allows(model: Model, needs: Needs, query: Query) -> bool:
    """Do values that break the query meet the conditions? Then these do not help."""
    if not model:
        return False
    for name, value in model.items():
        origin = query.step.origins.get(name.split("'")[0])
        if origin is None or isinstance(value, bool):
            continue
        if origin in needs and not within(value, needs[origin]):
            return False
    return True
