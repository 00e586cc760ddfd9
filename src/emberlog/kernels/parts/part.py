"""A worker's part of a component: an interpreter over its share of the tables, and buffers for the others.

A derived fact goes to the owner of its home or copy: into the own table, or into the buffer of a peer. A copy is a
table like others, so that the pair of facts that a rule joins meets where both are owned, once: tables are taken up
one after the other, and each batch joins with what was taken up before it. Tables find rows by search, and by an array
of all keys only once they hold many of these: memory follows the share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from emberlog.components.program import Kind
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns
from emberlog.kernels.columns.facts import MOST_PLACES, Facts, Places, SumFacts, facts
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.columns.rounds import Budget, Interpreter
from emberlog.kernels.encode import Encoder
from emberlog.kernels.owners import owners
from emberlog.kernels.parts.parcels import Rows, condensed, divided
from emberlog.kernels.watch import Watch
from emberlog.workers.part import Parcel, Work

OwnerNumber = Callable[[Kind, Column], Column]

FILLED = 16  # codes for each fact: an array of them takes 128 bytes a fact


class ComponentPart(Interpreter):
    """The part of the worker `rank` of `size`."""

    def __init__(
        self,
        plan: WorkerPlan,
        encoder: Encoder,
        statics: Mapping[str, Columns],
        rank: int,
        size: int,
        watch: Watch,
        owner_number: OwnerNumber = lambda _, column: column,
    ) -> None:
        """`owner_number` gives the numbers by which rows were placed, where these are not the ids of their values."""
        super().__init__(plan.placed, encoder, statics, Budget(), watch)
        self._owner_number = owner_number
        self.plan = plan
        self.rank = rank
        self.size = size
        self.iterations = 0
        self.copied = 0  # of the derivations, those that are copies
        self._buffers: dict[int, dict[str, list[Sequence[Column]]]] = {}
        self._held: dict[int, int] = {}
        self.tables = self._empty_tables()

    @property
    def count(self) -> int:
        """The facts of the component that this part owns."""
        return sum(self.tables[table.name].count for table in self.plan.program.tables)

    @property
    def waiting(self) -> int:
        return sum(table.waiting for table in self.tables.values())

    def put(self, parcel: Parcel) -> None:
        self.inbox(parcel)

    def inbox(self, parcel: Parcel) -> None:
        assert isinstance(parcel, Rows)
        for name, columns in parcel.tables.items():
            self.tables[name].put(columns, len(columns[0]))

    def take(self, least: float = 0.0) -> Work:
        self.iterations += 1
        if self.iterations > self.watch.most_rounds * self.size:
            self.watch.failed(2)
        before = self.derivations - self.copied
        small = self._set_aside(least) if least else []
        taken = self.take_up()
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
        owner = owners(self._home(table, columns), rows, self.size)
        for peer, share in divided(columns, owner):
            if peer == self.rank:
                self.tables[table].put(share, len(share[0]))
            else:
                self._buffers.setdefault(peer, {}).setdefault(table, []).append(share)
                self._held[peer] = self._held.get(peer, 0) + len(share[0])

    def _home(self, table: str, columns: Sequence[Column]) -> list[Column]:
        """The numbers that say who owns facts of a table."""
        kinds = self.tables[table].table.kinds
        return [self._owner_number(kinds[spot], columns[spot]) for spot in self.plan.homes[table]]

    def held(self) -> Mapping[int, int]:
        return self._held.copy()

    def outbox(self, peer: int) -> Rows:
        del self._held[peer]
        tables = {}
        for name, pieces in self._buffers.pop(peer).items():
            table = self.program.table(name)
            assert table is not None
            tables[name] = condensed(table, pieces)
        return Rows(tables)

    def snapshot(self) -> dict[str, Column]:
        """The state as columns: of table n as `tn/..`, of the buffer for peer p as `bp/n/..`, and counts."""
        counts = np.array([self.iterations, self.copied, self.derivations])
        found = {"counts": counts}
        for number, table in enumerate(self.tables.values()):
            found |= {f"t{number}/{name}": column for name, column in table.state().items()}
        numbers = {name: number for number, name in enumerate(self.tables)}
        for peer, tables in self._buffers.items():
            for name, pieces in tables.items():
                columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
                found |= {f"b{peer}/{numbers[name]}/{spot}": column for spot, column in enumerate(columns)}
        return found

    def restore(self, state: Any) -> None:
        self.tables = self._empty_tables()
        self._buffers, self._held = {}, {}
        self.iterations, self.copied, self.derivations = state["counts"].tolist()
        names = list(self.tables)
        for number, table in enumerate(self.tables.values()):
            prefix = f"t{number}/"
            table.restore({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
        for name in (name for name in state if name.startswith("b") and name.endswith("/0")):
            peer, number, _ = name[1:].split("/")
            table_name = names[int(number)]
            width = len(self.tables[table_name].table.kinds)
            columns = [state[f"b{peer}/{number}/{spot}"] for spot in range(width)]
            self._buffers.setdefault(int(peer), {})[table_name] = [columns]
            self._held[int(peer)] = self._held.get(int(peer), 0) + len(columns[0])

    def _empty_tables(self) -> dict[str, Facts]:
        """Tables that find rows by search: memory follows the share."""
        tables = {table.name: facts(table, self.encoder.sizes) for table in self.program.tables}
        if self.size > 1:
            for table in tables.values():
                table.places = Places(None)
        return tables

    def rows(self, table: str) -> list[Column]:
        """The facts of a table that this part owns."""
        return self.tables[table].columns()

    @property
    def bytes(self) -> int:
        """What tables and statics of this part take."""
        arrays: list[np.ndarray[Any, Any]] = [column for columns in self.statics.values() for column in columns]
        for table in self.tables.values():
            arrays += [*table.stored.values(), table.places.codes, table.places.rows]
        return sum(array.nbytes for array in arrays)
