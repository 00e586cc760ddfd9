"""Divides the inputs of a component among workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from emberlog.choose.wishes import Storage
from emberlog.components.linear import is_linear
from emberlog.components.program import End
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.encode import Encoder, by_name, check_contributors
from emberlog.kernels.owners import owners
from emberlog.kernels.parts.iterations import AccumulatingPart, ReplacingPart
from emberlog.kernels.parts.parcels import Rows, divided
from emberlog.kernels.parts.part import ComponentPart, EvaluatedPart
from emberlog.kernels.watch import Watch
from emberlog.thresholds import PART_ROWS, SMALL_ROWS

if TYPE_CHECKING:
    from emberlog.kernels.parts.compiled import CompiledPart


def build_parts(
    plan: WorkerPlan,
    statics: Mapping[str, pa.Table],
    exits: Mapping[str, pa.Table],
    size: int,
    watch: Callable[[int], Watch],
    starts: Mapping[str, pa.Table] | None = None,
    end: End | None = None,
    compiled: bool = False,
) -> tuple[Encoder, list[EvaluatedPart]]:
    """The parts of `size` workers with their first facts, and what decodes them. `watch` is asked for each rank. An
    iteration goes on from `starts` until `end`, and each of its rounds has the contributions `exits`. Parts are
    evaluated over columns, or by loops that are `compiled`."""
    encoder = Encoder(plan.program, by_name([statics, exits, starts or {}]))
    arrays = {name: [wide(c) for c in encoder.rows(name, table.columns)] for name, table in statics.items()}
    check_contributors(plan.program, arrays, statics)
    shares = _static_shares(plan, arrays, size)
    first = _first_rows(plan, encoder, exits, size)
    begin = _first_rows(plan, encoder, starts or {}, size)
    make = kind_of_part(plan, compiled)
    parts: list[EvaluatedPart] = [
        make(plan, encoder, shares[rank], rank, size, watch(rank), end) for rank in range(size)
    ]
    for part, start, more in zip(parts, begin, first, strict=True):
        part.begin(start, more)
    return encoder, parts


def compiles(plan: WorkerPlan, storage: Storage, rows: int) -> bool:
    """True if parts of a component with so many input rows are evaluated by compiled loops: as it is wished, else where
    that saves more than a compiler takes. States that rounds replace are always kept as columns."""
    if plan.program.mode == "replace" or storage == "columns":
        return False
    few = PART_ROWS if is_linear(plan.program) else SMALL_ROWS
    return storage == "loops" or rows > few


def kind_of_part(plan: WorkerPlan, compiled: bool) -> type[ComponentPart] | type[CompiledPart]:
    match plan.program.mode:
        case "replace":
            return ReplacingPart
        case _ if compiled:
            from emberlog.kernels.parts.compiled import CompiledPart  # loads the compiler

            return CompiledPart
        case "accumulate":
            return AccumulatingPart
        case "delta":
            return ComponentPart


def _first_rows(plan: WorkerPlan, encoder: Encoder, tables: Mapping[str, pa.Table], size: int) -> list[Rows]:
    """The rows of relations that each worker owns."""
    found: list[dict[str, list[Column]]] = [{} for _ in range(size)]
    for name, table in tables.items():
        columns = [wide(column) for column in encoder.rows(name, table.columns)]
        owner = owners([columns[spot] for spot in plan.homes[name]], table.num_rows, size)
        for rank, rows in divided(columns, owner):
            found[rank][name] = rows
    return [Rows(rows) for rows in found]


def _static_shares(plan: WorkerPlan, arrays: Mapping[str, Columns], size: int) -> list[dict[str, Columns]]:
    """The statics of each worker: all rows where they are replicated, else those that it owns."""
    shares: list[dict[str, Columns]] = [{} for _ in range(size)]
    for name, spots in plan.statics.items():
        columns = arrays[plan.sources[name]]
        rows = max(len(column) for column in columns)
        if spots is None or size == 1:
            for share in shares:
                share[name] = columns
            continue
        for share in shares:
            share[name] = [column[:0] for column in columns]
        owner = owners([columns[spot] for spot in spots], rows, size)
        # A column that no rule reads has no values.
        read = [spot for spot, column in enumerate(columns) if len(column) == rows]
        for rank, found in divided([columns[spot] for spot in read], owner):
            for spot, column in zip(read, found, strict=True):
                shares[rank][name][spot] = column
    return shares


def wide(column: Column) -> Column:
    """Ids and numbers in 64 bits."""
    return column if column.dtype.kind == "f" else column.astype(np.int64)
