"""The view: what users hold of a maintained program.

A change is read, applied to the inputs, and followed by the tasks in the order of the scheduler; then it is committed,
first to the log of the view's folder, if it has one. Whatever is raised before that takes everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal, overload
from weakref import finalize

from emberlog.analysis.check import check
from emberlog.analysis.names import mentioned
from emberlog.asked import goals_as_rules
from emberlog.data.paths import path_of
from emberlog.data.sources import Source
from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.maintain.asking import asking
from emberlog.maintain.durable.folder import Folder
from emberlog.maintain.durable.unsaved import Unsaved
from emberlog.maintain.explain import Explanation
from emberlog.maintain.report import NOTHING, Change, ChangeStats, Difference, Rows, RowsHolder
from emberlog.maintain.rules import heads_of, with_rules, without_rules
from emberlog.maintain.state import State
from emberlog.maintain.streams import batch_function, start_stream
from emberlog.maintain.versions import Setting, Version, Versions
from emberlog.relation import Relation
from emberlog.schedule.files import write as write_trace
from emberlog.schedule.interface import Scheduler
from emberlog.source import Source as Text
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse_goal
from emberlog.types import Column
from emberlog.why.limits import BUDGET, DEPTH, WIDTH, Shape, at_least
from emberlog.why.tree import Why, WhyNot


class View:
    """The relations of a program, kept current while its inputs and rules change.

    `view[name]` are the rows of a relation as they are when it is asked for; later changes do not touch them. A change
    is applied whole or, if anything goes wrong, not at all. Threads may share a view; their changes come one after
    another. A view with a folder is there again after its process ended, however it ended, as the last committed change
    left it; `close` lets go of the folder.
    """

    def __init__(
        self,
        program: Program,
        sources: Mapping[str, Source],
        setting: Setting,
        order: Scheduler,
        folder: Folder | None = None,
        change_rules: bool = False,
    ) -> None:
        self._lock = RLock()
        self._setting = setting
        self._storage = folder or Unsaved()
        self._versions = Versions(sources, setting, order, self._storage)
        self._close = finalize(self, self._versions.close)
        try:
            if folder is None or folder.manifest is None:
                self._versions.evaluate(program)
            else:
                self._versions.open(folder, folder.manifest, program, change_rules)
        except BaseException:
            self.close()
            raise

    # --- the folder ----------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The folder of the view, None if it lives in this process alone."""
        return self._storage.path

    def save(self) -> None:
        """Writes a snapshot, so that the next start reads no changes. It happens by itself when the changes since the
        last one take more room than it."""
        with self._lock:
            self._versions.save()

    def close(self) -> None:
        """Lets go of the view's folder, so that others can open it. The view takes no more changes."""
        with self._lock:
            self._close()

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- reading -------------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> dict[str, tuple[Column, ...]]:
        """The relations that users see: what the program asks for, and what takes changes."""
        program = self._state.program
        return {name: program.signatures[name].columns for name in sorted({*program.wanted, *program.inputs})}

    def __getitem__(self, name: str) -> Relation:
        with self._lock:
            columns = self._columns
            if name not in columns:
                hint = did_you_mean(name, columns)
                raise UsageError(
                    f"there is no relation `{name}` in this view", fix=hint or f"there are: {', '.join(columns)}"
                )
            holder = self._versions.placement.holder(self._state.relations[name], columns[name])
            return Relation(name, columns[name], holder)

    @property
    def stats(self) -> ChangeStats:
        """What the last change took, or the first evaluation."""
        return self._now.stats

    @property
    def batches(self) -> dict[str, int]:
        """The number of the last batch of each stream."""
        return dict(self._now.batches)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The relations that take changes."""
        return tuple(sorted(self._state.program.inputs))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def query(self, goal: str) -> Relation:
        """The rows of a relation of this view that match a goal such as `tc(1, Y)` or `tc(X, Y), wanted(X)`."""
        if not isinstance(goal, str):
            raise UsageError(f"a goal is a text, not {type(goal).__name__}", fix='query("tc(1, Y)")')
        with self._lock:
            asked = parse_goal(goal, bigdatalog=self._program.bigdatalog)
            name = asked.atom.predicate
            relation = self[name]  # raises if there is none
            asking, _ = goals_as_rules(Program((asked,), self._program.bigdatalog))
            read = {other: self[other] for other in mentioned(asking) if other in self._state.relations}
            schemas = {other: found.schema for other, found in read.items()}
            checked = check(asking, schemas, self._setting.params)
            (component,) = (part for part in checked.components if part.rules)
            rows = {other: self._state.relations[other].given for other in read}
            (answer,) = self._setting.ordinary.evaluate(checked, component, rows).values()
            return Relation(name, relation.schema, RowsHolder(relation.schema, frozenset(answer)))

    def explain(self) -> Explanation:
        """The tasks of the view, in order, how each is maintained, and what the last change did to it: a text, with
        `to_html()` and `to_svg()`."""
        with self._lock:
            return Explanation.of(self._state, self.stats)

    @overload
    def why(
        self,
        relation: str,
        row: object,
        *,
        all: Literal[False] = ...,
        depth: int = ...,
        width: int = ...,
        budget: int = ...,
    ) -> Why: ...

    @overload
    def why(
        self, relation: str, row: object, *, all: Literal[True], depth: int = ..., width: int = ..., budget: int = ...
    ) -> Iterator[Why]: ...

    def why(
        self,
        relation: str,
        row: object,
        *,
        all: bool = False,
        depth: int = DEPTH,
        width: int = WIDTH,
        budget: int = BUDGET,
    ) -> Why | Iterator[Why]:
        """Why a row holds now: a derivation of smallest height, or with `all` one after the other. The arguments are
        those of `Result.why`."""
        shape = Shape(at_least("depth", depth, 0), at_least("width", width, 1))
        with self._lock:
            found = asking(self._setting.ordinary, self._state)
        derivations = found.derivations(relation, row, shape, at_least("budget", budget, 1))
        return derivations if all else next(derivations)

    def why_not(self, relation: str, row: object, *, width: int = WIDTH) -> WhyNot:
        """Why a row does not hold now, as `Result.why_not` tells it."""
        with self._lock:
            found = asking(self._setting.ordinary, self._state)
        return found.why_not(relation, row, at_least("width", width, 1))

    # --- changes of rows -----------------------------------------------------------------------------------------

    def apply(
        self,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        changes: Mapping[str, object] | None = None,
        *,
        batch: tuple[str, int] | None = None,
        trace: str | Path | None = None,
    ) -> Change:
        """Deletes and inserts rows of base relations, and brings everything that depends on them up to date.

        Rows are lists of tuples, Arrow tables, or frames of pandas, Polars or Spark. Rows of `changes` say themselves
        what they are: in a column `_sign` (1 or -1) or `_change_type` (insert, delete, update_preimage,
        update_postimage); a tuple has its sign last. Deletes are taken first. `batch` is the name of a stream and a
        number that grows: a batch that is not above the last one of its stream was applied already, and does nothing.
        `trace` is a file for what the tasks took, which `emberlog schedule simulate` replays.
        """
        stream, number = batch or ("", 0)
        with self._lock:
            if batch is not None and number <= self._now.batches.get(stream, -1):
                return Change({}, self._columns, NOTHING)
            with self._versions.work():
                change = self._follow(insert, delete, changes)
                self._versions.commit_rows(change.stats, {} if batch is None else {stream: number})
            self._versions.save_if_due()
            if trace is not None:
                write_trace(change.stats.trace(), path_of(trace, "trace"))
            return change

    def _follow(self, *given: Mapping[str, object] | None) -> Change:
        """The differences of an uncommitted change."""
        stats = self._versions.follow(self._versions.reading.edit(*given))
        return self._change(self._state, stats)

    def apply_each(self, changes: Iterable[Mapping[str, Any]], *, differences: bool = False) -> list[Change]:
        """Applies changes one after another, each with the arguments of `apply`. One that fails is not applied, nor
        are those after it. When this returns, all of them are on the disk of a view with a folder. What each of them
        did is told only if `differences` are asked for: without, loops take small changes by themselves."""
        with self._lock, self._storage.together():
            if differences:
                return [self.apply(**change) for change in changes]
            for change in self._versions.run_sequences(changes):
                self.apply(**change)
            return []

    def what_if(
        self,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        changes: Mapping[str, object] | None = None,
    ) -> Change:
        """The differences that a change would make; the view stays as it is."""
        with self._lock, self._versions.work():
            change = self._follow(insert, delete, changes)
            self._state.undo()
            return change

    # --- streams -------------------------------------------------------------------------------------------------

    def stream(self, frame: Any, relation: str, *, checkpoint: str | Path | None = None, **trigger: Any) -> Any:
        """Starts a query of Structured Streaming that applies each batch of a streaming frame to an input, exactly
        once, also after a restart of a view with a folder. Returns Spark's `StreamingQuery`.

        Rows are inserted, or are changes if they have a column `_change_type` or `_sign`. The checkpoint of the query
        is in the view's folder, if nothing else is said. `trigger` are Spark's: processingTime, availableNow.
        """
        self._versions.reading.signature(relation)  # raises if it takes no changes
        return start_stream(self, frame, relation, checkpoint, trigger)

    def batch(self, relation: str, *, name: str | None = None) -> Callable[[Any, int], None]:
        """A function for `foreachBatch` of a query of your own: it applies the rows of a batch to an input, as `stream`
        does. `name` tells streams apart, if the id of the query shall not."""
        self._versions.reading.signature(relation)
        return batch_function(self, relation, name)

    # --- changes of rules ----------------------------------------------------------------------------------------

    def add_rule(self, text: str) -> Change:
        """Adds rules or facts to the program. Only what depends on their predicates is computed."""
        added = self._now.added | heads_of(_text(text))
        return self._with_program(with_rules(self._program, _text(text)), added)

    def remove_rule(self, text: str) -> Change:
        """Removes rules or facts, which must be in the program, from it."""
        return self._with_program(without_rules(self._program, _text(text)), self._now.added)

    def _with_program(self, program: Program, added: frozenset[str]) -> Change:
        with self._lock:
            with self._versions.work():
                version, loaded = self._versions.with_rules(program, added)
                change = self._change(version.state, version.stats)
                self._versions.commit_rules(version, loaded)
            self._versions.save_if_due()
            return change

    # --- how -----------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> Version:
        return self._versions.now

    @property
    def _state(self) -> State:
        return self._now.state

    @property
    def _program(self) -> Program:
        return self._now.program

    def _change(self, state: State, stats: ChangeStats) -> Change:
        """The differences that the uncommitted change makes to what users see."""
        program = state.program
        columns = {name: program.signatures[name].columns for name in {*program.wanted, *program.inputs}}
        found = {
            name: Difference(Rows.of(columns[name], relation.inserted), Rows.of(columns[name], relation.deleted))
            for name in sorted(columns)
            if (relation := state.relations[name]).changed
        }
        return Change(found, columns, stats)


def _text(text: str) -> Text:
    if not isinstance(text, str):
        raise UsageError(f"a rule is a text, not {type(text).__name__}", fix='"p(X) <- q(X)."')
    return Text("<rule>", text)
