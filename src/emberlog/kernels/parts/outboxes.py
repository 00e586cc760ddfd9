"""Facts that a worker has for others, by whom they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from emberlog.components.program import KernelProgram, Kind
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.owners import owners
from emberlog.kernels.parts.parcels import Rows, condensed, divided

# The numbers by which rows were placed, from ids of a kind.
OwnerNumber: TypeAlias = Callable[[Kind, Column], Column]


def as_it_is(kind: Kind, column: Column) -> Column:
    return column


class Outboxes:
    """A buffer for each peer, made on first use. It holds facts as they were derived, and condenses them when it is
    emptied. `owner_number` gives the numbers by which rows were placed, where these are not the ids of their values."""

    def __init__(
        self,
        program: KernelProgram,
        homes: Mapping[str, tuple[int, ...]],
        rank: int,
        size: int,
        owner_number: OwnerNumber = as_it_is,
    ) -> None:
        self._tables = {table.name: table for table in program.tables}
        self._homes = homes
        self._rank = rank
        self._size = size
        self._owner_number = owner_number
        self._pieces: dict[int, dict[str, list[Sequence[Column]]]] = {}
        self._held: dict[int, int] = {}

    def add(self, table: str, columns: Sequence[Column], rows: int) -> list[Column] | None:
        """Takes in facts for their owners; returns those that this worker owns itself, None if there are none."""
        mine, kinds = None, self._tables[table].kinds
        home = [self._owner_number(kinds[spot], columns[spot]) for spot in self._homes[table]]
        for peer, share in divided(columns, owners(home, rows, self._size)):
            if peer == self._rank:
                mine = share
            else:
                self._put(peer, table, share)
        return mine

    def _put(self, peer: int, table: str, share: Sequence[Column]) -> None:
        self._pieces.setdefault(peer, {}).setdefault(table, []).append(share)
        self._held[peer] = self._held.get(peer, 0) + len(share[0])

    def held(self) -> Mapping[int, int]:
        """The facts in each buffer."""
        return self._held.copy()

    def empty(self, peer: int) -> Rows:
        """Empties a buffer; what it held, condensed."""
        del self._held[peer]
        return Rows({name: condensed(self._tables[name], pieces) for name, pieces in self._pieces.pop(peer).items()})

    def state(self) -> dict[str, Column]:
        """All that is held, as columns: of the buffer for peer p what is of table n as `bp/n/..`."""
        found: dict[str, Column] = {}
        numbers = {name: number for number, name in enumerate(self._tables)}
        for peer, tables in self._pieces.items():
            for name, pieces in tables.items():
                columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
                found |= {f"b{peer}/{numbers[name]}/{spot}": column for spot, column in enumerate(columns)}
        return found

    def restore(self, state: Mapping[str, Column]) -> None:
        """Holds what `state` told, and nothing else."""
        self._pieces, self._held = {}, {}
        names = list(self._tables)
        for name in (name for name in state if name.startswith("b") and name.endswith("/0")):
            peer, number, _ = name[1:].split("/")
            table = self._tables[names[int(number)]]
            self._put(int(peer), table.name, [state[f"b{peer}/{number}/{spot}"] for spot in range(len(table.kinds))])
