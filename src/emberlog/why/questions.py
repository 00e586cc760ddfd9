"""Plans that find bodies of rules from what their heads, or their aggregates, are to give.

The rows that are asked about are a relation of their own, which is joined first: one statement finds the bodies of all
of them. Terms and conditions are evaluated by the engine that evaluates programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from emberlog.analysis.program import CoreRule, Filter, Gather, Literal, Match, Signature
from emberlog.analysis.terms import gives, literal_terms, names
from emberlog.plan.bodies import Bodies
from emberlog.plan.logical import Distinct, Extend, Fold, Group, Plan, Top, columns, keep
from emberlog.plan.names import given_part
from emberlog.rules.heads import head_rule, value
from emberlog.syntax.nodes import Aggregate, Comparison, Constant, Term, Variable
from emberlog.types import NUMBER, Column, Type

Values: TypeAlias = tuple[Any, ...]
Fact: TypeAlias = tuple[str, Values]  # a predicate and a row

ASKED = "why/asked"  # the relation of the rows that are asked about
ID = "#id"  # their numbers
PART = "#part"  # what a binding contributes to an aggregate
OWNER = "#owner"  # who contributes it, in `sum<(K,V)>`


@dataclass(frozen=True)
class Question:
    """Bindings of a body's variables, for rows of the relation `ASKED`, whose columns are `asked`. The plan has the
    number of the row that is asked about first, then the columns `names`.

    `atoms` are the positive atoms of the body in its order: the predicate, and where its arguments are among `names`.
    """

    rule: CoreRule
    body: tuple[Literal, ...]
    asked: tuple[Column, ...]
    plan: Plan
    names: tuple[str, ...]
    atoms: tuple[tuple[str, tuple[int, ...]], ...]

    def facts(self, values: Sequence[Any]) -> tuple[Fact, ...]:
        """The rows that a binding reads."""
        return tuple((predicate, tuple(values[place] for place in places)) for predicate, places in self.atoms)

    def binding(self, values: Sequence[Any]) -> dict[str, Any]:
        """The values of the body's variables."""
        return dict(zip(self.names, values, strict=True))

    def largest(self, count: int) -> Plan:
        """The bindings that contribute most, the largest first."""
        rows = Distinct(self.plan)
        ties = tuple(columns(rows))
        return Top(rows, ((PART, True),) if PART in ties else (), ties, count)

    @property
    def number(self) -> Plan:
        """How many bindings there are; of `sum<(K,V)>`, how many K."""
        if OWNER in self.names:
            return Group(self.plan, (), (Fold("n", "countd", OWNER),))
        return Group(Distinct(self.plan), (), (Fold("n", "count", None),))


