"""From rules as written to drafts: one head, one conjunction.

Several heads become several rules; a body becomes its disjunctive normal form, each disjunct a rule. Negation is
pushed in: `!(a < b)` becomes `a >= b` (also for floats, where a NaN satisfies neither), and a negated conjunction with
atoms says that it has no solution: `0 = count : { ... }`. Every `_` of a positive atom, every body aggregate and every
`range` gets a variable with a fresh name.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import assert_never

from emberlog.analysis.draft import Draft, End, Fact, Names
from emberlog.analysis.functions import DEFAULT_STEP
from emberlog.analysis.program import Absent, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import is_ground, walk
from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.syntax.nodes import (
    Aggregate,
    And,
    Anonymous,
    Atom,
    Call,
    Collect,
    Comparison,
    Constant,
    Formula,
    Limit,
    Not,
    Or,
    Parameter,
    Program,
    Rule,
    Sort,
    Term,
    Test,
    Truth,
    Until,
    Variable,
)
from emberlog.types import INT64_MIN, without_sign

MOST_DISJUNCTS = 1000
# The opposite of `<` is `>=` only where there is no NaN: types decide, so until then it is `not <`.
_OPPOSITE = {"=": "!=", "!=": "=", "<": "!<", "<=": "!<=", ">": "!>", ">=": "!>="}
_IMPOSSIBLE = Filter(Comparison("=", Constant(True), Constant(False)))


class Normalized:
    """What normalizing a program gives: rules, facts, termination clauses, and what was wrong."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.facts: list[Fact] = []
        self.ends: list[End] = []
        self.found: list[Diagnostic] = []
        self.broken: set[int] = set()


def normalize(program: Program, skip: Container[int] = ()) -> Normalized:
    """The rules of the program in normal form, but for those whose numbers are in `skip`."""
    result = Normalized()
    for number, item in enumerate(program.items):
        if isinstance(item, Rule) and number not in skip:
            if is_ground(item):
                for head in item.heads:
                    _fact(number, head, item, result)
            else:
                _rule(number, item, result)
    return result


def _rule(number: int, rule: Rule, result: Normalized) -> None:
    body, untils = (None, []) if rule.body is None else _split_until(rule.body)
    variables = frozenset(node.name for root in _roots(rule) for node in walk(root) if isinstance(node, Variable))
    found = list(_misplaced(rule, body))
    result.ends.extend(End(head.predicate, until, variables) for head in rule.heads for until in untils)
    if not found and any(_size(inner, True) > MOST_DISJUNCTS for inner in _bodies(rule, body)):
        message = f"this body has more than {MOST_DISJUNCTS} alternatives"
        help = "give parts of the body a predicate of their own"
        found.append(Diagnostic("E0218", message, (Label(rule.span),), help))
    if not found:
        disjuncts = [[]] if body is None else dnf(body)
        for head in rule.heads:
            if not any(disjuncts) and _is_fact(head):
                found.extend(_fact(number, head, rule, result))
            else:
                for disjunct in disjuncts:
                    id = len(result.drafts)
                    result.drafts.append(_Maker(variables).draft(id, number, head, disjunct, rule))
    if found:
        result.broken.add(number)
        result.found.extend(found)


def _roots(rule: Rule) -> Sequence[Atom | Formula]:
    return rule.heads if rule.body is None else (*rule.heads, rule.body)


def _bodies(rule: Rule, body: Formula | None) -> list[Formula]:
    """The rule's body and those of its aggregates."""
    inner = [node.body for root in _roots(rule) for node in walk(root) if isinstance(node, Collect)]
    return inner if body is None else [body, *inner]


def _is_fact(head: Atom) -> bool:
    return all(isinstance(fold(argument), Constant | Variable | Anonymous) for argument in head.arguments)


def _fact(number: int, head: Atom, rule: Rule, result: Normalized) -> list[Diagnostic]:
    found = []
    for argument in head.arguments:
        if isinstance(argument, Variable):
            help = f'a string constant stands in quotes: `"{argument.name}"`'
            labels = (Label(argument.span, "a variable, which a fact cannot have"),)
            found.append(Diagnostic("E0214", f"the constant `{argument.name}` is not quoted", labels, help))
    if not found:
        folded = [fold(argument) for argument in head.arguments]
        constants = tuple(argument for argument in folded if isinstance(argument, Constant))
        if len(constants) == len(folded):  # `_` has its own message
            result.facts.append(Fact(number, head.predicate, constants, rule.span))
    return found


def fold(term: Term) -> Term:
    """A negated number as a constant; any other term, and a number that does not fit then, as it is."""
    match term:
        case Call("neg", (Constant(value) as inner,)) if not isinstance(value, bool | str) and value != INT64_MIN:
            return Constant(without_sign(-value), inner.kind, span=term.span)
        case _:
            return term


