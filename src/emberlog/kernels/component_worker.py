"""What the workers of a component in Spark's tasks have in common: limits, how they write results and give up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.components.program import End, KernelProgram
from emberlog.diagnostics import ExecutionError
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.cluster.exchange import Array
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.partials import Asked, answer
from emberlog.kernels.watch import Failed, MeterWatch, Overworked, Unsuited
from emberlog.memory import Budget
from emberlog.stats import Limits, Meter, Silent, StratumStats


class GivenUp(ExecutionError):
    """The kernels cannot do it with these data; somebody else has to."""


@dataclass
class Watched:
    """What a worker measures of itself, and the limits that it keeps."""

    stats: StratumStats
    budget: Budget
    watch: MeterWatch


@dataclass(frozen=True)
class ComponentWorker:
    """What all workers of a component are told. Inputs have the columns that are read.

    They write the rows of those relations that the choices keep (None: all), and what is asked of the others.
    """

    program: KernelProgram
    choices: Choices
    limits: Limits
    growing: bool
    inventing: int | None
    asked: tuple[Asked, ...] = ()
    seconds_spent: float = 0.0  # of the limits, by the run before
    rows_before: int = 0
    memory: int | None = None  # bytes for all workers of a machine together; None: a share of what is free there
    reserved: int = 0  # bytes that are free there, and not for workers
    end: End | None = None  # of an iteration
    iterated: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.program.tables)

    def begin(self, output: Output) -> Watched:
        """The limits of this worker, from now on."""
        stats = StratumStats(self.names)
        meter = Meter(self.limits, Silent())
        meter.started -= self.seconds_spent
        meter.rows = self.rows_before
        budget = Budget.of(self.memory, output.neighbours, self.reserved)
        return Watched(stats, budget, MeterWatch(meter, stats, self.growing, self.inventing, budget))

    def write(self, done: Evaluated, watched: Watched, output: Output) -> dict[str, Any]:
        """Writes what was computed; the figures for the driver."""
        infinite = done.has_infinite_sums()
        for name in self.names:
            if self.choices.keep is None or name in self.choices.keep:
                _write(output, name, (batch.columns for batch in done.batches(name)), self._titles(name))
        for asked in self.asked:
            memory = watched.budget.left() // 2
            _write(output, asked.relation, answer(asked, done, self.choices.workers, memory, output.folder))
        return {
            "counts": done.counts,
            "how": done.how,
            "events": [[event.what, event.why] for event in done.events],
            "rounds": max(done.rounds, watched.stats.rounds),
            "deltas": watched.stats.deltas,
            "derivations": done.derivations,
            "bytes": done.bytes_exchanged,
            "residual": done.residual,
            "converged": done.converged,
            "infinite": infinite,
        }

    def table(self, name: str, columns: list[Array]) -> pa.Table:
        """The columns of a relation in their places; one that nobody reads is empty, which its rows do not tell."""
        kinds: tuple[Any, ...] = self.program.kinds(name)
        given = iter(columns)
        rows = len(columns[0])
        arrays = [pa.nulls(rows) if kind == "unread" else pa.array(next(given)) for kind in kinds]
        return pa.table(arrays, names=[f"c{i}" for i in range(len(kinds))])

    def _titles(self, name: str) -> list[str]:
        """The names of a relation's columns, where every reader of files tells them apart."""
        names = [column.name for column in self.program.signatures[name].columns]
        plain = all(re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", name) for name in names)
        return names if plain and len({name.lower() for name in names}) == len(names) else []


@contextmanager
def giving_up() -> Iterator[None]:
    """What kernels cannot do with these data, as the driver hears it."""
    try:
        yield
    except (Unsuited, Failed, Overworked) as reason:
        raise GivenUp(str(reason) or "an operation had no value") from None


def _write(output: Output, relation: str, pieces: Iterable[list[pa.Array]], names: Sequence[str] = ()) -> None:
    with output.writer(relation, names) as writer:
        for columns in pieces:
            writer.write([np.asarray(column.to_numpy(zero_copy_only=False)) for column in columns])
