"""Facts on their way between parts: columns by table, and how they are condensed before they are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from emberlog.components.program import Table
from emberlog.kernels.columns.facts import SAFE_SUM
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.watch import Failed


@dataclass(frozen=True)
class Rows:
    """Columns of facts, by the table that they are for."""

    tables: Mapping[str, Sequence[Column]]

    @property
    def facts(self) -> int:
        return sum(len(columns[0]) for columns in self.tables.values())

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for columns in self.tables.values() for column in columns)


def divided(columns: Sequence[Column], owner: Column) -> Iterator[tuple[int, list[Column]]]:
    """The rows of each owner that has some. Owners are numbers of 16 bits, which NumPy sorts by counting."""
    order = np.argsort(owner, kind="stable")
    ranked = owner[order].astype(np.int64)
    starts = np.flatnonzero(np.diff(ranked, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(ranked)]):
        rows = order[start:end]
        yield int(ranked[start]), [column[rows] for column in columns]


def condensed(table: Table, pieces: Sequence[Sequence[Column]]) -> list[Column]:
    """Distinct facts; of extrema to one key the best, of sums to one key the sum of the differences."""
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    if not table.keys:
        order, starts = np.arange(len(columns[0])), np.zeros(1, np.int64)
    else:
        order = np.lexsort([columns[key] for key in table.keys])
        new = np.zeros(len(order), bool)
        new[:1] = True
        for key in table.keys:
            ordered = columns[key][order]
            new[1:] |= ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(new)
    found = [column[order[starts]] for column in columns]
    if table.value is not None:
        found[table.value] = _folded(table, columns[table.value][order], starts)
    return found


def _folded(table: Table, values: Column, starts: Column) -> Column:
    match table.fold:
        case "min":
            return np.minimum.reduceat(values, starts)
        case "max":
            return np.maximum.reduceat(values, starts)
        case _:
            if values.dtype.kind != "f" and float(np.abs(values.astype(np.float64)).sum()) > SAFE_SUM:
                raise Failed
            with np.errstate(all="ignore"):  # whoever looks at the sums tells those that are no numbers
                return np.add.reduceat(values, starts)