# --- termination clauses, sort and limit -----------------------------------------------------------------------------


def _split_until(body: Formula) -> tuple[Formula | None, list[Until]]:
    """The body without its termination clauses, and these."""
    match body:
        case Until():
            return None, [body]
        case And(parts) | Or(parts):
            split = [_split_until(part) for part in parts]
            untils = [until for _, inner in split for until in inner]
            if not untils:
                return body, []
            rest = tuple(part for part, _ in split if part is not None)
            return (replace(body, parts=rest) if rest else None), untils
        case _:
            return body, []


def _misplaced(rule: Rule, body: Formula | None) -> list[Diagnostic]:
    """Sort, limit and until stand in a rule's own conjunction; sort and limit only if it has no alternatives."""
    if body is None:
        return []
    own = body.parts if isinstance(body, And) else (body,)
    found = []
    for part in walk(body):
        if isinstance(part, Sort | Limit | Until) and not any(part is goal for goal in own):
            what = type(part).__name__.lower()
            help = "it stands among the last goals of a rule with one body, outside of negation and aggregates"
            found.append(Diagnostic("E0217", f"`{what}` may not stand here", (Label(part.span),), help))
    goals = [part for part in own if isinstance(part, Sort | Limit)]
    if goals and not found and _size(body, True) > 1:
        help = "give the alternatives a predicate of their own, and sort that"
        found.append(Diagnostic("E0217", "sort and limit need a body without `;`", (Label(goals[0].span),), help))
    found.extend(_unseen_keys(rule, goals))
    return found


def _unseen_keys(rule: Rule, goals: list[Sort | Limit]) -> Iterator[Diagnostic]:
    """A sort orders the rows of the result, so it can only look at what they hold."""
    shown = {node.name for head in rule.heads for node in walk(head) if isinstance(node, Variable)}
    for key in (key for goal in goals if isinstance(goal, Sort) for key, _ in goal.keys):
        if key.name not in shown:
            help = f"add `{key.name}` to the head, or sort by a variable that is there"
            yield Diagnostic("E0217", f"`{key.name}` is not in the rows that are sorted", (Label(key.span),), help)


# --- disjunctive normal form -----------------------------------------------------------------------------------------


def _size(formula: Formula, positive: bool) -> int:
    """How many disjuncts the normal form of the formula, or of its negation, has."""
    match formula:
        case And(parts) if positive:
            return prod(_size(part, True) for part in parts)
        case Or(parts) if positive:
            return sum(_size(part, True) for part in parts)
        case And(parts):
            return 1 if _reads(formula) else sum(_size(part, False) for part in parts)
        case Or(parts):
            return prod(_size(part, False) for part in parts)
        case Not(inner):
            return _size(inner, not positive)
        case _:
            return 1


def dnf(formula: Formula) -> list[list[Formula]]:
    """The disjuncts of a formula, each a list of goals: atoms, negated atoms and conjunctions, conditions."""
    match formula:
        case And(parts):
            choices = product(*(dnf(part) for part in parts))
            return [[goal for goals in choice for goal in goals] for choice in choices]
        case Or(parts):
            return [goals for part in parts for goals in dnf(part)]
        case Not(inner):
            return _negated(inner, formula)
        case Atom() | Comparison() | Test() | Truth() | Sort() | Limit() | Until():
            return [[formula]]
        case _:
            assert_never(formula)


def _negated(formula: Formula, written: Not) -> list[list[Formula]]:
    match formula:
        case Atom():
            return [[written]]
        case Comparison(operator, left, right):
            return [[Comparison(_OPPOSITE[operator], left, right, span=written.span)]]
        case Test(call):
            return [[Comparison("=", call, Constant(False, span=call.span), span=written.span)]]
        case Truth(value):
            return [[Truth(not value, span=written.span)]]
        case Not(inner):
            return dnf(inner)
        case Or(parts):
            return dnf(And(tuple(Not(part, span=part.span) for part in parts), span=written.span))
        case And((part,)):
            return _negated(part, written)
        case And(parts):
            if _reads(formula):
                return [[written]]
            return dnf(Or(tuple(Not(part, span=part.span) for part in parts), span=written.span))
        case Sort() | Limit() | Until():
            return [[written]]
        case _:
            assert_never(formula)


def _reads(formula: Formula) -> bool:
    return any(isinstance(node, Atom) for node in walk(formula))


# --- literals --------------------------------------------------------------------------------------------------------


