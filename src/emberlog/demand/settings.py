"""What the pass knows of a program: who defines what, what reads a recursion, and what must be evaluated whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Literal, Match, Signature
from emberlog.demand.advice import Advice
from emberlog.demand.names import facts_name
from emberlog.syntax.nodes import Variable
from emberlog.types import Value

MOST_ASKED = 0.5
"""A list of so many of the rows that a recursion reads asks for most of it."""


@dataclass(frozen=True)
class Setting:
    """A checked program with what is asked of it. `goals` are the predicates of goals, `wanted` all whose rows somebody
    asks for, `rows` the numbers of rows of sources, where they are known."""

    program: CheckedProgram
    goals: frozenset[str]
    wanted: frozenset[str]
    advice: Advice
    rows: Mapping[str, int]

    @cached_property
    def home(self) -> Mapping[str, Component]:
        """The component of each predicate that has rules."""
        return {rule.predicate: part for part in self.program.components for rule in part.rules}

    @cached_property
    def rules(self) -> Mapping[str, tuple[CoreRule, ...]]:
        """The rules of each predicate. Facts that it has, too, are rows that a rule copies."""
        found: dict[str, list[CoreRule]] = {}
        for part in self.program.components:
            for rule in part.rules:
                found.setdefault(rule.predicate, []).append(rule)
        for name in self.facts:
            found[name].append(_copying(self.signature(name), facts_name(name), found[name][0]))
        return {name: tuple(rules) for name, rules in found.items()}

    @cached_property
    def facts(self) -> Mapping[str, tuple[tuple[Value, ...], ...]]:
        """The facts of the predicates that have rules, too."""
        return {name: facts for name, facts in self.program.facts.items() if facts and name in self.home}

    def signature(self, predicate: str) -> Signature:
        return self.program.signatures[predicate]

    @cached_property
    def reading_recursion(self) -> frozenset[str]:
        """The predicates that are recursive, or read one that is."""
        found: set[str] = set()
        for part in self.program.components:
            if part.recursive or any(not found.isdisjoint(rule.reads()) for rule in part.rules):
                found.update(part.predicates)
        return frozenset(found)

    def is_view(self, predicate: str) -> bool:
        """True if all of a predicate costs no more than to read what its rules read: each has one atom, and no
        recursion is behind it."""
        if predicate in self.reading_recursion or self.signature(predicate).aggregates:
            return False
        return all(sum(isinstance(one, Match) for one in rule.body) <= 1 for rule in self.rules[predicate])

    @cached_property
    def whole(self) -> Mapping[str, str]:
        """The predicates that cannot be restricted, and why."""
        return {name: reason for name in self.home if (reason := self._why_whole(name))}

    def _why_whole(self, name: str) -> str:
        part = self.home[name]
        if self.advice.refuses(name):
            return "the program says so"
        if part.indexed:
            return "it is an iteration: each state is computed from all of the last one"
        if part.evaluation not in ("once", "delta"):
            return "its aggregates are computed anew in every round"
        if self.signature(name).external:
            return "it has rows of a source beside those of its rules"
        if any(rule.limit is not None for rule in self.rules[name]):
            return "a rule keeps the first rows of all"
        if "topk" in self.signature(name).aggregates.values():
            return "topk keeps the best rows of all"
        if name in self._obligated:
            return "a condition on all of its rows is checked"
        return ""

    @cached_property
    def _obligated(self) -> frozenset[str]:
        """The relations whose rows verdicts rely on."""
        return frozenset(one.relation for verdict in self.program.verdicts for one in verdict.obligations)

    def sources(self, predicate: str) -> frozenset[str]:
        """The base relations behind a predicate."""
        found: set[str] = set()
        waiting = [predicate]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [read for rule in self.rules.get(name, ()) for read in rule.reads()]
        return frozenset(name for name in found if name not in self.rules)

    def why_not_by(self, asked: Collection[str], predicate: str) -> str:
        """Why lists of what is asked do not restrict a predicate: they ask for most of it. Nothing if they do."""
        behind = self.sources(predicate)
        read = sum(self.rows.get(name, 0) for name in behind)
        for name in asked:
            if name in behind:
                return f"most of it is asked for: `{name}` is what it is computed from"
            rows = self.rows.get(name)
            if rows is not None and read and rows > MOST_ASKED * read:
                return f"most of it is asked for: `{name}` has {rows:,} rows, what it is computed from {read:,}"
        return ""


def has_aggregates(part: Component) -> bool:
    """True if rules of the component aggregate."""
    return any(rule.aggregates for rule in part.rules)


def _copying(signature: Signature, relation: str, like: CoreRule) -> CoreRule:
    """The rule that copies the rows of a relation."""
    columns = tuple(Variable(f"#{spot}") for spot in range(len(signature.columns)))
    body: tuple[Literal, ...] = (Match(relation, columns),)
    types = {column.name: one.type.wide for column, one in zip(columns, signature.columns, strict=True)}
    return replace(like, arguments=columns, body=body, types=types, order=(), limit=None, start=False)


def signatures_of_facts(setting: Setting) -> Iterator[Signature]:
    """The relations of facts that derived predicates have."""
    for name in setting.facts:
        yield replace(setting.signature(name), name=facts_name(name), aggregates={}, external=False)
