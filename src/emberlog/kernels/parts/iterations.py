"""Parts of iterations: sums that hand on changes until few are left, and states that each round replaces.

`AccumulatingPart` is PowerLog's MonoTable (5.2): for each key what was accumulated, what has come since (the
intermediate), and the statics that its rules read, divided like the keys. A part is idle when what it has not handed
on is less than its share of the bound of the iteration. The shares of all parts are the bound, and nobody is idle who
holds facts back for others, so that at the end all that is pending, held or on its way is below it.

`ReplacingPart` is for iterations whose sums no proof allows to hand on changes: every round computes all groups from
those of the last one. It goes by rounds (`bsp`) alone, and the coordinator adds up how far each part moved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from emberlog.components.program import TOLERANCE, End, KernelProgram
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns
from emberlog.kernels.columns.facts import Facts, Groups, SumFacts, facts
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.encode import Encoder
from emberlog.kernels.parts.outboxes import OwnerNumber, as_it_is
from emberlog.kernels.parts.parcels import Rows
from emberlog.kernels.parts.part import ComponentPart, EvaluatedPart, restore_tables, states_of
from emberlog.kernels.watch import Watch
from emberlog.workers.part import Parcel, Work
from emberlog.workers.termination import Settled


def begin_sums(part: EvaluatedPart, program: KernelProgram, start: Rows, first: Rows) -> None:
    """Takes in the first state of sums that hand on changes, and what every round has. The first change is what the
    first round makes of that state, less the state."""
    values = {table.name: table.value or 0 for table in program.tables}
    if any(columns[values[name]].any() for name, columns in start.tables.items()):
        part.put(start)
        part.take()
        part.put(Rows({name: _negated(columns, values[name]) for name, columns in start.tables.items()}))
    part.put(first)


def _negated(columns: Sequence[Column], value: int) -> list[Column]:
    return [-column if spot == value else column for spot, column in enumerate(columns)]


class AccumulatingPart(ComponentPart):
    """Sums that hand on their changes."""

    def begin(self, start: Rows, first: Rows) -> None:
        begin_sums(self, self.plan.program, start, first)

    @property
    def waiting(self) -> int:
        """The groups that have a change to hand on; none once all of it is below this part's share of the bound."""
        waiting = super().waiting
        if not waiting or self.end is None or self._has_new_groups():
            return waiting
        parts = 1 if self.end.function == "max" else self.size
        return 0 if self.end.reached(self.residual * parts) else waiting

    def _has_new_groups(self) -> bool:
        """True if a group was never taken up: however small its value, it makes other groups come to be."""
        return any(not table.seen[: table.count].all() for table in self._sums())

    @property
    def residual(self) -> float:  # type: ignore[override]
        pending = [np.abs(table.pending[: table.count]) for table in self._sums()]
        if self.end is not None and self.end.function == "max":
            return max((float(changes.max(initial=0.0)) for changes in pending), default=0.0)
        return sum(float(changes.sum()) for changes in pending)

    def _sums(self) -> list[SumFacts]:
        return [table for table in self.tables.values() if isinstance(table, SumFacts)]


class ReplacingPart(ComponentPart):
    """Groups that every round computes anew. `tables` has the state that a round reads, `_next` the one that it makes:
    from `constants`, which every round has, and from what is derived here and by others."""

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
    ) -> None:
        super().__init__(plan, encoder, statics, rank, size, watch, end, owner_number)
        self._constants: Rows = Rows({})
        self._next = self._empty()

    def begin(self, start: Rows, first: Rows) -> None:
        self._constants = first
        self._merge(start)
        self._turn()

    def _empty(self) -> dict[str, Facts]:
        return {table.name: facts(table, self.encoder.sizes) for table in self.program.tables}

    def _merge(self, rows: Rows) -> None:
        for name, columns in rows.tables.items():
            self._next[name].put(columns, len(columns[0]))

    def _turn(self) -> None:
        """What the last round made is what the next one reads."""
        self.tables, self._next = self._next, self._empty()
        for table in self.tables.values():
            if isinstance(table, SumFacts):
                table.take_changes()
            else:
                assert isinstance(table, Groups)
                table.take()
        self._merge(self._constants)

    # --- as workers see it -----------------------------------------------------------------------------------------

    def size_of(self, table: str) -> int:
        return self._next[table].count

    @property
    def waiting(self) -> int:
        """There is always another round, until the coordinator says that it is over."""
        return max(self.count, 1)

    @property
    def left(self) -> float:
        """How far the last round moved the groups of this part."""
        changed, total, largest = self._moved()
        if self.end is None:
            return changed
        return largest if self.end.function == "max" else total

    @property
    def residual(self) -> float:  # type: ignore[override]
        return self.left

    def _moved(self) -> tuple[int, float, float]:
        moved = [_distance(self.tables[name], after) for name, after in self._next.items()]
        changed, totals, most = zip(*moved, strict=True)
        return sum(changed), sum(totals), max(most)

    def take(self, least: float = 0.0) -> Work:
        self.iterations += 1
        if self.iterations > 1:
            self._turn()
        if self.iterations > self.watch.most_rounds:
            self.watch.failed(2)
        before = self.derivations
        groups = 0
        with np.errstate(all="ignore"):  # whoever looks at the values tells those that are no numbers
            for plan in self.plans:
                table = self.tables[plan.nest.table]
                groups += table.count
                self._derive(plan, self._started(plan.nest, table, np.arange(table.count)))
        self.watch.look(self.count)
        return Work(groups, self.derivations - before)

    def inbox(self, parcel: Parcel) -> None:
        assert isinstance(parcel, Rows)
        self._merge(parcel)

    def keep(self, table: str, columns: Sequence[Column], rows: int) -> None:
        self._next[table].put(columns, rows)

    def snapshot(self) -> dict[str, Column]:
        return super().snapshot() | states_of(self._next, "n")

    def restore(self, state: Any) -> None:
        super().restore(state)
        self._next = self._empty()
        restore_tables(self._next, state, "n")

    def rows(self, table: str) -> list[Column]:
        return self._next[table].columns()


def settles(end: End | None) -> Settled:
    """Tells from how far each part is from the end whether an iteration that replaces its state is over."""

    def settled(lefts: Collection[float]) -> bool:
        if end is None:
            return not any(lefts)
        return end.reached(max(lefts) if end.function == "max" else sum(lefts))

    return settled


def _distance(before: Facts, after: Facts) -> tuple[int, float, float]:
    """Groups that changed between two states, the sum of the changes and the largest one. No group counts as 0."""
    value = after.table.value
    assert value is not None
    now = after.columns()
    values = now[value].astype(np.float64)
    places = before.places.find(before.keys.codes([now[key] for key in after.table.keys], after.count, grow=False))
    there = places >= 0
    was = np.zeros(after.count)
    then = before.columns()[value].astype(np.float64)
    was[there] = then[places[there]]
    gone = np.ones(before.count, bool)
    gone[places[there]] = False
    with np.errstate(all="ignore"):
        changes = np.abs(values - was)
        # Infinite values, and what is no number, have changed always: such states come to no end.
        bound = TOLERANCE * np.minimum(np.maximum(np.abs(values), np.abs(was)), 1e300)
        changed = ~(changes <= bound) | ~there
        lost = np.abs(then[gone])
    total = float(changes.sum() + lost.sum())
    return int(changed.sum() + gone.sum()), total, float(max(changes.max(initial=0.0), lost.max(initial=0.0)))
