"""Equations that define a variable although an atom would bind it, where the value may be missing.

In `b(N, Y), a(X), N = 10 / X` the written order lets `b` bind `N`, and the equation is a condition. Written the other
way round `N` is computed, and for `X = 0` it has no value, so that `b(N, Y)` says nothing. A rule must mean the same
however it is spelled: an equation whose value may be missing defines its variable if literals without that variable
bind all that it needs, and stands before the atoms that mention it; an equation that always has a value is a condition
then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.functions import may_lack, type_of
from emberlog.analysis.program import Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import all_variables, gives, literal_terms, names, needs
from emberlog.syntax.nodes import Comparison, Term, Variable
from emberlog.types import Type

Types = Mapping[str, Type]
Body = tuple[Literal, ...]


def define_first(rule: CoreRule) -> CoreRule:
    """The rule in which every equation that may have no value and can define a variable does."""
    body = _defined(rule.body, frozenset(), rule.types)
    return rule if body == rule.body else replace(rule, body=body)


def _defined(body: Body, bound: frozenset[str], types: Types) -> Body:
    body = tuple(_inside(literal, types) for literal in body)
    lacking = _lacking(body, types)
    if not lacking:
        return body
    changed = list(body)
    for index, literal in enumerate(body):
        for variable, term in _equations(literal):
            defines = may_lack(term, types, lacking) and not _is_settled(changed, variable, bound, types, lacking)
            if defines and names((term,)) <= _reached(changed, variable, bound):
                assert isinstance(literal, Filter)
                changed[:] = [_compared(other, variable) for other in changed]
                changed[index] = Bind(variable, term, literal.condition.span)
                break
    return body if changed == list(body) else tuple(_ordered(changed, bound))


def _is_settled(
    body: Iterable[Literal], variable: str, bound: Collection[str], types: Types, lacking: Collection[str]
) -> bool:
    """True if the variable has a value from outside, from a range or aggregate, or one that may be missing."""
    for literal in body:
        match literal:
            case Bind(name, term) if name == variable:
                return may_lack(term, types, lacking)
            case _ if variable in gives(literal):
                return True
    return variable in bound


def _compared(literal: Literal, variable: str) -> Literal:
    """The literal, as a condition if it gives the variable its value."""
    match literal:
        case Bind(name, term) if name == variable:
            return Filter(Comparison("=", Variable(variable, span=literal.span), term, span=literal.span))
        case _:
            return literal


def _inside(literal: Literal, types: Types) -> Literal:
    if not isinstance(literal, Gather):
        return literal
    bodies = tuple(_defined(body, frozenset(literal.injected), types) for body in literal.bodies)
    return replace(literal, bodies=bodies)


def _lacking(body: Body, types: Types) -> set[str]:
    """The variables whose value may be missing, were all equations definitions."""
    found: set[str] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for literal in body:
            found.update(_may_be_missing(literal, types, found))
    return found


def _may_be_missing(literal: Literal, types: Types, lacking: Collection[str]) -> Iterator[str]:
    match literal:
        case Bind(variable, term):
            if may_lack(term, types, lacking):
                yield variable
        case Spread(variable, start, stop, step):
            if any(may_lack(term, types, lacking) for term in (start, stop, step)):
                yield variable
        case Gather(variable, witnesses=witnesses):
            if _gather_may_lack(literal, types, lacking):
                yield from (variable, *witnesses)
        case _:
            for variable, term in _equations(literal):
                if may_lack(term, types, lacking):
                    yield variable


def _gather_may_lack(gather: Gather, types: Types, lacking: Collection[str]) -> bool:
    if not set(lacking).isdisjoint(gather.injected):
        return True
    if gather.target is not None and may_lack(gather.target, types, lacking):
        return True
    overflows = gather.function == "sum" and gather.target is not None and type_of(gather.target, types).kind != "float"
    terms = (term for body in gather.bodies for literal in body for term in literal_terms(literal))
    return (
        overflows
        or any(may_lack(term, types, lacking) for term in terms)
        or any(
            _gather_may_lack(literal, types, lacking)
            for body in gather.bodies
            for literal in body
            if isinstance(literal, Gather)
        )
    )


def _equations(literal: Literal) -> Iterator[tuple[str, Term]]:
    """The variables that a condition equates with something else, and what that is."""
    match literal:
        case Filter(Comparison("=", left, right)):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Variable) and side.name not in names((other,)):
                    yield side.name, other
        case _:
            return


def _reached(body: Iterable[Literal], without: str, bound: Iterable[str]) -> set[str]:
    """The variables that get values from the literals that do not mention the variable `without`."""
    others = [literal for literal in body if all(variable.name != without for variable in all_variables(literal))]
    found, before = set(bound), -1
    while len(found) > before:
        before = len(found)
        for literal in others:
            match literal:
                case Match(_, arguments):
                    found |= names(arguments)
                case Bind(variable, term):
                    found |= {variable} if names((term,)) <= found else set()
                case Spread(variable):
                    found.add(variable)
                case Gather(variable, witnesses=witnesses):
                    found |= {variable, *witnesses}
                case _:
                    found |= {name for name, term in _equations(literal) if names((term,)) <= found}
    return found


def _ordered(body: Iterable[Literal], bound: Iterable[str]) -> Iterator[Literal]:
    """The literals in their order, but each after what gives values to its variables."""
    waiting, known = list(body), set(bound)
    while waiting:
        given = {name for literal in waiting for name in gives(literal)} - known
        ready = [literal for literal in waiting if needs(literal) <= known]
        first = next((one for one in ready if gives(one) or given.isdisjoint(names(literal_terms(one)))), ready[0])
        waiting.remove(first)
        known |= names(literal_terms(first)) | set(gives(first))
        yield first
