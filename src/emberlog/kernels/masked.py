"""Runs the loops of `masks`: blocks of pivots, shared out among threads, and pairs out of masks when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberlog.kernels.cache import call
from emberlog.kernels.code.masks import WORDS
from emberlog.kernels.crew import Crew
from emberlog.kernels.memory import release
from emberlog.kernels.orders import AS_THEY_ARE, Numbering
from emberlog.kernels.pivoted import ByPivots
from emberlog.kernels.runtime import drain_masks, expand_masks
from emberlog.kernels.state import State
from emberlog.thresholds import MASK_PIVOTS
from emberlog.types import INT64_MAX

BLOCK = 64 * WORDS
PAIRS = 1 << 20  # rows of a piece
SAMPLED = 8  # with fewer blocks it matters little how they are evaluated
SAMPLE, FULL_SAMPLE = 64, 1.5  # the same of some that are tried first
SOON = 1 << 14  # derivations for which these are tried


class Sparse(Exception):
    """Pivots have so little in common that each one alone is sooner done."""


class Disordered(Exception):
    """Ids lie in such an order that sweeps take up the same slots again and again."""


@dataclass(frozen=True)
class Block:
    """The facts of the pivots from `first` on: slots, and for each the pivots that have it."""

    first: int
    slots: np.ndarray[Any, Any]
    masks: np.ndarray[Any, Any]


class MaskedRun(ByPivots):
    """Blocks of pivots. After `run` it has the result: counts, and the rows of tables that are kept. Ids are those
    before the `numbering`. The first blocks raise `Disordered` if they take more than `patience` derivations."""

    def __init__(self, *given: Any, numbering: Numbering = AS_THEY_ARE, patience: int = INT64_MAX) -> None:
        super().__init__(*given)
        self.numbering = numbering
        self.patience = patience
        self.blocks: dict[str, list[Block]] = {name: [] for name in self.prepared.tables}
        self.counts = dict.fromkeys(self.prepared.tables, 0)
        self.slots = 0  # that had facts, over all blocks
        self.unsure = 0  # blocks that may still be found sparse
        self.hasty = 0  # blocks that may still be found in disorder
        self.derivations = 0
        self.rounds = 0
        self._free: list[tuple[State, np.ndarray[Any, Any]]] = []  # what no worker uses at the moment

    def run(self) -> MaskedRun:
        blocks = [range(first, min(first + BLOCK, self.number)) for first in range(0, self.number, BLOCK)]
        workers = min(self.workers, max(len(blocks), 1))
        if len(blocks) >= SAMPLED:
            self.unsure = workers
            self._try(blocks[len(blocks) // 2][:SAMPLE])
        self.hasty = workers
        with Crew(workers, lambda: self.watch.look(sum(self.counts.values()))) as crew:
            crew.each(blocks, self._block)
        for found in self.blocks.values():
            found.sort(key=lambda block: block.first)
        self._free.clear()  # their memory is for whoever reads the rows
        return self

    def _try(self, pivots: range) -> None:
        """Raises where some pivots come to their end soon, and have little in common."""
        state, room = self._made()
        self._call(state, pivots, SOON)
        if state.figure("left"):
            return  # facts are left in these tables
        slots = sum(state.count(name) for name in self.prepared.tables)
        facts = sum(self._drain(state, name, _room(0)) for name in self.prepared.tables)
        if facts < FULL_SAMPLE * slots:
            raise Sparse("pivots have little in common")
        self._free.append((state, room))

    def _block(self, pivots: range) -> None:
        """The fixpoint of one block, in tables that the worker uses again for the next."""
        with self.lock:
            state, room = self._free.pop() if self._free else self._made()
            patience = self.patience if self.hasty > 0 else INT64_MAX
            self.hasty -= 1
        self._call(state, pivots, patience)
        if state.figure("left"):
            raise Disordered(f"{patience:,} derivations were not enough for a block of pivots")
        for name, t in self.prepared.tables.items():
            facts, count = self._drain(state, name, room), state.count(name)
            if name in self.keep and count:
                slots = self.memory.keep_copy(state.arrays[f"{t}_log"][:count])
                self.blocks[name].append(Block(pivots.start, slots, self.memory.keep_copy(room[:count])))
            with self.lock:
                self.counts[name] += facts
                self.slots += count
        with self.lock:
            self.derivations += state.figure("work")
            self.rounds = max(self.rounds, state.figure("rounds"))
            self._free.append((state, room))
            self.unsure -= 1
            if self.unsure >= 0 and sum(self.counts.values()) < MASK_PIVOTS * self.slots:
                raise Sparse("pivots have little in common")

    def _call(self, state: State, pivots: range, budget: int) -> None:
        most = self.watch.most_rounds
        state.call(first=pivots.start, last=pivots.stop, most=most, budget=budget, **self.exits)
        if state.figure("fail"):
            self.watch.failed(state.figure("fail"))

    def _drain(self, state: State, name: str, room: np.ndarray[Any, Any]) -> int:
        """How many facts a table has; it is empty afterwards, and its masks are in `room`, if there is some."""
        t, arrays = self.prepared.tables[name], state.arrays
        logged = state.count(name)
        return int(call(drain_masks, arrays[f"{t}_mask"], arrays[f"{t}_seen"], arrays[f"{t}_log"], logged, room))

    def _made(self) -> tuple[State, np.ndarray[Any, Any]]:
        """The tables of a worker, and room for the masks of any of them."""
        state = State(self.prepared)
        slots = max(len(state.arrays[f"{t}_mask"]) for t in self.prepared.tables.values())
        return state, _room(slots if self.keep else 0)

    def columns(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The rows of a table, piece by piece."""
        return self._expanded(name, self.blocks[name])

    def shares(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The rows of a table, in pieces of 64 whole pivots."""
        for block in self.blocks[name]:
            for word in range(WORDS):
                there = np.flatnonzero(block.masks[:, word])
                masks = np.ascontiguousarray(block.masks[there, word : word + 1])
                part = Block(block.first + 64 * word, block.slots[there], masks)
                pieces = list(self._expanded(name, [part]))
                if pieces:
                    yield [np.concatenate(columns) for columns in zip(*pieces, strict=True)]

    def _expanded(self, name: str, blocks: list[Block]) -> Iterator[list[np.ndarray[Any, Any]]]:
        layout, restore = self.prepared.layouts[name], self.numbering.restore
        kinds, state = layout.table.kinds, State(self.prepared)
        places = self.prepared.way.pivots[name]
        pivots = [restore(kinds[place], ids) for place, ids in zip(places, self.pivots, strict=True)]
        single = kinds[layout.keys[0]] if len(layout.keys) == 1 else None
        for block in blocks:
            # A slot that is an id gets its old one here, once for all its rows.
            row, ids = 0, block.slots if single is None else restore(single, block.slots)
            while row < len(ids):
                numbers, slots = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
                row, count = call(expand_masks, ids, block.masks, row, block.first, numbers, slots)
                found = dict(zip(layout.keys, state.keys_of(name, slots[:count]), strict=True))
                if single is None:
                    found = {place: restore(kinds[place], column) for place, column in found.items()}
                found |= {place: values[numbers[:count]] for place, values in zip(places, pivots, strict=True)}
                yield [found[i] for i in range(len(kinds))]
            release(block.slots)
            release(block.masks)


def _room(slots: int) -> np.ndarray[Any, Any]:
    return np.empty((slots, WORDS), np.uint64)
