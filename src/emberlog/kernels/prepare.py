"""What compiled loops need before they run: their text, indexes, constants, and who owns which slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from emberlog.choose.ways import Kind, Way
from emberlog.components.forms import added_columns, owned_indexes
from emberlog.components.layout import TableLayout, worst
from emberlog.components.nests import Key, Nest, index_orders, probes
from emberlog.components.program import TOLERANCE, Id, KernelProgram
from emberlog.kernels.cache import compiled
from emberlog.kernels.code import loops
from emberlog.kernels.code.buckets import Buckets
from emberlog.kernels.code.gathers import Gathers
from emberlog.kernels.code.masks import Masks
from emberlog.kernels.code.owned import Owned, OwnedBuckets
from emberlog.kernels.code.parted import Parted
from emberlog.kernels.code.shards import Shards
from emberlog.kernels.code.source import Source
from emberlog.kernels.code.states import States
from emberlog.kernels.code.sums import PART, Sums
from emberlog.kernels.encode import Encoder, Lazy
from emberlog.kernels.halting import Halt
from emberlog.kernels.indexes import Index, kept_index, pair_of
from emberlog.kernels.ranges import Ranges, ranges, sample

Arrays = Sequence[np.ndarray[Any, Any]]
WRITERS: Mapping[tuple[Kind, bool], Any] = {  # by the kind of loops, and whether workers own ranges of the tables
    ("states", False): States,
    ("sums", False): Sums,
    ("gather", False): Gathers,
    ("buckets", False): Buckets,
    ("buckets", True): OwnedBuckets,
    ("masks", False): Masks,
    ("facts", False): loops.Loops,
    ("facts", True): Owned,
    ("parts", False): Parted,
    ("shards", False): Shards,
}
Indexes = dict[tuple[Key, frozenset[int]], Index]  # by what they are of, and the columns that they hold


@dataclass(frozen=True)
class Prepared:
    """What the workers of a run share: the compiled loops, the static indexes, the constants."""

    program: KernelProgram
    way: Way
    layouts: dict[str, TableLayout]
    source: Source
    function: Any
    shared: dict[str, Any]
    sizes: Mapping[int, int]
    width: float | None = None  # how far values that are taken up together may lie apart; None: no order
    ranges: Ranges | None = None  # None: no worker owns a part of the tables
    halt: Halt = field(default_factory=Halt)

    @property
    def bytes(self) -> int:
        """What indexes and constants take."""
        return sum(getattr(array, "nbytes", 0) for array in self.shared.values())

    @property
    def rows(self) -> int:
        """How many rows the indexes have."""
        return sum(int(number) for name, number in self.shared.items() if name.endswith("_m"))

    @property
    def tables(self) -> dict[str, str]:
        return {table.name: f"t{i}" for i, table in enumerate(self.program.tables)}

    @property
    def recursive(self) -> dict[str, str]:
        """The tables that begin with exit rows: those of the recursion itself."""
        return {name: t for name, t in self.tables.items() if name not in self.program.heads_above}


def prepare(
    program: KernelProgram,
    way: Way,
    encoder: Encoder,
    statics: Mapping[str, Lazy],
    workers: int = 1,
    indexes: Indexes | None = None,
    room: int = 0,
    halt: Halt | None = None,
) -> Prepared:
    """Compiles the loops and builds the indexes, those that `indexes` does not have yet. Owners get ranges of the
    tables within `room`, in bytes. `halt` ends loops that run."""
    made, planned = dict(way.layouts), way.loops
    narrow = frozenset((n, i) for n, cs in statics.items() for i in range(len(cs)) if cs.dtype(i) == np.int32)
    orders = index_orders(planned)
    sparse = frozenset(
        (name, bound) for name, bound in orders if bound and not isinstance(program.static(name).kinds[bound[0]], Id)
    )
    reading = {key: _needed(key, planned) for key in orders}
    pairs = {(n, b): pair for (n, b), spots in reading.items() if (pair := pair_of(b, statics[n], spots)) is not None}
    owned, divided = None, {}
    if way.owned:
        divided = owned_indexes(program, made, planned)
        owned = ranges(program, made, divided, statics, encoder.sizes, workers, room)
    source, names = _written(
        WRITERS[way.kind, way.owned],
        program,
        tuple(way.pivots.items()),
        planned,
        tuple(made.items()),
        narrow,
        sparse,
        tuple(pairs.items()),
    )
    halt = halt or Halt()
    shared: dict[str, Any] = {"tolerance": TOLERANCE, "halt": halt.flag}
    for i, (kind, value) in enumerate(source.constants):
        shared[f"c{i}"] = encoder.constant(kind, value)
    for (name, bound), label in names.items():
        static = program.static(name)
        first = static.kinds[bound[0]] if bound else None
        slots = encoder.sizes[first.domain] if isinstance(first, Id) else 0
        pair = pairs.get((name, bound))
        key = (name, bound), frozenset(reading[name, bound])
        index = None if indexes is None else indexes.get(key)
        if index is None:
            spot = divided.get((name, bound))
            owners = None if owned is None or spot is None else owned.of_index(static.kinds[spot], spot, made)
            index = kept_index(static, bound, statics[name], reading[name, bound], slots, workers, pair, owners)
        if indexes is not None:
            indexes[key] = index
        shared |= {f"{label}_c{spot}": column for spot, column in index.columns.items()}
        shared |= {
            f"{label}_p": index.packed,
            f"{label}_o": index.offsets,
            f"{label}_k": index.keys,
            f"{label}_m": np.uint64(index.rows),
        }
    for i, table in enumerate(program.tables):
        layout = made[table.name]
        for spot, domain in enumerate(layout.domains):
            if domain is not None:
                shared[f"t{i}_n{spot}"] = np.uint64(encoder.sizes[domain])
        shared[f"t{i}_worst"] = worst(layout)
    width = bucket_width(way, program, statics, encoder.sizes)
    return Prepared(program, way, made, source, compiled(source), shared, encoder.sizes, width, owned, halt)


@lru_cache(maxsize=64)
def _written(
    writing: type[loops.Loops],
    program: KernelProgram,
    pivots: tuple[tuple[str, tuple[int, ...]], ...],
    planned: tuple[Nest, ...],
    made: tuple[tuple[str, TableLayout], ...],
    narrow: frozenset[tuple[str, int]],
    sparse: frozenset[Key],
    pairs: tuple[tuple[Key, tuple[int, int]], ...],
) -> tuple[Source, dict[Key, str]]:
    """The loops, and the names of their indexes. What was written for a program is kept: it may be run again."""
    writer = writing(program, dict(pivots), planned, dict(made), narrow, sparse, dict(pairs))
    return writer.source(), writer.indexes


def _needed(key: Key, planned: tuple[Nest, ...]) -> set[int]:
    """The columns that the nests read from an index."""
    reading = (probe for nest in planned for probe in probes(nest) if (probe.relation, probe.bound) == key)
    return {position for probe in reading for position, _ in probe.binds}


def bucket_width(
    way: Way, program: KernelProgram, statics: Mapping[str, Lazy], sizes: Mapping[int, int]
) -> float | None:
    """How far apart values may lie that are taken up in one round, if small ones are to go first; None for any order.

    What is added to a value on one step, divided by how many steps lead on from a fact: wider than that, and most of
    what is derived is replaced later; narrower, and rounds do too little.
    """
    if program.mode == "accumulate":
        return PART if way.ordered else None
    if way.kind != "buckets":
        return None
    name, spot = next((name, spot) for name, spot in added_columns(program) if statics[name].rows)
    columns, kinds = statics[name], program.static(name).kinds
    fan = columns.rows / max((sizes[kind.domain] for kind in kinds if isinstance(kind, Id)), default=1)
    width = float(np.abs(sample(columns, spot)).mean()) / max(fan, 1.0)
    return max(1.0, round(width)) if kinds[spot] == "int" else width
