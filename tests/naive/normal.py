"""From the syntax tree to rules with one head and one conjunction.

A disjunction becomes several rules. Parameters become constants, each `_` a variable of its own (`#1`, ...; but under a
negation it stays, where it means "any value"). What needs a step of its own is named by a fresh variable: a body
aggregate (`Gather`), a `range` (`Spread`), and a computed argument of an atom (`Computed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, product
from typing import Any, TypeAlias

from emberlog.syntax import nodes


class InvalidProgram(ValueError):
    """A program without a meaning: not stratified, or with a variable that nothing binds."""


@dataclass(frozen=True)
class Computed:
    """The variable equals the term: an argument of an atom, which is the same as an equation before it."""

    name: str
    term: nodes.Term


@dataclass(frozen=True)
class Spread:
    """The variable takes each value of `range(arguments)`."""

    name: str
    arguments: tuple[nodes.Term, ...]


@dataclass(frozen=True)
class Gather:
    """The variable is the aggregate of `target` over the bindings of the alternatives."""

    name: str
    function: str
    target: nodes.Term | None
    alternatives: tuple[Body, ...]

    @property
    def mentioned(self) -> frozenset[str]:
        """Every variable inside, at any depth."""
        inside = {name for body in self.alternatives for literal in body for name in mentions(literal)}
        return frozenset(inside | (set(variables(self.target)) if self.target is not None else set()))


Literal: TypeAlias = nodes.Atom | nodes.Not | nodes.Comparison | nodes.Test | nodes.Truth | Computed | Spread | Gather
Body: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True)
class Rule:
    """`head <- body`. `id` tells apart equal rules of one predicate: each contributes to an aggregate by itself."""

    id: int
    head: nodes.Atom
    body: Body
    sort: nodes.Sort | None
    limit: nodes.Term | None
    text: str

    @property
    def aggregates(self) -> dict[int, nodes.Aggregate]:
        return {i: term for i, term in enumerate(self.head.arguments) if isinstance(term, nodes.Aggregate)}

    @property
    def reads(self) -> set[str]:
        return {name for name, _ in predicates(self.body)}


@dataclass(frozen=True)
class NormalProgram:
    rules: tuple[Rule, ...]
    untils: Mapping[str, nodes.Until]  # the end of the recursion of a predicate, where its rules give one


def normalize(program: nodes.Program, params: Mapping[str, Any]) -> NormalProgram:
    rewriter = Rewriter(program.bigdatalog, params)
    rules: list[Rule] = []
    untils: dict[str, nodes.Until] = {}
    for item in program.items:
        if not isinstance(item, nodes.Rule):
            continue
        for head in item.heads:
            for rule, until in rewriter.rules(head, item):
                if until is not None:
                    untils[head.predicate] = until
                if rule is not None:
                    rules.append(replace(rule, id=len(rules)))
    return NormalProgram(tuple(rules), untils)


# --- reading ---------------------------------------------------------------------------------------------------------


def variables(term: nodes.Term) -> Iterator[str]:
    """The variables of a term whose body aggregates are named already."""
    match term:
        case nodes.Variable(name):
            yield name
        case nodes.Call(_, arguments) | nodes.Aggregate(_, arguments):
            for argument in arguments:
                yield from variables(argument)
        case _:
            pass


def mentions(literal: Literal) -> Iterator[str]:
    """The variables of a literal, those inside its aggregate too."""
    match literal:
        case nodes.Atom(_, arguments) | nodes.Test(nodes.Call(_, arguments)):
            for argument in arguments:
                yield from variables(argument)
        case Spread(name, arguments):
            yield name
            for argument in arguments:
                yield from variables(argument)
        case nodes.Comparison(_, left, right):
            yield from variables(left)
            yield from variables(right)
        case Computed(name, term):
            yield name
            yield from variables(term)
        case nodes.Not(formula):
            if not isinstance(formula, nodes.Atom | nodes.Comparison | nodes.Test):
                raise ValueError(f"not in normal form: {formula}")
            yield from mentions(formula)
        case Gather(name):
            yield name
            yield from literal.mentioned
        case nodes.Truth():
            pass


def predicates(body: Body, positive: bool = True) -> Iterator[tuple[str, bool]]:
    """The predicates that a body reads, and whether as a plain positive atom (not negated, not aggregated)."""
    for literal in body:
        match literal:
            case nodes.Atom(predicate):
                yield predicate, positive
            case nodes.Not(nodes.Atom(predicate)):
                yield predicate, False
            case Gather():
                for alternative in literal.alternatives:
                    yield from predicates(alternative, positive=False)
            case _:
                pass


def renamed(literal: Literal, names: Mapping[str, str]) -> Literal:
    """The literal with other names for some variables, inside its aggregate too."""

    def term(old: nodes.Term) -> nodes.Term:
        match old:
            case nodes.Variable(name):
                return replace(old, name=names.get(name, name))
            case nodes.Call(_, arguments):
                return replace(old, arguments=tuple(map(term, arguments)))
            case _:
                return old

    match literal:
        case nodes.Atom(_, arguments):
            return replace(literal, arguments=tuple(map(term, arguments)))
        case nodes.Test(nodes.Call(_, arguments) as call):
            return replace(literal, call=replace(call, arguments=tuple(map(term, arguments))))
        case nodes.Comparison(operator, left, right):
            return nodes.Comparison(operator, term(left), term(right))
        case nodes.Not(formula):
            assert isinstance(formula, nodes.Atom | nodes.Comparison | nodes.Test)
            inner = renamed(formula, names)
            assert isinstance(inner, nodes.Atom | nodes.Comparison | nodes.Test)
            return nodes.Not(inner)
        case Computed(name, value):
            return Computed(names.get(name, name), term(value))
        case Spread(name, arguments):
            return Spread(names.get(name, name), tuple(map(term, arguments)))
        case Gather(name, function, target, alternatives):
            bodies = tuple(tuple(renamed(other, names) for other in body) for body in alternatives)
            return Gather(names.get(name, name), function, None if target is None else term(target), bodies)
        case nodes.Truth():
            return literal


# --- rewriting -------------------------------------------------------------------------------------------------------


def pair(term: nodes.Term) -> tuple[nodes.Term, ...]:
    """`min<(D, X)>` is two columns: the value, and the witness that goes with it; `arg_min<(D, X)>` the witness."""
    match term:
        case nodes.Aggregate("min" | "max", (_, witness)):
            return term, nodes.Aggregate("witness", (witness,))
        case nodes.Aggregate("top", (value, witness)):
            return replace(term, arguments=(value,)), witness
        case _:
            return (term,)


class Rewriter:
    def __init__(self, bigdatalog: bool, params: Mapping[str, Any]) -> None:
        self.bigdatalog = bigdatalog
        self.params = params
        self.fresh = (f"#{number}" for number in count(1))

    def rules(self, head: nodes.Atom, item: nodes.Rule) -> Iterator[tuple[Rule | None, nodes.Until | None]]:
        """The rules of one head, and the `until` of each disjunct. A disjunct of nothing but `until` is no rule."""
        lifted: list[Literal] = []
        arguments = tuple(self.head_term(argument, lifted) for written in head.arguments for argument in pair(written))
        written: list[Goals] = [()] if item.body is None else self.alternatives(item.body)
        for goals in written:
            until = next((goal for goal in goals if isinstance(goal, nodes.Until)), None)
            sort = next((goal for goal in goals if isinstance(goal, nodes.Sort)), None)
            limit = next((goal.count for goal in goals if isinstance(goal, nodes.Limit)), None)
            body = tuple(goal for goal in goals if not isinstance(goal, nodes.Until | nodes.Sort | nodes.Limit))
            if until is not None:
                until = replace(until, bound=self.term(until.bound, lifted))
            if until is not None and not body:
                yield None, until
                continue
            limit = None if limit is None else self.term(limit, lifted)
            text = item.span.text or str(head)
            yield Rule(0, replace(head, arguments=arguments), (*body, *lifted), sort, limit, text), until

    def alternatives(self, formula: nodes.Formula) -> list[Goals]:
        """The disjunctive normal form: `and` of literals, one for each way to satisfy the formula."""
        match formula:
            case nodes.Or(parts):
                return [goals for part in parts for goals in self.alternatives(part)]
            case nodes.And(parts):
                choices = product(*(self.alternatives(part) for part in parts))
                return [tuple(goal for goals in choice for goal in goals) for choice in choices]
            case nodes.Not(nodes.Or(parts)):
                return self.alternatives(nodes.And(tuple(nodes.Not(part) for part in parts)))
            case nodes.Not(nodes.And() as inner):
                # No binding satisfies all of it.
                none = nodes.Comparison("=", nodes.Collect("count", None, inner), nodes.Constant(0))
                return self.alternatives(none)
            case nodes.Not(nodes.Not(negated)):
                return self.alternatives(negated)
            case nodes.Not(nodes.Truth(value)):
                return [(nodes.Truth(not value),)]
            case nodes.Sort() | nodes.Limit() | nodes.Until():
                return [(formula,)]
            case _:
                lifted: list[Literal] = []
                goal = self.literal(formula, lifted)
                return [(goal, *lifted)]

    def literal(self, formula: nodes.Formula, lifted: list[Literal]) -> Literal:
        match formula:
            case nodes.Atom(predicate, arguments):
                return nodes.Atom(predicate, tuple(self.matched(argument, lifted) for argument in arguments))
            case nodes.Not(nodes.Atom(predicate, arguments)):
                terms = (a if isinstance(a, nodes.Anonymous) else self.term(a, lifted) for a in arguments)
                return nodes.Not(nodes.Atom(predicate, tuple(terms)))
            case nodes.Not(nodes.Comparison() | nodes.Test() as inner):
                negated = self.literal(inner, lifted)
                assert isinstance(negated, nodes.Comparison | nodes.Test)
                return nodes.Not(negated)
            case nodes.Comparison(operator, left, right):
                return nodes.Comparison(operator, self.term(left, lifted), self.term(right, lifted))
            case nodes.Test(nodes.Call(function, arguments)):
                return nodes.Test(nodes.Call(function, tuple(self.term(a, lifted) for a in arguments)))
            case nodes.Truth():
                return formula
            case _:
                raise ValueError(f"no goal: {formula}")

    def matched(self, term: nodes.Term, lifted: list[Literal]) -> nodes.Term:
        """An argument of an atom: a variable or a constant; a computed one gets a name."""
        simple = self.term(term, lifted)
        if isinstance(simple, nodes.Variable | nodes.Constant):
            return simple
        name = next(self.fresh)
        lifted.append(Computed(name, simple))
        return nodes.Variable(name)

    def head_term(self, term: nodes.Term, lifted: list[Literal]) -> nodes.Term:
        if not isinstance(term, nodes.Aggregate):
            return self.term(term, lifted)
        # `count(_)` counts bindings, whatever stands inside.
        inside = (nodes.Constant(1) if isinstance(a, nodes.Anonymous) else self.term(a, lifted) for a in term.arguments)
        limit = None if term.limit is None else self.term(term.limit, lifted)
        return replace(term, arguments=tuple(inside), limit=limit)

    def term(self, term: nodes.Term, lifted: list[Literal]) -> nodes.Term:
        match term:
            case nodes.Variable(name):
                return nodes.Constant(name) if self.bigdatalog and name[0].islower() else term
            case nodes.Anonymous():
                return nodes.Variable(next(self.fresh))
            case nodes.Constant():
                return term
            case nodes.Parameter(name):
                return nodes.Constant(self.params[name])
            case nodes.Call("neg", (nodes.Constant(value),)) if isinstance(value, int | float) and value != -(2**63):
                return nodes.Constant(-value)
            case nodes.Call(function, arguments):
                inside = tuple(self.term(argument, lifted) for argument in arguments)
                if function != "range":
                    return nodes.Call(function, inside)
                name = next(self.fresh)
                lifted.append(Spread(name, inside))
                return nodes.Variable(name)
            case nodes.Collect():
                return self.gathered(term, lifted)
            case nodes.Aggregate():
                raise ValueError(f"an aggregate that is no argument of a head: {term}")

    def gathered(self, term: nodes.Collect, lifted: list[Literal]) -> nodes.Term:
        inside: list[Literal] = []
        target = None if term.target is None else self.term(term.target, inside)
        bodies = tuple((*self.literals(goals), *inside) for goals in self.alternatives(term.body))
        name = next(self.fresh)
        lifted.append(Gather(name, term.function, target, bodies))
        return nodes.Variable(name)

    def literals(self, goals: Goals) -> Iterator[Literal]:
        for goal in goals:
            if isinstance(goal, nodes.Sort | nodes.Limit | nodes.Until):
                raise ValueError(f"no goal of a body aggregate: {goal}")
            yield goal


Goals: TypeAlias = tuple[Literal | nodes.Sort | nodes.Limit | nodes.Until, ...]
