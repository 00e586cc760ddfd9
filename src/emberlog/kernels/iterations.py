"""Iterations: `rank(i+1, ..)` from `rank(i, ..)`, until the change is small.

Where a proof allows it, sums accumulate (MRA): a group's value is what came so far, beside it is what has come and not
been handed on. The first change is what the first round would change of the start. Taking up a group adds its change
to its value and hands multiples of it on, in whatever order: those first that bring most (`sums`). The end is reached
when what waits is below the bound. Where all groups are there from the start, and give the same to all that they
give to, they gather in place of handing on (`gathers`): sweeps over all groups, until one changes little.

Other iterations replace their state: a round computes all groups from those of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberlog.components.program import TOLERANCE, End, Id, KernelProgram
from emberlog.kernels.cache import call
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.runtime import compared
from emberlog.kernels.state import State
from emberlog.kernels.waiting import pending
from emberlog.kernels.watch import Watch

ONLY_NEW = 1e300  # no change is so large
MOST_CODES = 1 << 62
MOST_FLAGS = 1 << 27


@dataclass
class Iterated:
    """The last state; `residual` is how far it was from the one before (None where nothing measures it)."""

    state: State
    derivations: int
    residual: float | None
    converged: bool  # by its end; else nothing changed any more

    def counts(self) -> dict[str, int]:
        return {name: len(self.columns(name)[0]) for name in self.state.prepared.tables}

    def columns(self, name: str) -> list[np.ndarray[Any, Any]]:
        prepared = self.state.prepared
        if prepared.program.mode == "accumulate" and prepared.way.kind != "gather":
            return self.state.columns(name)
        t, layout = prepared.tables[name], prepared.layouts[name]
        slots = np.flatnonzero(
            self.state.arrays[f"{t}_seen"][: None if layout.storage == "dense" else self.state.count(name)]
        )
        return self.state.columns_of(name, slots)


def accumulate(
    prepared: Prepared, constants: Mapping[str, Arrays], starts: Mapping[str, Arrays], end: End | None, watch: Watch
) -> Iterated:
    """Sums that hand on their changes. Every group of the start must have a constant."""
    state = State(prepared)
    deltas = np.zeros(1, np.int64)
    single: dict[str, Any] = {"rank": np.uint64(0), "size": np.uint64(1), "deltas": deltas}
    derivations = 0

    def step(share: float, whole: bool = False) -> None:
        nonlocal derivations
        state.call(most=1, budget=1 << 62, share=share, whole=int(whole), **single)
        derivations += state.figure("work")
        if state.figure("fail"):
            watch.failed(state.figure("fail"))

    if any(starts[name][prepared.layouts[name].table.value or 0].any() for name in starts):
        for name, columns in starts.items():
            _begin(state, name, columns)
        step(0.0, whole=True)
        for name, columns in starts.items():
            value = prepared.layouts[name].table.value
            state.put(name, [-c if i == value else c for i, c in enumerate(columns)])
    for name, columns in constants.items():
        state.put(name, columns)
    while True:
        waits = _pending(state)
        residual = waits.largest if end is not None and end.function == "max" else waits.total
        if not np.isfinite(residual):
            watch.failed(1)
        if not waits.waiting:
            return Iterated(state, derivations, residual if end is not None else None, False)
        small = end is not None and end.reached(residual)
        if small and not waits.new:
            return Iterated(state, derivations, residual, True)
        # Groups come to be by contributions of whatever size: at the end those that are new still hand theirs on.
        step(ONLY_NEW if small else (prepared.width or 0.0) * waits.mean)
        watch.rounds([int(deltas[0])], sum(state.count(name) for name in prepared.tables))


def _begin(state: State, name: str, columns: Arrays) -> None:
    """Rows of the start: values of groups that wait."""
    layout, t = state.prepared.layouts[name], state.prepared.tables[name]
    value = layout.table.value
    assert value is not None
    if len(columns[value]):
        state.put(name, [c * 0 if i == value else c for i, c in enumerate(columns)])
        slots = state.slots(name, [columns[key] for key in layout.keys], len(columns[value]))
        state.arrays[f"{t}_val"][slots] = columns[value]


@dataclass
class _Pending:
    """What all sums have to hand on."""

    total: float = 0.0
    largest: float = 0.0
    new: int = 0
    waiting: int = 0
    handed: float = 0.0
    work: float = 0.0

    @property
    def mean(self) -> float:
        """How large the changes are that follow from those that wait."""
        return self.handed / self.work if self.work else 0.0


def _pending(state: State) -> _Pending:
    found = _Pending()
    for t in state.prepared.tables.values():
        arrays = state.arrays
        columns = (arrays[f"{t}_{name}"] for name in ("val", "del", "seen", "cost", "need"))
        total, largest, new, waiting, handed, work = call(pending, *columns, TOLERANCE)
        found.total += total
        found.largest = max(found.largest, largest)
        found.new += new
        found.waiting += waiting
        found.handed += handed
        found.work += work
    return found


def gather(
    prepared: Prepared, constants: Mapping[str, Arrays], starts: Mapping[str, Arrays], end: End | None, watch: Watch
) -> Iterated:
    """Sums that read what they get, in sweeps."""
    state = State(prepared)
    ((name, t),) = prepared.tables.items()
    arrays, layout = state.arrays, prepared.layouts[name]
    key, value = layout.keys[0], layout.table.value
    assert value is not None
    for part, columns in (("base", constants[name]), ("val", starts[name])):
        slots = arrays[f"{t}_{part}"].size
        arrays[f"{t}_{part}"] = np.bincount(columns[key], columns[value], slots).astype(np.float64, copy=False)
    arrays[f"{t}_seen"][constants[name][key]] = 1
    facts = int(arrays[f"{t}_seen"].sum())
    derivations, moved = 0, np.zeros(3)
    state.call(begin=1, moved=moved)
    while True:
        state.call(begin=0, moved=moved)
        derivations += state.figure("work")
        if state.figure("fail"):
            watch.failed(state.figure("fail"))
        total, largest, changed = moved
        watch.rounds([int(changed)], facts)
        residual = float(largest if end is not None and end.function == "max" else total)
        if changed == 0:
            return Iterated(state, derivations, residual if end is not None else None, False)
        if end is not None and end.reached(residual):
            return Iterated(state, derivations, residual, True)


def replace(
    prepared: Prepared, constants: Mapping[str, Arrays], starts: Mapping[str, Arrays], end: End | None, watch: Watch
) -> Iterated:
    """A new state each round."""
    state = State(prepared)
    first = {name: _folded(state, name, columns) for name, columns in starts.items()}
    always = {name: _folded(state, name, columns) for name, columns in constants.items()}
    for name, (slots, values) in first.items():
        t = prepared.tables[name]
        state.arrays[f"{t}_val"][slots] = values
        state.arrays[f"{t}_seen"][slots] = 1
    derivations = 0
    while True:
        for name, t in prepared.tables.items():
            state.arrays[f"{t}_new"][:] = 0
            slots, values = always[name]
            state.arrays[f"{t}_nxt"][slots] = values
            state.arrays[f"{t}_new"][slots] = 1
        state.call()
        derivations += state.figure("work")
        if state.figure("fail"):
            watch.failed(state.figure("fail"))
        changed, residual, facts = 0, 0.0, 0
        for t in prepared.tables.values():
            arrays = state.arrays
            state_now = (arrays[f"{t}_val"], arrays[f"{t}_seen"], arrays[f"{t}_nxt"], arrays[f"{t}_new"])
            differ, total, largest, present = call(compared, *state_now, TOLERANCE)
            changed += differ
            facts += present
            residual = max(residual, largest) if end is not None and end.function == "max" else residual + total
            arrays[f"{t}_val"], arrays[f"{t}_nxt"] = arrays[f"{t}_nxt"], arrays[f"{t}_val"]
            arrays[f"{t}_seen"], arrays[f"{t}_new"] = arrays[f"{t}_new"], arrays[f"{t}_seen"]
        watch.rounds([changed], facts)
        if changed == 0:
            return Iterated(state, derivations, residual if end is not None else None, False)
        if end is not None and end.reached(residual):
            return Iterated(state, derivations, residual, True)


def _folded(state: State, name: str, columns: Arrays) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The groups of some contributions, and their values."""
    layout = state.prepared.layouts[name]
    value = layout.table.value
    assert value is not None
    slots = state.slots(name, [columns[key] for key in layout.keys], len(columns[0]))
    found, places = np.unique(slots, return_inverse=True)
    values = columns[value]
    match layout.table.fold:
        case "sum":
            total = np.zeros(len(found), values.dtype)
            np.add.at(total, places, values)
        case "min":
            total = np.full(len(found), values.max(initial=0), values.dtype)
            np.minimum.at(total, places, values)
        case _:
            total = np.full(len(found), values.min(initial=0), values.dtype)
            np.maximum.at(total, places, values)
    return found, total


