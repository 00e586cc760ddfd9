"""The rows of maintained relations, the indexes that find them, and what a change does to them.

While a change is applied, a relation knows the rows that it gained and lost so far, net; so it can be read as it is
(`new`) and as it was (`old`). A `Journal` has what else was changed. Both can be taken back as long as the change is
not committed.

A relation may keep its rows in a `Place` of columns. Then it makes tuples of them only when somebody reads them here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from emberlog.rules.changes import State

if TYPE_CHECKING:
    import pyarrow as pa

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


class Unheld(Exception):
    """A value that no place holds: a NaN, which equals nothing."""


class Place(Protocol):
    """Where a relation keeps its rows in columns."""

    def __len__(self) -> int: ...

    @property
    def has_values(self) -> bool:
        """True if rows are facts whose value may change where they stand."""

    def has(self, row: Row) -> bool: ...

    def add(self, row: Row) -> None:
        """Takes in a row. Raises `Unheld` if it cannot."""

    def remove(self, row: Row) -> None: ...

    def rows(self) -> set[Row]:
        """All rows, as tuples."""

    def frozen(self) -> Callable[[], pa.Table]:
        """The rows as they are now; what it returns makes a table of Arrow from them."""

    @property
    def is_changed(self) -> bool:
        """True if there is something to commit or to undo."""

    def differences(self) -> tuple[set[Row], set[Row]]:
        """The rows that came and went, net."""

    def counts(self) -> tuple[int, int]:
        """How many rows came and went, net."""

    def follow(self) -> None:
        """Takes note that loops changed the rows."""

    def commit(self) -> None: ...

    def undo(self) -> None: ...


class Relation:
    """The rows of a relation, arranged by each list of columns that somebody looks them up by.

    With a place, tuples are made when somebody asks for them. They are dropped after the first change that needed them:
    most readers want all rows once, at the start.
    """

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.place: Place | None = None
        self._rows: set[Row] | None = set()
        self._inserted: set[Row] = set()
        self._deleted: set[Row] = set()
        self._net: tuple[set[Row], set[Row]] | None = None  # what the place says of the change, once it was asked
        self._before: set[Row] | None = None  # the rows before they moved to their place, in the same change
        self._readings = 0
        self._arrangements: dict[tuple[int, ...], Arrangement] = {}
        self._journal: Journal | None = None
        self._place_of: Callable[[pa.Table], Place | None] = lambda rows: None

    def __len__(self) -> int:
        return len(self.rows) if self.place is None else len(self.place)

    def has(self, row: Row) -> bool:
        return row in self.rows if self.place is None else self.place.has(row)

    @property
    def rows(self) -> set[Row]:
        if self._rows is None:
            assert self.place is not None
            self._rows = self.place.rows()
            self._inserted, self._deleted = map(set, self._differences())
            self._readings += 1
            self._arrange_all()
        return self._rows

    @property
    def content(self) -> Collection[Row]:
        """The rows, in the form that `replace` takes."""
        return set(self.rows)

    @property
    def given(self) -> set[Row] | pa.Table:
        """The rows for somebody who reads them all: as they are kept."""
        return self.rows if self.place is None else self.place.frozen()()

    @property
    def inserted(self) -> set[Row]:
        return self._differences()[0]

    @property
    def deleted(self) -> set[Row]:
        return self._differences()[1]

    @property
    def changed(self) -> bool:
        return any(self.counts)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows the change inserted and deleted, net."""
        if self.place is None or self._before:
            inserted, deleted = self._differences()
            return len(inserted), len(deleted)
        if self._before is not None:
            return len(self.place), 0
        return self.place.counts() if self.place.is_changed else (0, 0)

    def _differences(self) -> tuple[set[Row], set[Row]]:
        if self.place is None:
            return self._inserted, self._deleted
        if self._net is None:
            if self._before is None:
                self._net = self.place.differences()
            else:
                rows = self.place.rows()
                self._net = rows - self._before, self._before - rows
        return self._net

    def edit(self, gone: Iterable[Row], come: Iterable[Row]) -> None:
        """Lets rows go, then takes rows in. What is not there does not go, what is there does not come."""
        for row in gone:
            if self.has(row):
                self.remove(row)
        for row in come:
            if not self.has(row):
                self.add(row)

    def add(self, row: Row) -> None:
        """Takes in a row that is not there."""
        if self.place is not None:
            self._add_to_place(row)
        if self._rows is not None:
            self._put(row)
            _turn(row, self._deleted, self._inserted)

    def _add_to_place(self, row: Row) -> None:
        assert self.place is not None
        try:
            self.place.add(row)
        except Unheld:
            self.leave()
        self._net = None

    def remove(self, row: Row) -> None:
        """Lets go of a row that is there."""
        if self.place is not None:
            self.place.remove(row)
            self._net = None
        if self._rows is not None:
            self._drop(row)
            _turn(row, self._inserted, self._deleted)

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

    # --- places --------------------------------------------------------------------------------------------------

    def allow_place(self, journal: Journal, place_of: Callable[[pa.Table], Place | None] | None = None) -> None:
        """Says that somebody wants the rows in a place, if they are many. `place_of` makes it of a table that may have
        a row twice, or gives None; the journal has what moves."""
        self._journal, self._place_of = journal, place_of or self._place_of

    def load(self, rows: pa.Table) -> bool:
        """Takes the first rows of the relation into a place, if it may have one; False if it has none."""
        if self._journal is None or self.place is not None or len(self):
            return False
        place = self._place_of(rows)
        if place is not None:
            self.move(place, holds_all=True)
        return place is not None

    def move(self, place: Place, holds_all: bool) -> None:
        """Keeps rows in a place from now on. With `holds_all` it has the rows that are here; else what it has replaces
        them."""
        journal = self._journal
        assert journal is not None
        if self.pending or not holds_all:
            journal.put(vars(self), "_before", (self.rows - self._inserted) | self._deleted)
        journal.put(vars(self), "place", place)
        journal.put(vars(self), "_rows", None)
        journal.put(vars(self), "_inserted", set())
        journal.put(vars(self), "_deleted", set())
        journal.put(vars(self), "_arrangements", {columns: Arrangement(columns) for columns in self._arrangements})
        self._net = None

    def leave(self) -> None:
        """Keeps rows as tuples again."""
        if self.place is not None:
            assert self._journal is not None and self.rows is self._rows  # tuples are made while the place is there
            self._journal.put(vars(self), "place", None)
            self._readings = 0

    def forget_rows(self) -> None:
        """Drops the tuples of rows that are in a place, between changes."""
        if self.place is not None and self._rows is not None:
            self._rows = None
            self._arrange_all()

    def follow(self) -> None:
        """Takes over what loops did to the place."""
        assert self.place is not None
        self.place.follow()
        self._net = None
        if self._rows is not None:
            inserted, deleted = self._differences()
            for row in deleted:
                self._drop(row)
            for row in inserted:
                self._put(row)
            self._inserted, self._deleted = set(inserted), set(deleted)

    def _arrange_all(self) -> None:
        for columns in self._arrangements:
            self._arrangements[columns] = Arrangement(columns, self._rows or ())

    # --- reading -------------------------------------------------------------------------------------------------

    def arrange(self, columns: tuple[int, ...]) -> None:
        """Has rows ready to be found by some columns."""
        if columns not in self._arrangements and len(columns) < self.width:
            self._arrangements[columns] = Arrangement(columns, self._rows or ())

    def reader(self, columns: tuple[int, ...], state: State) -> Reader:
        """What finds rows of the relation by the values of some columns."""
        rows = self.rows  # which has arrangements filled
        if len(columns) == self.width:
            return rows if state == "new" or not self.changed else _OldRows(self)
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

    @property
    def pending(self) -> bool:
        """True if there is something to commit or to undo."""
        moved = self._before is not None or (self.place is not None and self.place.is_changed)
        return moved or bool(self._inserted or self._deleted)

    def commit(self) -> None:
        self._inserted, self._deleted, self._net, self._before = set(), set(), None, None
        if self.place is not None:
            self.place.commit()
            if self._readings == 1:
                self._rows = None
                self._arrange_all()

    def undo(self) -> None:
        if self._rows is not None:
            for row in self._inserted:
                self._drop(row)
            for row in self._deleted:
                self._put(row)
        self._inserted, self._deleted, self._net, self._before = set(), set(), None, None
        if self.place is not None:
            self.place.undo()


class _OldRows:
    """The rows that a relation had before a change."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def __contains__(self, row: Row) -> bool:
        relation = self._relation
        return row in relation.deleted or (row in relation.rows and row not in relation.inserted)


def _turn(row: Row, opposite: set[Row], own: set[Row]) -> None:
    """Notes that a row came or went, net."""
    if row in opposite:
        opposite.remove(row)
    else:
        own.add(row)


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
