"""The state of a view: relations, the tasks that maintain them, and the graph by which tasks depend on each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

from emberlog.maintain.changes import Edit
from emberlog.maintain.conditions import check_domains
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.program import Definition, ViewProgram, edges
from emberlog.maintain.report import ChangeStats, TaskStats
from emberlog.maintain.store import Journal, Relation
from emberlog.maintain.tasks import Task
from emberlog.schedule.interface import Graph, Scheduler
from emberlog.stats import Limits


@dataclass(frozen=True)
class State:
    """What a view is at a time. Relations and tasks change in place; `journal` has what a change did."""

    program: ViewProgram
    relations: dict[str, Relation]
    tasks: tuple[Task, ...]
    journal: Journal

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(len(self.tasks), list(edges(task.definition for task in self.tasks)))

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The tasks that read each relation."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, task in enumerate(self.tasks):
            for name in task.definition.reads:
                found[name].append(number)
        return dict(found)

    # --- changes -------------------------------------------------------------------------------------------------

    def edit(self, edit: Edit) -> set[int]:
        """Changes the inputs: rows go, then rows come. Returns the tasks that read what changed."""
        inputs = self.program.inputs
        for name, rows in edit.delete.items():
            relation = self.relations[inputs[name]]
            for row in rows:
                if row in relation.rows:
                    relation.remove(row)
        for name, rows in edit.insert.items():
            relation = self.relations[inputs[name]]
            for row in rows:
                if row not in relation.rows:
                    relation.add(row)
            check_domains(self.program.checked.signatures[name], relation.inserted)
        names = {inputs[name] for name in (*edit.delete, *edit.insert)}
        return self.reading(name for name in names if self.relations[name].changed)

    def reading(self, names: Iterable[str]) -> set[int]:
        """The tasks that read some relations."""
        return {number for name in names for number in self.readers.get(name, ())}

    def run(self, active: Collection[int], scheduler: Scheduler, new: Collection[int] = ()) -> ChangeStats:
        """Runs the tasks that a change activates, each once. `new` ones start from nothing."""
        begun = perf_counter()
        working = 0.0
        done: dict[int, TaskStats] = {}
        scheduler.start(self.graph, sorted(active))
        while not scheduler.done():
            number = scheduler.ready()
            assert number is not None and number not in done, "a task of a change runs once"
            at = perf_counter()
            done[number] = self.run_task(number, number in new)
            changed = (name for name in self.tasks[number].definition.names if self.relations[name].changed)
            successors = sorted(self.reading(changed))
            working += perf_counter() - at
            scheduler.finish(number, successors)
        whole = perf_counter() - begun
        tasks = tuple(done.values())
        return ChangeStats(self.graph, frozenset(active), tasks, whole - working, working, scheduler.operations)

    def run_task(self, number: int, new: bool) -> TaskStats:
        """Runs one task; a `new` one starts from nothing."""
        task = self.tasks[number]
        begun = perf_counter()
        touched = task.run(first=new)
        inserted = sum(len(relation.inserted) for relation in task.relations)
        deleted = sum(len(relation.deleted) for relation in task.relations)
        return TaskStats(task.definition.names, perf_counter() - begun, touched, inserted, deleted, task.why)

    def commit(self) -> None:
        """Makes the change final."""
        self.journal.commit()
        for relation in self.relations.values():
            if relation.changed:
                relation.commit()

    def undo(self) -> None:
        """Takes back what was done since the last commit."""
        self.journal.undo()
        for relation in self.relations.values():
            if relation.changed:
                relation.undo()


def first_state(program: ViewProgram, ordinary: Ordinary, limits: Limits) -> State:
    """The state of a program over empty relations, whose tasks have not run."""
    return _state(program, {}, {}, Journal(), ordinary, limits)


def next_state(old: State, program: ViewProgram, ordinary: Ordinary, limits: Limits) -> tuple[State, set[int]]:
    """The state of a program with other rules, and the tasks in it that are new. Others are those of `old`.

    Rows from outside stay with their predicates, wherever these keep them now. What no rule derives any more loses its
    rows, and so does what new tasks derive anew: differences stay net."""
    kept = {shape(task.definition, old.program): task for task in old.tasks}
    state = _state(program, old.relations, kept, old.journal, ordinary, limits)
    new = {number for number, task in enumerate(state.tasks) if task not in old.tasks}
    given = {name: set(old.relations[relation].rows) for name, relation in old.program.inputs.items()}
    for name, relation in program.inputs.items():
        state.relations[relation].replace(given.get(name, ()))
    fixed = set(program.inputs.values()) | set(program.facts)
    derived = {name for number, task in enumerate(state.tasks) if number not in new for name in task.definition.names}
    for name, found in state.relations.items():
        if name not in fixed and name not in derived:
            found.replace(())
    return state, new


def _state(
    program: ViewProgram,
    relations: dict[str, Relation],
    kept: dict[object, Task],
    journal: Journal,
    ordinary: Ordinary,
    limits: Limits,
) -> State:
    found = dict(relations)
    for name, signature in program.signatures.items():
        if name not in found or found[name].width != len(signature.columns):
            found[name] = Relation(name, len(signature.columns))
    tasks = tuple(
        kept.get(shape(definition, program)) or Task(definition, program, found, journal, ordinary, limits)
        for definition in program.definitions
    )
    return State(program, found, tasks, journal)


def shape(definition: Definition, program: ViewProgram) -> object:
    """What two definitions have in common if one can stand for the other."""
    names = (*definition.names, *sorted(definition.reads))
    signatures = tuple(
        (name, program.signatures[name].columns, tuple(program.signatures[name].aggregates.items())) for name in names
    )
    component = definition.component
    rules = tuple(replace(rule, id=0) for rule in definition.rules)
    types = tuple(tuple(sorted(rule.types.items(), key=lambda item: item[0])) for rule in definition.rules)
    facts = tuple(program.checked.facts.get(name, ()) for name in definition.names)
    return (
        rules,
        types,
        signatures,
        component.evaluation,
        component.until,
        component.indexed,
        component.keeps_states,
        facts,
    )
