"""What runs in a Spark task: compiled loops on the inputs of the task, results to its output."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from emberlog.components.program import Copies
from emberlog.kernels.cluster.exchange import Alone, Array
from emberlog.kernels.cluster.links import Links
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.cluster.sockets import SocketExchange
from emberlog.kernels.component_worker import ComponentWorker, giving_up
from emberlog.kernels.native import evaluate


@dataclass(frozen=True)
class KernelWorker(ComponentWorker):
    """Evaluates a component by compiled loops, and strata above it that are part of the program.

    Inputs are named `static/p`, `exit/p` and `start/p`. Those that are copies are made here, of relations that come
    whole as `file/p`.
    """

    copies: Mapping[str, Copies] = field(default_factory=dict)

    def __call__(
        self, rank: int, size: int, inputs: dict[str, list[Array]], links: Links | None, output: Output, /
    ) -> bytes:
        watched = self.begin(output)
        copied = _Copied(inputs, self.copies)
        statics = {
            static.name: self.table(static.name, copied(f"static/{static.name}")) for static in self.program.statics
        }
        first = [name for name in self.names if name not in self.program.heads_above]
        exits = {name: self.table(name, copied(f"exit/{name}")) for name in first}
        starts = {n: self.table(n, inputs[f"start/{n}"]) for n in self.names} if self.iterated else None
        exchange = Alone() if links is None else SocketExchange(links)
        spill = output.folder / "spill"
        choices = replace(
            self.choices, part=(rank, size), keep=self._in_memory(), budget=watched.budget, spill=str(spill)
        )
        with giving_up():
            done = evaluate(self.program, statics, exits, watched.watch, choices, starts, self.end, exchange)
            told = self.write(done, watched, output)
        shutil.rmtree(spill, ignore_errors=True)
        return json.dumps(told).encode()

    def _in_memory(self) -> frozenset[str] | None:
        """The relations whose rows are needed here, if only for a moment."""
        if self.choices.keep is None or self.program.float_sums:  # whether these are infinite is told from rows only
            return None
        return self.choices.keep | {asked.table for asked in self.asked if asked.sql is not None}


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