# --- which groups there are -------------------------------------------------------------------------------------------


def constant_groups(program: KernelProgram, sizes: Mapping[int, int], constants: Mapping[str, Arrays]) -> Any:
    """A flag for each group of an iteration's sum that is there from the start; None for other programs."""
    keys = [key for table in program.tables for key in table.keys]
    kind = program.tables[0].kinds[keys[0]] if len(keys) == 1 else None
    if program.mode != "accumulate" or not isinstance(kind, Id):
        return None
    there = np.zeros(sizes[kind.domain], np.uint8)
    there[constants[program.tables[0].name][keys[0]]] = 1
    return there


def starts_within(start: Arrays, constants: Arrays, keys: Sequence[int]) -> bool:
    """Is every group of the start among those of the constants?"""
    if not len(start[0]) or not len(constants[0]):
        return not len(start[0])
    if len(keys) == 1 and start[keys[0]].dtype == np.uint32:
        ours, theirs = start[keys[0]], constants[keys[0]]
        slots = int(max(ours.max(), theirs.max())) + 1
    else:
        ours, theirs, slots = _codes(start, constants, keys)
    if slots > MOST_CODES:
        return False
    if slots > MOST_FLAGS:
        return bool(np.isin(ours, theirs).all())
    there = np.zeros(slots, bool)
    there[theirs] = True
    return bool(there[ours].all())


def _codes(start: Arrays, constants: Arrays, keys: Sequence[int]) -> tuple[Any, Any, int]:
    """A number for each row's keys, and how many there may be; where these are too many, the numbers mean nothing."""
    ours, theirs = np.zeros(len(start[0]), np.int64), np.zeros(len(constants[0]), np.int64)
    slots = 1
    for key in keys:
        low = int(min(start[key].min(), constants[key].min()))
        size = int(max(start[key].max(), constants[key].max())) - low + 1
        slots *= size
        if slots > MOST_CODES:
            break
        ours = ours * size + (start[key].astype(np.int64) - low)
        theirs = theirs * size + (constants[key].astype(np.int64) - low)
    return ours, theirs, slots
