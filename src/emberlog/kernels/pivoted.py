"""Evaluation pivot by pivot: many small fixpoints that never meet, shared out among threads.

Each worker has tables for one pivot at a time; what it finds streams out in pieces. Workers take the next share when
they are done with theirs. A share is every so many pivots: heavy ones often stand side by side, and no share is all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from typing import Any, TypeAlias

import numpy as np

from emberlog.components.layout import TableLayout
from emberlog.kernels.cache import call
from emberlog.kernels.crew import Crew
from emberlog.kernels.memory import Memory
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.runtime import mark
from emberlog.kernels.sorting import by_key
from emberlog.kernels.state import State
from emberlog.kernels.watch import Watch

ROOM = 1 << 21  # rows of a piece of output
WORK = 50_000_000  # derivations between two looks at the clock
SHARES = 8  # for each worker, where there are several
LOOSE, LOOSE_ANYWAY = 8, 1 << 16  # ids for each row up to which a flag for each id is cheaper than sorting
FEWEST = 16  # pivots that are not worth a call of their own

# The values of the pivots that occur, and the exit rows of each table sorted by them.
Grouped: TypeAlias = tuple[list[np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]


@dataclass(frozen=True)
class Piece:
    """Rows of some pivots: how many each has, and their other columns."""

    pivots: slice
    rows: np.ndarray[Any, Any]
    columns: dict[int, np.ndarray[Any, Any]]


@dataclass
class Pivoted:
    """The result: pieces of each table that is kept; the rows of others were counted only."""

    prepared: Prepared
    pivots: list[np.ndarray[Any, Any]]
    pieces: dict[str, list[Piece]]
    counts: dict[str, int]
    rounds: int = 0
    derivations: int = 0

    def columns(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The rows of a table, piece by piece."""
        layout = self.prepared.layouts[name]
        for piece in self.pieces[name]:
            found = dict(piece.columns)
            for spot, position in enumerate(self.prepared.way.pivots[name]):
                found[position] = np.repeat(self.pivots[spot][piece.pivots], piece.rows)
            yield [found[i] for i in range(len(layout.table.kinds))]

    shares = columns  # a piece has whole pivots


class ByPivots:
    """What evaluations by pivots begin with: the pivots that occur, and the exit rows of each. `keep` are the tables
    whose rows are kept."""

    def __init__(
        self,
        prepared: Prepared,
        grouped: Grouped,
        workers: int,
        keep: frozenset[str],
        watch: Watch,
        memory: Memory,
    ) -> None:
        self.prepared = prepared
        self.workers = workers
        self.keep = keep
        self.watch = watch
        self.memory = memory
        self.pivots, self.exits = grouped
        self.number = len(self.pivots[0]) if self.pivots else 0
        self.lock = Lock()


