"""Relations outside recursion: rows by the number of their derivations, groups by their contributions."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import CoreRule, Signature
from emberlog.maintain.carriers import Relations, WholeRule, carriers
from emberlog.maintain.groups import Cells, cells_of, combine, is_linear, row_of, weights
from emberlog.maintain.kept import Tables, group_types, kept_rows, kept_table
from emberlog.maintain.nests import Signatures
from emberlog.maintain.store import Journal, Relation, Row
from emberlog.syntax.nodes import Term
from emberlog.types import NUMBER, Type

Outputs = tuple[tuple[Term, ...], ...]


class SignedRules:
    """The rules of a relation, with what each of their bindings gives as an output."""

    def __init__(self, rules: Sequence[tuple[CoreRule, Outputs]], relations: Relations, signatures: Signatures) -> None:
        self._whole = [WholeRule(rule, outputs, relations, signatures) for rule, outputs in rules]
        self._carriers = [
            (number, carrier)
            for number, (rule, outputs) in enumerate(rules)
            for carrier in carriers(rule, outputs, relations, signatures)
        ]

    def start(self) -> Iterator[tuple[int, Any, int]]:
        """What all rows of the inputs give."""
        for number, rule in enumerate(self._whole):
            for output in rule.run():
                yield number, output, 1

    def changes(self) -> Iterator[tuple[int, Any, int]]:
        """What a change of the inputs adds (1) and takes away (-1): number of the rule, output, sign."""
        for number, carrier in self._carriers:
            gained, lost = carrier.turns()
            for rows, sign in ((gained, 1), (lost, -1)):
                if rows:
                    for output in carrier.run(rows):
                        yield number, output, sign


class CountedSet:
    """A relation without aggregates: a row holds while it has a derivation."""

    kept = "the number of derivations of each row"

    def __init__(
        self, name: str, rules: Sequence[CoreRule], relations: Relations, signatures: Signatures, journal: Journal
    ) -> None:
        self._relation: Relation = relations[name]
        self._signature: Signature = signatures[name]
        self._rules = SignedRules([(rule, (rule.arguments,)) for rule in rules], relations, signatures)
        self._counts: dict[Row, int] = {}
        self._journal = journal

    def start(self) -> int:
        return self._apply(self._rules.start())

    def update(self) -> int:
        return self._apply(self._rules.changes())

    def _apply(self, changes: Iterator[tuple[int, Any, int]]) -> int:
        net: dict[Row, int] = defaultdict(int)
        for _, row, sign in changes:
            net[row] += sign
        for row, by in net.items():
            old = self._counts.get(row, 0)
            new = old + by
            if new == old:
                continue
            assert new >= 0, "a derivation was taken away that was not there"
            if new:
                self._journal.put(self._counts, row, new)
            else:
                self._journal.drop(self._counts, row)
            if not old:
                self._relation.add(row)
            elif not new:
                self._relation.remove(row)
        return len(net)

    def save(self) -> Tables:
        """The rows that have more than one derivation."""
        many = ((*row, count) for row, count in self._counts.items() if count > 1)
        return {"counts": kept_table((*group_types(self._signature), NUMBER), many)}

    def load(self, tables: Tables) -> None:
        self._counts = dict.fromkeys(self._relation.rows, 1)
        self._counts.update((row[:-1], row[-1]) for row in kept_rows(tables["counts"]))


class _Grouped:
    """A relation with aggregates. What its rules give is a group and the values of their cells."""

    def __init__(
        self, name: str, rules: Sequence[CoreRule], relations: Relations, signatures: Signatures, journal: Journal
    ) -> None:
        self._relation: Relation = relations[name]
        self._signature: Signature = signatures[name]
        self._cells: list[Cells] = [cells_of(rule, self._signature) for rule in rules]
        outputs = [
            (tuple(rule.arguments[i] for i in self._signature.groups), cells.terms)
            for rule, cells in zip(rules, self._cells, strict=True)
        ]
        self._rules = SignedRules(list(zip(rules, outputs, strict=True)), relations, signatures)
        self._journal = journal
        self._rows: dict[Row, Row] = {}

    def start(self) -> int:
        return self._apply(self._rules.start())

    def update(self) -> int:
        return self._apply(self._rules.changes())

    @abstractmethod
    def _apply(self, changes: Iterator[tuple[int, Any, int]]) -> int: ...

    def _replace(self, group: Row, new: Row | None) -> None:
        """Makes this the row of a group; None if it has none any more."""
        old = self._rows.get(group)
        if new == old:
            return
        if old is not None:
            self._relation.remove(old)
        if new is None:
            self._journal.drop(self._rows, group)
        else:
            self._relation.add(new)
            self._journal.put(self._rows, group, new)

    def _load_rows(self) -> None:
        """The row of each group, from the rows of the relation."""
        groups = self._signature.groups
        self._rows = {tuple(row[i] for i in groups): row for row in self._relation.rows}


class Totals(_Grouped):
    """Counts and sums of whole numbers: of a group the number of its contributions and their totals are enough."""

    kept = "the number of contributions of each group, and their totals"

    def __init__(self, *definition: Any) -> None:
        super().__init__(*definition)
        self._totals: dict[Row, tuple[int, ...]] = {}

    def _apply(self, changes: Iterator[tuple[int, Any, int]]) -> int:
        width = 1 + len(self._signature.aggregates)
        net: dict[Row, list[int]] = defaultdict(lambda: [0] * width)
        touched = 0
        for number, (group, values), sign in changes:
            sums = net[group]
            sums[0] += sign
            for place, weight in enumerate(weights(self._signature, self._cells[number], values), 1):
                sums[place] += sign * weight
            touched += 1
        for group, by in net.items():
            if any(by):
                self._add(group, by)
        return touched

    def _add(self, group: Row, by: list[int]) -> None:
        known = self._totals.get(group)
        number, *totals = (a + b for a, b in zip(known or repeat(0), by, strict=False))
        assert number >= 0, "a contribution was taken away that was not there"
        if number:
            self._journal.put(self._totals, group, (number, *totals))
            self._replace(group, row_of(self._signature, group, totals))
        else:
            self._journal.drop(self._totals, group)
            self._replace(group, None)

    def save(self) -> Tables:
        kinds = (
            NUMBER if function == "count" else self._signature.columns[position].type
            for position, function in self._signature.aggregates.items()
        )
        rows = ((*group, *totals) for group, totals in self._totals.items())
        return {"totals": kept_table((*group_types(self._signature), NUMBER, *kinds), rows)}

    def load(self, tables: Tables) -> None:
        width = len(self._signature.groups)
        self._totals = {row[:width]: row[width:] for row in kept_rows(tables["totals"])}
        self._load_rows()


class Groups(_Grouped):
    """Any aggregates: a group keeps how often each contribution comes, and holds while there are some."""

    kept = "the contributions of each group"

    def __init__(self, *definition: Any) -> None:
        super().__init__(*definition)
        self._contributions: dict[Row, dict[Any, int]] = {}
        self._types: list[tuple[Type, ...]] = [
            tuple(type_of(term, rule.types) for term in cells.terms)
            for rule, cells in zip(definition[1], self._cells, strict=True)
        ]

    def _apply(self, changes: Iterator[tuple[int, Any, int]]) -> int:
        net: dict[Row, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        touched = 0
        for number, (group, values), sign in changes:
            net[group][number, values] += sign
            touched += 1
        for group, contributions in net.items():
            if any(contributions.values()):
                self._regroup(group, contributions)
        return touched

    def _regroup(self, group: Row, contributions: dict[Any, int]) -> None:
        """Takes contributions into a group, and makes its row anew."""
        members = self._contributions.get(group)
        if members is None:
            members = {}
            self._journal.put(self._contributions, group, members)
        for contribution, by in contributions.items():
            count = members.get(contribution, 0) + by
            assert count >= 0, "a contribution was taken away that was not there"
            if count:
                self._journal.put(members, contribution, count)
            elif by:
                self._journal.drop(members, contribution)
        if members:
            self._replace(group, combine(self._signature, self._cells, group, members))
        else:
            self._journal.drop(self._contributions, group)
            self._replace(group, None)

    def save(self) -> Tables:
        rows: list[list[Row]] = [[] for _ in self._types]
        for group, members in self._contributions.items():
            for (number, values), times in members.items():
                rows[number].append((*group, *values, times))
        kinds = group_types(self._signature)
        return {
            f"contributions{number}": kept_table((*kinds, *types, NUMBER), rows[number])
            for number, types in enumerate(self._types)
        }

    def load(self, tables: Tables) -> None:
        width = len(self._signature.groups)
        for number in range(len(self._types)):
            for row in kept_rows(tables[f"contributions{number}"]):
                self._contributions.setdefault(row[:width], {})[number, row[width:-1]] = row[-1]
        self._load_rows()


def grouped(
    name: str, rules: Sequence[CoreRule], relations: Relations, signatures: Signatures, journal: Journal
) -> Totals | Groups:
    """What maintains a relation with aggregates outside recursion."""
    cells = [cells_of(rule, signatures[name]) for rule in rules]
    kind = Totals if is_linear(signatures[name], cells) else Groups
    return kind(name, rules, relations, signatures, journal)
