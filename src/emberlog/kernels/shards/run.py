"""The rounds over tables in shards.

A round has three parts, and all workers are in the same one. They share out what is new and run the nests, which read
tables and indexes as they are, into lists of their own. Then each takes in what belongs to its shards, so that no two
write to one place. When all that is new has been gone through, what was taken in becomes what is new, and goes into the
indexes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from emberlog.components.program import Id
from emberlog.components.shards import Index, Start, plan
from emberlog.deadline import shielded
from emberlog.kernels.code.shards import COUNTS
from emberlog.kernels.crew import Crew
from emberlog.kernels.memory import Memory
from emberlog.kernels.prepare import Arrays, Prepared
from emberlog.kernels.shards.relations import PlainFacts, Relation, RowFacts
from emberlog.kernels.shards.vectors import Vectors
from emberlog.kernels.watch import Watch

FOUND = 1 << 17  # what a worker finds before it is taken in
FIRST_FOUND = 1 << 10
PARTS = 16  # of what is new, for each worker: enough for the last one to be small
LEAST = 256  # facts of a part


class Lists:
    """Where one worker writes what it finds."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.counts = np.zeros(len(COUNTS) + len(widths), np.int64)
        self.derivations = 0
        self.lists = [np.empty((FIRST_FOUND, width), np.int64) for width in widths]

    def found(self, number: int) -> tuple[np.ndarray[Any, Any], int]:
        return self.lists[number], int(self.counts[len(COUNTS) + number])

    @property
    def size(self) -> int:
        return int(self.counts[len(COUNTS) :].sum())

    def clear(self) -> None:
        self.counts[len(COUNTS) :] = 0


