"""Sequences of small changes that one component follows, gathered for its loops.

Every change is one of its own: the loops edit the inputs, follow and commit before they take the next one. Nothing of
it is seen by Python, so that a change costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from emberlog.maintain.changes import Reading, plain_rows
from emberlog.maintain.native.encoding import Encoding, Words
from emberlog.maintain.native.facts import NativeFacts
from emberlog.maintain.state import State
from emberlog.maintain.store import Row
from emberlog.types import NUMBER, Column

SIGNS = (("delete", -1), ("insert", 1))  # rows go, then rows come
MOST_CHANGES = 1 << 13  # that are gathered at once


def run_sequences(
    state: State,
    reading: Reading,
    changes: Iterable[Mapping[str, Any]],
    work: Callable[[], Any],
) -> Iterator[Mapping[str, Any]]:
    """Applies a sequence of changes as far as loops do that by themselves, inside of `work`. Yields each change that is
    to be applied in the ordinary way, before it looks at the next one."""
    waiting = iter(changes)
    while chunk := list(islice(waiting, MOST_CHANGES)):
        while chunk:
            facts = alone_with(state, chunk[0])
            done = 0 if facts is None else _run(reading, facts, chunk, work)
            if done < len(chunk):
                yield chunk[done]
            chunk = chunk[done + 1 :]


def alone_with(state: State, change: Mapping[str, Any]) -> NativeFacts | None:
    """The loops of the one component that a change of these relations concerns, if there is nothing else to do for it:
    no conditions on rows, no relation that is made from those of the component."""
    names = {name for word in ("delete", "insert") for name in change.get(word) or ()}
    if not names or not names <= state.program.inputs.keys():
        return None
    tasks = state.reading(state.program.inputs[name] for name in names)
    task = state.tasks[min(tasks)] if len(tasks) == 1 else None
    if task is None or not isinstance(task.method, NativeFacts) or state.reading(task.definition.names):
        return None
    if not task.method.is_current:
        return None
    conditions = any(verdict.obligations for verdict in task.definition.component.verdicts) or any(
        state.program.checked.signatures[name].domains for name in names
    )
    return None if conditions else task.method


def _run(reading: Reading, facts: NativeFacts, chunk: Sequence[Mapping[str, Any]], work: Callable[[], Any]) -> int:
    """Has the loops of a component apply the first of some changes; returns how many they did."""
    gathering = _Gathering(reading, facts)
    for change in chunk:
        if not gathering.add(change):
            break
    encoded = gathering.encode(facts.encoding)
    if encoded is None:
        return 0
    with work():
        applied = facts.run_each(*encoded)
    return gathering.changes if applied is None else applied


class _Gathering:
    """Changes that wait for the loops of one component."""

    def __init__(self, reading: Reading, facts: NativeFacts) -> None:
        self._reading = reading
        self._facts = facts
        self._rows: dict[str, list[Row]] = {}
        self._marks: dict[str, list[tuple[int, int, int, int]]] = {}
        self._edits = 0
        self.changes = 0

    def add(self, change: Mapping[str, Any]) -> bool:
        """Takes in a change; False if it is not one of lists of rows that the component alone reads."""
        parts = [(name, rows, sign) for word, sign in SIGNS for name, rows in (change.get(word) or {}).items()]
        if not change.keys() <= {"delete", "insert"}:
            return False
        if any(self._number(name) is None or not isinstance(rows, list) for name, rows, _ in parts):
            return False
        for name, rows, sign in parts:
            number = self._number(name)
            assert number is not None
            places = range(self._edits, self._edits + len(rows))
            self._marks.setdefault(name, []).extend((self.changes, number, sign, at) for at in places)
            self._rows.setdefault(name, []).extend(rows)
            self._edits += len(rows)
        self.changes += 1
        return True

    def _number(self, name: str) -> int | None:
        relation = self._reading.inputs.get(name)
        return None if relation is None else self._facts.number(relation)

    def encode(self, encoding: Encoding) -> tuple[Words, Words] | None:
        """The rows as words, and for each of them its change, table and sign, in order; None if some are not what
        their columns hold."""
        edits, marks = self._facts.room_for_edits(self._edits)
        for name, rows in self._rows.items():
            columns = self._reading.signatures[name].columns
            words = _words(rows, columns, encoding)
            if words is None:
                return None
            placed = np.array(self._marks[name], np.int64)
            edits[placed[:, 3], : len(columns)] = words
            marks[placed[:, 3]] = placed[:, :3]
        return edits, marks


def _words(rows: Sequence[Row], columns: Sequence[Column], encoding: Encoding) -> Words | None:
    """The words of rows, one for each; None if some are not what the columns hold."""
    if all(column.type == NUMBER for column in columns):
        if set(map(type, rows)) != {tuple} or {*map(type, chain.from_iterable(rows))} != {int}:
            return None
        try:
            words = np.array(rows, np.int64)
        except (OverflowError, ValueError):
            return None
        return words if words.shape == (len(rows), len(columns)) else None
    plain = plain_rows(rows, tuple(columns))
    if plain is None:
        return None
    return np.stack([encoding.words_of([row[i] for row in plain], c.type) for i, c in enumerate(columns)], axis=1)
