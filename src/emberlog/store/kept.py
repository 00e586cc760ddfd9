"""What runs made of registered sources, for the next run over the same: rows, dictionaries, encoded columns, indexes.

Columns are known by where they lie in memory. What is kept of a source holds its columns, so that no others can come to
lie in their place before it is dropped: when the source is registered again or its file changes, when `forget` says so,
and when there is no room for all, the one that was not read for the longest time first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import Any, TypeVar

import pyarrow as pa

from emberlog.data.arrow import Place, Values, place_of
from emberlog.data.sources import ArrowSource, DatasetSource, Source, TextSource

Made = TypeVar("Made")

SETTLED = 2_000_000_000  # nanoseconds: a file that was written later may be written again at the same time of its clock


@dataclass
class _Source:
    """What is kept of one source. `key` says which rows of it were read, and which state of its file."""

    key: Hashable
    source: Source  # held: another one cannot have its identity
    rows: pa.Table
    size: int


@dataclass
class _Derived:
    value: Any
    size: int
    sources: frozenset[str]
    columns: tuple[Values, ...] = field(repr=False)  # held


class Kept:
    """What is kept for an engine; its threads share it. `registered` are the sources that may be read again."""

    def __init__(self, registered: Mapping[str, Source]) -> None:
        self.most = 0  # bytes
        self._registered = registered
        self._lock = Lock()
        self._sources: OrderedDict[str, _Source] = OrderedDict()
        self._names: dict[Place, str] = {}
        self._derived: dict[Hashable, _Derived] = {}

    def rows(
        self, name: str, source: Source, how: Hashable, read: Callable[[], pa.Table], state: Hashable = None
    ) -> pa.Table:
        """The rows of a source, read now if they are not kept. `how` is all that matters for what is read of it, and
        `state` changes when its rows do: where it is not given, what is known of the source tells."""
        known = state if state is not None else _state(source)
        if known is None or self._registered.get(name) is not source:
            return read()
        kept = self.found(name, source, how, known)
        if kept is not None:
            return kept
        table = read()
        if state is not None or _state(source) == known:
            with self._lock:
                self._forget(name)
                self._hold(name, _Source((how, known), source, table, _own_bytes(source, table)))
        return table

    def found(self, name: str, source: Source, how: Hashable, state: Hashable) -> pa.Table | None:
        """The rows of a source in a state, if they are kept."""
        with self._lock:
            kept = self._sources.get(name)
            if kept is None or kept.source is not source or kept.key != (how, state):
                return None
            self._sources.move_to_end(name)
            return kept.rows

    def made(
        self, what: Hashable, columns: Sequence[Values], make: Callable[[], Made], size: Callable[[Made], int]
    ) -> Made:
        """Something that is made of columns, kept if all of them are those of sources. `what` tells it from everything
        else that is made of them."""
        places = [place_of(column) for column in columns]
        with self._lock:
            names = [self._names.get(place) for place in places if place is not None]
            known = len(names) == len(columns) and None not in names
            key = (what, *places)
            if known and key in self._derived:
                found: Made = self._derived[key].value
                return found
        value = make()
        if known:
            with self._lock:
                if all(self._names.get(place) == name for place, name in zip(places, names, strict=True) if place):
                    sources = frozenset(name for name in names if name is not None)
                    self._derived[key] = _Derived(value, size(value), sources, tuple(columns))
                    self._make_room()
        return value

    def has(self, column: Values) -> bool:
        """True if a column is one of a source that is kept."""
        place = place_of(column)
        return place is not None and place in self._names

    def forget(self, name: str) -> None:
        """Drops what is kept of a source."""
        with self._lock:
            self._forget(name)

    def _hold(self, name: str, kept: _Source) -> None:
        self._sources[name] = kept
        for column in kept.rows.columns:
            place = place_of(column)
            if place is not None:
                self._names.setdefault(place, name)
        self._make_room()

    def _forget(self, name: str) -> None:
        if self._sources.pop(name, None) is not None:
            self._names = {place: owner for place, owner in self._names.items() if owner != name}
            self._derived = {key: one for key, one in self._derived.items() if name not in one.sources}

    def _make_room(self) -> None:
        while self._sources and self.bytes > self.most:
            self._forget(next(iter(self._sources)))

    @property
    def bytes(self) -> int:
        """What is kept beside the memory of the sources themselves."""
        rows = sum(one.size for one in self._sources.values())
        return rows + sum(one.size for one in self._derived.values())


def _state(source: Source) -> Hashable | None:
    """What changes when the rows of a source do; None for a source of which this is not known."""
    match source:
        case ArrowSource(data) if isinstance(data, pa.Table):
            return id(source)
        case TextSource(path):
            return _of_files([path])
        case DatasetSource(location) if "://" not in location:
            path = Path(location)
            return _of_files(sorted(path.rglob("*")) if path.is_dir() else [path])
        case _:
            return None


def _of_files(paths: Sequence[Path]) -> Hashable | None:
    try:
        found = [(str(path), one.st_ino, one.st_size, one.st_mtime_ns) for path in paths for one in (path.stat(),)]
    except OSError:
        return None
    if any(time_ns() - written < SETTLED for *_, written in found):
        return None
    return tuple(found)


def _own_bytes(source: Source, table: pa.Table) -> int:
    """The bytes of the columns that are not the source's own."""
    data = source.data if isinstance(source, ArrowSource) else None
    own = {place_of(column) for column in data.columns} if isinstance(data, pa.Table) else set()
    return sum(column.nbytes for column in table.columns if place_of(column) not in own - {None})
