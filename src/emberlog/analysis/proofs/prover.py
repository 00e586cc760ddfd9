"""Asking Z3, and searching for conditions under which the answer is yes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Literal as OneOf

import z3

from emberlog.analysis.proofs.bounds import (
    ADDITIVE,
    FAMILY,
    FROM_ONE,
    NOT_NEGATIVE,
    NOT_ZERO,
    OWN,
    POSITIVE,
    SIGNS,
    TOGETHER,
    Bounds,
    Knowledge,
    Needs,
    merged,
    within,
)
from emberlog.analysis.proofs.formulas import Z3, Encoder, NotReal, combine
from emberlog.analysis.proofs.properties import Idle, Invariant, Property, Query, constraints, origins
from emberlog.analysis.proofs.steps import Origin, Setting

TIME_LIMIT = 400
"""Milliseconds that one question to Z3 may take."""

_LOOSE, _SMALL, _EXACT = "loose", "small", "exact"
_SMALLEST = 8

Model = Mapping[str, Fraction | bool]


@dataclass(frozen=True)
class Answer:
    """Does a property hold? `model` has values that break it; they are exact only if `exact`."""

    status: OneOf["holds", "fails", "unknown"]
    model: Model = field(default_factory=dict)
    exact: bool = True


def solve(formulas: Iterable[Z3]) -> tuple[str, Z3]:
    """`sat`, `unsat` or `unknown`, and the solver."""
    solver = z3.Solver()
    solver.set("timeout", TIME_LIMIT)
    solver.add(*formulas)
    return str(solver.check()), solver


def ask(query: Query, needs: Needs) -> Answer:
    """Is there anything that breaks the query, within what is needed or known?

    Reals are tried first: what holds for them holds for integers. Small integers are the quickest way to a breach.
    """
    whole = any(type.is_integer for type in query.step.types.values())
    for how in (_LOOSE, _SMALL, _EXACT) if whole else (_LOOSE,):
        encoder = Encoder(query.step.types, loose=how == _LOOSE, small=how == _SMALL)
        try:
            formulas = constraints(query, encoder, needs)
        except NotReal:
            continue
        result, solver = solve([*formulas, *(encoder.range(_SMALLEST) if how == _SMALL else ())])
        if result == "unsat" and how != _SMALL:
            return Answer("holds")
        if result == "sat" and (how != _LOOSE or not whole):
            return Answer("fails", values(solver.model(), encoder), not encoder.inexact)
    return Answer("unknown")


def values(model: Z3, encoder: Encoder) -> Model:
    """The numbers of a model, of every symbol of the encoder."""
    return {name: _number(model.eval(symbol, model_completion=True)) for name, symbol in encoder.symbols().items()}


def _number(value: Z3) -> Fraction | bool:
    if z3.is_bool(value):
        return z3.is_true(value)
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return (
        Fraction(value.numerator_as_long(), value.denominator_as_long())
        if z3.is_rational_value(value)
        else Fraction(value.as_long())
    )


@cache
def combines(function: str) -> bool:
    """Property 1: G({x, y}) = G({y, x}) and G(G({x, y}), z) = G(x, G({y, z})), for the partial results of G."""
    x, y, z = z3.Reals("x y z")
    once = combine(function, combine(function, x, y), z)
    breaks = z3.Or(
        combine(function, x, y) != combine(function, y, x), once != combine(function, x, combine(function, y, z))
    )
    return solve([breaks])[0] == "unsat"


class Prover:
    """Proves properties of the steps of a component, from what is known of columns or with conditions on them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.knowledge = Knowledge(setting)
        self._kept: dict[tuple[Origin, Bounds], Needs | None] = {}

    def prove(self, query: Property, among: Iterable[str] = ("lower", "member", "value")) -> tuple[Answer, Needs]:
        """Whether the query holds, and the conditions on lower columns under which it does.

        `among` are the kinds of columns on which conditions may be put; those on columns of the component count only
        if every rule keeps them.
        """
        known = self.knowledge.of_step(query.step)
        answer = ask(query, known)
        if answer.status == "holds":
            return answer, {}
        models = [answer.model] if answer.status == "fails" else []
        targets = [origin for origin in origins(query) if origin.kind in among]
        for needs in _candidates(targets):
            if any(_allows(model, needs, query) for model in models):
                continue
            tried = ask(query, merged([known, needs]))
            if tried.status == "holds":
                idle = ask(Idle(query), merged([known, needs])).status != "fails"
                lower = None if idle else self._discharged(needs)
                if lower is not None:
                    return tried, lower
            elif tried.status == "fails":
                models.append(tried.model)
        return answer, {}

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
        return merged(found)

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
        return merged(found)

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
        facts = self.setting.facts.get(column.relation, ())
        return all(not isinstance(row[column.position], str) and within(row[column.position], bounds) for row in facts)

    def _kept_by(self, query: Invariant) -> tuple[Needs, Needs | None]:
        """What a derivation needs of columns of the component, and of lower ones; None if it does not keep the bounds."""
        if query.step.opaque:
            return {}, None
        known = self.knowledge.of_step(query.step)
        own = [origin for origin in origins(query) if origin.kind in ("member", "value")]
        lower = [origin for origin in origins(query) if origin.kind == "lower"]
        choices: list[Needs] = [{}, *(dict.fromkeys(own, bounds) for bounds in (query.bounds, *TOGETHER) if own)]
        for inner in choices:
            assumed = merged([known, inner])
            answer = ask(query, assumed)
            if answer.status == "holds":
                return inner, {}
            for needs in _candidates(lower):
                if not _allows(answer.model, needs, query) and ask(query, merged([assumed, needs])).status == "holds":
                    return inner, needs
        return {}, None


def _candidates(targets: list[Origin]) -> Iterator[Needs]:
    """Conditions on columns, the weakest and fewest first. Of columns of the component only signs are asked."""
    for bounds in FAMILY:
        yield from ({target: bounds} for target in targets if target.kind == "lower" or bounds in OWN)
    for pair in combinations(targets, 2):
        yield from (dict(zip(pair, signs, strict=True)) for signs in product(SIGNS, repeat=2))
    for bounds in TOGETHER:
        if len(targets) > 1:
            yield dict.fromkeys(targets, bounds)


def _allows(model: Model, needs: Needs, query: Query) -> bool:
    """Do values that break the query meet the conditions? Then these do not help."""
    if not model:
        return False
    for name, value in model.items():
        origin = query.step.origins.get(name.split("'")[0])
        if origin in needs and not isinstance(value, bool) and not within(value, needs[origin]):
            return False
    return True
