"""Strata without recursion by loops: rows of one input, pivot by pivot, through the rules.

What loops computed before comes as it is encoded. Its ids become those of this program by a table for each domain: the
values of a dictionary are decoded once, and not those of each row. Rows come in shares of whole pivots where the loops
that computed them had the same pivot, so that they are never all there at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.choose.ways import Inputs, choose_way
from emberlog.components.program import Id, KernelProgram
from emberlog.kernels.choices import Choices, Columns, Evaluated
from emberlog.kernels.encode import Encoder, by_name
from emberlog.kernels.halting import Halt
from emberlog.kernels.memory import Memory
from emberlog.kernels.pivoted import Pivoted, PivotRun, grouped_exits
from emberlog.kernels.prepare import prepare
from emberlog.kernels.state import State
from emberlog.kernels.watch import Unsuited, Watch
from emberlog.memory import Budget

Ids = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of a relation as loops left them."""

    name: str
    evaluated: Evaluated

    @property
    def number(self) -> int:
        return self.evaluated.counts[self.name]

    def values(self) -> list[pa.Array]:
        """For each column that has ids, all values that it may have."""
        encoder = self.evaluated.encoder
        kinds = encoder.program.kinds(self.name)
        sizes = encoder.sizes
        return [
            encoder.dictionaries[kind.domain].decode(np.arange(sizes[kind.domain], dtype=np.uint32))
            if isinstance(kind, Id) and encoder.dictionaries[kind.domain].size
            else pa.array([], pa.int64())
            for kind in kinds
        ]

    def shares(self, pivots: tuple[int, ...]) -> Iterator[Columns]:
        """The columns in parts that have whole pivots: all at once where others divided the rows."""
        if self.evaluated.pivots.get(self.name) == pivots:
            yield from self.evaluated.shares(self.name)
            return
        pieces = list(self.evaluated.pieces(self.name))
        if pieces:
            yield [np.concatenate(columns) for columns in zip(*pieces, strict=True)]


def evaluate_once(
    program: KernelProgram, rows: Rows, statics: Mapping[str, pa.Table], watch: Watch, choices: Choices
) -> Evaluated:
    """The relations above the first table of a program, which has these rows. Raises `Unsuited` or `Failed` where the
    relational evaluator has to do it."""
    budget = choices.budget or Budget.of(None)
    memory = Memory(budget.left(), None if choices.spill is None else Path(choices.spill))
    memory.meter = budget
    first = program.tables[0]
    given = {first.name: [rows.values()]}
    encoder = Encoder(program, {**by_name([statics]), **given}, choices.workers, choices.kept)
    counts = {first.name: rows.number, **{name: table.num_rows for name, table in statics.items()}}
    way = choose_way(program, choices, choices.workers, Inputs(counts, encoder.sizes, memory.budget)).one_by_one()
    if way.unfit or not way.pivoted:
        raise Unsuited(way.unfit or "its rows have no pivot")
    halt = Halt(watch.halted)
    arrays = {name: encoder.columns(name, table.columns) for name, table in statics.items()}
    prepared = prepare(program, way, encoder, arrays, choices.workers, room=memory.budget, halt=halt)
    memory.check(prepared.bytes + State.needs(prepared), "tables and indexes")
    keep = frozenset(program.heads_above) if choices.keep is None else choices.keep
    numbers = _translations(rows, encoder)
    done: list[Pivoted] = []
    with watch.halting(halt.set):
        for share in rows.shares(way.pivots[first.name]):
            columns = [column if new is None else new[column] for column, new in zip(share, numbers, strict=True)]
            grouped = grouped_exits(prepared, {first.name: columns})
            done.append(PivotRun(prepared, grouped, choices.workers, keep - {first.name}, watch, memory).run())
    spots = ", ".join(str(spot + 1) for spot in way.pivots[first.name])
    return Evaluated(
        encoder,
        {name: sum(part.counts[name] for part in done) for name in program.heads_above},
        f"one pass over the rows of {rows.name}, pivot by pivot ({rows.name}: {spots}){memory.told}",
        derivations=sum(part.derivations for part in done),
        pieces=lambda name: chain.from_iterable(part.columns(name) for part in done),
    )


def _translations(rows: Rows, encoder: Encoder) -> list[Ids | None]:
    """For each column what its ids become, by the old id; None where values stay what they are."""
    old, name = rows.evaluated.encoder, encoder.program.tables[0].name
    found: list[Ids | None] = []
    pairs = zip(old.program.kinds(rows.name), encoder.program.kinds(name), rows.values(), strict=True)
    for before, after, values in pairs:
        if isinstance(before, Id):
            made = encoder.column(values, after)
            same = made.dtype == np.uint32 and bool((made == np.arange(len(made), dtype=np.uint32)).all())
            found.append(None if same else made)
        elif before == after:
            found.append(None)
        else:
            raise Unsuited("a column of numbers that are computed is one of ids here")
    return found
