"""Delta rules as loops over the store: which relation's change starts them, and in which state others are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from emberlog.analysis.program import Absent, CoreRule, Match
from emberlog.maintain.nests import Signatures, carried_columns, change_nest
from emberlog.maintain.source import Loops
from emberlog.maintain.store import Relation, Row
from emberlog.rules.changes import DeltaRule, State, delta_rules
from emberlog.syntax.nodes import Term

Relations: TypeAlias = Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class Carrier:
    """The loops of a rule that start from a change of one of its atoms. `states` has that of each look-up."""

    rule: CoreRule
    relation: Relation
    columns: tuple[int, ...]
    negated: bool
    loops: Loops
    sources: tuple[tuple[Relation, tuple[int, ...]], ...]
    states: tuple[State, ...]

    def turns(self) -> tuple[Collection[Row], Collection[Row]]:
        """What the change makes true of the atom, and what it makes false."""
        gained, lost = self.relation.turns(self.columns)
        return (lost, gained) if self.negated else (gained, lost)

    def run(self, rows: Collection[Row], state: State | None = None, ranks: Iterable[Any] = ()) -> Iterator[Any]:
        """What follows from these rows; all other atoms read `state`, if one is given."""
        readers = (
            relation.reader(columns, state or own)
            for (relation, columns), own in zip(self.sources, self.states, strict=True)
        )
        return self.loops.run(rows, *readers, *ranks)


def carriers(
    rule: CoreRule,
    outputs: tuple[tuple[Term, ...], ...],
    relations: Relations,
    signatures: Signatures,
    inside: Collection[str] | None = None,
) -> list[Carrier]:
    """The rule seen from each of its atoms; `inside` as for `change_nest`."""
    return [
        _carrier(delta, outputs, relations, signatures, inside)
        for delta in delta_rules(rule, frozenset(rule.reads()), signatures)
    ]


def _carrier(
    delta: DeltaRule,
    outputs: tuple[tuple[Term, ...], ...],
    relations: Relations,
    signatures: Signatures,
    inside: Collection[str] | None,
) -> Carrier:
    atom = delta.carrier
    loops = Loops(change_nest(delta.rule, delta.at[0], outputs, signatures, inside))
    states = dict(delta.reads)
    found = relations[atom.predicate]
    columns = tuple(range(found.width)) if isinstance(atom, Match) else carried_columns(atom)
    found.arrange(columns)
    return Carrier(
        delta.rule,
        found,
        columns,
        isinstance(atom, Absent),
        loops,
        arranged(loops, relations),
        tuple(states[look.atom,] for look in loops.nest.looks),
    )


def arranged(loops: Loops, relations: Relations) -> tuple[tuple[Relation, tuple[int, ...]], ...]:
    """The relation and columns of each look-up, ready to be read."""
    for look in loops.nest.looks:
        relations[look.relation].arrange(look.columns)
    return tuple((relations[look.relation], look.columns) for look in loops.nest.looks)


class WholeRule:
    """A rule over all rows of what it reads, as they are."""

    def __init__(
        self,
        rule: CoreRule,
        outputs: tuple[tuple[Term, ...], ...],
        relations: Relations,
        signatures: Signatures,
        inside: Collection[str] | None = None,
    ) -> None:
        self.rule = rule
        self._loops = Loops(change_nest(rule, None, outputs, signatures, inside))
        self._relations = relations

    def run(self) -> Iterator[Any]:
        """What the rule derives. A relation of its own component must be empty: no ranks are read."""
        sources = arranged(self._loops, self._relations)
        readers = (relation.reader(columns, "new") for relation, columns in sources)
        return self._loops.run([()], *readers, *({} for _ in self._loops.nest.ranked or ()))
