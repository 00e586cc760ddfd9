"""The state of a view: relations, the tasks that maintain them, and the graph by which tasks depend on each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

from emberlog.maintain.changes import Edit
from emberlog.maintain.conditions import check_domains
from emberlog.maintain.placement import KeptRelation, KeptTask, Placement
from emberlog.maintain.program import Definition, ViewProgram, edges
from emberlog.maintain.report import ChangeStats, TaskStats
from emberlog.maintain.store import Journal
from emberlog.schedule.drive import Drive
from emberlog.schedule.interface import Graph, Scheduler


@dataclass(frozen=True)
class State:
    """What a view is at a time. Relations and tasks change in place; `journal` has what a change did."""

    program: ViewProgram
    relations: dict[str, KeptRelation]
    tasks: tuple[KeptTask, ...]
    journal: Journal
    threads: int  # tasks that run at once

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
        edited = {*edit.delete, *edit.insert}
        for name in edited:
            relation, signature = self.relations[inputs[name]], self.program.checked.signatures[name]
            relation.edit(edit.delete.get(name, ()), edit.insert.get(name, ()))
            if signature.domains:
                check_domains(signature, relation.inserted)
        return self.reading(name for name in map(inputs.__getitem__, edited) if self.relations[name].changed)

    def reading(self, names: Iterable[str]) -> set[int]:
        """The tasks that read some relations."""
        return {number for name in names for number in self.readers.get(name, ())}

    def run(self, active: Collection[int], scheduler: Scheduler, new: Collection[int] = ()) -> ChangeStats:
        """Runs the tasks that a change activates, each once. `new` ones start from nothing."""
        begun = perf_counter()
        done: list[TaskStats] = []

        def run(number: int) -> tuple[int, ...]:
            stats = self.run_task(number, number in new)
            done.append(stats)
            return stats.reached

        drive = Drive(scheduler, run)
        drive.start(self.graph, sorted(active), self.threads)
        working = perf_counter() - begun - drive.seconds
        return ChangeStats(self.graph, frozenset(active), tuple(done), drive.seconds, working, scheduler.operations)

    def run_task(self, number: int, new: bool) -> TaskStats:
        """Runs one task; a `new` one starts from nothing."""
        task = self.tasks[number]
        begun = perf_counter()
        touched = task.run(first=new)
        inserted, deleted = map(sum, zip(*(relation.counts for relation in task.relations), strict=True))
        reached = tuple(sorted(self.reading(relation.name for relation in task.relations if relation.changed)))
        names, seconds = task.definition.names, perf_counter() - begun
        return TaskStats(number, names, seconds, touched, inserted, deleted, task.why, reached)

    def commit(self) -> None:
        """Makes the change final."""
        self.journal.commit()
        for relation in self.relations.values():
            if relation.pending:
                relation.commit()

    def undo(self) -> None:
        """Takes back what was done since the last commit."""
        self.journal.undo()
        for relation in self.relations.values():
            if relation.pending:
                relation.undo()


def first_state(program: ViewProgram, placement: Placement) -> State:
    """The state of a program over empty relations, whose tasks have not run."""
    return _state(program, {}, {}, Journal(), placement)


def next_state(old: State, program: ViewProgram, placement: Placement) -> tuple[State, set[int]]:
    """The state of a program with other rules, and the tasks in it that are new. Others are those of `old`.

    Rows from outside stay with their predicates, wherever these keep them now. What no rule derives any more loses its
    rows, and so does what new tasks derive anew: differences stay net."""
    kept = {shape(task.definition, old.program): task for task in old.tasks}
    state = _state(program, old.relations, kept, old.journal, placement)
    new = {number for number, task in enumerate(state.tasks) if task not in old.tasks}
    moved = {
        name: old.relations[relation].content
        for name, relation in old.program.inputs.items()
        if program.inputs.get(name) != relation or state.relations[relation] is not old.relations[relation]
    }
    for name, relation in program.inputs.items():
        if name in moved or name not in old.program.inputs:
            state.relations[relation].replace(moved.get(name, ()))
    fixed = set(program.inputs.values()) | set(program.facts)
    derived = {name for number, task in enumerate(state.tasks) if number not in new for name in task.definition.names}
    for name, found in state.relations.items():
        if name not in fixed and name not in derived:
            found.replace(())
    return state, new


def _state(
    program: ViewProgram,
    relations: Mapping[str, KeptRelation],
    kept: Mapping[object, KeptTask],
    journal: Journal,
    placement: Placement,
) -> State:
    found = dict(relations)
    for name, signature in program.signatures.items():
        if name not in found or found[name].width != len(signature.columns):
            found[name] = placement.relation(name, signature.columns)
    tasks = tuple(
        kept.get(shape(definition, program)) or placement.task(definition, program, found, journal)
        for definition in program.definitions
    )
    return State(program, found, tasks, journal, placement.threads)


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