class ShardRun:
    """A component under evaluation."""

    def __init__(self, prepared: Prepared, crew: Crew) -> None:
        self.prepared, self.crew = prepared, crew
        self.plan = plan(prepared.way.nests, prepared.layouts)
        self.relations = {name: self._relation(name) for name in prepared.tables}
        self.indexes = [self._index(index) for index in self.plan.indexes]
        widths = [1 + len(prepared.layouts[outlet.head].table.kinds) for outlet in self.plan.outlets]
        self._lists = [Lists(widths) for _ in range(crew.size)]

    def _relation(self, name: str) -> Relation:
        layout = self.prepared.layouts[name]
        if layout.set_column is None:
            return PlainFacts(layout, self.crew)
        kind = layout.table.kinds[layout.set_column]
        assert isinstance(kind, Id)
        return RowFacts(layout, self.crew, self.prepared.sizes[kind.domain])

    def _index(self, index: Index) -> Vectors:
        width = 1 if index.rows else len(index.others)
        return Vectors(len(index.columns), width, self.relations[index.table].dtype, self.crew)

    # --- what there is -------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return sum(relation.count for relation in self.relations.values())

    @property
    def bytes(self) -> int:
        tables = sum(relation.bytes for relation in self.relations.values())
        return tables + sum(index.bytes for index in self.indexes)

    @property
    def derivations(self) -> int:
        rows = (relation for relation in self.relations.values() if isinstance(relation, RowFacts))
        return sum(lists.derivations for lists in self._lists) + sum(relation.derivations for relation in rows)

    # --- rounds --------------------------------------------------------------------------------------------------

    def step(self, watch: Watch) -> int:
        """One round; how many facts it took up. 0: the fixpoint is reached."""
        taken = sum(relation.turn() for relation in self.relations.values())
        if taken:
            for index, vectors in zip(self.plan.indexes, self.indexes, strict=True):
                self._enter(index, vectors)
            for number, start in enumerate(self.plan.starts):
                self._go_through(number, start, watch)
        return taken

    def _enter(self, index: Index, vectors: Vectors) -> None:
        """What is new goes into an index."""
        relation = self.relations[index.table]
        if not index.rows:
            vectors.append(relation.facts[:, list(index.columns)], relation.facts[:, list(index.others)])
            return
        places = [relation.layout.keys.index(column) for column in index.columns]
        keys = relation.directory.keys[relation.fresh]
        vectors.append(keys[:, places], relation.fresh.reshape(-1, 1))

    def _go_through(self, number: int, start: Start, watch: Watch) -> None:
        relation = self.relations[start.table]
        count = len(relation.changed if start.rows else relation.facts)
        part = max(-(-count // (PARTS * self.crew.size)), LEAST)
        waiting = deque((begin, min(begin + part, count)) for begin in range(0, count, part))
        while waiting:
            workers = range(min(self.crew.size, len(waiting)))
            self.crew.mapped(partial(self._work, number, waiting, self._arguments()), workers)
            self.prepared.halt.check()
            failures = [int(lists.counts[COUNTS.index("fail")]) for lists in self._lists]
            if any(failures):
                watch.failed(max(failures))
            self._take_in()
            watch.look(self.count)

    def _work(self, number: int, waiting: deque[tuple[int, int]], arguments: Mapping[str, Any], worker: int) -> None:
        """Goes through parts of what is new until there are none, or much was found."""
        lists, source = self._lists[worker], self.prepared.source
        while lists.size < FOUND:
            try:
                begin, end = waiting.popleft()
            except IndexError:
                return
            lists.counts[:3] = number, begin, end
            given = {**arguments, **dict(zip(source.returned, lists.lists, strict=True)), "most": FOUND}
            values = [lists.counts, *(given[array.name] for array in source.arguments[1:])]
            with shielded():
                lists.lists = list(self.prepared.function(*values))
            lists.derivations += int(lists.counts[COUNTS.index("work")])
            if lists.counts[COUNTS.index("fail")]:
                return
            if lists.counts[1] < end:
                waiting.appendleft((int(lists.counts[1]), end))

    def _take_in(self) -> None:
        """What all workers found goes into the tables."""
        for number, outlet in enumerate(self.plan.outlets):
            head = self.relations[outlet.head]
            for lists in self._lists:
                found, count = lists.found(number)
                if count and outlet.source is None:
                    head.put(found, count)
                elif count:
                    source = self.relations[str(outlet.source)]
                    assert isinstance(head, RowFacts) and isinstance(source, RowFacts)
                    head.unite(found, count, source, outlet.delta)
        for lists in self._lists:
            lists.clear()

    def _arguments(self) -> dict[str, Any]:
        """Tables and indexes, by the names that the loops know."""
        found = dict(self.prepared.shared)
        for name, t in self.prepared.tables.items():
            relation = self.relations[name]
            directory = relation.directory
            arrays = {"h": directory.heads, "k": directory.keys, "c": directory.counts}
            arrays |= {"f": relation.facts, "d": relation.changed}
            if isinstance(relation, RowFacts):
                view = relation.rows.full(False)
                arrays |= {"m": view.meta, "i": view.items, "b": view.bits}
                found |= {f"{t}_s": relation.domain, f"{t}_v": view.words}
            found |= {f"{t}_{part}": array for part, array in arrays.items()}
        for number, vectors in enumerate(self.indexes):
            parts = (vectors.directory.heads, vectors.directory.keys, vectors.wheres, vectors.sizes, vectors.pool)
            found |= {f"x{number}_{part}": array for part, array in zip("hkwzp", parts, strict=True)}
        return found


def run_shards(prepared: Prepared, exits: Mapping[str, Arrays], workers: int, watch: Watch, memory: Memory) -> ShardRun:
    """All rounds."""
    with Crew(workers, lambda: watch.look(0)) as crew:
        run = ShardRun(prepared, crew)
        for name, columns in exits.items():
            run.relations[name].put_columns(columns)
        while taken := run.step(watch):
            watch.rounds([taken], run.count)
            memory.check(prepared.bytes + run.bytes, "tables and indexes")
        watch.rounds([0], run.count)
    return run
