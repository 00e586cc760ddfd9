"""What runs in a Spark task: the kernels on the inputs of the task, results to its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster.exchange import Array, Exchange
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.encode import Unsuited
from emberlog.kernels.evaluate import Choices, evaluate
from emberlog.kernels.iterations import End
from emberlog.kernels.program import KernelProgram
from emberlog.kernels.watch import Failed, MeterWatch
from emberlog.stats import Limits, Meter, Silent, StratumStats


class GivenUp(ExecutionError):
    """The kernels cannot do it with these data; somebody else has to."""


@dataclass(frozen=True)
class KernelWorker:
    """Evaluates a component. Inputs are named `static/p`, `exit/p` and `start/p` and have the columns that are read."""

    program: KernelProgram
    choices: Choices
    limits: Limits
    growing: bool
    inventing: int | None
    end: End | None = None
    iterated: bool = False
    copies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # exit rows: columns of the input they come in

    def __call__(
        self, rank: int, size: int, inputs: dict[str, list[Array]], exchange: Exchange, output: Output, /
    ) -> bytes:
        stats = StratumStats(tuple(table.name for table in self.program.tables))
        meter = Meter(self.limits, Silent())
        watch = MeterWatch(meter, stats, self.growing, self.inventing)
        statics = {
            static.name: self._table(static.name, inputs[f"static/{static.name}"]) for static in self.program.statics
        }
        exits = {name: self._table(name, self._exit(name, inputs[f"exit/{name}"])) for name in stats.predicates}
        starts = {n: self._table(n, inputs[f"start/{n}"]) for n in stats.predicates} if self.iterated else None
        try:
            choices = replace(self.choices, part=(rank, size))
            done = evaluate(self.program, statics, exits, watch, choices, starts, self.end, exchange)
        except (Unsuited, Failed) as reason:
            raise GivenUp(str(reason) or "an operation had no value") from None
        for name in stats.predicates:
            with output.writer(name) as writer:
                for batch in done.batches(name):
                    writer.write([np.asarray(column.to_numpy(zero_copy_only=False)) for column in batch.columns])
        told = {
            "how": done.how,
            "rounds": max(done.rounds, stats.rounds),
            "deltas": stats.deltas,
            "derivations": done.derivations,
            "bytes": done.bytes_exchanged,
            "residual": done.residual,
            "converged": done.converged,
        }
        return json.dumps(told).encode()

    def _exit(self, name: str, columns: list[Array]) -> list[Array]:
        return [columns[spot] for spot in self.copies[name]] if name in self.copies else columns

    def _table(self, name: str, columns: list[Array]) -> pa.Table:
        """The columns in their places; one that nobody reads is empty, which its rows do not tell."""
        kinds: tuple[Any, ...] = self.program.kinds(name)
        given = iter(columns)
        rows = len(columns[0])
        arrays = [pa.nulls(rows) if kind == "unread" else pa.array(next(given)) for kind in kinds]
        return pa.table(arrays, names=[f"c{i}" for i in range(len(kinds))])
