"""The versions of a view: how each change makes the next one, in memory and in the view's folder.

A change works on the state of the current version; what it did is uncommitted until it is in the log. Whatever is
raised before that takes everything back; what is raised after that finds the change committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from emberlog.data.sources import Source
from emberlog.diagnostics import EmberlogError, LimitError, UsageError, counted
from emberlog.maintain.changes import Edit, Reading
from emberlog.maintain.durable.folder import Folder
from emberlog.maintain.durable.manifest import Manifest
from emberlog.maintain.durable.records import Record, Rules, merged
from emberlog.maintain.durable.saving import described, load, parts
from emberlog.maintain.durable.unsaved import Unsaved
from emberlog.maintain.native.sequence import run_sequences
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.placement import Placement
from emberlog.maintain.program import ViewProgram
from emberlog.maintain.report import NOTHING, ChangeStats
from emberlog.maintain.rules import difference, with_declarations
from emberlog.maintain.state import State, first_state, next_state
from emberlog.maintain.store import Row
from emberlog.schedule.interface import Scheduler
from emberlog.source import Source as Text
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show
from emberlog.types import Column, Params


@dataclass(frozen=True)
class Setting:
    """What a view has from its engine. `compile` makes tasks of a program, given the columns of inputs that are known
    and the predicates that rules were added for. Work is done inside of `working`, which ends it at the engine's limits
    and by `engine.cancel()`. `place` says where relations are kept and tasks run. `warn` tells the user of what went
    wrong without harm."""

    compile: Callable[[Program, Mapping[str, tuple[Column, ...]], Collection[str]], ViewProgram]
    ordinary: Ordinary
    params: Params
    working: Callable[[], Any]
    place: Callable[[ViewProgram], Placement]
    warn: Callable[[str], None]


@dataclass(frozen=True)
class Version:
    """What a view is after a change. `first` is the text of the program that it was made with, `added` are predicates
    that rules were added for, `batches` has the last batch of each stream, `stats` what the change took."""

    first: str
    program: Program
    added: frozenset[str]
    state: State
    batches: Mapping[str, int]
    stats: ChangeStats


class Versions:
    """The current version of a view, and what leads to the next one. Callers see to it that one thread at a time is in
    here."""

    def __init__(
        self, sources: Mapping[str, Source], setting: Setting, order: Scheduler, storage: Folder | Unsaved
    ) -> None:
        self._sources = sources
        self._setting = setting
        self._order = order
        self._options = setting.ordinary.options()
        self._storage = storage
        self._closed = False
        self.placement: Placement
        self.now: Version
        self._next: Version

    # --- the first version ---------------------------------------------------------------------------------------

    def evaluate(self, program: Program) -> None:
        """Evaluates the program for the first time, and saves the result."""
        compiled = self._setting.compile(program, {}, ())
        self.placement = self._setting.place(compiled)
        state = first_state(compiled, self.placement)
        self.now = self._next = Version(show(program), program, frozenset(), state, {}, NOTHING)
        with self.work():
            self._load(state, state.program.inputs)
            tasks = range(len(state.tasks))
            self._next = replace(self.now, stats=self._run(state, tasks, tasks))
            self._finish()
        self.save()

    def open(self, folder: Folder, manifest: Manifest, program: Program, change_rules: bool) -> None:
        """Goes on from a folder: its snapshot, and the changes since then. Raises `UsageError` if that is the view of
        another program, unless its rules are to be changed."""
        self._check_params(manifest)
        saved = parse(Text("<saved>", manifest.program))
        compiled = self._setting.compile(saved, manifest.columns(), manifest.added)
        self.placement = self._setting.place(compiled)
        state = first_state(compiled, self.placement)
        added = frozenset(manifest.added)
        self.now = self._next = Version(manifest.first, saved, added, state, manifest.batches, NOTHING)
        with self.work():
            self._load(state, ())
            self._next = replace(self.now, stats=load(folder, state))
            self._finish()
            for record in merged(folder.records()):
                self._next = self._replayed(record)
                self._finish()
        given = show(program)
        if given in (self.now.first, show(self.now.program)):
            return
        if not change_rules:
            raise UsageError(
                f"the view in {folder.path} has another program:\n{difference(self.now.program, program)}",
                fix="open it with its own program, or with change_rules=True, which changes its rules to these",
            )
        with self.work():
            version, loaded = self.with_rules(program, frozenset())
            self.commit_rules(replace(version, first=given), loaded)

    def _check_params(self, manifest: Manifest) -> None:
        given = _shown(self._setting.params)
        if manifest.params != given:
            raise UsageError(f"the view in {self._storage.path} has other parameters: {manifest.params}, not {given}")

    def _load(self, state: State, inputs: Iterable[str]) -> None:
        """Takes in the rows that the sources of some inputs have, and the facts of the program."""
        reading = Reading(state.program.signatures, state.program.inputs, self._options.nulls)
        for name in inputs:
            if name in self._sources:
                relation = state.relations[state.program.inputs[name]]
                self.placement.load(relation, name, self._sources[name], reading)
        for name, facts in state.program.facts.items():
            state.relations[name].replace(reading.load(name, None, facts))

    def _replayed(self, record: Record) -> Version:
        """The version after a record of the log, which is not committed yet."""
        batches = {**self.now.batches, **record.batches}
        if record.rules is None:
            return replace(self.now, batches=batches, stats=self.follow(record.edit))
        program = parse(Text("<saved>", record.rules.program))
        version, _ = self.with_rules(program, frozenset(record.rules.added), record.edit.insert)
        return replace(version, first=record.rules.first, batches=batches)

    # --- changes, which are uncommitted --------------------------------------------------------------------------

    @property
    def reading(self) -> Reading:
        """What reads the rows of changes."""
        program = self.now.state.program
        return Reading(program.signatures, program.inputs, self._options.nulls)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work on the state, which is as before if it fails."""
        if self._closed:
            raise UsageError("the view is closed", fix="open it again with engine.maintain")
        begun = self._storage.position
        try:
            with self._setting.working():
                yield
        except BaseException:
            if self._storage.position > begun:  # what was raised came too late
                self._finish()
            else:
                self._storage.take_back()
                self.now.state.undo()
            raise

    def follow(self, edit: Edit) -> ChangeStats:
        """Changes the inputs, and brings what depends on them up to date."""
        state = self.now.state
        return self._run(state, state.edit(edit))

    def run_sequences(self, changes: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Applies and commits a sequence of changes, as far as loops do that by themselves. Yields each change that is
        to be applied in the ordinary way, before it looks at the next one: all of them where there is a folder, or a
        limit on rows."""
        if self._storage.path is not None or self._options.limits.rows is not None:
            return iter(changes)
        return run_sequences(self.now.state, self.reading, changes, self.work)

    def with_rules(
        self, program: Program, added: frozenset[str], given: Mapping[str, Iterable[Row]] | None = None
    ) -> tuple[Version, set[str]]:
        """The version with the rules of another program, and the inputs that are new in it. These get the given rows,
        or those of their sources. An input that no rule reads any more is declared, and keeps its rows."""
        old, setting = self.now.state, self._setting
        known = {name: old.program.signatures[name].columns for name in old.program.inputs}
        compiled = setting.compile(program, known, added)
        unread = {name: columns for name, columns in known.items() if name not in compiled.inputs}
        if unread:
            program = with_declarations(program, unread)
            compiled = setting.compile(program, known, added)
        for name in known.keys() & compiled.inputs.keys():
            if compiled.signatures[name].columns != known[name]:
                raise UsageError(f"`{name}` has rows already: its columns cannot change")
        state, new = next_state(old, compiled, self.placement)
        inputs = compiled.inputs.keys() - old.program.inputs.keys()
        self._load(state, () if given is not None else inputs)
        state.edit(Edit(insert=given or {}))
        changed = [name for name, relation in state.relations.items() if relation.changed]
        stats = self._run(state, new | state.reading(changed), new)
        return replace(self.now, program=program, added=added, state=state, stats=stats), inputs

    def _run(self, state: State, active: Iterable[int], new: Iterable[int] = ()) -> ChangeStats:
        stats = state.run(frozenset(active), self._order, frozenset(new))
        most = self._options.limits.rows
        derived = sum(len(relation) for task in state.tasks for relation in task.relations) if most else 0
        if most is not None and derived > most:
            raise LimitError(
                f"stopped at the limit of {counted(most, 'row')}: the view would have {derived:,}",
                fix="raise limits={'rows': ...}, or add conditions to the rules",
            )
        return stats

    # --- commits -------------------------------------------------------------------------------------------------

    def commit_rows(self, stats: ChangeStats, batches: Mapping[str, int]) -> None:
        """Makes a change of rows final. `batches` are those of streams that it is."""
        state = self.now.state
        relations = [(name, state.relations[key]) for name, key in state.program.inputs.items()]
        gone = {name: relation.deleted for name, relation in relations if relation.deleted}
        come = {name: relation.inserted for name, relation in relations if relation.inserted}
        version = replace(self.now, stats=stats, batches={**self.now.batches, **batches})
        self._commit(version, Record(Edit(gone, come), batches))

    def commit_rules(self, version: Version, loaded: Collection[str]) -> None:
        """Makes a change of rules final, with the rows of inputs that were loaded for it."""
        state = version.state
        kept = loaded if self._storage.path is not None else ()
        rows = {name: state.relations[state.program.inputs[name]].rows for name in kept}
        rules = Rules(version.first, show(version.program), tuple(sorted(version.added)))
        self._commit(version, Record(Edit(insert=rows), rules=rules))

    def _commit(self, version: Version, record: Record) -> None:
        self._next = version
        if record:
            program = version.state.program
            self._storage.commit(record, {name: program.signatures[name].columns for name in program.inputs})
        self._finish()

    def _finish(self) -> None:
        """Goes on to the next version. It does no harm to do it again."""
        version = self.now = self._next
        state = version.state
        inputs = (name for name in state.program.inputs.values() if state.relations[name].changed)
        self._storage.touch({*inputs, *(name for task in version.stats.tasks for name in task.names)})
        state.commit()

    # --- the folder ----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes a snapshot into the view's folder, if it has one."""
        if isinstance(self._storage, Folder):
            now = self.now
            manifest = Manifest(
                first=now.first,
                program=show(now.program),
                added=tuple(sorted(now.added)),
                params=_shown(self._setting.params),
                batches=now.batches,
                **described(now.state),
            )
            self._storage.snapshot(manifest, parts(now.state))

    def save_if_due(self) -> None:
        """Writes a snapshot if the log is longer than the last one. If that fails, nothing is lost: the log goes on."""
        if isinstance(self._storage, Folder) and self._storage.outgrown:
            try:
                self.save()
            except EmberlogError as error:
                self._storage.postpone()
                self._setting.warn(f"the log of {self._storage.path} goes on growing: {error.message}")

    def close(self) -> None:
        self._closed = True
        self._storage.close()


def _shown(params: Params) -> str:
    """Parameters as text."""
    return ", ".join(f"{name}={value!r}" for name, value in sorted(params.items())) or "none"
