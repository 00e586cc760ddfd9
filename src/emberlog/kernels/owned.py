"""Rounds in which every worker owns a range of the slots of each table: threads that never write to the same place.

The loops are written by `code.owned`. One thread makes all rounds in which few facts wait, for all ranges; where many
wait, each owner has a thread, and they meet after each half of a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np

from emberlog.components.layout import worst
from emberlog.deadline import shielded
from emberlog.kernels.cache import call
from emberlog.kernels.code.buckets import IDLE, LAST, RING
from emberlog.kernels.code.owned import BOTH, PUT, TAKE
from emberlog.kernels.crew import Crew
from emberlog.kernels.memory import Memory
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.rounds import EVER, ROUNDS, WORK
from emberlog.kernels.state import bucket_arguments
from emberlog.kernels.waiting import put_owned, skip, turn_of
from emberlog.kernels.watch import Watch

MANY = 1 << 11  # facts that make a round worth the while of several threads
FEW = MANY // 8  # with fewer they leave it to one again


class Shared:
    """The tables, which all owners read and each writes its own part of."""

    def __init__(self, prepared: Prepared) -> None:
        assert prepared.ranges is not None
        self.prepared = prepared
        self.ranges = prepared.ranges
        self.owners = prepared.ranges.owners
        self.counts = np.zeros((self.owners, 3), np.int64)
        self.derivations = 0
        self.arrays: dict[str, Any] = {**prepared.shared, **bucket_arguments(prepared), "owners": self.owners}
        self.bucketed = "narrowing" in self.arrays
        for name in prepared.tables:
            self.arrays |= self._allocated(name)

    def _allocated(self, name: str) -> dict[str, Any]:
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        own = self.ranges.borders[name]
        slots = int(own[-1])
        seen = np.zeros(-(-slots // 8) * 8, np.uint8)
        found: dict[str, Any] = {
            "own": own,
            "tally": np.zeros((self.owners, 3), np.int64),
            "seen": seen,
            "words": seen.view(np.uint64),  # sweeps read eight flags at once
            "r": np.empty(slots, np.uint32),
            "q": np.empty(slots, np.uint32),
        }
        if layout.table.fold != "set":
            found["val"] = np.full(slots, worst(layout), layout.dtype)
            # What groups were taken with; where it may have become better since, what each owner went on from.
            found["last"] = np.full(slots if self.bucketed else (self.owners, slots), worst(layout), layout.dtype)
        if self.bucketed:
            words = -(-slots // 64)
            found["b"] = np.zeros((RING, words), np.uint64)
            found["w"] = np.zeros((RING, -(-words // 64)), np.uint64)
            found["in"] = np.zeros((self.owners, RING), np.int64)
            found["far"] = np.zeros(self.owners, np.int64)
        return {f"{t}_{part}": array for part, array in found.items()}

    def put(self, name: str, columns: Arrays) -> None:
        """Facts from outside."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        seen, waiting, tally, own = (self.arrays[f"{t}_{part}"] for part in ("seen", "r", "tally", "own"))
        (key,), value = layout.keys, layout.table.value
        if value is None:
            call(put_owned, None, seen, waiting, tally, own, columns[key], None, True)
        else:
            val = self.arrays[f"{t}_val"]
            values = columns[value].astype(val.dtype, copy=False)
            call(put_owned, val, seen, waiting, tally, own, columns[key], values, layout.table.fold == "min")

    def call(self, half: int, first: int, last: int, deltas: Any, most: int = 1, few: int = EVER) -> None:
        """One call of the loops, for the owners from `first` on before `last`."""
        scalars = {"half": half, "first": first, "last": last, "most": most, "budget": WORK, "few": few}
        given = {**scalars, "counts": self.counts[first], "deltas": deltas}
        values = (
            given[array.name] if array.name in given else self.arrays[array.name]
            for array in self.prepared.source.arguments
        )
        with shielded():
            self.prepared.function(*values)
        self.prepared.halt.check()

    def look_on(self) -> tuple[int, int]:
        """How many facts wait for the next round, and in all."""
        soon = total = self._tallied(1)
        if self.bucketed:
            soon += int(call(turn_of, self.arrays["held"], self.arrays["t0_in"]))
            total += int(self.arrays["t0_in"].sum())
        return soon, total

    def _tallied(self, spot: int) -> int:
        return sum(int(self.arrays[f"{t}_tally"][:, spot].sum()) for t in self.prepared.tables.values())

    @property
    def facts(self) -> int:
        return self._tallied(0)

    @property
    def taken(self) -> int:
        """What the last round took."""
        return self._tallied(2)

    # --- rounds --------------------------------------------------------------------------------------------------

    def alone(self, watch: Watch) -> None:
        """Rounds by one thread, as long as it is enough for them."""
        deltas = np.zeros(ROUNDS, np.int64)
        self.call(BOTH, 0, self.owners, deltas, ROUNDS, MANY if self.owners > 1 else EVER)
        fail, work, rounds = (int(number) for number in self.counts[0])
        self.derivations += work
        if fail:
            watch.failed(fail)
        watch.rounds([int(delta) for delta in deltas[:rounds]], self.facts)

    def together(self, watch: Watch) -> None:
        """Rounds by a thread for each owner, as long as many facts wait."""
        done: list[tuple[int, int]] = []  # what each round took, and the facts there were then
        going, nothing = True, np.zeros(1, np.int64)

        def close() -> None:
            nonlocal going
            took = self.taken
            if self.bucketed:
                call(skip, self.arrays["held"], took, self.arrays["t0_far"], RING, IDLE, LAST)
            if took:
                done.append((took, self.facts))
            self.derivations += int(self.counts[:, 1].sum())
            going = not self.counts[:, 0].any() and self.look_on()[0] > FEW

        taken, closed = Barrier(self.owners), Barrier(self.owners, close)

        def work(rank: int) -> None:
            while going:
                self.call(TAKE, rank, rank + 1, nothing)
                taken.wait()
                self.call(PUT, rank, rank + 1, nothing)
                closed.wait()
                while rank == 0 and done:
                    took, facts = done.pop(0)
                    watch.rounds([took], facts)

        def stop() -> None:
            taken.abort()
            closed.abort()

        with Crew(self.owners) as crew:
            crew.together(work, stop, BrokenBarrierError)
        if self.counts[:, 0].any():
            watch.failed(int(self.counts[:, 0].max()))

    # --- results -------------------------------------------------------------------------------------------------

    def count(self, name: str) -> int:
        return int(self.arrays[f"{self.prepared.tables[name]}_tally"][:, 0].sum())

    def columns(self, name: str) -> list[np.ndarray[Any, Any]]:
        """All facts of a table, in the order of their keys."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        there = self.arrays[f"{t}_val"] != worst(layout) if self.bucketed else self.arrays[f"{t}_seen"]
        slots = np.flatnonzero(there)
        found = {layout.keys[0]: slots.astype(np.uint32)}
        if layout.table.value is not None:
            found[layout.table.value] = self.arrays[f"{t}_val"][slots]
        return [found[spot] for spot in range(len(layout.table.kinds))]


def run_owned(prepared: Prepared, exits: Mapping[str, Arrays], watch: Watch, memory: Memory) -> Shared:
    """The fixpoint."""
    memory.check(needs(prepared), "tables and indexes")
    shared = Shared(prepared)
    for name, columns in exits.items():
        shared.put(name, columns)
    while True:
        soon, waiting = shared.look_on()
        if not waiting:
            break
        if shared.owners > 1 and soon > MANY:
            shared.together(watch)
        else:
            shared.alone(watch)
    watch.rounds([0], shared.facts)
    return shared


def needs(prepared: Prepared) -> int:
    """About how many bytes tables and indexes take."""
    assert prepared.ranges is not None
    total = prepared.bytes
    for name, layout in prepared.layouts.items():
        own = prepared.ranges.borders[name]
        width = np.dtype(layout.dtype).itemsize if layout.table.fold != "set" else 0
        buckets = RING // 8 if prepared.width is not None else 0
        total += int(own[-1]) * (9 + width * len(own) + buckets)
    return total
