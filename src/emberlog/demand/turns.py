"""Closures, turned so that the side that is asked for leads.

**Right-linear rules.** `tc(X,Y) <- arc(X,Z), tc(Z,Y)` asked by X: demand grows along `arc`, and all rows of all values
that are demanded on the way would be derived, although only those of the first are asked for. But Y comes back
unchanged. So it is enough to know where each value that is asked for leads, and what the exit rules say there:

    from(X, X) <- demand(X).
    from(X, Z) <- from(X, W), arc(W, Z).
    tc(X, Y)   <- from(X, W), arc(W, Y).        by the exit rule tc(W, Y) <- arc(W, Y)

The same holds for `tc(X,Y) <- tc(X,Z), arc(Z,Y)` asked by Y, where X comes back, for several columns on either side,
and for predicates that read each other so. A rule with the asked columns unchanged needs no turn: no demand follows.

**Closures by doubling.** `tc(X,Y) <- tc(X,Z), tc(Z,Y)` with exit rules gives the pairs that one or more exit rows lead
along; so does `tc(X,Y) <- tc(X,Z), exit(Z,Y)`, which needs no demand when it is asked by X.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from emberlog.analysis.functions import fallible
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread, atoms
from emberlog.analysis.terms import all_variables, gives, literal_terms, names, needs
from emberlog.demand.names import Bound
from emberlog.syntax.nodes import Term, Variable


@dataclass(frozen=True, slots=True)
class Step:
    """A rule that hands a question on: `head(W, Y) <- rest, atom(Z, Y)`, by the bound columns W and Z."""

    rule: CoreRule
    rest: tuple[Literal, ...]
    atom: Match


@dataclass(frozen=True, slots=True)
class Turn:
    """A component seen from the predicate that is asked for: by which columns each of its predicates is, the rules that
    hand a question on, and those that answer it."""

    bound: Mapping[str, Bound]
    steps: tuple[Step, ...]
    exits: tuple[CoreRule, ...]


def turn_of(
    predicate: str, bound: Bound, rules: Mapping[str, Sequence[CoreRule]], inside: Collection[str]
) -> Turn | None:
    """How questions go through the predicates `inside` of a recursion that all come back unchanged; None where one
    does not."""
    found: dict[str, Bound] = {predicate: bound}
    steps: list[Step] = []
    exits: list[CoreRule] = []
    waiting = [predicate]
    while waiting:
        name = waiting.pop()
        for rule in rules[name]:
            if not any(atom.predicate in inside for atom in atoms(rule.body)):
                exits.append(rule)
                continue
            handed = _handed_on(rule, found[name], inside)
            if handed is None:
                return None
            step, spots = handed
            if step.atom.predicate not in found:
                waiting.append(step.atom.predicate)
            if found.setdefault(step.atom.predicate, spots) != spots:
                return None
            steps.append(step)
    return Turn(found, tuple(steps), tuple(exits)) if steps else None


def _handed_on(rule: CoreRule, bound: Bound, inside: Collection[str]) -> tuple[Step, Bound] | None:
    """The rule as a step, and the columns by which it asks its atom; None if what is free does not come back."""
    read = [atom for atom in atoms(rule.body) if atom.predicate in inside]
    atom = read[0]
    if len(read) > 1 or not isinstance(atom, Match) or not any(literal is atom for literal in rule.body):
        return None
    back = [argument for spot, argument in enumerate(rule.arguments) if spot not in bound]
    spots = tuple(spot for spot, argument in enumerate(atom.arguments) if argument not in back)
    returned = [argument for spot, argument in enumerate(atom.arguments) if spot not in spots]
    asked = [rule.arguments[spot] for spot in bound]
    rest = tuple(literal for literal in rule.body if literal is not atom)
    inner = [atom.arguments[spot] for spot in spots]
    elsewhere = names((*asked, *inner)) | {v.name for literal in rest for v in all_variables(literal)}
    if not back or back != returned or not is_plain(back) or not is_plain(asked) or not spots:
        return None
    if not names(back).isdisjoint(elsewhere) or rule.limit is not None:
        return None
    if not _stands_alone(rest, names(asked), names(inner), rule):
        return None
    return Step(rule, rest, atom), spots


def is_plain(terms: Sequence[Term]) -> bool:
    """True if all are variables, each another one."""
    return all(isinstance(term, Variable) for term in terms) and len(names(terms)) == len(terms)


def _stands_alone(rest: Sequence[Literal], known: set[str], wanted: set[str], rule: CoreRule) -> bool:
    """True if the rest of a body can be evaluated without its recursive atom, and makes no errors: it would make those
    of questions without an answer, too."""
    known = set(known)
    for literal in rest:
        if isinstance(literal, Gather | Spread) or any(fallible(term, rule.types) for term in literal_terms(literal)):
            return False
        if not needs(literal) <= known or not known.isdisjoint(gives(literal)):
            return False
        match literal:
            case Match(_, arguments):
                known |= names(arguments)
            case Bind(variable):
                known.add(variable)
            case Absent() | Filter():
                pass
    return wanted <= known


# --- doubling --------------------------------------------------------------------------------------------------------


def doubling(rules: Sequence[CoreRule], inside: Collection[str]) -> tuple[CoreRule, Match] | None:
    """The rule `p(X,Y) <- p(X,Z), p(Z,Y)` of a closure, and its second atom, if all other rules are exit rules."""
    recursive = [rule for rule in rules if any(atom.predicate in inside for atom in atoms(rule.body))]
    if len(recursive) != 1 or len(inside) != 1 or len(recursive[0].body) != 2:
        return None
    rule = recursive[0]
    one, other = rule.body
    if not isinstance(one, Match) or not isinstance(other, Match) or one.predicate != other.predicate:
        return None
    half, odd = divmod(len(rule.arguments), 2)
    left, right = rule.arguments[:half], rule.arguments[half:]
    for first, second in ((one, other), (other, one)):
        middle = first.arguments[half:]
        if first.arguments[:half] == left and second.arguments == (*middle, *right):
            return None if odd or not is_plain((*left, *middle, *right)) else (rule, second)
    return None


def linear(rule: CoreRule, second: Match, exits: str) -> CoreRule:
    """A doubling rule that reads the exit rows in place of its second atom."""
    body = tuple(replace(second, predicate=exits) if literal is second else literal for literal in rule.body)
    return replace(rule, body=body)
