"""Recursive sets, minima and maxima: each fact keeps one derivation, its support, whose facts came before it.

A fact has a value (of a minimum or maximum; a set has none), a rank and a support: the rule and the identity of the
binding. The rank is above that of every fact of the component in the support, so that no fact rests on itself.

A change is taken up in this order:

1. Facts whose support is lost are looked at, those of low rank first. One that has another derivation of its value from
   facts below its rank stays; else it falls, and the facts whose support it is part of are looked at. What is looked at
   later has a higher rank, so that what is found is not lost again.
2. What fell is derived again, if it can be, from what is left.
3. What the change inserts is derived, and all that follows from it. A better value replaces a worse one. A fact whose
   support comes to have a higher rank is taken up again, for the ranks of those that rest on it.

Values that go down a cycle end in facts that rest on each other. Their ranks would rise for ever; then `Improper` is
raised, and the ordinary engine evaluates the component.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from emberlog.analysis.program import CoreRule, Signature
from emberlog.maintain.carriers import Carrier, Relations, WholeRule, carriers
from emberlog.maintain.kept import Tables, group_types, kept_rows, kept_table
from emberlog.maintain.nests import Signatures
from emberlog.maintain.searches import identity_of, identity_types, ranks_of, searches
from emberlog.maintain.source import Loops
from emberlog.maintain.store import Journal, Relation, Row
from emberlog.syntax.nodes import Term
from emberlog.types import NUMBER, Type

NAN_REASON = "a NaN in a recursion"
CYCLE_REASON = "values that improve along a cycle"


class Improper(Exception):
    """A component has facts for which no order of derivations is kept. The text says why."""


def deep_reason(most: int) -> str:
    """Why derivations of more than so many steps are not followed."""
    return f"a derivation of more than {most} steps"


class Fact(NamedTuple):
    """What is kept of a fact. Loops read the rank by its position."""

    value: Row
    rank: int
    support: tuple[int, Row]


@dataclass(frozen=True, slots=True)
class Table:
    """The facts of one relation of a component, by the columns that are not aggregated."""

    relation: Relation
    signature: Signature
    facts: dict[Row, Fact]
    better: Callable[[Row, Row], bool]
    floats: bool

    def row(self, key: Row, value: Row) -> Row:
        if not value:
            return key
        place = next(iter(self.signature.aggregates))
        return (*key[:place], *value, *key[place:])


def _table(relation: Relation, signature: Signature) -> Table:
    function = next(iter(signature.aggregates.values()), "set")
    better = {"min": lambda new, old: new < old, "max": lambda new, old: new > old, "set": lambda new, old: False}
    floats = any(column.type.kind == "float" for column in signature.columns)
    return Table(relation, signature, {}, better[function], floats)


class SupportedFacts:
    """A recursive component of sets, minima and maxima."""

    kept = "a derivation of each fact, and its rank"

    def __init__(
        self,
        names: Sequence[str],
        rules: Sequence[CoreRule],
        relations: Relations,
        signatures: Signatures,
        journal: Journal,
        most_rank: int | None = None,
    ) -> None:
        self._tables = {name: _table(relations[name], signatures[name]) for name in names}
        self._journal = journal
        self._most_rank = most_rank
        self._top = 0
        outputs = [_outputs(rule, names, signatures) for rule in rules]
        found = [
            (number, carrier)
            for number, rule in enumerate(rules)
            for carrier in carriers(rule, outputs[number], relations, signatures, names)
        ]
        self._inputs = [pair for pair in found if pair[1].relation.name not in names]
        self._inside = {name: [pair for pair in found if pair[1].relation.name == name] for name in names}
        self._exits = [
            (number, WholeRule(rule, outputs[number], relations, signatures, names))
            for number, rule in enumerate(rules)
            if frozenset(names).isdisjoint(rule.reads())
        ]
        self._facts = {name: table.facts for name, table in self._tables.items()}
        self._supports = [(rule.predicate, identity_types(rule, names, signatures)) for rule in rules]
        self._searches = searches(rules, outputs, relations, signatures, self._facts)

    def _ranks(self, loops: Loops) -> tuple[dict[Row, Fact], ...]:
        return ranks_of(loops, self._facts)

    # --- changes -------------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Derives all facts from all rows of the inputs."""
        work = _Work(self)
        for number, rule in self._exits:
            for derived in rule.run():
                work.offer(rule.rule.predicate, number, derived)
        work.propagate()
        return work.touched

    def update(self) -> int:
        """Follows a change of the inputs; returns how many facts were looked at."""
        work = _Work(self)
        work.retract()
        work.insert()
        work.propagate()
        return work.touched

    # --- saving --------------------------------------------------------------------------------------------------

    def save(self) -> Tables:
        """For each rule the facts that it supports: key, value, rank and identity of the support."""
        rows: list[list[Row]] = [[] for _ in self._supports]
        for facts in self._facts.values():
            for key, (value, rank, (number, identity)) in facts.items():
                rows[number].append((*key, *value, rank, *identity))
        return {
            f"supports{number}": kept_table((*self._key_types(name), NUMBER, *identity), rows[number])
            for number, (name, identity) in enumerate(self._supports)
        }

    def load(self, tables: Tables) -> None:
        for number, (name, _) in enumerate(self._supports):
            facts, key = self._facts[name], len(self._tables[name].signature.groups)
            rank = len(self._key_types(name))
            for row in kept_rows(tables[f"supports{number}"]):
                facts[row[:key]] = Fact(row[key:rank], row[rank], (number, row[rank + 1 :]))
        self._top = max((fact.rank for facts in self._facts.values() for fact in facts.values()), default=0)

    def _key_types(self, name: str) -> tuple[Type, ...]:
        """The types of key and value of a fact."""
        signature = self._tables[name].signature
        return (*group_types(signature), *(signature.columns[i].type for i in signature.aggregates))


