"""The rows of maintained relations, the indexes that find them, and what a change does to them.

While a change is applied, a relation knows the rows that it gained and lost so far, net; so it can be read as it is
(`new`) and as it was (`old`). A `Journal` has what else was changed. Both can be taken back as long as the change is
not committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from emberlog.rules.changes import State

Row: TypeAlias = tuple[Any, ...]
# Finds rows by a key: `reader(key, ())`. That of all columns is a container of rows.
Reader: TypeAlias = Any
ABSENT = object()


class Arrangement:
    """Rows found by the values of some columns, but not all."""

    def __init__(self, columns: tuple[int, ...], rows: Iterable[Row] = ()) -> None:
        self.key: Callable[[Row], Any] = itemgetter(*columns) if columns else lambda row: ()
        self.rows: dict[Any, set[Row]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        key = self.key(row)
        found = self.rows.get(key)
        if found is None:
            self.rows[key] = {row}
        else:
            found.add(row)

    def remove(self, row: Row) -> None:
        key = self.key(row)
        found = self.rows[key]
        found.remove(row)
        if not found:
            del self.rows[key]


class Relation:
    """The rows of a relation, arranged by each list of columns that somebody looks them up by."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.rows: set[Row] = set()
        self.inserted: set[Row] = set()
        self.deleted: set[Row] = set()
        self._arrangements: dict[tuple[int, ...], Arrangement] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def content(self) -> Collection[Row]:
        """The rows, in the form that `replace` takes."""
        return set(self.rows)

    @property
    def changed(self) -> bool:
        return any(self.counts)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows the change inserted and deleted, net."""
        return len(self.inserted), len(self.deleted)

    @property
    def pending(self) -> bool:
        """True if there is something to commit or to undo."""
        return self.changed

    def edit(self, gone: Iterable[Row], come: Iterable[Row]) -> None:
        """Lets rows go, then takes rows in. What is not there does not go, what is there does not come."""
        for row in gone:
            if row in self.rows:
                self.remove(row)
        for row in come:
            if row not in self.rows:
                self.add(row)

    def add(self, row: Row) -> None:
        """Takes in a row that is not there."""
        self._put(row)
        if row in self.deleted:
            self.deleted.remove(row)
        else:
            self.inserted.add(row)

    def remove(self, row: Row) -> None:
        """Lets go of a row that is there."""
        self._drop(row)
        if row in self.inserted:
            self.inserted.remove(row)
        else:
            self.deleted.add(row)

    def replace(self, rows: Collection[Row]) -> None:
        """Makes these rows the relation's."""
        wanted = rows if isinstance(rows, set) else set(rows)
        for row in self.rows - wanted:
            self.remove(row)
        for row in wanted - self.rows:
            self.add(row)

    def _put(self, row: Row) -> None:
        self.rows.add(row)
        for arrangement in self._arrangements.values():
            arrangement.add(row)

    def _drop(self, row: Row) -> None:
        self.rows.remove(row)
        for arrangement in self._arrangements.values():
            arrangement.remove(row)

    # --- reading -------------------------------------------------------------------------------------------------

    def arrange(self, columns: tuple[int, ...]) -> None:
        """Has rows ready to be found by some columns."""
        if columns not in self._arrangements and len(columns) < self.width:
            self._arrangements[columns] = Arrangement(columns, self.rows)

    def reader(self, columns: tuple[int, ...], state: State) -> Reader:
        """What finds rows of the relation by the values of some columns."""
        if len(columns) == self.width:
            return self.rows if state == "new" or not self.changed else _OldRows(self)
        find = self._arrangements[columns].rows.get
        if state == "new" or not self.changed:
            return find
        lost, gained = Arrangement(columns, self.deleted).rows, self.inserted

        def find_old(key: Any, default: Sequence[Row]) -> Sequence[Row]:
            return [*(row for row in find(key, ()) if row not in gained), *lost.get(key, default)]

        return find_old

    def turns(self, columns: tuple[int, ...]) -> tuple[set[Row], set[Row]]:
        """The values of some columns that rows have now and had not before, and those that they had."""
        if len(columns) == self.width:
            return self.inserted, self.deleted
        values = _values_at(columns)
        old, new = self.reader(columns, "old"), self.reader(columns, "new")
        plain = len(columns) == 1
        gained = {key for key in map(values, self.inserted) if not old(key[0] if plain else key, ())}
        lost = {key for key in map(values, self.deleted) if not new(key[0] if plain else key, ())}
        return gained, lost

    # --- the end of a change -------------------------------------------------------------------------------------

    def commit(self) -> None:
        self.inserted, self.deleted = set(), set()

    def undo(self) -> None:
        for row in self.inserted:
            self._drop(row)
        for row in self.deleted:
            self._put(row)
        self.commit()


class _OldRows:
    """The rows that a relation had before a change."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def __contains__(self, row: Row) -> bool:
        relation = self._relation
        return row in relation.deleted or (row in relation.rows and row not in relation.inserted)


def _values_at(columns: tuple[int, ...]) -> Callable[[Row], Row]:
    return lambda row: tuple(row[column] for column in columns)


class Journal:
    """Changes of tables that can be taken back."""

    def __init__(self) -> None:
        self._entries: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._entries.append((table, key, table.get(key, ABSENT)))
        table[key] = value

    def drop(self, table: dict[Any, Any], key: Any) -> None:
        self._entries.append((table, key, table.pop(key)))

    def commit(self) -> None:
        self._entries.clear()

    def undo(self) -> None:
        self.undo_to(0)

    @property
    def mark(self) -> int:
        """Where the journal is: `undo_to` goes back there."""
        return len(self._entries)

    def undo_to(self, mark: int) -> None:
        while len(self._entries) > mark:
            table, key, value = self._entries.pop()
            if value is ABSENT:
                del table[key]
            else:
                table[key] = value
