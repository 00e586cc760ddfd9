"""The state of a view as tables of a snapshot, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import pyarrow as pa

import emberlog
from emberlog.maintain.durable.folder import Folder, Part
from emberlog.maintain.durable.manifest import Manifest, SavedTask
from emberlog.maintain.kept import Tables
from emberlog.maintain.ordinary import canonical_rows, table
from emberlog.maintain.placement import KeptTask
from emberlog.maintain.report import ChangeStats, TaskStats
from emberlog.maintain.state import State, shape


def described(state: State) -> dict[str, Any]:
    """What a manifest says of a state: the columns of the inputs, and the tasks."""
    signatures = state.program.signatures
    inputs = {
        name: tuple((column.name, str(column.type)) for column in signatures[name].columns)
        for name in sorted(state.program.inputs)
    }
    tasks = {_key(task): SavedTask(_fingerprint(task, state), task.memory, task.why) for task in state.tasks}
    return {"emberlog": emberlog.__version__, "inputs": inputs, "tasks": tasks}


def _key(task: KeptTask) -> str:
    return ",".join(task.definition.names)


def _fingerprint(task: KeptTask, state: State) -> str:
    """Tells whether a task is made from the same rules and columns."""
    return hashlib.sha256(repr(shape(task.definition, state.program)).encode()).hexdigest()


def parts(state: State) -> Iterator[Part]:
    """The tables of a snapshot: the rows of inputs and derived relations, and what tasks keep beside them."""
    for name in sorted(set(state.program.inputs.values())):
        yield Part(name, (name,), partial(_rows_of, state, (name,)))
    for task in state.tasks:
        yield Part(_key(task), task.definition.names, partial(_tables_of, state, task))


def _rows_of(state: State, names: Iterable[str]) -> dict[str, pa.Table]:
    signatures = state.program.signatures
    given = {name: state.relations[name].given for name in names}
    return {
        f"rows of {name}": found if isinstance(found, pa.Table) else table(signatures[name].columns, found)
        for name, found in given.items()
    }


def _tables_of(state: State, task: KeptTask) -> dict[str, pa.Table]:
    return {**_rows_of(state, task.definition.names), **task.save()}


def load(folder: Folder, state: State) -> ChangeStats:
    """Fills a state whose relations are empty with a snapshot. Tasks that cannot go on from it are evaluated; the
    statistics have those."""
    assert folder.manifest is not None
    begun = perf_counter()
    for name in set(state.program.inputs.values()):
        _load_rows(state, (name,), folder.tables(name))
    anew: dict[int, TaskStats] = {}
    for number, task in enumerate(state.tasks):
        reason = _cannot_load(task, state, folder.manifest)
        if reason is None:
            tables = folder.tables(_key(task))
            _load_rows(state, task.definition.names, tables)
            task.load(folder.manifest.tasks[_key(task)].why, tables)
        else:
            anew[number] = replace(state.run_task(number, new=True), why=reason)
        state.commit()
    folder.touch([name for stats in anew.values() for name in stats.names])
    seconds = perf_counter() - begun
    return ChangeStats(state.graph, frozenset(anew), tuple(anew.values()), 0.0, seconds, 0)


def _load_rows(state: State, names: Iterable[str], tables: Tables) -> None:
    for name in names:
        rows = tables[f"rows of {name}"]
        if not state.relations[name].load(rows):
            state.relations[name].replace(canonical_rows(rows))


def _cannot_load(task: KeptTask, state: State, manifest: Manifest) -> str | None:
    """Why a task must be evaluated where its state could be loaded; None if it can be loaded."""
    saved = manifest.tasks.get(_key(task))
    if manifest.emberlog != emberlog.__version__:
        return f"it was saved by version {manifest.emberlog} of Emberlog"
    if saved is None or saved.shape != _fingerprint(task, state):
        return "it was saved with other rules"
    if saved.method == "Recomputation":
        return None
    if not task.saves:
        return "what it keeps is not saved"
    return None if saved.method == task.memory else "it is maintained in another way than it was"