def _outputs(rule: CoreRule, names: Sequence[str], signatures: Signatures) -> tuple[tuple[Term, ...], ...]:
    """Key, value and identity of what a binding derives."""
    signature = signatures[rule.predicate]
    key = tuple(rule.arguments[i] for i in signature.groups)
    return key, tuple(rule.arguments[i] for i in signature.aggregates), identity_of(rule, names, signatures)


class _Work:
    """What is under way while a component follows one change."""

    def __init__(self, component: SupportedFacts) -> None:
        self._of = component
        self._tables = component._tables
        self.touched = 0
        self._limit = component._top + 1
        self._suspects: list[tuple[int, int, str, Row]] = []
        self._order = count()
        self._waiting = _waiting(component._tables.values())

    # --- deletes -------------------------------------------------------------------------------------------------

    def retract(self) -> None:
        """Lets everything fall that the change leaves without support, then derives again what can be."""
        for number, carrier in self._of._inputs:
            _, lost = carrier.turns()
            if lost:
                self._suspect(carrier, number, lost, "old")
        fallen: list[tuple[str, Row]] = []
        while self._suspects:
            _, _, name, key = heappop(self._suspects)
            fact = self._tables[name].facts.get(key)
            if fact is None:
                continue
            self.touched += 1
            if not self._resupported(name, key, fact):
                self._fall(name, key, fact)
                fallen.append((name, key))
        for name, key in fallen:
            for search in self._of._searches[name]:
                for derived in list(search.run(key)):
                    self.offer(name, search.number, derived)

    def _suspect(self, carrier: Carrier, number: int, rows: Collection[Row], state: Any) -> None:
        """Has the facts looked at whose support is among the derivations that start from these rows."""
        name = carrier.rule.predicate
        facts = self._tables[name].facts
        for key, _, identity, _ in carrier.run(rows, state, self._of._ranks(carrier.loops)):
            fact = facts.get(key)
            if fact is not None and fact.support == (number, identity):
                heappush(self._suspects, (fact.rank, next(self._order), name, key))

    def _resupported(self, name: str, key: Row, fact: Fact) -> bool:
        """Gives a fact another support, of facts below its rank, if there is one."""
        for search in self._of._searches[name]:
            for _, found, identity, rank in search.run(key):
                if rank <= fact.rank and found == fact.value:
                    self._of._journal.put(self._tables[name].facts, key, Fact(found, rank, (search.number, identity)))
                    return True
        return False

    def _fall(self, name: str, key: Row, fact: Fact) -> None:
        table = self._tables[name]
        row = table.row(key, fact.value)
        for number, carrier in self._of._inside[name]:
            self._suspect(carrier, number, (row,), "new")
        table.relation.remove(row)
        self._of._journal.drop(table.facts, key)

    # --- inserts -------------------------------------------------------------------------------------------------

    def insert(self) -> None:
        """Derives what follows at once from what the change makes true."""
        for number, carrier in self._of._inputs:
            gained, _ = carrier.turns()
            if gained:
                self._derive(carrier, number, gained)

    def propagate(self) -> None:
        """Takes up every new fact until nothing follows any more."""
        while (entry := self._waiting.pop()) is not None:
            name, key = entry
            table = self._tables[name]
            fact = table.facts[key]
            self.touched += 1
            row = (table.row(key, fact.value),)
            for number, carrier in self._of._inside[name]:
                self._derive(carrier, number, row)

    def _derive(self, carrier: Carrier, number: int, rows: Collection[Row]) -> None:
        # All at once: what is derived may be found by the same look-up.
        for derived in list(carrier.run(rows, "new", self._of._ranks(carrier.loops))):
            self.offer(carrier.rule.predicate, number, derived)

    def offer(self, name: str, number: int, derived: tuple[Row, Row, Row, int]) -> None:
        """Takes in a derivation of a fact: key, value, identity and rank."""
        key, found, identity, rank = derived
        table = self._tables[name]
        fact = table.facts.get(key)
        if fact is None:
            self._check(table, key, found, rank)
            table.relation.add(table.row(key, found))
        elif table.better(found, fact.value):
            self._check(table, key, found, rank)
            table.relation.remove(table.row(key, fact.value))
            table.relation.add(table.row(key, found))
        elif found != fact.value or rank == fact.rank:
            return
        elif rank < fact.rank:
            self._of._journal.put(table.facts, key, Fact(found, rank, (number, identity)))
            return
        elif fact.support == (number, identity):
            self._check(table, key, found, rank)
        else:
            return
        self._of._journal.put(table.facts, key, Fact(found, rank, (number, identity)))
        self._waiting.push(name, key, found)

    def _check(self, table: Table, key: Row, found: Row, rank: int) -> None:
        """Raises `Improper` for what cannot be ordered: a NaN, or a rank that no chain of facts has."""
        if table.floats and any(item != item for item in (*key, *found)):
            raise Improper(NAN_REASON)
        if rank > self._of._top:
            self._of._top = rank
            most = self._of._most_rank
            if most is not None and rank > most:
                raise Improper(deep_reason(most))
            if rank > self._limit + sum(len(other.facts) for other in self._tables.values()):
                raise Improper(CYCLE_REASON)


