"""Who owns which slots, where workers share tables (`owned`): ranges with about as much work in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Key
from emberlog.components.program import Id, KernelProgram, Kind
from emberlog.kernels.encode import Lazy
from emberlog.kernels.sorting import ALIGN, Owners
from emberlog.thresholds import ROWS_AN_OWNER

ROWS_A_SLOT = 1.0  # so much as so many rows does a slot cost its owner
SAMPLE = 1 << 16
MOST_PLACES = (1 << 32) - 1  # a key and an owner are one number of 32 bits while rows are sorted
ROW_BYTES = 24  # of an index while it is built
SLOT_BYTES = 24  # of a table, whoever owns it
OFFSET_BYTES = 8


@dataclass(frozen=True)
class Ranges:
    """Where the range of each owner in each table begins, and the end of the last."""

    borders: dict[str, np.ndarray[Any, Any]]
    why: str = ""  # there are fewer owners than workers

    @property
    def owners(self) -> int:
        return len(next(iter(self.borders.values()))) - 1

    def of_index(self, kind: Kind, spot: int, made: Mapping[str, TableLayout]) -> Owners | None:
        """Who owns the rows of an index, by the column in which they have their slots."""
        name = next(name for name, layout in made.items() if layout.table.kinds[layout.keys[0]] == kind)
        own = self.borders[name]
        of_block = np.searchsorted(own[1:-1], np.arange(0, own[-1], ALIGN), side="right").astype(np.uint32)
        return Owners(spot, of_block, self.owners) if self.owners > 1 else None


def ranges(
    program: KernelProgram,
    made: Mapping[str, TableLayout],
    divided: Mapping[Key, int],
    statics: Mapping[str, Lazy],
    sizes: Mapping[int, int],
    workers: int,
    room: int,
) -> Ranges:
    """Ranges for so many workers, or fewer, in so many bytes. `divided` are the indexes whose rows lead into slots."""
    domains = {name: domain for name, layout in made.items() for domain in layout.domains if domain is not None}
    blocks = {domain: -(-sizes[domain] // ALIGN) for domain in domains.values()}
    rows = sum(statics[name].rows for name, _ in divided)
    afforded = _affordable(program, made, divided, statics, sizes, room)
    limits = [
        (workers, ""),
        (rows // ROWS_AN_OWNER, "few rows") if divided else (1, "no rows lead straight to what is derived"),
        (max(blocks.values()), "few keys"),
        (min(MOST_PLACES // max(sizes.values()), afforded), "for want of memory"),
    ]
    number, why = min(limits, key=lambda limit: limit[0])
    number = max(1, number)
    borders = {}
    for name, domain in domains.items():
        weights = np.full(blocks[domain], ROWS_A_SLOT * ALIGN)
        for (relation, _), spot in divided.items() if number > 1 else ():
            if program.static(relation).kinds[spot] == Id(domain) and statics[relation].rows:
                found = sample(statics[relation], spot)
                weights += np.bincount(found // ALIGN, minlength=len(weights)) * (statics[relation].rows / len(found))
        total = np.cumsum(weights)
        inner = np.searchsorted(total, total[-1] * np.arange(1, number) / number) + 1
        borders[name] = np.array([0, *np.minimum(inner * ALIGN, sizes[domain]), sizes[domain]], np.int64)
    return Ranges(borders, why)


def _affordable(
    program: KernelProgram,
    made: Mapping[str, TableLayout],
    divided: Mapping[Key, int],
    statics: Mapping[str, Lazy],
    sizes: Mapping[int, int],
    room: int,
) -> int:
    """How many owners there is room for: each has offsets of its own in an index, and remembers values."""
    base = sum(statics[name].rows for name, _ in divided) * ROW_BYTES
    each = 1
    for name, bound in divided:
        kind = program.static(name).kinds[bound[0]]
        assert isinstance(kind, Id)
        each += sizes[kind.domain] * OFFSET_BYTES
    for layout in made.values():
        slots = sum(sizes[domain] for domain in layout.domains if domain is not None)
        base += slots * SLOT_BYTES
        each += slots * np.dtype(layout.dtype).itemsize if layout.table.fold != "set" else 0
    return (room - base) // each


def sample(columns: Lazy, spot: int) -> np.ndarray[Any, Any]:
    """Some of the values of a column, drawn at random: rows may alternate. None only if it has none."""
    pieces = columns.pieces(spot)
    if columns.rows <= SAMPLE:
        return np.concatenate(pieces)
    draw = np.random.default_rng(0)
    parts = [draw.integers(0, len(piece), -(-SAMPLE * len(piece) // columns.rows)) for piece in pieces]
    return np.concatenate([piece[part] for piece, part in zip(pieces, parts, strict=True)])
