"""Recursive rules with one recursive atom, for trees that are found soon although they are not the smallest.

A rule such as `tc(X, Y) :- tc(X, Z), tc(Z, Y).` has as many bodies for a row as there are rows between its ends, and
each of their rows as many again. If all but one of its recursive atoms must be rows that exit rules give, few are left,
and what they rest on is as small as that of the linear rule. Not every row has such a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from emberlog.analysis.program import Component, CoreRule, Filter, Literal, Match
from emberlog.analysis.terms import all_variables, rename
from emberlog.rules.heads import head_rule, value
from emberlog.syntax.nodes import Comparison, Variable


def most_recursive_atoms(part: Component) -> int:
    """The largest number of recursive atoms that a rule of a component has."""
    return max((len(_recursive_atoms(rule, part)) for rule in part.rules), default=0)


def linear_rules(rule: CoreRule, part: Component, kept: int) -> Iterator[CoreRule]:
    """The rule with conditions that make all its recursive atoms but the one of this number rows of exit rules: one for
    each choice of exit rules."""
    atoms = _recursive_atoms(rule, part)
    others = [atom for number, atom in enumerate(atoms) if number != min(kept, len(atoms) - 1)]
    exits = [_exits(part, atom.predicate) for atom in others]
    for chosen in product(*exits):
        pairs = list(zip(others, chosen, strict=True))
        if all(isinstance(argument, Variable) for atom, _ in pairs for argument in atom.arguments):
            whole = rule
            for number, (atom, exit) in enumerate(pairs):
                whole = _with_exit(whole, atom, exit, f"~{number}")
            yield whole


def _recursive_atoms(rule: CoreRule, part: Component) -> list[Match]:
    inside = part.predicates if part.recursive else ()
    return [literal for literal in rule.body if isinstance(literal, Match) and literal.predicate in inside]


def _exits(part: Component, predicate: str) -> list[CoreRule]:
    return [rule for rule in part.rules if rule.predicate == predicate and not _recursive_atoms(rule, part)]


def _with_exit(rule: CoreRule, atom: Match, exit: CoreRule, mark: str) -> CoreRule:
    """The rule with the body of an exit rule that gives the row of an atom. The mark tells its variables apart."""
    seen = head_rule(exit, ())
    given = dict(seen.given)
    best = [Filter(Comparison("=", Variable(value(spot)), part.arguments[-1])) for spot, part in exit.aggregates]
    body: tuple[Literal, ...] = (*seen.body, *best)
    names = {variable.name: variable.name + mark for literal in body for variable in all_variables(literal)}
    for spot, argument in enumerate(atom.arguments):
        assert isinstance(argument, Variable)
        names[given.get(spot, value(spot))] = argument.name
    types = {names[name]: type for name, type in exit.types.items() if name in names}
    return replace(
        rule, body=(*rule.body, *(rename(literal, names) for literal in body)), types={**types, **rule.types}
    )
