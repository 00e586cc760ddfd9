"""A worker's part of a component evaluated by compiled loops: its tables hold its facts, its lists those of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emberlog.choose.ways import Inputs, part_way
from emberlog.components.program import End, Kind
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns
from emberlog.kernels.code.source import KNOWN, QUEUED, TAKEN
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.encode import Encoder, Numbers
from emberlog.kernels.halting import Halt
from emberlog.kernels.parts.iterations import begin_sums
from emberlog.kernels.parts.outboxes import Outboxes, OwnerNumber, as_it_is
from emberlog.kernels.parts.parcels import Rows
from emberlog.kernels.parts.part import is_endless
from emberlog.kernels.prepare import Prepared, prepare
from emberlog.kernels.rounds import EVER, waiting
from emberlog.kernels.state import State
from emberlog.kernels.watch import Unsuited, Watch
from emberlog.workers.part import Parcel, Work

FIRST_ROOM = 1 << 10  # facts for others before their list grows


class CompiledPart:
    """The part of the worker `rank` of `size`; an iteration goes on until its share of the `end` is reached."""

    def __init__(
        self,
        plan: WorkerPlan,
        encoder: Encoder,
        statics: Mapping[str, Columns],
        rank: int,
        size: int,
        watch: Watch,
        end: End | None = None,
        owner_number: OwnerNumber = as_it_is,
        origins: Mapping[Kind, int] | None = None,
    ) -> None:
        """Rows are placed by the numbers of `owner_number`: ids that count from `origins`, if there are some."""
        self.plan = plan
        self.program = plan.placed
        self.encoder = encoder
        self.statics = statics
        self.rank = rank
        self.size = size
        self.watch = watch
        self.end = end
        self.iterations = 0
        self.derivations = 0
        self.taken = 0  # facts, each time that they were taken up
        self.outboxes = Outboxes(plan.placed, plan.homes, rank, size, owner_number)
        self._halt = Halt(watch.halted)
        self._state = State(_prepared(plan, encoder, statics, self._halt))
        arrays = self._state.arrays
        arrays["posted"] = np.zeros(len(self._tables), np.int64)
        arrays |= {"own": np.uint64(rank), "parts": np.uint64(size), "rank": np.uint64(0), "size": np.uint64(1)}
        for name, t in self._tables.items():
            layout = self._state.prepared.layouts[name]
            arrays[f"{t}_ok"] = np.empty((FIRST_ROOM, max(len(layout.keys), 1)), np.int64)
            if layout.table.value is not None:
                arrays[f"{t}_ov"] = np.empty(FIRST_ROOM, layout.dtype)
            for column in layout.home:
                arrays[f"{t}_origin{column}"] = np.int64((origins or {}).get(layout.table.kinds[column], 0))

    @property
    def _tables(self) -> dict[str, str]:
        return self._state.prepared.tables

    # --- as workers see it -----------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._halt.set()

    def size_of(self, table: str) -> int:
        return self._state.count(table)

    @property
    def _facts(self) -> int:
        return sum(self.size_of(table.name) for table in self.plan.program.tables)

    @property
    def waiting(self) -> int:
        found = waiting(self._state)
        if not found or self.end is None or self._has_new_groups():
            return found
        parts = 1 if self.end.function == "max" else self.size
        return 0 if self.end.reached(self.residual * parts) else found

    @property
    def left(self) -> float:
        return self.waiting

    def begin(self, start: Rows, first: Rows) -> None:
        begin_sums(self, self.plan.program, start, first)

    def put(self, parcel: Parcel) -> None:
        self.inbox(parcel)

    def inbox(self, parcel: Parcel) -> None:
        assert isinstance(parcel, Rows)
        for name, columns in parcel.tables.items():
            layout = self._state.prepared.layouts[name]
            narrow = dict(zip(layout.keys, layout.domains, strict=True))
            given = [c.astype(np.uint32) if narrow.get(spot) is not None else c for spot, c in enumerate(columns)]
            self._state.put(name, given)

    def take(self, least: float = 0.0) -> Work:
        self.iterations += 1
        if is_endless(self.iterations, self.taken, self._facts, self.plan, self.watch.most_rounds * self.size):
            self.watch.failed(2)
        aside = self._set_aside(least) if least else {}
        deltas = np.zeros(2, np.int64)
        self._state.call(most=1, budget=EVER, deltas=deltas)
        for t, slots in aside.items():
            self._wait_again(t, slots)
        if self._state.figure("fail"):
            self.watch.failed(self._state.figure("fail"))
        self.derivations += self._state.figure("work")
        self._post()
        self.taken += int(deltas[0])
        self.watch.look(self._facts)
        return Work(int(deltas[0]), self._state.figure("work"))

    def _post(self) -> None:
        """Sorts what the loops found for others by whom it is for."""
        arrays, posted = self._state.arrays, self._state.arrays["posted"]
        for number, (name, t) in enumerate(self._tables.items()):
            rows = int(posted[number])
            if not rows:
                continue
            layout = self._state.prepared.layouts[name]
            columns: dict[int, Column] = {key: arrays[f"{t}_ok"][:rows, i].copy() for i, key in enumerate(layout.keys)}
            if layout.table.value is not None:
                values = arrays[f"{t}_ov"][:rows]
                columns[layout.table.value] = values.astype(values.dtype if values.dtype.kind == "f" else np.int64)
            self.outboxes.add(name, [columns[spot] for spot in range(len(columns))], rows)
        posted[:] = 0

    def held(self) -> Mapping[int, int]:
        return self.outboxes.held()

    def outbox(self, peer: int) -> Rows:
        return self.outboxes.empty(peer)

    def snapshot(self) -> dict[str, Column]:
        """The state as columns: arrays of the loops as `a/..`, the buffers, and counts."""
        shared, arrays = self._state.prepared.shared, self._state.arrays
        own = {name: array for name, array in arrays.items() if name not in shared and isinstance(array, np.ndarray)}
        counts = np.array([self.iterations, 0, self.derivations])
        found = {"counts": counts, "a": self._state.counts.copy()} | self.outboxes.state()
        # An array of rows is one column, as long as all of them.
        return found | {f"a/{name}": array.reshape(-1).copy() for name, array in own.items()}

    def restore(self, state: Any) -> None:
        self.iterations, _, self.derivations = state["counts"].tolist()
        self._state.counts = state["a"].copy()
        self.outboxes.restore(state)
        arrays = self._state.arrays
        for name in (name for name in state if name.startswith("a/")):
            wide = arrays[name[2:]].shape[1:]
            arrays[name[2:]] = state[name].copy().reshape((-1, *wide)) if wide else state[name].copy()
        for name, t in self._tables.items():  # sweeps read eight flags at once
            if self._state.prepared.layouts[name].storage == "dense":
                arrays[f"{t}_words"] = arrays[f"{t}_seen"].view(np.uint64)

    def rows(self, table: str) -> list[Column]:
        return self._state.columns(table)

    @property
    def bytes(self) -> int:
        """What tables and indexes of this part take."""
        return self._state.bytes + self._state.prepared.bytes

    # --- sums ------------------------------------------------------------------------------------------------------

    @property
    def residual(self) -> float:
        pending = [np.abs(self._state.arrays[f"{t}_del"]) for t in self._sums()]
        if self.end is not None and self.end.function == "max":
            return max((float(changes.max(initial=0.0)) for changes in pending), default=0.0)
        return sum(float(changes.sum()) for changes in pending)

    def _sums(self) -> list[str]:
        layouts = self._state.prepared.layouts
        return [t for name, t in self._tables.items() if layouts[name].table.fold == "sum"]

    def _has_new_groups(self) -> bool:
        """True if a group was never taken up: however small its value, it makes other groups come to be."""
        seen = (self._state.arrays[f"{t}_seen"] for t in self._sums())
        return any(bool(np.any((flags & KNOWN != 0) & (flags & TAKEN == 0))) for flags in seen)

    def _set_aside(self, least: float) -> dict[str, Column]:
        """The slots of sums that change by less than this, which do not wait for now; none if all are such."""
        arrays = self._state.arrays
        waits = {t: np.unique(arrays[f"{t}_r"][: self._listed(t)]) for t in self._sums()}
        small = {t: slots[np.abs(arrays[f"{t}_del"][slots]) < least] for t, slots in waits.items()}
        if sum(map(len, small.values())) == sum(map(len, waits.values())) == waiting(self._state):
            return {}
        for t, slots in small.items():
            arrays[f"{t}_seen"][slots] &= np.uint8(KNOWN | TAKEN)
            self._list(t, np.setdiff1d(waits[t], slots), 0)
        return small

    def _wait_again(self, t: str, slots: Column) -> None:
        """Lets slots that were set aside wait again, unless they do, or had their turn since."""
        seen = self._state.arrays[f"{t}_seen"]
        flags = seen[slots]
        left = (self._state.arrays[f"{t}_del"][slots] != 0) | (flags & TAKEN == 0)
        again = slots[left & (flags & QUEUED == 0)]
        seen[again] |= np.uint8(QUEUED)
        self._list(t, again, self._listed(t))

    def _listed(self, t: str) -> int:
        """The length of the list of slots that wait."""
        return int(self._state.counts[3 * int(t[1:]) + 2])

    def _list(self, t: str, slots: Column, first: int) -> None:
        """Writes slots into the list of those that wait, which ends there."""
        self._state.arrays[f"{t}_r"][first : first + len(slots)] = slots
        self._state.counts[3 * int(t[1:]) + 2] = first + len(slots)


def _prepared(plan: WorkerPlan, encoder: Encoder, statics: Mapping[str, Columns], halt: Halt) -> Prepared:
    program = plan.placed
    numbers = {name: Numbers(program.static(name).kinds, columns) for name, columns in statics.items()}
    way = part_way(plan, Inputs({name: columns.rows for name, columns in numbers.items()}, encoder.sizes))
    if way.unfit:
        raise Unsuited(way.unfit)
    return prepare(program, way, encoder, numbers, halt=halt)
