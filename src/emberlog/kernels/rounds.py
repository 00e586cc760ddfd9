"""Evaluation in rounds: each takes up what waits in the tables, until nothing does.

One worker runs many rounds in one call of the loops. Several own the facts by their keys; each also keeps what it found
for others, so that it sends a fact once and a better value when there is one. After each round they swap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from emberlog.kernels.cache import call
from emberlog.kernels.cluster.exchange import Exchange, PeerLost
from emberlog.kernels.cluster.threads import thread_exchanges
from emberlog.kernels.crew import Crew
from emberlog.kernels.memory import Memory
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.state import State
from emberlog.kernels.waiting import outgoing
from emberlog.kernels.watch import Watch

WORK = 50_000_000  # derivations between two looks at the clock
ROUNDS = 1 << 12
EVER = 1 << 62


class Rounds:
    """The state after the fixpoint, of all workers in this process or, with a `rank` of `size`, of one among others."""

    def __init__(self, prepared: Prepared, rank: int | None = None, size: int = 1) -> None:
        self.prepared = prepared
        self.rank = rank
        self.size = size
        self.states: list[State] = []
        self.derivations = 0
        self.bytes_exchanged = 0

    def counts(self) -> dict[str, int]:
        if len(self.states) == 1 and self.rank is None:
            return {name: self.states[0].count(name) for name in self.prepared.tables}
        return {name: len(self.columns(name)[0]) for name in self.prepared.tables}

    def columns(self, name: str) -> list[np.ndarray[Any, Any]]:
        if self.rank is not None:
            return owned(self.states[0], name, self.rank, self.size)
        parts = [owned(state, name, rank, len(self.states)) for rank, state in enumerate(self.states)]
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]

    def pieces(self, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
        """The same rows, some at a time where that costs nothing."""
        if self.rank is None and len(self.states) == 1:
            yield from self.states[0].pieces(name)
        else:
            yield self.columns(name)


def run_alone(prepared: Prepared, exits: Mapping[str, Arrays], watch: Watch, memory: Memory) -> Rounds:
    """All rounds by one worker."""
    state, result = State(prepared), Rounds(prepared)
    result.states.append(state)
    for name, columns in exits.items():
        state.put(name, columns)
    deltas = np.zeros(ROUNDS + 1, np.int64)
    single: dict[str, Any] = {"rank": np.uint64(0), "size": np.uint64(1), "deltas": deltas}
    begun = 0  # the facts of a round that was left off in its middle
    # A step in a hashed table misses the caches, and takes ten times as long.
    hashed = any(layout.storage == "hash" for layout in prepared.layouts.values())
    budget = WORK // 10 if hashed else WORK
    done = False
    while not done:
        deltas[:] = 0
        state.call(most=ROUNDS, budget=budget, **single)
        result.derivations += state.figure("work")
        if state.figure("fail"):
            watch.failed(state.figure("fail"))
        rounds = state.figure("rounds")
        facts = sum(state.count(name) for name in prepared.tables)
        deltas[0] += begun
        begun = int(deltas[rounds])
        watch.rounds([int(delta) for delta in deltas[:rounds]], facts)
        watch.look(facts)
        memory.check(prepared.bytes + state.bytes, "tables and indexes")
        done = waiting(state) == 0
    watch.rounds([0], facts)
    return result


def waiting(state: State) -> int:
    """How many facts wait to be taken up."""
    total = held(state)
    for name, t in state.prepared.tables.items():
        count, taken, following = (int(n) for n in state.counts[3 * int(t[1:]) :][:3])
        total += count - taken if state.prepared.layouts[name].table.fold == "set" else following
    return total


def held(state: State) -> int:
    """How many facts wait in no list, but in buckets."""
    return int(state.arrays["held"][1]) if "held" in state.arrays else 0


def run_together(prepared: Prepared, exits: Mapping[str, Arrays], workers: int, watch: Watch) -> Rounds:
    """All rounds by several threads."""
    result = Rounds(prepared)
    result.states = [State(prepared) for _ in range(workers)]
    exchanges = thread_exchanges(workers)

    def work(rank: int) -> None:
        run_worker(result.states[rank], exits, exchanges[rank], watch.rounds if rank == 0 else _ignore)

    with Crew(workers) as crew:
        crew.together(work, lambda: exchanges[0].abort("the run was stopped"), PeerLost)
    result.derivations = sum(state.derivations for state in result.states)
    result.bytes_exchanged = sum(exchange.bytes_sent for exchange in exchanges)
    return result


def _ignore(deltas: list[int], facts: int) -> None:
    return


def run_worker(
    state: State, exits: Mapping[str, Arrays], exchange: Exchange, tell: Callable[[list[int], int], None]
) -> None:
    """The rounds of one worker of several: it takes up its own facts, and swaps what it found for others."""
    from emberlog.kernels.watch import Failed

    prepared, rank, size = state.prepared, exchange.rank, exchange.size
    for name, columns in exits.items():
        mine = owners(prepared, name, columns, size) == rank
        state.put(name, [column[mine] for column in columns])
    deltas = np.zeros(1, np.int64)
    while True:
        before = {name: state.count(name) for name in prepared.tables}
        waited = waiting(state)
        state.call(most=1, budget=EVER, rank=np.uint64(rank), size=np.uint64(size), deltas=deltas)
        state.derivations += state.figure("work")
        sent = {name: outbox(state, name, before[name], rank, size) for name in prepared.tables}
        mail = [[array for name in sent for array in sent[name][other]] for other in range(size)]
        facts = sum(state.count(name) for name in prepared.tables)
        received, summaries = exchange.swap(
            mail, (waited, facts, state.figure("fail"), sum(len(m[0]) if m else 0 for m in mail))
        )
        if any(summary[2] != 0 for summary in summaries):
            raise Failed
        for sender, arrays in enumerate(received):
            if sender != rank:
                inbox(state, arrays)
        tell([int(sum(told[0] for told in summaries))], int(sum(told[1] for told in summaries)))
        if all(summary[0] == summary[3] == 0 for summary in summaries):
            return


def owners(prepared: Prepared, name: str, columns: Arrays, size: int) -> np.ndarray[Any, Any]:
    """The worker that owns each of these rows: by the argument that divides them, or by their slot."""
    layout = prepared.layouts[name]
    if not layout.keys:
        return np.zeros(len(columns[0]) if columns else 1, np.uint64)
    if layout.storage == "hash" or layout.divided_by is not None:
        key = layout.keys[layout.divided_by or 0]
        return columns[key].astype(np.int64).view(np.uint64) % np.uint64(size)
    slots = np.zeros(len(columns[0]), np.uint64)
    for key, domain in zip(layout.keys, layout.domains, strict=True):
        assert domain is not None
        slots = slots * np.uint64(prepared.sizes[domain]) + columns[key]
    return slots % np.uint64(size)


def slot_owners(state: State, name: str, slots: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    layout = state.prepared.layouts[name]
    if not layout.keys or (layout.storage == "dense" and layout.divided_by is None):
        return slots.astype(np.uint64) % np.uint64(size)
    keys = state.keys_of(name, slots)[layout.divided_by or 0]
    return keys.astype(np.int64).view(np.uint64) % np.uint64(size)


def owned(state: State, name: str, rank: int, size: int) -> list[np.ndarray[Any, Any]]:
    """The facts of a table that a worker owns."""
    columns = state.columns(name)
    if size == 1:
        return columns
    mine = owners(state.prepared, name, columns, size) == rank
    return [column[mine] for column in columns]


def outbox(state: State, name: str, before: int, rank: int, size: int) -> list[list[np.ndarray[Any, Any]]]:
    """What a worker found for each other one since it had `before` facts: keys (or slots) and values."""
    t, layout = state.prepared.tables[name], state.prepared.layouts[name]
    arrays, counts = state.arrays, state.counts[3 * int(t[1:]) :][:3]
    if layout.table.fold == "set":
        slots = np.arange(before, counts[0], dtype=np.int64)
        slots = arrays[f"{t}_log"][before : counts[0]] if layout.storage == "dense" else slots
        own = slot_owners(state, name, slots, size)
        return [_described(state, name, slots[own == other] if other != rank else slots[:0]) for other in range(size)]
    list_ = arrays[f"{t}_r"]
    own = slot_owners(state, name, list_[: counts[2]], size).astype(np.int64)
    kept, sent, ranges = call(outgoing, list_, int(counts[2]), arrays[f"{t}_seen"], rank, size, own)
    counts[2] = kept
    found = []
    for other in range(size):
        slots = sent[ranges[other] : ranges[other + 1]]
        if layout.table.fold == "sum":
            values = arrays[f"{t}_del"][slots]
            arrays[f"{t}_del"][slots] = 0
        else:
            values = arrays[f"{t}_val"][slots]
        found.append([*_described(state, name, slots), values])
    return found


def _described(state: State, name: str, slots: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Slots of a dense table are the same everywhere; others are told by their keys."""
    t, layout = state.prepared.tables[name], state.prepared.layouts[name]
    if layout.storage == "dense":
        return [slots]
    return [np.ascontiguousarray(state.arrays[f"{t}_k"][slots, i]) for i in range(len(layout.keys))]


def inbox(state: State, arrays: list[np.ndarray[Any, Any]]) -> None:
    """Takes in what another worker found."""
    rest = list(arrays)
    for name in state.prepared.tables:
        layout = state.prepared.layouts[name]
        width = 1 if layout.storage == "dense" else len(layout.keys)
        keys, rest = rest[:width], rest[width:]
        values = None
        if layout.table.fold != "set":
            values, rest = rest[0], rest[1:]
        if len(keys[0]):
            before = state.count(name)
            slots = keys[0] if layout.storage == "dense" else state.slots(name, keys, len(keys[0]))
            state.put_slots(name, slots, values, before)
