"""Evaluation pivot by pivot: many small fixpoints that never meet, shared out among threads.

Each worker has tables for one pivot at a time; what it finds streams out in pieces. Workers take the next few pivots
when they are done with theirs, so that heavy ones do not hold up the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

import numpy as np

from emberlog.kernels.cache import call
from emberlog.kernels.layout import TableLayout
from emberlog.kernels.memory import Memory
from emberlog.kernels.run import Arrays, Prepared, State
from emberlog.kernels.runtime import mark
from emberlog.kernels.sorting import by_key
from emberlog.kernels.watch import Watch

ROOM = 1 << 21  # rows of a piece of output
WORK = 50_000_000  # derivations between two looks at the clock
SHARES = 8  # a worker takes this part of its share of what is left
LOOSE, LOOSE_ANYWAY = 8, 1 << 16  # ids for each row up to which a flag for each id is cheaper than sorting
FEWEST = 64  # pivots that are not worth a call of their own


@dataclass(frozen=True)
class Piece:
    """Rows of some pivots, `first` up to `last`: how many each has, and their other columns."""

    first: int
    last: int
    rows: np.ndarray[Any, Any]
    columns: dict[int, np.ndarray[Any, Any]]


@dataclass
class Pivoted:
    """The result: pieces of each table. Without `keep` rows were counted only."""

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
            for spot, position in enumerate(self.prepared.pivots[name]):
                found[position] = np.repeat(self.pivots[spot][piece.first : piece.last], piece.rows)
            yield [found[i] for i in range(len(layout.table.kinds))]


class ByPivots:
    """What evaluations by pivots begin with: the pivots that occur, and the exit rows of each."""

    def __init__(
        self,
        prepared: Prepared,
        exits: Mapping[str, Arrays],
        workers: int,
        keep: bool,
        watch: Watch,
        memory: Memory,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        self.prepared = prepared
        self.workers = workers
        self.keep = keep
        self.watch = watch
        self.memory = memory
        self.pivots, self.exits = grouped_exits(prepared, exits, part)
        self.number = len(self.pivots[0]) if self.pivots else 0
        self.lock = Lock()


class PivotRun(ByPivots):
    """One pivot after the other."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.next = 0
        self.stop = Event()
        self.result = Pivoted(
            self.prepared, self.pivots, {n: [] for n in self.prepared.tables}, dict.fromkeys(self.prepared.tables, 0)
        )
        # How many rows each pivot has, table by table: threads write different places.
        self.rows = {f"{t}_rows": np.zeros(self.number, np.int64) for t in self.prepared.tables.values()}

    def run(self) -> Pivoted:
        if self.workers == 1:
            self._work()
            return self._sorted()
        with ThreadPoolExecutor(self.workers, "emberlog-kernel") as pool:
            running = {pool.submit(self._work) for _ in range(self.workers)}
            try:
                while running:
                    done, running = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
                    for one in done:
                        one.result()
                    self.watch.look(sum(self.result.counts.values()))
            except BaseException:
                self.stop.set()
                raise
        return self._sorted()

    def _sorted(self) -> Pivoted:
        for pieces in self.result.pieces.values():
            pieces.sort(key=lambda piece: piece.first)
        return self.result

    def _claim(self) -> tuple[int, int]:
        with self.lock:
            share = max(FEWEST, (self.number - self.next) // (SHARES * self.workers))
            first, self.next = self.next, min(self.number, self.next + share)
            return first, self.next

    def _work(self) -> None:
        state = State(self.prepared)
        most = self.watch.most_rounds
        arguments: dict[str, Any] = {**self.exits, **self.rows, "budget": WORK, "keep": int(self.keep), "most": most}
        for spot, values in enumerate(self.pivots):
            arguments[f"pivot{spot}"] = values
        output = _Output(self.prepared, self.keep)
        while not self.stop.is_set():
            first, last = self._claim()
            if first == last:
                break
            self._share(state, output, first, last, arguments)

    def _share(self, state: State, output: _Output, first: int, last: int, arguments: dict[str, Any]) -> None:
        base = 3 * len(self.prepared.tables)
        state.counts[base + 3] = first
        start = first
        while start < last and not self.stop.is_set():
            state.call(last=last, **arguments, **output.arrays, room=output.room, written=output.written)
            fail, reached = state.figure("fail"), state.figure("pivot")
            with self.lock:
                self.result.derivations += state.figure("work")
                self.result.rounds = max(self.result.rounds, state.figure("rounds"))
            if fail:
                self.watch.failed(fail)
            self._collect(state, output, start, reached)
            start = reached
            if self.workers == 1:
                self.watch.look(sum(self.result.counts.values()))

    def _collect(self, state: State, output: _Output, start: int, reached: int) -> None:
        for i, (name, t) in enumerate(self.prepared.tables.items()):
            amount = int(output.written[i])
            if amount:
                taken = output.taken(t, amount) if self.keep else {}
                columns = {position: self.memory.keep(column) for position, column in taken.items()}
                piece = Piece(start, reached, self.rows[f"{t}_rows"][start:reached], columns)
                with self.lock:
                    self.result.counts[name] += amount
                    if self.keep:
                        self.result.pieces[name].append(piece)
        if not output.written.any() and state.figure("phase"):
            output.enlarge(max(state.count(name) for name in self.prepared.tables))


class _Output:
    """The arrays that one worker writes rows into."""

    def __init__(self, prepared: Prepared, keep: bool) -> None:
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
            self.arrays[name] = np.empty(self.room if self.keep else 1, dtype)

    def taken(self, t: str, amount: int) -> dict[int, np.ndarray[Any, Any]]:
        """The first rows of the output; it is used again, or given away when it is nearly full."""
        found = {}
        for position, name in self.names[t].items():
            array = self.arrays[name]
            if amount * 2 > self.room:
                found[position] = array[:amount]
                self.arrays[name] = np.empty_like(array)
            else:
                found[position] = array[:amount].copy()
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


def grouped_exits(
    prepared: Prepared, exits: Mapping[str, Arrays], part: tuple[int, int] = (0, 1)
) -> tuple[list[np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]:
    """The values of the pivots that occur, and the exit rows of each table sorted by them.

    Of `part`, (rank, size), only the pivots of this rank count: every so many in their order, so that neighbours, which
    are often alike, are shared out.
    """
    pivots = {name: [exits[name][p] for p in prepared.pivots[name]] for name in prepared.tables}
    numbers, values = _numbered(list(pivots.values()))
    if part[1] > 1:
        rank, size = part
        mine = [keys % size == rank for keys in numbers]
        exits = {n: [c[kept] for c in exits[n]] for n, kept in zip(prepared.tables, mine, strict=True)}
        numbers = [keys[kept] // np.uint32(size) for keys, kept in zip(numbers, mine, strict=True)]
        values = [np.ascontiguousarray(column[rank::size]) for column in values]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for (name, t), keys in zip(prepared.tables.items(), numbers, strict=True):
        layout = prepared.layouts[name]
        columns = {f"{t}_e{key}": exits[name][key] for key in layout.keys}
        if layout.table.value is not None:
            columns[f"{t}_ev"] = exits[name][layout.table.value].astype(layout.dtype, copy=False)
        offsets, found = by_key(keys, len(values[0]), list(columns.values()))
        arrays[f"{t}_eo"] = offsets.astype(np.int64)
        arrays |= dict(zip(columns, found, strict=True))
    return values, arrays


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
