"""How a component may be evaluated, and what comes of it: whoever evaluates it, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.choose.wishes import Wishes
from emberlog.kernels.encode import Encoder
from emberlog.kernels.memory import release
from emberlog.kernels.watch import Failed
from emberlog.memory import Budget
from emberlog.stats import Event
from emberlog.store.kept import Kept
from emberlog.thresholds import CHECKPOINT_SECONDS
from emberlog.workers.stats import Coordinated

Columns = list[np.ndarray[Any, Any]]

PIECE = 1 << 19  # rows that are decoded at once


@dataclass(frozen=True)
class Choices(Wishes):
    """What is wished, and with what a component is evaluated. `keep` are the tables whose rows are wanted; of others
    only the number is known afterwards."""

    workers: int = 1
    keep: frozenset[str] | None = None
    part: tuple[int, int] = (0, 1)  # of so many processes that share out the pivots, this one
    budget: Budget | None = None  # None: a share of what is free
    checkpoint: str | None = None  # the folder for checkpoints of workers that coordinate
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    spill: str | None = None  # the folder for finished rows that are too many
    kept: Kept | None = field(default=None, compare=False)  # what earlier runs made of the sources


@dataclass
class Evaluated:
    """The relations of a component. `how` says in a few words how it was evaluated."""

    encoder: Encoder
    counts: dict[str, int]
    how: str
    rounds: int = 0
    derivations: int = 0
    bytes_exchanged: int = 0
    residual: float | None = None
    converged: bool = False  # an iteration that reached its end
    events: list[Event] = field(default_factory=list)
    coordination: Coordinated | None = None  # of workers that share it out
    pieces: Callable[[str], Iterator[Columns]] = field(default=lambda name: iter(()))
    pivots: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shares: Callable[[str], Iterator[Columns]] = field(
        default=lambda name: iter(())
    )  # with pivots: pieces of whole ones

    def has_infinite_sums(self) -> bool:
        """True if a sum of floats is infinite; none is in the data, so that it grew or overflowed. Raises `Failed` if
        one is no number: what follows from it depends on the order in which changes came. A sum above a recursion must
        be finite: statements tell whether it counts."""
        found = False
        for table in self.encoder.program.float_sums:
            assert table.value is not None
            above = table.name in self.encoder.program.heads_above
            for piece in self.pieces(table.name):
                if np.isnan(piece[table.value]).any() or (above and np.isinf(piece[table.value]).any()):
                    raise Failed
                found = found or bool(np.isinf(piece[table.value]).any())
        return found

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a relation, piece by piece, with columns `c0`, `c1`, .."""
        columns = self.encoder.program.signatures[name].columns
        names = [f"c{i}" for i in range(len(columns))]
        for piece in self.pieces(name):
            for start in range(0, len(piece[0]) if piece else 1, PIECE):
                rows = [column[start : start + PIECE] for column in piece]
                yield pa.RecordBatch.from_arrays(self.encoder.decoded(name, rows, columns), names)
            for column in piece:
                release(column)
