"""Recursive components with sums and counts: each group keeps its contributions, by their identity.

A contribution is told by its rule and the variables that no aggregate of the component moves; its current value counts
once. Inserts go in rounds: groups whose contributions changed are totalled, and what follows from their new rows
replaces the contributions of the same identity. Such values only grow from below, so a delete takes away everything
that rests on what is lost, directly or not, and then derives again what can be from what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import CoreRule, Signature
from emberlog.maintain.carriers import Carrier, Relations, WholeRule, carriers
from emberlog.maintain.groups import Cells, cells_of, combine
from emberlog.maintain.kept import Tables, group_types, kept_rows, kept_table
from emberlog.maintain.nests import Signatures
from emberlog.maintain.recursion import Improper
from emberlog.maintain.searches import identity_of, identity_types, searches
from emberlog.maintain.store import Journal, Relation, Row
from emberlog.stats import default_rounds
from emberlog.syntax.nodes import Term


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups of one relation: contributions, by rule and identity, and the row that they make."""

    relation: Relation
    signature: Signature
    contributions: dict[Row, dict[tuple[int, Row], Row]]
    rows: dict[Row, Row]


class TotalledFacts:
    """A recursive component with sums and counts; sets in it are groups without a total."""

    kept = "the contributions of each group"

    def __init__(
        self,
        names: Sequence[str],
        rules: Sequence[CoreRule],
        relations: Relations,
        signatures: Signatures,
        journal: Journal,
        most_rounds: int | None = None,
    ) -> None:
        self._tables = {name: GroupTable(relations[name], signatures[name], {}, {}) for name in names}
        self._journal = journal
        self._rules = rules
        self._most_rounds = most_rounds
        self._cells: list[Cells] = [cells_of(rule, signatures[rule.predicate]) for rule in rules]
        outputs = [_outputs(rule, cells, names, signatures) for rule, cells in zip(rules, self._cells, strict=True)]
        numbered = list(zip(rules, outputs, strict=True))
        found = [
            (number, carrier)
            for number, (rule, output) in enumerate(numbered)
            for carrier in carriers(rule, output, relations, signatures, ())
        ]
        self._inputs = [pair for pair in found if pair[1].relation.name not in names]
        self._inside = {name: [pair for pair in found if pair[1].relation.name == name] for name in names}
        self._exits = [
            (number, WholeRule(rule, output, relations, signatures, ()))
            for number, (rule, output) in enumerate(numbered)
            if frozenset(names).isdisjoint(rule.reads())
        ]
        self._searches = searches(rules, outputs, relations, signatures, {})
        self._dirty: dict[tuple[str, Row], None] = {}
        self._touched = 0
        self._kinds = [
            (tuple(type_of(term, rule.types) for term in cells.terms), identity_types(rule, names, signatures))
            for rule, cells in zip(rules, self._cells, strict=True)
        ]

    def start(self) -> int:
        self._dirty, self._touched = {}, 0
        for number, rule in self._exits:
            for derived in rule.run():
                self._offer(rule.rule.predicate, number, derived)
        self._propagate()
        return self._touched

    def update(self) -> int:
        self._dirty, self._touched = {}, 0
        self._retract()
        for number, carrier in self._inputs:
            gained, _ = carrier.turns()
            if gained:
                self._derive(carrier, number, gained)
        self._propagate()
        return self._touched

    # --- saving --------------------------------------------------------------------------------------------------

    def save(self) -> Tables:
        """For each rule its contributions: key, values and identity."""
        return {
            f"contributions{number}": kept_table(
                (*group_types(self._tables[rule.predicate].signature), *values, *identity), self._given_by(number)
            )
            for number, (rule, (values, identity)) in enumerate(zip(self._rules, self._kinds, strict=True))
        }

    def _given_by(self, number: int) -> Iterator[Row]:
        """The contributions of a rule."""
        for key, members in self._tables[self._rules[number].predicate].contributions.items():
            for (rule, identity), values in members.items():
                if rule == number:
                    yield (*key, *values, *identity)

    def load(self, tables: Tables) -> None:
        for table in self._tables.values():
            groups = table.signature.groups
            table.rows.update((tuple(row[i] for i in groups), row) for row in table.relation.rows)
        for number, (rule, (values, _)) in enumerate(zip(self._rules, self._kinds, strict=True)):
            table = self._tables[rule.predicate]
            key = len(table.signature.groups)
            end = key + len(values)
            for row in kept_rows(tables[f"contributions{number}"]):
                table.contributions.setdefault(row[:key], {})[number, row[end:]] = row[key:end]

    # --- deletes -------------------------------------------------------------------------------------------------

    def _retract(self) -> None:
        """Takes away what rests on what the change deletes, and derives again what can be."""
        affected: set[tuple[str, Row]] = set()
        waiting: list[tuple[str, Row]] = []
        for _, carrier in self._inputs:
            _, lost = carrier.turns()
            if lost:
                waiting += self._affect(carrier, lost, affected)
        while waiting:
            name, key = waiting.pop()
            for _, carrier in self._inside[name]:
                waiting += self._affect(carrier, (self._tables[name].rows[key],), affected)
        for name, key in affected:
            table = self._tables[name]
            table.relation.remove(table.rows[key])
            self._journal.drop(table.rows, key)
            self._journal.drop(table.contributions, key)
        for name, key in affected:
            self._touched += 1
            for search in self._searches[name]:
                for derived in search.run(key):
                    self._offer(name, search.number, derived)

    def _affect(self, carrier: Carrier, rows: Collection[Row], affected: set[tuple[str, Row]]) -> list[tuple[str, Row]]:
        """Adds the groups that have contributions of these rows; returns those that were not known as such."""
        name = carrier.rule.predicate
        groups = self._tables[name].rows
        found = {(name, key) for key, *_ in carrier.run(rows, "old") if key in groups} - affected
        affected |= found
        return list(found)

    # --- inserts -------------------------------------------------------------------------------------------------

    def _propagate(self) -> None:
        """GroupTable the groups whose contributions changed, and derives what follows, round by round."""
        rounds = 0
        while self._dirty:
            most = self._most_rounds or default_rounds(sum(len(table.rows) for table in self._tables.values()))
            if rounds > most:
                raise Improper(f"values that still change after {most:,} rounds")
            rounds += 1
            taken, self._dirty = self._dirty, {}
            for name, key in taken:
                self._take_up(name, key)

    def _take_up(self, name: str, key: Row) -> None:
        table = self._tables[name]
        self._touched += 1
        members: Counter[Any] = Counter((number, values) for (number, _), values in table.contributions[key].items())
        old, new = table.rows.get(key), combine(table.signature, self._cells, key, members)
        if any(value != value for value in new):
            raise Improper("a NaN in a recursion")
        if new == old:
            return
        if old is not None:
            table.relation.remove(old)
        table.relation.add(new)
        self._journal.put(table.rows, key, new)
        for number, carrier in self._inside[name]:
            self._derive(carrier, number, (new,))

    def _derive(self, carrier: Carrier, number: int, rows: Collection[Row]) -> None:
        for derived in list(carrier.run(rows, "new")):
            self._offer(carrier.rule.predicate, number, derived)

    def _offer(self, name: str, number: int, derived: tuple[Row, Row, Row, int]) -> None:
        """Takes in a contribution: key and values, its identity, and a rank that nobody asks for."""
        key, values, identity, _ = derived
        table = self._tables[name]
        contributions = table.contributions.get(key)
        if contributions is None:
            contributions = {}
            self._journal.put(table.contributions, key, contributions)
        if contributions.get((number, identity)) != values:
            self._journal.put(contributions, (number, identity), values)
            self._dirty[name, key] = None


def _outputs(
    rule: CoreRule, cells: Cells, names: Sequence[str], signatures: Signatures
) -> tuple[tuple[Term, ...], ...]:
    """Key, contributed values and identity of what a binding derives."""
    key = tuple(rule.arguments[i] for i in signatures[rule.predicate].groups)
    return key, cells.terms, identity_of(rule, names, signatures)
