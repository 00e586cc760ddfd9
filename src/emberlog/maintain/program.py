"""A checked program as tasks: one for each relation outside recursion and one for each recursive component.

Rows that a predicate with rules or facts has from outside are a relation of their own, which a rule copies: so a task
reads relations and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Match, Signature
from emberlog.analysis.pushdown import push_aggregates
from emberlog.asked import wanted_relations
from emberlog.plan.names import given_part
from emberlog.syntax.nodes import Program, Variable
from emberlog.types import Value

COPY = -1  # the number of rules that copy; no rule of a program has it


@dataclass(frozen=True)
class Definition:
    """A component, with the rules that copy what its predicates have from outside. `reads` are the relations of others
    that its rules read."""

    component: Component
    rules: tuple[CoreRule, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.component.predicates

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(name for rule in self.rules for name in rule.reads()) - frozenset(self.names)


@dataclass(frozen=True)
class ViewProgram:
    """What a view maintains. `inputs` has the relation that takes the changes of a predicate, `facts` the rows of
    relations that never change. `definitions` come in an order in which each reads only earlier ones."""

    checked: CheckedProgram
    wanted: frozenset[str]
    signatures: Mapping[str, Signature]
    inputs: Mapping[str, str]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]
    definitions: tuple[Definition, ...]


def facts_part(predicate: str) -> str:
    """The relation of the facts that stand in the program for a predicate."""
    return f"{predicate}/facts"


def view_of(program: Program, checked: CheckedProgram, added: Collection[str] = ()) -> ViewProgram:
    """What a view of a program maintains: what a run of it would evaluate, and predicates that rules were added for.
    All columns of base relations are read, as a change has whole rows."""
    derived = {rule.predicate for component in checked.components for rule in component.rules}
    wanted = wanted_relations(program, checked) | (derived & set(added))
    return view_program(push_aggregates(checked, wanted), wanted)


def view_program(checked: CheckedProgram, wanted: Collection[str]) -> ViewProgram:
    """The tasks of a program, as far as the wanted relations need them."""
    with_rules = {name for part in checked.components if part.rules for name in part.predicates}
    facts = {facts_part(name): found for name, found in checked.facts.items() if found}
    defined = with_rules | {name for name in checked.signatures if facts_part(name) in facts}
    inputs = {
        name: given_part(name) if name in defined else name
        for name, signature in checked.signatures.items()
        if name not in with_rules or signature.external
    }
    parts = {
        name: [*([inputs[name]] if name in inputs else []), *([facts_part(name)] if facts_part(name) in facts else [])]
        for name in defined
    }
    signatures = {
        **checked.signatures,
        **{
            part: replace(checked.signatures[name], name=part, aggregates={})
            for name, found in parts.items()
            for part in found
        },
    }
    copies = {name: tuple(_copy(part, checked.signatures[name]) for part in found) for name, found in parts.items()}
    needed = _needed(checked, wanted)
    definitions = (
        *(Definition(_base(name), copies[name]) for name in sorted((defined - with_rules) & needed)),
        *(
            Definition(part, (*part.rules, *(copy for name in part.predicates for copy in copies[name])))
            for part in checked.components
            if part.rules and needed & set(part.predicates)
        ),
    )
    return ViewProgram(checked, frozenset(wanted), signatures, inputs, facts, definitions)


def _needed(checked: CheckedProgram, wanted: Collection[str]) -> set[str]:
    """The wanted relations, and those that they are computed from."""
    found = set(wanted)
    for component in reversed(checked.components):
        if found & set(component.predicates):
            found |= {name for rule in component.rules for name in rule.reads()} | set(component.predicates)
    return found


def _base(name: str) -> Component:
    return Component((name,), (), False, "", "once")


def _copy(part: str, signature: Signature) -> CoreRule:
    """`p(A, B) <- part(A, B).`"""
    variables = tuple(Variable(f"c{i}") for i in range(len(signature.columns)))
    types = {f"c{i}": column.type for i, column in enumerate(signature.columns)}
    return CoreRule(COPY, signature.name, variables, (Match(part, variables),), types)


def edges(definitions: Iterable[Definition]) -> Iterator[tuple[int, int]]:
    """From each task to those that read what it makes, by their numbers."""
    made: dict[str, int] = {}
    for number, definition in enumerate(definitions):
        yield from ((made[name], number) for name in definition.reads if name in made)
        made |= dict.fromkeys(definition.names, number)
