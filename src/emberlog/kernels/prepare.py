"""What compiled loops need before they run: their text, indexes, constants, and who owns which slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from emberlog.kernels.cache import call, compiled
from emberlog.kernels.code import loops
from emberlog.kernels.code.buckets import Buckets, is_bucketed
from emberlog.kernels.code.gathers import Gathers, turned
from emberlog.kernels.code.masks import Masks, is_maskable
from emberlog.kernels.code.owned import Owned, OwnedBuckets, is_ownable, owned_indexes
from emberlog.kernels.code.source import Source
from emberlog.kernels.code.states import States
from emberlog.kernels.code.sums import PART, Sums
from emberlog.kernels.code.terms import Key
from emberlog.kernels.domains import variables_of
from emberlog.kernels.encode import Encoder, Lazy
from emberlog.kernels.halting import Halt
from emberlog.kernels.indexes import Index, kept_index, pair_of
from emberlog.kernels.layout import TableLayout, layouts, worst
from emberlog.kernels.nests import Nest, Probe, check_size, index_orders, nests, probes
from emberlog.kernels.pivots import Pivots
from emberlog.kernels.program import TOLERANCE, Atom, Id, KernelProgram, Let
from emberlog.kernels.ranges import Ranges, ranges, sample
from emberlog.kernels.runtime import within
from emberlog.syntax.nodes import Variable

Arrays = Sequence[np.ndarray[Any, Any]]
Indexes = dict[tuple[Key, frozenset[int]], Index]  # by what they are of, and the columns that they hold


@dataclass(frozen=True)
class Prepared:
    """What the workers of a run share: the compiled loops, the static indexes, the constants."""

    program: KernelProgram
    pivots: Pivots
    layouts: dict[str, TableLayout]
    source: Source
    function: Any
    shared: dict[str, Any]
    sizes: Mapping[int, int]
    width: float | None = None  # how far values that are taken up together may lie apart; None: no order
    masked: bool = False  # many pivots at once
    gathered: bool = False  # sums read what they get
    ranges: Ranges | None = None  # None: no worker owns a part of the tables
    halt: Halt = field(default_factory=Halt)

    @property
    def bytes(self) -> int:
        """What indexes and constants take."""
        return sum(getattr(array, "nbytes", 0) for array in self.shared.values())

    @property
    def tables(self) -> dict[str, str]:
        return {table.name: f"t{i}" for i, table in enumerate(self.program.tables)}


def prepare(
    program: KernelProgram,
    pivots: Pivots,
    encoder: Encoder,
    statics: Mapping[str, Lazy],
    rows: int,
    force_hash: bool = False,
    ordered: bool = True,
    workers: int = 1,
    narrow_values: bool = False,
    partition: Mapping[str, int] | None = None,
    masks: bool = True,
    indexes: Indexes | None = None,
    there: np.ndarray[Any, Any] | None = None,
    room: int | None = None,
    halt: Halt | None = None,
) -> Prepared:
    """Compiles the loops and builds the indexes, those that `indexes` does not have yet.

    `masks` off evaluates pivots one by one. With `there`, a flag for each group that a sum of an iteration has from the
    start, sums gather if they can. With `room`, in bytes, workers own ranges of the tables if they can. `halt` ends
    loops that run.
    """
    planned = nests(program, pivots)
    check_size(planned)
    made = layouts(program, pivots, planned, encoder.sizes, rows, force_hash, partition)
    back = None if there is None else turned(program, made, planned)
    if back is not None and not _lead_to(back, statics, there):
        back = None
    planned = back or planned
    narrow = frozenset((n, i) for n, cs in statics.items() for i in range(len(cs)) if cs.dtype(i) == np.int32)
    orders = index_orders(planned)
    sparse = frozenset(
        (name, bound) for name, bound in orders if bound and not isinstance(program.static(name).kinds[bound[0]], Id)
    )
    reading = {key: _needed(key, planned) for key in orders}
    pairs = {(n, b): pair for (n, b), spots in reading.items() if (pair := pair_of(b, statics[n], spots)) is not None}
    width = bucket_width(program, statics, encoder.sizes) if ordered else None
    # Any: mypy does not take a class for hashable.
    writing: Any = Gathers if back is not None else _writer(program, pivots, made, planned, width is not None, masks)
    owned, divided = None, {}
    alone = not any(pivots.values())
    if room is not None and alone and writing in (Buckets, loops.Loops) and is_ownable(program, made, planned):
        writing = OwnedBuckets if writing is Buckets else Owned
        divided = owned_indexes(program, made, planned)
        owned = ranges(program, made, divided, statics, encoder.sizes, workers, room)
    if narrow_values and writing in (Buckets, OwnedBuckets):
        made = {name: replace(layout, narrow=layout.value_kind == "int") for name, layout in made.items()}
    source, names = _written(
        writing, program, tuple(pivots.items()), planned, tuple(made.items()), narrow, sparse, tuple(pairs.items())
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
    function, sizes = compiled(source), encoder.sizes
    return Prepared(
        program, pivots, made, source, function, shared, sizes, width, writing is Masks, writing is Gathers, owned, halt
    )


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


def _lead_to(back: tuple[Nest, ...], statics: Mapping[str, Lazy], there: Any) -> bool:
    """Do all rows lead to groups that are there? Else some come to be while the others are summed up."""
    ends = [nest.steps[-1] for nest in back]
    columns = [statics[probe.relation][probe.bound[0]] for probe in ends if isinstance(probe, Probe)]
    return bool(there.all()) or all(call(within, column, there) for column in columns)


def _needed(key: Key, planned: tuple[Nest, ...]) -> set[int]:
    """The columns that the nests read from an index."""
    reading = (probe for nest in planned for probe in probes(nest) if (probe.relation, probe.bound) == key)
    return {position for probe in reading for position, _ in probe.binds}


def _writer(
    program: KernelProgram,
    pivots: Pivots,
    made: dict[str, TableLayout],
    planned: tuple[Nest, ...],
    ordered: bool,
    masks: bool,
) -> type[loops.Loops]:
    """What writes the loops of this program."""
    if program.mode == "replace":
        return States
    if program.mode == "accumulate":
        return Sums
    if ordered and is_bucketed(program, list(made.values()), planned):
        return Buckets
    return Masks if masks and any(pivots.values()) and is_maskable(program, made, planned) else loops.Loops


def bucket_width(program: KernelProgram, statics: Mapping[str, Lazy], sizes: Mapping[int, int]) -> float | None:
    """How far apart values may lie that are taken up in one round, if small ones are to go first.

    What is added to a value on one step, divided by how many steps lead on from a fact: wider than that, and most of
    what is derived is replaced later; narrower, and rounds do too little.
    """
    if program.mode == "accumulate":
        return PART
    for rule in program.rules:
        added = {name for goal in rule.body if isinstance(goal, Let) for name in variables_of(goal.term)}
        for goal in rule.body:
            if isinstance(goal, Atom) and goal.relation in statics:
                for spot, argument in enumerate(goal.arguments):
                    kinds = program.static(goal.relation).kinds
                    columns = statics[goal.relation]
                    is_added = isinstance(argument, Variable) and argument.name in added
                    if kinds[spot] in ("int", "float") and is_added and columns.rows:
                        fan = columns.rows / max((sizes[k.domain] for k in kinds if isinstance(k, Id)), default=1)
                        width = float(np.abs(sample(columns, spot)).mean()) / max(fan, 1.0)
                        return max(1.0, round(width)) if kinds[spot] == "int" else width
    return None
