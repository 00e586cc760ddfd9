"""The view: what users hold of a maintained program.

A change is read, applied to the inputs, and followed by the tasks in the order of the scheduler; then it is committed.
Whatever is raised before that takes everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

from emberlog.analysis.check import check
from emberlog.asked import goals_as_rules
from emberlog.data.sources import Source
from emberlog.diagnostics import LimitError, UsageError, counted, did_you_mean
from emberlog.maintain.changes import Edit, Reading
from emberlog.maintain.explain import explanation
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import ViewProgram
from emberlog.maintain.report import Change, ChangeStats, Difference, Rows, RowsHolder
from emberlog.maintain.rules import heads_of, with_rules, without_rules
from emberlog.maintain.state import State, first_state, next_state
from emberlog.relation import Relation
from emberlog.schedule.interface import Scheduler
from emberlog.source import Source as Text
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse_goal
from emberlog.types import Column, Params


@dataclass(frozen=True)
class Setting:
    """What a view has from its engine. `compile` makes tasks of a program, given the columns of inputs that are known
    and the predicates that rules were added for. Work is done inside of `working`, which ends it at the engine's limits
    and by `engine.cancel()`."""

    compile: Callable[[Program, Mapping[str, tuple[Column, ...]], Collection[str]], ViewProgram]
    ordinary: Ordinary
    params: Params
    working: Callable[[], Any]
    session: Callable[[], Any]


class View:
    """The relations of a program, kept current while its inputs and rules change.

    `view[name]` are the rows of a relation as they are when it is asked for; later changes do not touch them. A change
    is applied whole or, if anything goes wrong, not at all. Threads may share a view; their changes come one after
    another.
    """

    def __init__(self, program: Program, sources: Mapping[str, Source], setting: Setting, order: Scheduler) -> None:
        self._lock = RLock()
        self._program = program
        self._added: set[str] = set()
        self._sources = sources
        self._setting = setting
        self._order = order
        self._options = setting.ordinary.options()
        self._state = first_state(setting.compile(program, {}, ()), setting.ordinary, self._options.limits)
        with self._work():
            self._load(self._state, self._state.program.inputs)
            self.stats = self._run(self._state, range(len(self._state.tasks)), set(range(len(self._state.tasks))))
            self._state.commit()

    def _load(self, state: State, inputs: Iterable[str]) -> None:
        """Takes in the rows that the sources of some inputs have, and the facts of the program."""
        reading = Reading(state.program.signatures, state.program.inputs, self._options.nulls)
        rows = {name: reading.load(name, self._sources[name]) for name in inputs if name in self._sources}
        state.edit(Edit(insert=rows))
        for name, facts in state.program.facts.items():
            state.relations[name].replace(reading.load(name, None, facts))

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
            rows = frozenset(self._state.relations[name].rows)
            return Relation(name, columns[name], RowsHolder(columns[name], rows, self._setting.session()))

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
        """The rows of a relation of this view that match a goal such as `tc(1, Y)`."""
        if not isinstance(goal, str):
            raise UsageError(f"a goal is a text, not {type(goal).__name__}", fix='query("tc(1, Y)")')
        with self._lock:
            asked = parse_goal(goal, bigdatalog=self._program.bigdatalog)
            name = asked.atom.predicate
            relation = self[name]  # raises if there is none
            asking, _ = goals_as_rules(Program((asked,), self._program.bigdatalog))
            checked = check(asking, {name: relation.schema}, self._setting.params)
            (component,) = (part for part in checked.components if part.rules)
            rows = {name: self._state.relations[name].rows}
            (answer,) = self._setting.ordinary.evaluate(checked, component, rows).values()
            return Relation(
                name, relation.schema, RowsHolder(relation.schema, frozenset(answer), self._setting.session())
            )

    def explain(self) -> str:
        """The tasks of the view, in order, how each is maintained, and what the last change did to it."""
        with self._lock:
            return explanation(self._state, self.stats)

    # --- changes of rows -----------------------------------------------------------------------------------------

    def apply(
        self,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        changes: Mapping[str, object] | None = None,
    ) -> Change:
        """Deletes and inserts rows of base relations, and brings everything that depends on them up to date.

        Rows are lists of tuples, Arrow tables, or frames of pandas, Polars or Spark. Rows of `changes` say themselves
        what they are: in a column `_sign` (1 or -1) or `_change_type` (insert, delete, update_preimage,
        update_postimage); a tuple has its sign last. Deletes are taken first.
        """
        with self._lock, self._work():
            change = self._follow(self._reading.edit(insert, delete, changes))
            self._state.commit()
            self.stats = change.stats
            return change

    def apply_each(self, changes: Iterable[Mapping[str, Any]]) -> list[Change]:
        """Applies changes one after another, each with the arguments of `apply`. One that fails is not applied, nor
        are those after it."""
        return [self.apply(**change) for change in changes]

    def what_if(
        self,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        changes: Mapping[str, object] | None = None,
    ) -> Change:
        """The differences that a change would make; the view stays as it is."""
        with self._lock, self._work():
            change = self._follow(self._reading.edit(insert, delete, changes))
            self._state.undo()
            return change

    # --- changes of rules ----------------------------------------------------------------------------------------

    def add_rule(self, text: str) -> Change:
        """Adds rules or facts to the program. Only what depends on their predicates is computed."""
        added = self._added | heads_of(_text(text))
        return self._with_program(with_rules(self._program, _text(text)), added)

    def remove_rule(self, text: str) -> Change:
        """Removes rules or facts, which must be in the program, from it."""
        return self._with_program(without_rules(self._program, _text(text)), self._added)

    def _with_program(self, program: Program, added: set[str]) -> Change:
        with self._lock, self._work():
            old, setting = self._state, self._setting
            known = {name: old.program.signatures[name].columns for name in old.program.inputs}
            compiled = setting.compile(program, known, added)
            state, new = next_state(old, compiled, setting.ordinary, self._options.limits)
            self._load(state, compiled.inputs.keys() - old.program.inputs.keys())
            changed = [name for name, relation in state.relations.items() if relation.changed]
            stats = self._run(state, new | state.reading(changed), new)
            change = self._change(state, stats)
            state.commit()
            self._state, self._program, self._added, self.stats = state, program, added, stats
            return change

    # --- how -----------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Reading:
        program = self._state.program
        return Reading(program.signatures, program.inputs, self._options.nulls)

    @contextmanager
    def _work(self) -> Iterator[None]:
        """Work on the state, which is as before if it fails."""
        state = self._state
        try:
            with self._setting.working():
                yield
        except BaseException:
            state.undo()
            raise

    def _follow(self, edit: Edit) -> Change:
        active = self._state.edit(edit)
        return self._change(self._state, self._run(self._state, active))

    def _run(self, state: State, active: Iterable[int], new: Iterable[int] = ()) -> ChangeStats:
        stats = state.run(frozenset(active), self._order, frozenset(new))
        most = self._options.limits.rows
        derived = sum(len(relation.rows) for task in state.tasks for relation in task.relations) if most else 0
        if most is not None and derived > most:
            raise LimitError(
                f"stopped at the limit of {counted(most, 'row')}: the view would have {derived:,}",
                fix="raise limits={'rows': ...}, or add conditions to the rules",
            )
        return stats

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
