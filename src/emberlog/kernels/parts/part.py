"""A worker's part of a component: an interpreter over its share of the tables, and buffers for the others.

A derived fact goes to the owner of its home or copy: into the own table, or into the buffer of a peer. A copy is a
table like others, so that the pair of facts that a rule joins meets where both are owned, once: tables are taken up
one after the other, and each batch joins with what was taken up before it. Tables find rows by search, and by an array
of all keys only once they hold many of these: memory follows the share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from emberlog.components.program import End, KernelProgram
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns
from emberlog.kernels.columns.facts import MOST_PLACES, Facts, Places, SumFacts, facts
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.columns.rounds import Budget, Interpreter
from emberlog.kernels.encode import Encoder
from emberlog.kernels.parts.outboxes import Outboxes, OwnerNumber, as_it_is
from emberlog.kernels.parts.parcels import Rows
from emberlog.kernels.watch import Watch
from emberlog.workers.part import Parcel, Part, Work

SMALL_CHANGES = 16  # iterations for a round of an iteration that hands on changes
FILLED = 16  # codes for each fact: an array of them takes 128 bytes a fact


def states_of(tables: Mapping[str, Facts], prefix: str) -> dict[str, Column]:
    """The states of tables as columns with names: those of table n as `prefix`n/.."""
    states = [(number, table.state()) for number, table in enumerate(tables.values())]
    return {f"{prefix}{number}/{name}": column for number, state in states for name, column in state.items()}


def restore_tables(tables: Mapping[str, Facts], state: Mapping[str, Column], prefix: str) -> None:
    """Gives empty tables the states that `states_of` told."""
    for number, table in enumerate(tables.values()):
        own = f"{prefix}{number}/"
        table.restore({name.removeprefix(own): state[name] for name in state if name.startswith(own)})


def is_endless(iterations: int, taken: int, facts: int, plan: WorkerPlan, most: int) -> bool:
    """True if a part made more iterations than `most` rounds of it would be. Iterations of workers that do not go by
    rounds may take up few facts each: where values replace each other, as many must have been taken up, too. Changes of
    an iteration get smaller and smaller, and are handed on one by one where workers are not in step."""
    rounds = most * SMALL_CHANGES if plan.program.mode == "accumulate" else most
    return iterations > rounds and not (plan.condenses and taken <= rounds * facts)


class EvaluatedPart(Part, Protocol):
    """A part of a component, and what is asked of it before workers take it and after they are done."""

    @property
    def program(self) -> KernelProgram: ...

    @property
    def encoder(self) -> Encoder: ...

    @property
    def statics(self) -> Mapping[str, Sequence[Column]]: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def begin(self, start: Rows, first: Rows) -> None:
        """Takes in the facts of the exit rules; of an iteration its first state, and what every round has."""

    def stop(self) -> None:
        """Ends an iteration that goes on, when another thread calls it; the iteration raises why."""

    def size_of(self, table: str) -> int:
        """How many facts of a table this part owns."""

    @property
    def residual(self) -> float:
        """How far an iteration is from its fixpoint: the sum of the changes that are left, or the largest of them."""

    def rows(self, table: str) -> list[Column]:
        """The facts of a table that this part owns."""


class ComponentPart(Interpreter):
    """The part of the worker `rank` of `size`. The `end` is that of an iteration."""

    residual = 0.0

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
        """`owner_number` gives the numbers by which rows were placed, where these are not the ids of their values."""
        super().__init__(plan.placed, encoder, statics, Budget(), watch)
        self.plan = plan
        self.end = end
        self.rank = rank
        self.size = size
        self.iterations = 0
        self.taken = 0  # facts, each time that they were taken up
        self.copied = 0  # of the derivations, those that are copies
        self.outboxes = Outboxes(self.program, plan.homes, rank, size, owner_number)
        self.tables = self._empty_tables()

    def begin(self, start: Rows, first: Rows) -> None:
        self.put(first)

    @property
    def count(self) -> int:
        """The facts of the component that this part owns."""
        return sum(self.size_of(table.name) for table in self.plan.program.tables)

    def stop(self) -> None:
        """The watch is asked often enough to end iterations by itself."""

    def size_of(self, table: str) -> int:
        return self.tables[table].count

    @property
    def waiting(self) -> int:
        return sum(table.waiting for table in self.tables.values())

    @property
    def left(self) -> float:
        return self.waiting

    def put(self, parcel: Parcel) -> None:
        self.inbox(parcel)

    def inbox(self, parcel: Parcel) -> None:
        assert isinstance(parcel, Rows)
        for name, columns in parcel.tables.items():
            self.tables[name].put(columns, len(columns[0]))

    def take(self, least: float = 0.0) -> Work:
        self.iterations += 1
        if is_endless(self.iterations, self.taken, self.count, self.plan, self.watch.most_rounds * self.size):
            self.watch.failed(2)
        before = self.derivations - self.copied
        small = self._set_aside(least) if least else []
        taken = self.take_up()
        self.taken += taken
        for table, rows in small:
            table.waits[rows] = True
        self._spread_full_tables()
        self.watch.look(self.count)
        return Work(taken, self.derivations - self.copied - before)

    def _spread_full_tables(self) -> None:
        """Tables that hold a good part of all keys there are find them by an array: it is no larger than they are."""
        for table in self.tables.values():
            space = table.keys.space
            if table.places.direct is None and space is not None and space <= min(MOST_PLACES, FILLED * table.count):
                table.places.spread(space)

    def _set_aside(self, least: float) -> list[tuple[SumFacts, Column]]:
        """The changes of sums that are less than this, which do not wait for now; none if all that waits is such."""
        sums = [table for table in self.tables.values() if isinstance(table, SumFacts)]
        small = [
            (table, np.flatnonzero(table.waits[: table.count] & (np.abs(table.pending[: table.count]) < least)))
            for table in sums
            if table.count
        ]
        if sum(len(rows) for _, rows in small) == self.waiting:
            return []
        for table, rows in small:
            table.waits[rows] = False
        return small

    def deliver(self, table: str, columns: Sequence[Column], rows: int) -> None:
        self.copied += rows if table in self.plan.copies else 0
        mine = self.outboxes.add(table, columns, rows)
        if mine is not None:
            self.keep(table, mine, len(mine[0]))

    def keep(self, table: str, columns: Sequence[Column], rows: int) -> None:
        """Takes in facts that were derived here and lie here."""
        self.tables[table].put(columns, rows)

    def held(self) -> Mapping[int, int]:
        return self.outboxes.held()

    def outbox(self, peer: int) -> Rows:
        return self.outboxes.empty(peer)

    def snapshot(self) -> dict[str, Column]:
        """The state as columns: of table n as `tn/..`, the buffers, and counts."""
        counts = np.array([self.iterations, self.copied, self.derivations])
        return {"counts": counts} | states_of(self.tables, "t") | self.outboxes.state()

    def restore(self, state: Any) -> None:
        self.iterations, self.copied, self.derivations = state["counts"].tolist()
        self.tables = self._empty_tables()
        restore_tables(self.tables, state, "t")
        self.outboxes.restore(state)

    def _empty_tables(self) -> dict[str, Facts]:
        """Tables that find rows by search: memory follows the share."""
        tables = {table.name: facts(table, self.encoder.sizes) for table in self.program.tables}
        if self.size > 1:
            for table in tables.values():
                table.places = Places(None)
        return tables

    def rows(self, table: str) -> list[Column]:
        return self.tables[table].columns()

    @property
    def bytes(self) -> int:
        """What tables and statics of this part take."""
        arrays: list[np.ndarray[Any, Any]] = [column for columns in self.statics.values() for column in columns]
        for table in self.tables.values():
            arrays += [*table.stored.values(), table.places.codes, table.places.rows]
        return sum(array.nbytes for array in arrays)
