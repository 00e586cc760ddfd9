"""Rounds by threads over shared tables: they run the scans of `code.scans`, and one settles what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np

from emberlog.kernels.cache import call
from emberlog.kernels.memory import Memory
from emberlog.kernels.rounds import Rounds
from emberlog.kernels.run import Arrays, Prepared, State, worst
from emberlog.kernels.runtime import banded, settle_best, settle_set
from emberlog.kernels.watch import Watch

ROOM = 1 << 14  # notes of a worker to begin with
PART = 1 << 12  # facts that are worth a call of their own
PARTS = 4  # pieces of a round for each worker: the last ones level out the others


class Scanner:
    """One worker: the tables are everybody's, the notes its own."""

    def __init__(self, state: State) -> None:
        self.prepared = state.prepared
        self.arrays = dict(state.arrays)
        self.counts = np.zeros_like(state.counts)
        self.derivations = 0
        self.failed = 0
        for name, t in self.prepared.tables.items():
            self.arrays[f"{t}_os"] = np.empty(ROOM, np.uint32)
            self.arrays[f"{t}_ov"] = np.empty(ROOM, self.prepared.layouts[name].dtype)

    def scan(self, ranges: Mapping[str, Any]) -> None:
        source, base = self.prepared.source, 3 * len(self.prepared.tables)
        self.arrays.update(ranges)
        values = [self.counts, *(self.arrays[array.name] for array in source.arguments[1:])]
        self.arrays.update(zip(source.returned, self.prepared.function(*values), strict=True))
        self.failed = self.failed or int(self.counts[base])
        self.derivations += int(self.counts[base + 1])

    def notes(self, t: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
        """Slots, values and number of what was written since the last time."""
        spot = 3 * int(t[1:]) + 2
        amount, self.counts[spot] = int(self.counts[spot]), 0
        return self.arrays[f"{t}_os"], self.arrays[f"{t}_ov"], amount


def run_shared(prepared: Prepared, exits: Mapping[str, Arrays], workers: int, watch: Watch, memory: Memory) -> Rounds:
    """All rounds by so many threads."""
    state, result = State(prepared), Rounds(prepared)
    result.states.append(state)
    for name, t in prepared.tables.items():
        layout = prepared.layouts[name]
        if layout.table.fold != "set":
            state.arrays[f"{t}_done"] = np.full_like(state.arrays[f"{t}_val"], worst(layout))
    for name, columns in exits.items():
        state.put(name, columns)
    crew = [Scanner(state) for _ in range(workers)]
    with ThreadPoolExecutor(workers, "emberlog-scan") as pool:
        while True:
            # In the order of the slots, so that indexes and tables are read in order too.
            fronts = {t: np.sort(_front(state, name)) for name, t in prepared.tables.items()}
            taken = sum(len(front) for front in fronts.values())
            if not taken:
                break
            _scan(crew, pool, fronts)
            for scanner in crew:
                if scanner.failed:
                    watch.failed(scanner.failed)
                _settle(state, scanner)
            watch.rounds([taken], sum(state.count(name) for name in prepared.tables))
            memory.check(prepared.bytes + state.bytes, "tables and indexes")
    watch.rounds([0], sum(state.count(name) for name in prepared.tables))
    result.derivations = sum(scanner.derivations for scanner in crew)
    return result


def _front(state: State, name: str) -> np.ndarray[Any, Any]:
    """The slots whose turn it is: all that wait, or of minima over computed values the smallest."""
    t, layout = state.prepared.tables[name], state.prepared.layouts[name]
    counts = state.counts[3 * int(t[1:]) :][:3]
    if layout.table.fold == "set":
        first, counts[1] = int(counts[1]), counts[0]
        return np.asarray(state.arrays[f"{t}_log"][first : counts[0]])
    waiting, front = state.arrays[f"{t}_r"], state.arrays[f"{t}_q"]
    if state.prepared.width is None or layout.table.fold == "max":
        state.arrays[f"{t}_r"], state.arrays[f"{t}_q"] = front, waiting
        amount, counts[2] = int(counts[2]), 0
        return np.asarray(waiting[:amount])
    amount, counts[2] = call(banded, state.arrays[f"{t}_val"], waiting, int(counts[2]), front, state.prepared.width)
    return np.asarray(front[:amount])


def _scan(crew: list[Scanner], pool: ThreadPoolExecutor, fronts: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """All facts of a round; each worker takes the next piece when it is done with its last."""
    pieces = list(_pieces(fronts, len(crew)))
    following = count()

    def work(scanner: Scanner) -> None:
        while (at := next(following)) < len(pieces) and not scanner.failed:
            scanner.scan(pieces[at])

    if len(pieces) == 1:
        work(crew[0])
    else:
        list(pool.map(work, crew))


def _pieces(fronts: Mapping[str, np.ndarray[Any, Any]], workers: int) -> Iterator[dict[str, Any]]:
    idle: dict[str, Any] = {f"{t}_{name}": 0 for t in fronts for name in ("low", "high")}
    idle |= {f"{t}_front": front for t, front in fronts.items()}
    for t, front in fronts.items():
        step = max(PART, -(-len(front) // (workers * PARTS)))
        for low in range(0, len(front), step):
            yield {**idle, f"{t}_low": low, f"{t}_high": min(low + step, len(front))}


def _settle(state: State, scanner: Scanner) -> None:
    for name, t in state.prepared.tables.items():
        arrays, fold = state.arrays, state.prepared.layouts[name].table.fold
        counts = state.counts[3 * int(t[1:]) :][:3]
        slots, values, amount = scanner.notes(t)
        if fold == "set":
            call(settle_set, arrays[f"{t}_seen"], arrays[f"{t}_log"], counts, slots, amount)
        else:
            table = (arrays[f"{t}_val"], arrays[f"{t}_done"], arrays[f"{t}_seen"], arrays[f"{t}_log"], counts)
            call(settle_best, *table, arrays[f"{t}_r"], slots, values, amount, fold == "min")