class Questions:
    """Makes questions about programs with these signatures."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self.signatures = signatures

    def matching(self, predicate: str, spots: Sequence[int], *, given: bool = False) -> Question:
        """The rows of a predicate, or those of them that are given, that have given values at these positions."""
        relation = given_part(predicate) if given else predicate
        signature = replace(self.signatures[predicate], name=relation)
        asked = tuple(signature.columns[i] for i in spots)
        known = tuple(Variable(value(i)) for i in spots)
        whole = tuple(Variable(value(i)) for i in range(len(signature.columns)))
        rule = CoreRule(-1, predicate, (), (), {})
        return self._question(rule, asked, known, (Match(relation, whole),), {relation: signature})

    def bodies(self, rule: CoreRule) -> Question:
        """The bodies of a rule that give these rows; of a minimum or maximum, those that give its value."""
        seen = head_rule(rule, ())
        best = [
            Filter(Comparison("=", Variable(value(spot)), aggregate.arguments[-1]))
            for spot, aggregate in rule.aggregates
        ]
        return self._from_head(rule, (*seen.body, *best), dict(seen.given))

    def contributions(self, rule: CoreRule) -> Question:
        """The bodies of a rule that contribute to the groups of these rows, with what they do in the column `PART`."""
        parts = [rule.arguments[spot] for spot in self.signatures[rule.predicate].aggregates]
        seen = head_rule(self._opened(rule), ())
        return self._from_head(rule, seen.body, dict(seen.given), _parts(parts))

    def prefixes(self, rule: CoreRule) -> list[Question]:
        """The bindings of the first literals of a body, as it is written, for heads of which all but aggregated values
        are given: of none, of one, and so on to all."""
        seen = head_rule(self._opened(rule), (), as_written=True)
        return [self._from_head(rule, seen.body[:count], dict(seen.given)) for count in range(len(seen.body) + 1)]

    def _opened(self, rule: CoreRule) -> CoreRule:
        """The rule with an aggregate in every aggregated column. One without contributes its value there, which is not
        the one that is asked about."""
        spots = self.signatures[rule.predicate].aggregates
        arguments = (
            Aggregate("sum", (argument,)) if spot in spots and not isinstance(argument, Aggregate) else argument
            for spot, argument in enumerate(rule.arguments)
        )
        return replace(rule, arguments=tuple(arguments))

    def _from_head(
        self,
        rule: CoreRule,
        body: tuple[Literal, ...],
        given: Mapping[int, str],
        parts: Iterable[tuple[str, Term]] = (),
    ) -> Question:
        asked = self.signatures[rule.predicate].columns
        known = tuple(Variable(given.get(i, value(i))) for i in range(len(asked)))
        return self._question(rule, asked, known, body, parts=parts)

    def collected(self, rule: CoreRule, gather: Gather, disjunct: int) -> Question:
        """What one of the bodies of a body aggregate contributes, for values of the variables before it and of the
        aggregate itself; of a minimum or maximum the bindings that give its value."""
        known = (*gather.injected, gather.variable)
        asked = tuple(Column(name, rule.types[name]) for name in known)
        body = gather.bodies[disjunct]
        if gather.function in ("min", "max") and gather.target is not None:
            body = (*body, Filter(Comparison("=", Variable(gather.variable), gather.target)))
        target = Constant(1) if gather.target is None else gather.target
        return self._question(rule, asked, tuple(map(Variable, known)), body, parts=[(PART, target)])

    def _question(
        self,
        rule: CoreRule,
        asked: tuple[Column, ...],
        known: tuple[Variable, ...],
        body: tuple[Literal, ...],
        others: Mapping[str, Signature] | None = None,
        parts: Iterable[tuple[str, Term]] = (),
    ) -> Question:
        """The bindings of a body in which the variables `known` have the values of the rows that are asked about."""
        numbered = (Column(ID, NUMBER), *asked)
        here = Signature(ASKED, numbered, {}, external=True, declared=True)
        types: dict[str, Type] = dict(rule.types)
        types |= {variable.name: column.type.wide for variable, column in zip(known, asked, strict=True)}
        whole = replace(rule, body=(Match(ASKED, (Variable(ID), *known)), *body), types=types)
        plan = Bodies({**self.signatures, **(others or {}), ASKED: here}).of_rule(whole)
        terms = [*_variables(whole.body), *_computed(body), *parts]
        for name, term in terms:
            if not isinstance(term, Variable) or term.name != name:
                plan = Extend(plan, name, term)
        found = [name for name, _ in terms if name != ID]
        places = {name: place for place, name in enumerate(found)}
        atoms: list[tuple[str, tuple[int, ...]]] = []
        for index, literal in enumerate(body):
            if isinstance(literal, Match):
                arguments = enumerate(literal.arguments)
                atoms.append((literal.predicate, tuple(places[_column(index, *argument)] for argument in arguments)))
        return Question(rule, body, asked, keep(plan, (ID, *found)), tuple(found), tuple(atoms))


def _parts(arguments: list[Term]) -> list[tuple[str, Term]]:
    """What a body contributes to the aggregates of its head; the first one in the column `PART`."""
    found: list[tuple[str, Term]] = []
    for number, argument in enumerate(arguments):
        name = PART if number == 0 else f"{PART}{number}"
        match argument:
            case Aggregate("count"):
                found.append((name, Constant(1)))
            case Aggregate(_, (key, term)):
                found += [(name, term), (OWNER, key)]
            case Aggregate(_, (term,)) | term:
                found.append((name, term))
    return found


def _variables(body: Iterable[Literal]) -> list[tuple[str, Term]]:
    """The variables of a body, in order; those inside of its aggregates apart."""
    found = dict.fromkeys(
        name for literal in body for name in (*sorted(names(literal_terms(literal))), *gives(literal))
    )
    return [(name, Variable(name)) for name in found]


def _computed(body: Iterable[Literal]) -> list[tuple[str, Term]]:
    """The arguments of atoms that are no variables."""
    return [
        (_column(index, spot, term), term)
        for index, literal in enumerate(body)
        if isinstance(literal, Match)
        for spot, term in enumerate(literal.arguments)
        if not isinstance(term, Variable)
    ]


def _column(index: int, spot: int, term: Term) -> str:
    """The column that has the value of an argument of the atom at `index`."""
    return term.name if isinstance(term, Variable) else f"#{index}.{spot}"