class _Maker:
    """Makes the literals of one rule. `_added` are the literals that the term at hand needs."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._names = Names(taken)
        self._added: list[Literal] = []

    def draft(self, id: int, number: int, head: Atom, disjunct: list[Formula], rule: Rule) -> Draft:
        body = self._body(disjunct)
        arguments = tuple(self._head_argument(argument) for argument in head.arguments)
        order = tuple((key.name, down) for goal in disjunct if isinstance(goal, Sort) for key, down in goal.keys)
        counts = [goal.count for goal in disjunct if isinstance(goal, Limit)]
        limit = next((count.value for count in counts if isinstance(count, Constant)), None)
        return Draft(
            id,
            number,
            head.predicate,
            arguments,
            (*body, *self._take_added()),
            order,
            None if limit is None else int(limit),
            span=rule.span,
            head_span=head.span,
        )

    def _body(self, goals: list[Formula]) -> tuple[Literal, ...]:
        return tuple(literal for goal in goals for literal in self._goal(goal))

    def _goal(self, goal: Formula) -> list[Literal]:
        literals = self._literals(goal)
        return [*self._take_added(), *literals]

    def _literals(self, goal: Formula) -> list[Literal]:
        match goal:
            case Atom(predicate, arguments):
                return [Match(predicate, tuple(self._matched(argument) for argument in arguments), goal.span)]
            case Not(Atom(predicate, arguments)):
                terms = (a if isinstance(a, Anonymous) else self._term(a) for a in arguments)
                return [Absent(predicate, tuple(terms), goal.span)]
            case Not(And() as inner):
                none = self._gather(Collect("count", None, inner, span=goal.span))
                return [Filter(Comparison("=", none, Constant(0), span=goal.span))]
            case Comparison("=", Variable(name), right) if _is_source(right):
                return [self._source(name, right, goal.span)]
            case Comparison("=", left, Variable(name)) if _is_source(left):
                return [self._source(name, left, goal.span)]
            case Comparison(_, left, right):
                return [Filter(replace(goal, left=self._term(left), right=self._term(right)))]
            case Test(call):
                arguments = tuple(self._term(argument) for argument in call.arguments)
                return [Filter(replace(goal, call=replace(call, arguments=arguments)))]
            case Truth(value):
                return [] if value else [_IMPOSSIBLE]
            case Sort() | Limit():
                return []
            case Not() | And() | Or() | Until():
                raise ValueError(f"not in normal form: {goal}")
            case _:
                assert_never(goal)

    def _take_added(self) -> list[Literal]:
        added, self._added = self._added, []
        return added

    def _head_argument(self, argument: Term) -> Term:
        match argument:
            case Aggregate("count", (Anonymous(span=span),)):
                # A count ranges over bindings: what stands in it has no say.
                return replace(argument, arguments=(Constant(1, span=span),))
            case Aggregate(_, arguments):
                return replace(argument, arguments=tuple(self._term(inner) for inner in arguments))
            case _:
                return self._term(argument)

    def _matched(self, argument: Term) -> Term:
        if isinstance(argument, Anonymous):
            return Variable(self._names.fresh(), span=argument.span)
        return self._term(argument)

    def _term(self, term: Term) -> Term:
        """The term without body aggregates and ranges: these become literals, and variables in their place."""
        match term:
            case Variable() | Constant() | Parameter() | Anonymous():
                return term
            case Call("range" | "pow" as function, arguments):
                if function == "range":
                    name = self._names.fresh()
                    self._added.append(self._source(name, term, term.span))
                    return Variable(name, span=term.span)
                return self._term(Call("^", arguments, span=term.span))
            case Call(_, arguments):
                return fold(replace(term, arguments=tuple(self._term(argument) for argument in arguments)))
            case Collect():
                return self._gather(term)
            case Aggregate():
                return term  # misplaced, which `calls` reports
            case _:
                assert_never(term)

    def _gather(self, collect: Collect) -> Variable:
        name = self._names.fresh()
        self._added.append(self._source(name, collect, collect.span))
        return Variable(name, span=collect.span)

    def _source(self, name: str, term: Term, span: Span) -> Literal:
        """The literal that binds `name` to the values of a range or of a body aggregate."""
        match term:
            case Call(_, arguments):
                start, stop, *step = (self._term(argument) for argument in arguments)
                stride = step[0] if step else Call(DEFAULT_STEP, (start, stop), span=span)
                return Spread(name, start, stop, stride, span)
            case Collect(function, target, body):
                outer, self._added = self._added, []
                aim = None if target is None else self._term(target)
                needed = self._take_added()
                bodies = tuple((*self._body(goals), *needed) for goals in dnf(body))
                self._added = outer
                return Gather(name, function, aim, bodies, (), (), span)
            case _:
                raise ValueError(f"no source of values: {term}")


def _is_source(term: Term) -> bool:
    return isinstance(term, Collect) or (isinstance(term, Call) and term.function == "range")
