"""The tables of one worker in memory: facts go in, loops run over them, facts come out."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import numpy as np

from emberlog.components.layout import TableLayout, worst
from emberlog.components.program import TOLERANCE, Id
from emberlog.deadline import shielded
from emberlog.kernels.cache import call
from emberlog.kernels.code import loops
from emberlog.kernels.code.buckets import RING
from emberlog.kernels.code.masks import WORDS
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.runtime import grown, grown_rows, insert_rows, rehashed
from emberlog.kernels.waiting import put_best, put_set, put_sum
from emberlog.kernels.watch import Failed
from emberlog.types import INT64_MAX

FIRST_SLOTS = 1 << 10
PIECE = 1 << 20  # facts that are read out at once


def bucket_arguments(prepared: Prepared) -> dict[str, Any]:
    """What loops that take small values first are given beside their tables; nothing where they do not.

    `narrowing` leads from a value to its bucket: how far it is shifted, or what it is multiplied with."""
    dtype = next((array.dtype for array in prepared.source.arguments if array.name == "narrowing"), None)
    if dtype is None:
        return {}
    width = prepared.width or 1.0
    narrowing = 1.0 / max(width, 1e-300) if dtype == "float64" else max(round(np.log2(max(width, 1.0))), 0)
    return {"origin": np.dtype(dtype).type(0), "narrowing": narrowing, "held": np.zeros(2, np.int64)}


def _blank_rows(slots: int) -> np.ndarray[Any, Any]:
    """Masks without a bit: pages that come into being when they are touched, as those of a first try mostly are not.
    NumPy may take memory that was used before, and has to clear all of it."""
    pages = mmap(-1, max(8 * WORDS * slots, 1), MAP_PRIVATE | MAP_ANONYMOUS)
    return np.frombuffer(pages, np.uint64, WORDS * slots).reshape(slots, WORDS)


class State:
    """The tables of one worker, and calls of the compiled loops on them."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.arrays: dict[str, Any] = {**prepared.shared, **bucket_arguments(prepared)}
        self.counts = np.zeros(3 * len(prepared.tables) + len(loops.COUNTS), np.int64)
        self.derivations = 0
        for name, t in prepared.tables.items():
            self._allocate(t, prepared.layouts[name])

    @staticmethod
    def needs(prepared: Prepared) -> int:
        """About how many bytes the tables of one worker take to begin with."""
        total = 0
        for layout in prepared.layouts.values():
            slots = FIRST_SLOTS
            if layout.storage == "dense":
                slots = 1
                for domain in layout.domains:
                    assert domain is not None
                    slots *= prepared.sizes[domain]
            total += slots * (5 + 3 * 8 * WORDS * (prepared.way.kind == "masks") + 28 * (layout.table.fold != "set"))
        return total

    def _allocate(self, t: str, layout: TableLayout) -> None:
        dense = layout.storage == "dense"
        slots = 1
        for domain in layout.domains if dense else ():
            assert domain is not None
            slots *= self.prepared.sizes[domain]
        slots = slots if dense else FIRST_SLOTS
        arrays = self.arrays
        if self.prepared.way.kind == "gather":
            arrays[f"{t}_seen"] = np.zeros(slots, np.uint8)
            gives = (f"g{number}" for number in range(len(self.prepared.program.rules)))
            arrays.update((f"{t}_{name}", np.zeros(slots)) for name in ("val", "base", *gives))
            return
        if dense:
            arrays[f"{t}_log"] = np.empty(slots + 1, np.uint32)
        else:
            arrays[f"{t}_k"] = np.empty((slots, max(len(layout.keys), 1)), np.int64)[:, : len(layout.keys)].copy()
            arrays[f"{t}_h"] = np.zeros(2 * slots, np.int32)
        if self.prepared.way.kind == "masks":
            for name in ("mask", "wait"):
                arrays[f"{t}_{name}"] = _blank_rows(slots)
            words = (slots + 63) // 64
            arrays[f"{t}_b"] = np.zeros(words, np.uint64)
            arrays[f"{t}_w"] = np.zeros((words + 63) // 64, np.uint64)
        if dense or layout.table.fold != "set":
            arrays[f"{t}_seen"] = np.zeros((slots + 7) // 8 * 8 if dense else slots, np.uint8)
        if dense:  # sweeps read eight flags at once
            arrays[f"{t}_words"] = arrays[f"{t}_seen"].view(np.uint64)
        if self.prepared.program.mode == "replace":
            for name, dtype in (("seen", "uint8"), ("new", "uint8")):
                arrays[f"{t}_{name}"] = np.zeros(slots, dtype)
            for name in ("val", "nxt"):
                arrays[f"{t}_{name}"] = np.zeros(slots, layout.dtype)
            return
        if layout.table.fold != "set":
            arrays[f"{t}_val"] = np.full(slots, worst(layout), layout.dtype)
            # A sweep may find a slot waiting again behind it: each may stand in the list twice.
            arrays[f"{t}_q"] = np.empty(2 * slots + 1 if dense else 2 * slots, np.uint32)
            arrays[f"{t}_r"] = np.empty(2 * slots + 1 if dense else 2 * slots, np.uint32)
        if self.prepared.program.mode == "accumulate":
            arrays[f"{t}_cost"] = np.zeros(slots, np.uint32)
            arrays[f"{t}_need"] = np.zeros(slots, np.float64)
        if "narrowing" in arrays:
            words = (slots + 63) // 64
            arrays[f"{t}_b"] = np.zeros((RING, words), np.uint64)
            arrays[f"{t}_w"] = np.zeros((RING, (words + 63) // 64), np.uint64)
            arrays[f"{t}_in"] = np.zeros(RING, np.int64)
        if layout.table.fold == "sum":
            arrays[f"{t}_del"] = np.zeros(slots, layout.dtype)
        for chain in layout.chains:
            kind = layout.table.kinds[chain]
            assert isinstance(kind, Id)
            arrays[f"{t}_x{chain}"] = np.zeros(self.prepared.sizes[kind.domain], np.uint32)
            arrays[f"{t}_y{chain}"] = np.zeros(slots, np.uint32)

    def call(self, **arguments: Any) -> None:
        """One call of the loops; tables that grew are new arrays afterwards. Raises if the run is to end."""
        source = self.prepared.source
        self.arrays.update(arguments)
        values = [self.counts, *(self.arrays[array.name] for array in source.arguments[1:])]
        with shielded():
            returned = self.prepared.function(*values)
        self.arrays.update(zip(source.returned, returned, strict=True))
        self.prepared.halt.check()

    def figure(self, name: str) -> int:
        """A counter of the last call."""
        return int(self.counts[3 * len(self.prepared.tables) + loops.COUNTS.index(name)])

    def count(self, table: str) -> int:
        """The facts of a table."""
        return int(self.counts[3 * list(self.prepared.tables).index(table)])

    @property
    def bytes(self) -> int:
        return sum(a.nbytes for n, a in self.arrays.items() if n not in self.prepared.shared and hasattr(a, "nbytes"))

    # --- exit rows -----------------------------------------------------------------------------------------------

    def slots(self, name: str, keys: Arrays, rows: int) -> np.ndarray[Any, Any]:
        """The slots of the keys of so many rows; they are made where they are not there yet."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        spot = 3 * list(self.prepared.tables).index(name)
        if layout.storage == "dense" and len(keys) == 1:
            return keys[0]
        if layout.storage == "dense":
            found = np.zeros(rows, np.uint64)
            for key, domain in zip(keys, layout.domains, strict=True):
                assert domain is not None
                found = found * np.uint64(self.prepared.sizes[domain]) + key
            return found.astype(np.uint32)
        wide = np.ascontiguousarray(np.stack([key.astype(np.int64) for key in keys], axis=1))
        self._reserve(t, layout, int(self.counts[spot]) + rows)
        slots = np.empty(rows, np.uint32)
        self.counts[spot] = call(
            insert_rows, self.arrays[f"{t}_h"], self.arrays[f"{t}_k"], int(self.counts[spot]), wide, slots
        )
        return slots

    def _reserve(self, t: str, layout: TableLayout, rows: int) -> None:
        arrays = self.arrays
        count = int(self.counts[3 * int(t[1:])])
        while len(arrays[f"{t}_k"]) <= rows:
            arrays[f"{t}_k"] = call(grown_rows, arrays[f"{t}_k"])
            parts = ("seen", "new", "nxt", "q", "r", "del", "cost", "need", *(f"y{c}" for c in layout.chains))
            for name in (f"{t}_{part}" for part in parts):
                if name in arrays:
                    arrays[name] = call(grown, arrays[name], 0)
            if f"{t}_val" in arrays:
                arrays[f"{t}_val"] = call(grown, arrays[f"{t}_val"], worst(layout))
        if len(arrays[f"{t}_h"]) < 2 * len(arrays[f"{t}_k"]):
            arrays[f"{t}_h"] = call(rehashed, arrays[f"{t}_k"], count)

    def put(self, name: str, columns: Arrays) -> None:
        """Facts from outside: exit rows, or what other workers found."""
        layout = self.prepared.layouts[name]
        if len(columns[0]) if columns else 1:
            before = self.count(name)
            slots = self.slots(name, [columns[key] for key in layout.keys], len(columns[0]))
            value = layout.table.value
            self.put_slots(name, slots, None if value is None else columns[value], before)

    def put_slots(self, name: str, slots: np.ndarray[Any, Any], values: Any, before: int) -> None:
        """The same for facts whose slots are known; `before` is how many facts there were."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        arrays, counts = self.arrays, self.counts[3 * int(t[1:]) :][:3]
        dense = layout.storage == "dense"
        if layout.table.fold == "set":
            if dense:
                call(put_set, arrays[f"{t}_seen"], arrays[f"{t}_log"], counts, slots)
            return
        log = arrays[f"{t}_log"] if dense else np.empty(0, np.uint32)
        values = values.astype(arrays[f"{t}_val"].dtype, copy=False)
        if layout.table.fold == "sum":
            sums = (arrays[f"{t}_del"], arrays[f"{t}_val"], arrays[f"{t}_seen"], log, arrays[f"{t}_r"], counts)
            most, tolerance = (np.inf, TOLERANCE) if values.dtype.kind == "f" else (INT64_MAX, 0.0)
            if call(put_sum, *sums, slots, values, most, tolerance):
                raise Failed
        else:
            state = (arrays[f"{t}_val"], arrays[f"{t}_seen"], log, arrays[f"{t}_r"], counts)
            call(put_best, *state, slots, values, layout.table.fold == "min")

    # --- results -------------------------------------------------------------------------------------------------

    def columns(self, name: str) -> list[np.ndarray[Any, Any]]:
        """All facts of a table, column by column."""
        t, count = self.prepared.tables[name], self.count(name)
        dense = self.prepared.layouts[name].storage == "dense"
        return self.columns_of(name, self.arrays[f"{t}_log"][:count] if dense else np.arange(count))

    def pieces(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The same, some facts at a time."""
        t, count = self.prepared.tables[name], self.count(name)
        dense = self.prepared.layouts[name].storage == "dense"
        for start in range(0, count, PIECE):
            stop = min(start + PIECE, count)
            yield self.columns_of(name, self.arrays[f"{t}_log"][start:stop] if dense else np.arange(start, stop))

    def columns_of(self, name: str, slots: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        """The facts in these slots."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        table, arrays = layout.table, self.arrays
        found = dict(zip(layout.keys, self.keys_of(name, slots), strict=True))
        if table.value is not None:
            values = arrays[f"{t}_val"][slots]
            with np.errstate(invalid="ignore"):  # infinite sums of both signs: whoever looks at the sums tells it
                found[table.value] = values + arrays[f"{t}_del"][slots] if f"{t}_del" in arrays else values
        return [found[i] for i in range(len(table.kinds))]

    def keys_of(self, name: str, slots: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        """The stored key columns of the facts in these slots."""
        t, layout = self.prepared.tables[name], self.prepared.layouts[name]
        if layout.storage == "hash":
            columns = [self.arrays[f"{t}_k"][slots, i] for i in range(len(layout.keys))]
            return [c.astype(np.uint32) if d is not None else c for c, d in zip(columns, layout.domains, strict=True)]
        if len(layout.keys) == 1:
            return [slots.astype(np.uint32, copy=False)]
        found, rest = [], slots.astype(np.uint64)
        for domain in reversed(layout.domains):
            assert domain is not None
            size = np.uint64(self.prepared.sizes[domain])
            found.append((rest % size).astype(np.uint32))
            rest = rest // size
        return found[::-1]
