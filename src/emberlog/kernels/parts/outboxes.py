"""Facts that a worker has for others, by whom they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emberlog.components.program import KernelProgram
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.owners import owners
from emberlog.kernels.parts.parcels import Rows, condensed, divided


class Outboxes:
    """A buffer for each peer, made on first use. It holds facts as they were derived, and condenses them when it is
    emptied."""

    def __init__(self, program: KernelProgram, homes: Mapping[str, tuple[int, ...]], rank: int, size: int) -> None:
        self._program = program
        self._homes = homes
        self._rank = rank
        self._size = size
        self._pieces: dict[int, dict[str, list[Sequence[Column]]]] = {}
        self._held: dict[int, int] = {}

    def add(self, table: str, columns: Sequence[Column], rows: int) -> list[Column] | None:
        """Takes in facts for their owners; returns those that this worker owns itself, None if there are none."""
        mine = None
        owner = owners([columns[spot] for spot in self._homes[table]], rows, self._size)
        for peer, share in divided(columns, owner):
            if peer == self._rank:
                mine = share
            else:
                self._pieces.setdefault(peer, {}).setdefault(table, []).append(share)
                self._held[peer] = self._held.get(peer, 0) + len(share[0])
        return mine

    def held(self) -> Mapping[int, int]:
        """The facts in each buffer."""
        return self._held.copy()

    def empty(self, peer: int) -> Rows:
        """Empties a buffer; what it held, condensed."""
        del self._held[peer]
        tables = {}
        for name, pieces in self._pieces.pop(peer).items():
            table = self._program.table(name)
            assert table is not None
            tables[name] = condensed(table, pieces)
        return Rows(tables)