class PivotRun(ByPivots):
    """One pivot after the other."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.stop = Event()
        self.result = Pivoted(
            self.prepared, self.pivots, {n: [] for n in self.prepared.tables}, dict.fromkeys(self.prepared.tables, 0)
        )
        # How many rows each pivot has, table by table: threads write different places.
        self.rows = {f"{t}_rows": np.zeros(self.number, np.int64) for t in self.prepared.tables.values()}
        self.arguments: dict[str, Any] = {
            **self.exits,
            **self.rows,
            **{f"pivot{spot}": values for spot, values in enumerate(self.pivots)},
            "last": self.number,
            "budget": WORK,
            **{f"{t}_keep": int(name in self.keep) for name, t in self.prepared.tables.items()},
            "most": self.watch.most_rounds,
        }
        self._free: list[tuple[State, _Output]] = []

    def run(self) -> Pivoted:
        shares = 1 if self.workers == 1 else min(SHARES * self.workers, max(self.number // FEWEST, 1))
        workers = min(self.workers, shares)
        with Crew(workers, self._look) as crew:
            crew.each(range(shares), partial(self._share, step=shares), self.stop)
        return self.result

    def _look(self) -> None:
        self.watch.look(sum(self.result.counts.values()))

    def _share(self, start: int, step: int) -> None:
        """Every `step`th pivot, in tables that the worker uses again for its next share."""
        with self.lock:
            state, output = (
                self._free.pop() if self._free else (State(self.prepared), _Output(self.prepared, self.keep))
            )
        state.counts[3 * len(self.prepared.tables) + 3] = start
        while start < self.number and not self.stop.is_set():
            state.call(step=step, **self.arguments, **output.arrays, room=output.room, written=output.written)
            fail, reached = state.figure("fail"), state.figure("pivot")
            with self.lock:
                self.result.derivations += state.figure("work")
                self.result.rounds = max(self.result.rounds, state.figure("rounds"))
            if fail:
                self.watch.failed(fail)
            self._collect(state, output, slice(start, reached, step))
            start = reached
            if self.workers == 1:
                self._look()
        with self.lock:
            self._free.append((state, output))

    def _collect(self, state: State, output: _Output, done: slice) -> None:
        for i, (name, t) in enumerate(self.prepared.tables.items()):
            amount = int(output.written[i])
            if amount:
                columns = output.taken(t, amount, self.memory) if name in self.keep else {}
                piece = Piece(done, self.rows[f"{t}_rows"][done], columns)
                with self.lock:
                    self.result.counts[name] += amount
                    if name in self.keep:
                        self.result.pieces[name].append(piece)
        if not output.written.any() and state.figure("phase"):
            output.enlarge(max(state.count(name) for name in self.prepared.tables))


class _Output:
    """The arrays that one worker writes rows into."""

    def __init__(self, prepared: Prepared, keep: frozenset[str]) -> None:
        self.prepared = prepared
        self.room = ROOM
        self.keep = keep
        self.written = np.zeros(len(prepared.tables), np.int64)
        self.arrays: dict[str, Any] = {}
        self.names: dict[str, dict[int, str]] = {}
        for name, t in prepared.tables.items():
            self.names[t] = _written(t, prepared.layouts[name])
            self._allocate(t, prepared.layouts[name])

    def _allocate(self, t: str, layout: TableLayout) -> None:
        for position, name in self.names[t].items():
            if position == layout.table.value:
                dtype = layout.dtype
            else:
                dtype = "uint32" if layout.domains[layout.keys.index(position)] is not None else "int64"
            self.arrays[name] = np.empty(self.room if layout.table.name in self.keep else 1, dtype)

    def taken(self, t: str, amount: int, memory: Memory) -> dict[int, np.ndarray[Any, Any]]:
        """Keeps the first rows of the output, which is used again, or given away when they are many: the rest of it was
        never touched, and takes no memory."""
        found = {}
        for position, name in self.names[t].items():
            array = self.arrays[name]
            if amount * 8 > self.room:
                found[position] = memory.keep(array[:amount])
                self.arrays[name] = np.empty_like(array)
            else:
                found[position] = memory.keep_copy(array[:amount])
        return found

    def enlarge(self, rows: int) -> None:
        """Room for a pivot that has more rows than a piece."""
        self.room = max(self.room, rows)
        for name, t in self.prepared.tables.items():
            self._allocate(t, self.prepared.layouts[name])


def _written(t: str, layout: TableLayout) -> dict[int, str]:
    found = {key: f"{t}_w{key}" for key in layout.keys}
    if layout.table.value is not None:
        found[layout.table.value] = f"{t}_wv"
    return found


def own_exits(prepared: Prepared, exits: Mapping[str, Arrays], part: tuple[int, int]) -> Mapping[str, Arrays]:
    """The exit rows of the pivots of this `part`, (rank, size): every so many in their order, so that neighbours, which
    are often alike, are shared out."""
    rank, size = part
    if size == 1:
        return exits
    numbers, _ = _numbered(_pivot_columns(prepared, exits))
    mine = [keys % size == rank for keys in numbers]
    return {name: [c[kept] for c in exits[name]] for name, kept in zip(prepared.recursive, mine, strict=True)}


def grouped_exits(prepared: Prepared, exits: Mapping[str, Arrays]) -> Grouped:
    """The pivots and their exit rows."""
    numbers, values = _numbered(_pivot_columns(prepared, exits))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for (name, t), keys in zip(prepared.recursive.items(), numbers, strict=True):
        layout = prepared.layouts[name]
        columns = {f"{t}_e{key}": exits[name][key] for key in layout.keys}
        if layout.table.value is not None:
            columns[f"{t}_ev"] = exits[name][layout.table.value].astype(layout.dtype, copy=False)
        offsets, found = by_key(keys, len(values[0]), list(columns.values()))
        arrays[f"{t}_eo"] = offsets.astype(np.int64)
        arrays |= dict(zip(columns, found, strict=True))
    return values, arrays


def _pivot_columns(prepared: Prepared, exits: Mapping[str, Arrays]) -> list[list[np.ndarray[Any, Any]]]:
    return [[exits[name][spot] for spot in prepared.way.pivots[name]] for name in prepared.recursive]


def _numbered(
    tables: Sequence[Sequence[np.ndarray[Any, Any]]],
) -> tuple[list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """The number of each row's pivot, and the values of each pivot."""
    together = [np.concatenate(columns) for columns in zip(*tables, strict=True)]
    top = int(together[0].max(initial=0)) + 1
    if len(together) == 1 and top <= max(LOOSE * len(together[0]), LOOSE_ANYWAY):
        there = np.zeros(top, np.uint8)
        call(mark, together[0], there)
        values = [np.flatnonzero(there)]
        inverse = (np.cumsum(there, dtype=np.uint32) - np.uint32(1))[together[0]]
    elif len(together) == 1:
        found, inverse = np.unique(together[0], return_inverse=True)
        values = [found]
    else:
        rows, inverse = np.unique(np.stack(together, axis=1), axis=0, return_inverse=True)
        values = [np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])]
    ends = np.cumsum([len(columns[0]) for columns in tables])[:-1]
    return np.split(inverse.astype(np.uint32).ravel(), ends), [v.astype(np.uint32) for v in values]
