"""What runs in a Spark task: the kernels on the inputs of the task, results to its output."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.components.program import Copies, End, KernelProgram
from emberlog.diagnostics import ExecutionError
from emberlog.kernels.choices import Choices
from emberlog.kernels.cluster.exchange import Array, Exchange
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.native import evaluate
from emberlog.kernels.partials import Asked, answer
from emberlog.kernels.watch import Failed, MeterWatch, Unsuited
from emberlog.memory import Budget
from emberlog.stats import Limits, Meter, Silent, StratumStats


class GivenUp(ExecutionError):
    """The kernels cannot do it with these data; somebody else has to."""


@dataclass(frozen=True)
class KernelWorker:
    """Evaluates a component, and strata above it that are part of the program.

    Inputs are named `static/p`, `exit/p` and `start/p` and have the columns that are read. Those that are copies are
    made here, of relations that come whole as `file/p`.

    It writes the rows of those relations that the choices keep (None: all), and what is asked of the others.
    """

    program: KernelProgram
    choices: Choices
    limits: Limits
    growing: bool
    inventing: int | None
    end: End | None = None
    iterated: bool = False
    copies: Mapping[str, Copies] = field(default_factory=dict)
    asked: tuple[Asked, ...] = ()
    seconds_spent: float = 0.0  # of the limits, by the run before
    rows_before: int = 0
    memory: int | None = None  # bytes for all workers of a machine together; None: a share of what is free there
    reserved: int = 0  # bytes that are free there, and not for workers

    def __call__(
        self, rank: int, size: int, inputs: dict[str, list[Array]], exchange: Exchange, output: Output, /
    ) -> bytes:
        stats = StratumStats(tuple(table.name for table in self.program.tables))
        meter = Meter(self.limits, Silent())
        meter.started -= self.seconds_spent
        meter.rows = self.rows_before
        budget = Budget.of(self.memory, output.neighbours, self.reserved)
        watch = MeterWatch(meter, stats, self.growing, self.inventing, budget)
        copied = _Copied(inputs, self.copies)
        statics = {
            static.name: self._table(static.name, copied(f"static/{static.name}")) for static in self.program.statics
        }
        first = [name for name in stats.predicates if name not in self.program.heads_above]
        exits = {name: self._table(name, copied(f"exit/{name}")) for name in first}
        starts = {n: self._table(n, inputs[f"start/{n}"]) for n in stats.predicates} if self.iterated else None
        try:
            spill = str(output.folder / "spill")
            choices = replace(self.choices, part=(rank, size), keep=self._in_memory(), budget=budget, spill=spill)
            done = evaluate(self.program, statics, exits, watch, choices, starts, self.end, exchange)
            infinite = done.has_infinite_sums()
        except (Unsuited, Failed) as reason:
            raise GivenUp(str(reason) or "an operation had no value") from None
        for name in stats.predicates:
            if self.choices.keep is None or name in self.choices.keep:
                _write(output, name, (batch.columns for batch in done.batches(name)), self._titles(name))
        for asked in self.asked:
            memory = budget.left() // 2
            _write(output, asked.relation, answer(asked, done, self.choices.workers, memory, output.folder))
        shutil.rmtree(output.folder / "spill", ignore_errors=True)
        told = {
            "counts": done.counts,
            "how": done.how,
            "events": [[event.what, event.why] for event in done.events],
            "rounds": max(done.rounds, stats.rounds),
            "deltas": stats.deltas,
            "derivations": done.derivations,
            "bytes": done.bytes_exchanged,
            "residual": done.residual,
            "converged": done.converged,
            "infinite": infinite,
        }
        return json.dumps(told).encode()

    def _in_memory(self) -> frozenset[str] | None:
        """The relations whose rows are needed here, if only for a moment."""
        if self.choices.keep is None or self.program.float_sums:  # whether these are infinite is told from rows only
            return None
        return self.choices.keep | {asked.table for asked in self.asked if asked.sql is not None}

    def _titles(self, name: str) -> list[str]:
        """The names of a relation's columns, where every reader of files tells them apart."""
        names = [column.name for column in self.program.signatures[name].columns]
        plain = all(re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", name) for name in names)
        return names if plain and len({name.lower() for name in names}) == len(names) else []

    def _table(self, name: str, columns: list[Array]) -> pa.Table:
        """The columns in their places; one that nobody reads is empty, which its rows do not tell."""
        kinds: tuple[Any, ...] = self.program.kinds(name)
        given = iter(columns)
        rows = len(columns[0])
        arrays = [pa.nulls(rows) if kind == "unread" else pa.array(next(given)) for kind in kinds]
        return pa.table(arrays, names=[f"c{i}" for i in range(len(kinds))])


class _Copied:
    """Inputs by their names; columns that are the same copies are the same arrays."""

    def __init__(self, inputs: Mapping[str, list[Array]], copies: Mapping[str, Copies]) -> None:
        self.inputs = inputs
        self.copies = copies
        self.made: dict[tuple[tuple[str, int], ...], Array] = {}

    def __call__(self, key: str) -> list[Array]:
        if key not in self.copies:
            return self.inputs[key]
        parts = self.copies[key]
        return [self._column(tuple((name, spots[i]) for name, spots in parts)) for i in range(len(parts[0][1]))]

    def _column(self, parts: tuple[tuple[str, int], ...]) -> Array:
        if parts not in self.made:
            found = [self.inputs[f"file/{name}"][spot] for name, spot in parts]
            self.made[parts] = found[0] if len(found) == 1 else np.concatenate(found)
        return self.made[parts]


def _write(output: Output, relation: str, pieces: Iterable[list[pa.Array]], names: Sequence[str] = ()) -> None:
    with output.writer(relation, names) as writer:
        for columns in pieces:
            writer.write([np.asarray(column.to_numpy(zero_copy_only=False)) for column in columns])
