"""How the tables and indexes of a run lie in memory.

A table whose keys are ids of small domains is dense: a slot for each possible key. All others are hashed: slots are
numbered as keys come, so that memory follows what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from emberlog.components.nests import Nest, Walk
from emberlog.components.pivots import Pivots
from emberlog.components.program import Id, KernelProgram, Kind, Table
from emberlog.thresholds import SLOTS_A_ROW, SLOTS_ANYWAY

NEAR = 1 << 15


@dataclass(frozen=True, slots=True)
class TableLayout:
    """`keys` are the key positions that are stored (pivots are not), `domains` theirs; `chains` are the key positions
    by which facts are found."""

    table: Table
    storage: Literal["dense", "hash"]
    keys: tuple[int, ...]
    domains: tuple[int | None, ...]
    chains: tuple[int, ...] = ()
    counted: bool = False  # a sum reads it: facts count when they are taken up, not before
    small: bool = False  # a byte for each slot fits in the nearest cache
    divided_by: int | None = None  # of `keys`, the one by which workers own facts, where the user chose it
    narrow: bool = False  # integer values in 32 bits: less memory to walk, as long as they fit
    home: tuple[int, ...] = ()  # of a worker's part: the key positions that say who owns a fact
    set_column: int | None = None  # of facts that are kept as rows: the column of the sets, which is no key then

    @property
    def resumable(self) -> bool:
        """True if facts are taken up in the order in which they came: a round can be left off and resumed."""
        return self.storage == "hash" and self.table.fold == "set"

    @property
    def value_kind(self) -> Kind | None:
        return None if self.table.value is None else self.table.kinds[self.table.value]

    @property
    def dtype(self) -> str:
        """The type of the values as they are stored."""
        match self.value_kind:
            case Id():
                return "int32"
            case "float":
                return "float64"
            case _:
                return "int32" if self.narrow else "int64"


def worst(layout: TableLayout) -> Any:
    """What a slot holds before its first value."""
    dtype = np.dtype(layout.dtype)
    match layout.table.fold:
        case "min":
            return dtype.type(np.inf) if dtype.kind == "f" else np.iinfo(dtype).max
        case "max":
            return dtype.type(-np.inf) if dtype.kind == "f" else np.iinfo(dtype).min
        case _:
            return dtype.type(0)


def layouts(
    program: KernelProgram,
    pivots: Pivots,
    nests: tuple[Nest, ...],
    sizes: Mapping[int, int],
    rows: int,
    force_hash: bool = False,
    partition: Mapping[str, int] | None = None,
) -> dict[str, TableLayout]:
    """The layout of every table, for domains of these sizes and so many input rows."""
    found = {}
    for table in program.tables:
        keys = tuple(key for key in table.keys if key not in pivots.get(table.name, ()))
        domains = tuple(_domain(table.kinds[key]) for key in keys)
        slots = 1
        for domain in domains:
            slots *= sizes[domain] if domain is not None else 1 << 62
        # One slot needs no hash.
        dense = not keys or (not force_hash and slots <= max(SLOTS_ANYWAY, SLOTS_A_ROW * rows))
        chains = _chains(table, keys, nests)
        counted = _counted(table.name, program, nests)
        storage: Literal["dense", "hash"] = "dense" if dense else "hash"
        divided_by = _divided_by(table, keys, partition)
        found[table.name] = TableLayout(table, storage, keys, domains, chains, counted, slots <= NEAR, divided_by)
    return found


def _divided_by(table: Table, keys: tuple[int, ...], partition: Mapping[str, int] | None) -> int | None:
    chosen = (partition or {}).get(table.name)
    return keys.index(chosen) if chosen in keys else None


def _domain(kind: Kind) -> int | None:
    return kind.domain if isinstance(kind, Id) else None


def walk_key(walk: Walk, keys: tuple[int, ...], table: Table) -> int | None:
    """The key position by whose chain a walk finds facts; None when all keys are known, or none."""
    bound = [position for position in walk.bound if position in keys]
    if len(bound) == len(keys) or not bound:
        return None
    return next((p for p in bound if isinstance(table.kinds[p], Id)), None)


def has_scans(program: KernelProgram, pivots: Pivots, nests: tuple[Nest, ...]) -> bool:
    """True if loops would go through all facts of a table although some of their columns are known: numbers that are
    no ids have no chains."""
    walks = (step for nest in nests for step in nest.steps if isinstance(step, Walk))
    for walk in walks:
        table = program.table(walk.relation)
        assert table is not None
        keys = tuple(key for key in table.keys if key not in pivots.get(table.name, ()))
        known = set(walk.bound) & set(keys)
        if known and known != set(keys) and walk_key(walk, keys, table) is None:
            return True
    return False


def _chains(table: Table, keys: tuple[int, ...], nests: tuple[Nest, ...]) -> tuple[int, ...]:
    walks = (step for nest in nests for step in nest.steps if isinstance(step, Walk) and step.relation == table.name)
    found = dict.fromkeys(walk_key(walk, keys, table) for walk in walks)
    return tuple(key for key in found if key is not None)


def _counted(name: str, program: KernelProgram, nests: tuple[Nest, ...]) -> bool:
    for nest in nests:
        head = None if nest.above else program.table(nest.rule.head)
        if head is not None and head.fold == "sum":
            if any(isinstance(step, Walk) and step.relation == name for step in nest.steps):
                return True
    return False
