"""Runs the loops of `masks`: blocks of pivots, shared out among threads, and pairs out of masks when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberlog.kernels.cache import call
from emberlog.kernels.code.masks import WORDS
from emberlog.kernels.crew import share
from emberlog.kernels.pivoted import ByPivots
from emberlog.kernels.runtime import drain_masks, expand_masks
from emberlog.kernels.state import State

BLOCK = 64 * WORDS
PAIRS = 1 << 20  # rows of a piece
SAMPLED = 8  # with fewer blocks it matters little how they are evaluated
FULL = 6  # pivots that a slot must have in the mean for masks to pay


class Sparse(Exception):
    """Pivots have so little in common that each one alone is sooner done."""


@dataclass(frozen=True)
class Block:
    """The facts of the pivots from `first` on: slots, and for each the pivots that have it."""

    first: int
    slots: np.ndarray[Any, Any]
    masks: np.ndarray[Any, Any]


class MaskedRun(ByPivots):
    """Blocks of pivots. After `run` it has the result: counts, and rows unless they were not kept."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.blocks: dict[str, list[Block]] = {name: [] for name in self.prepared.tables}
        self.counts = dict.fromkeys(self.prepared.tables, 0)
        self.slots = 0  # that had facts, over all blocks
        self.derivations = 0
        self.rounds = 0
        self._states: list[State] = []

    def run(self) -> MaskedRun:
        firsts = list(range(0, self.number, BLOCK))
        if len(firsts) >= SAMPLED:
            self._block(firsts.pop(len(firsts) // 2))
            if sum(self.counts.values()) < FULL * self.slots:
                raise Sparse
        share(
            firsts,
            min(self.workers, max(len(firsts), 1)),
            self._block,
            lambda: self.watch.look(sum(self.counts.values())),
        )
        for blocks in self.blocks.values():
            blocks.sort(key=lambda block: block.first)
        return self

    def _block(self, first: int) -> None:
        """The fixpoint of one block, in tables that the worker uses again for the next."""
        with self.lock:
            state = self._states.pop() if self._states else State(self.prepared)
        state.call(first=first, last=min(first + BLOCK, self.number), most=self.watch.most_rounds, **self.exits)
        if state.figure("fail"):
            self.watch.failed(state.figure("fail"))
        for name, t in self.prepared.tables.items():
            count = state.count(name)
            arrays = state.arrays
            masks = np.empty((count, WORDS) if self.keep else (0, WORDS), np.uint64)
            total = call(drain_masks, arrays[f"{t}_mask"], arrays[f"{t}_seen"], arrays[f"{t}_log"], count, masks)
            with self.lock:
                self.counts[name] += int(total)
                self.slots += count
                if self.keep and count:
                    slots = self.memory.keep(arrays[f"{t}_log"][:count].copy())
                    self.blocks[name].append(Block(first, slots, self.memory.keep(masks)))
        with self.lock:
            self.derivations += state.figure("work")
            self.rounds = max(self.rounds, state.figure("rounds"))
            self._states.append(state)

    def columns(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The rows of a table, piece by piece."""
        layout = self.prepared.layouts[name]
        state = self._states[0] if self._states else State(self.prepared)
        for block in self.blocks[name]:
            row = 0
            while row < len(block.slots):
                numbers, slots = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
                row, count = call(expand_masks, block.slots, block.masks, row, block.first, numbers, slots)
                found = dict(zip(layout.keys, state.keys_of(name, slots[:count]), strict=True))
                for spot, position in enumerate(self.prepared.pivots[name]):
                    found[position] = self.pivots[spot][numbers[:count]]
                yield [found[i] for i in range(len(layout.table.kinds))]
