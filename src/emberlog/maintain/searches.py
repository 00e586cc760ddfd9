"""Rules of a component seen from their heads: what derives a given fact, and what tells derivations apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from emberlog.analysis.program import CoreRule
from emberlog.maintain.carriers import Relations, arranged
from emberlog.maintain.nests import Signatures, head_nest
from emberlog.maintain.source import Loops
from emberlog.maintain.store import Relation, Row
from emberlog.rules.changes import bound_variables, moved_variables
from emberlog.rules.heads import head_rule, value
from emberlog.syntax.nodes import Aggregate, Term, Variable
from emberlog.types import Type


@dataclass(frozen=True, slots=True)
class Search:
    """A rule seen from its head, by its number: it finds the derivations of a fact in the rows as they are."""

    number: int
    loops: Loops
    sources: tuple[tuple[Relation, tuple[int, ...]], ...]
    ranks: tuple[dict[Row, Any], ...]

    def run(self, key: Row) -> Iterator[tuple[Row, Row, Row, int]]:
        """Key, value, identity and rank of each derivation."""
        readers = (relation.reader(columns, "new") for relation, columns in self.sources)
        return self.loops.run((key,), *readers, *self.ranks)


def searches(
    rules: Sequence[CoreRule],
    outputs: Sequence[tuple[tuple[Term, ...], ...]],
    relations: Relations,
    signatures: Signatures,
    facts: Mapping[str, dict[Row, Any]],
) -> dict[str, list[Search]]:
    """For each predicate the searches of its rules. `facts` has those of the component whose ranks are asked for."""
    found: dict[str, list[Search]] = {rule.predicate: [] for rule in rules}
    for number, (rule, output) in enumerate(zip(rules, outputs, strict=True)):
        signature = signatures[rule.predicate]
        arguments = tuple(  # the value is looked for, also where the head has no aggregate
            Aggregate("min", (argument,)) if i in signature.aggregates else argument
            for i, argument in enumerate(rule.arguments)
        )
        seen = head_rule(replace(rule, arguments=arguments), facts)
        given = dict(seen.given)
        inputs = tuple(given.get(position, value(position)) for position in signature.groups)
        loops = Loops(head_nest(rule, inputs, seen.body, output, signatures, facts))
        found[rule.predicate].append(Search(number, loops, arranged(loops, relations), ranks_of(loops, facts)))
    return found


def ranks_of(loops: Loops, facts: Mapping[str, dict[Row, Any]]) -> tuple[dict[Row, Any], ...]:
    """Where loops find the ranks of the facts that they read."""
    return tuple(facts[fact.relation] for fact in loops.nest.ranked or ())


def identity_of(rule: CoreRule, names: Collection[str], signatures: Signatures) -> tuple[Term, ...]:
    """The variables that tell a binding of a rule of the component `names` from others, whatever values aggregates of
    the component have."""
    return tuple(Variable(name) for name in _identity(rule, names, signatures))


def identity_types(rule: CoreRule, names: Collection[str], signatures: Signatures) -> tuple[Type, ...]:
    """The types of the values of `identity_of`."""
    return tuple(rule.types[name] for name in _identity(rule, names, signatures))


def _identity(rule: CoreRule, names: Collection[str], signatures: Signatures) -> list[str]:
    moved = moved_variables(rule, names, signatures)
    return [name for name in bound_variables(rule.body) if name not in moved]