class _Queue:
    """Facts that wait to be taken up, in the order of their coming."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, Row]] = deque()
        self._there: set[tuple[str, Row]] = set()

    def push(self, name: str, key: Row, found: Row) -> None:
        entry = name, key
        if entry not in self._there:
            self._there.add(entry)
            self._entries.append(entry)

    def pop(self) -> tuple[str, Row] | None:
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self._there.remove(entry)
        return entry


class _Heap:
    """Facts that wait to be taken up, the least value first: most of them are final then."""

    def __init__(self) -> None:
        self._entries: list[tuple[Row, int, str, Row]] = []
        self._there: dict[tuple[str, Row], int] = {}
        self._order = count()

    def push(self, name: str, key: Row, found: Row) -> None:
        number = self._there[name, key] = next(self._order)
        heappush(self._entries, (found, number, name, key))

    def pop(self) -> tuple[str, Row] | None:
        while self._entries:
            _, number, name, key = heappop(self._entries)
            if self._there.get((name, key)) == number:
                del self._there[name, key]
                return name, key
        return None


def _waiting(tables: Collection[Table]) -> _Queue | _Heap:
    least = all(set(table.signature.aggregates.values()) == {"min"} for table in tables)
    kinds = {table.signature.columns[i].type.kind for table in tables for i in table.signature.aggregates}
    return _Heap() if least and len(kinds) == 1 else _Queue()
