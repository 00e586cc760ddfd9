"""Runs the nests of a component over columns, round by round, until no fact waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic, thread_time

import numpy as np
import pyarrow as pa

from emberlog.components.domains import variables_of
from emberlog.components.nests import Meet, Nest, Probe, Step, Walk, nests, read_by
from emberlog.components.program import INTERPRETED, Check, Id, KernelProgram, Kind, Let
from emberlog.kernels.choices import Columns, Evaluated
from emberlog.kernels.code.changes import change_of, moving_of
from emberlog.kernels.columns.facts import Facts, Groups, SetFacts, SumFacts, facts
from emberlog.kernels.columns.joins import Column, Index, expanded
from emberlog.kernels.columns.terms import Terms, subtracted
from emberlog.kernels.encode import Encoder, by_name, check_contributors
from emberlog.kernels.watch import Overworked, Unsuited, Watch
from emberlog.syntax.nodes import Term, Variable

ROW = "#row"  # the column that numbers bindings, where they are put together again


@dataclass(frozen=True)
class Budget:
    """How many bindings may be looked at, and for how many seconds. Past that it is `Overworked`.

    Seconds are those of the processor (a busy machine makes no program larger), which takes longer to ask for than the
    clock: it is asked only when the clock says that they may be over.
    """

    bindings: int | None = None
    seconds: float = inf
    started: float = field(default_factory=monotonic)
    worked: float = field(default_factory=thread_time)

    def check(self, bindings: int) -> None:
        if self.bindings is not None and bindings > self.bindings:
            raise Overworked(f"more than {self.bindings:,} bindings")
        if self.spent(self.seconds) > self.seconds:
            raise Overworked("it takes longer than loading a compiler does")

    def spent(self, least: float) -> float:
        """The seconds of the processor so far; 0 if they are not more than `least`."""
        return 0.0 if monotonic() - self.started <= least else thread_time() - self.worked


@dataclass(frozen=True)
class Bindings:
    """Values of variables, column by column."""

    rows: int
    columns: Mapping[str, Column]

    def only(self, kept: Column) -> Bindings:
        """Those where it is true, or those with these numbers."""
        columns = {name: column[kept] for name, column in self.columns.items()}
        return Bindings(int(np.count_nonzero(kept)) if kept.dtype == bool else len(kept), columns)

    def having(self, columns: Mapping[str, Column]) -> Bindings:
        return Bindings(self.rows, {**self.columns, **columns})

    def reading(self, names: set[str]) -> Bindings:
        return Bindings(self.rows, {name: column for name, column in self.columns.items() if name in names})


def interpret(
    program: KernelProgram,
    statics: Mapping[str, pa.Table],
    exits: Mapping[str, pa.Table],
    watch: Watch,
    budget: Budget | None = None,
) -> Evaluated:
    """The fixpoint of a component. Raises as the compiled loops do, and `Overworked` where they should do it."""
    if program.mode != "delta":
        raise Unsuited("an iteration is not evaluated over columns")
    encoder = Encoder(program, by_name([statics, exits]))
    arrays = {name: encoder.rows(name, table.columns) for name, table in statics.items()}
    first = {name: encoder.rows(name, table.columns) for name, table in exits.items()}
    check_contributors(program, arrays, statics)
    run = Interpreter(program, encoder, arrays, budget or Budget(), watch)
    run.fixpoint(first)
    return Evaluated(
        encoder,
        {name: one.count for name, one in run.tables.items()},
        INTERPRETED,
        derivations=run.derivations,
        pieces=lambda name: iter([run.tables[name].columns()]),
    )


class Interpreter:
    """The tables and indexes of one evaluation."""

    def __init__(
        self,
        program: KernelProgram,
        encoder: Encoder,
        statics: Mapping[str, Columns],
        budget: Budget,
        watch: Watch,
    ) -> None:
        self.program = program
        self.encoder = encoder
        self.statics = {name: [_wide(column) for column in columns] for name, columns in statics.items()}
        self.tables = {table.name: facts(table, encoder.sizes) for table in program.tables}
        self.plans = [_Plan(nest, program, Terms(nest.kinds, encoder.constant)) for nest in nests(program, {})]
        self.budget = budget
        self.watch = watch
        self.bindings = 0
        self.derivations = 0
        self._indexes: dict[tuple[str, tuple[int, ...]], Index] = {}

    def fixpoint(self, exits: Mapping[str, Columns]) -> None:
        for name, columns in exits.items():
            if len(columns[0]):
                self.tables[name].put([_wide(column) for column in columns], len(columns[0]))
        while any(table.waiting for table in self.tables.values()):
            took = self.take_up()
            self.watch.rounds([took], self.count)
            self._spend(0)
        self.watch.rounds([0], self.count)

    @property
    def count(self) -> int:
        return sum(table.count for table in self.tables.values())

    def take_up(self) -> int:
        """Takes up the facts that wait, table by table, and derives what follows. How many they were."""
        with np.errstate(all="ignore"):  # sums of floats that become infinite
            return sum(self._take(table) for table in self.tables.values())

    def _spend(self, bindings: int) -> None:
        self.bindings += bindings
        self.budget.check(self.bindings)
        self.watch.look(self.count)

    # --- facts that are taken up -----------------------------------------------------------------------------------

    def _take(self, table: Facts) -> int:
        """Takes up the facts of a table that wait, and runs every nest that starts from them."""
        if not table.waiting:
            return 0
        plans = [plan for plan in self.plans if plan.nest.table == table.table.name]
        match table:
            case SumFacts():
                rows, first, changes, old = table.take_changes()
                for plan in plans:
                    self._change(plan, table, rows, first, changes, old)
            case Groups():
                rows, _ = table.take()
                for plan in plans:
                    self._derive(plan, self._started(plan.nest, table, rows))
            case SetFacts():
                rows = table.take()
                for plan in plans:
                    self._derive(plan, self._started(plan.nest, table, rows))
            case _:
                raise AssertionError("no such table")
        return len(rows)

    def _started(self, nest: Nest, table: Facts, rows: Column) -> Bindings:
        return Bindings(len(rows), {name: table.column(position, rows) for position, name in nest.binds})

    def _change(self, plan: _Plan, table: SumFacts, rows: Column, first: Column, changes: Column, old: Column) -> None:
        """What a nest gives when sums have changed (`changes` says why)."""
        started = self._started(plan.nest, table, rows)
        values = [name for position, name in plan.nest.binds if position == table.position]
        match plan.change:
            case "whole":
                self._derive(plan, started)
            case "first":
                self._derive(plan, started.only(first))
            case "multiple":
                by = started.having(dict.fromkeys(values, changes))
                self._derive(plan, by.only((changes != 0) | first))
            case "difference":
                self._differ(plan, started, dict.fromkeys(values, old), first)

    def _derive(self, plan: _Plan, bindings: Bindings) -> None:
        """All bindings of a nest, into the table of its head."""
        found = self._run(plan, plan.steps, bindings)
        if found.rows:
            self.derivations += found.rows
            self.deliver(plan.nest.rule.head, plan.head(found), found.rows)

    def deliver(self, table: str, columns: Sequence[Column], rows: int) -> None:
        """Takes in facts of a table that were derived."""
        self.tables[table].put(columns, rows)

    def _differ(self, plan: _Plan, started: Bindings, before: Mapping[str, Column], first: Column) -> None:
        """Contributions as they are now, less what they were."""
        fixed, changing = plan.divided()
        old = {f"#{name}": column for name, column in before.items()}
        found = self._run(plan, fixed, started.having({**old, "#first": first}), keeps_all=True)
        if not found.rows:
            return
        numbered = found.having({ROW: np.arange(found.rows)})
        now = self._run(plan, changing, numbered, keeps_all=True)
        past = numbered.having({name: found.columns[f"#{name}"] for name in before})
        then = self._run(plan, changing, past.only(~found.columns["#first"]), keeps_all=True)
        value = plan.table.value
        assert value is not None
        is_float = plan.table.kinds[value] == "float"
        totals = np.zeros((2, found.rows), np.float64 if is_float else np.int64)
        given = np.zeros((2, found.rows), bool)
        for number, side in enumerate((now, then)):
            if side.rows:
                totals[number, side.columns[ROW]] = plan.argument(value, side)
                given[number, side.columns[ROW]] = True
        total = totals[0] - totals[1] if is_float else subtracted(totals[0], totals[1])
        # What stays as it was is no change: handed on, it would go round a cycle for ever.
        changed = (given[0] != given[1]) | (total != 0)
        there = found.only(changed)
        if there.rows:
            columns = {key: plan.argument(key, there) for key in plan.table.keys} | {value: total[changed]}
            self.derivations += there.rows
            self.deliver(plan.nest.rule.head, [columns[i] for i in range(len(columns))], there.rows)

    # --- steps -----------------------------------------------------------------------------------------------------

    def _run(self, plan: _Plan, steps: Sequence[Step], bindings: Bindings, keeps_all: bool = False) -> Bindings:
        """The bindings after some steps; variables that nobody reads any more are dropped, unless all are kept."""
        for number, step in enumerate(steps):
            if not bindings.rows:
                return bindings
            bindings = self._step(plan, step, bindings)
            if not keeps_all:
                bindings = bindings.reading(plan.live[number])
        return bindings

    def _step(self, plan: _Plan, step: Step, bindings: Bindings) -> Bindings:
        match step:
            case Check():
                return bindings.only(plan.terms.holds(step, bindings.columns, bindings.rows))
            case Let(variable, term):
                return bindings.having({variable: plan.column(term, bindings, plan.nest.kinds[variable])})
            case Probe():
                return self._probe(plan, step, bindings)
            case Walk():
                return self._walk(plan, step, bindings)
            case Meet(variable, one, other):
                shared = Probe(one.relation, one.bound[:-1], one.terms, ((one.bound[-1], variable),))
                closing = Probe(other.relation, other.bound, (*other.terms, Variable(variable)), (), exists=True)
                return self._probe(plan, closing, self._probe(plan, shared, bindings))

    def _probe(self, plan: _Plan, probe: Probe, bindings: Bindings) -> Bindings:
        if not bindings.rows:
            return bindings
        static = self.program.static(probe.relation)
        index = self._index(probe.relation, probe.bound)
        known = [
            plan.column(term, bindings, static.kinds[spot]) for spot, term in zip(probe.bound, probe.terms, strict=True)
        ]
        low, high = index.ranges(known, bindings.rows)
        if probe.exists or probe.absent:
            return bindings.only(low >= high if probe.absent else low < high)
        columns = self.statics[probe.relation]
        first, places = self._expanded(low, high)
        rows = index.order[places]
        return bindings.only(first).having({name: columns[spot][rows] for spot, name in probe.binds})

    def _expanded(self, low: Column, high: Column) -> tuple[Column, Column]:
        self._spend(int((high - low).sum()))
        return expanded(low, high)

    def _index(self, relation: str, bound: tuple[int, ...]) -> Index:
        found = self._indexes.get((relation, bound))
        if found is None:
            columns, kinds = self.statics[relation], self.program.static(relation).kinds
            sizes = [self._size(kinds[spot]) for spot in bound]
            found = Index([columns[spot] for spot in bound], sizes, max(len(column) for column in columns))
            self._indexes[relation, bound] = found
        return found

    def _size(self, kind: Kind) -> int | None:
        return self.encoder.sizes[kind.domain] if isinstance(kind, Id) else None

    def _walk(self, plan: _Plan, walk: Walk, bindings: Bindings) -> Bindings:
        """Facts that were taken up, as they are now."""
        table = self.tables[walk.relation]
        known = {
            spot: plan.column(term, bindings, table.table.kinds[spot])
            for spot, term in zip(walk.bound, walk.terms, strict=True)
        }
        if set(known) == set(table.table.keys):
            rows = table.find([known[key] for key in table.table.keys], bindings.rows)
            there = rows >= 0
            first, rows = np.flatnonzero(there), rows[there]
        else:
            taken, index = table.index(walk.bound)
            low, high = index.ranges(list(known.values()), bindings.rows)
            first, places = self._expanded(low, high)
            rows = taken[index.order[places]]
        return bindings.only(first).having({name: table.column(spot, rows) for spot, name in walk.binds})


class _Plan:
    """A nest, and what is known of it before it runs."""

    def __init__(self, nest: Nest, program: KernelProgram, terms: Terms) -> None:
        table = program.table(nest.rule.head)
        assert table is not None
        self.nest = nest
        self.terms = terms
        self.table = table
        self.steps = (*nest.checks, *nest.steps)
        self.change = change_of(nest, program)
        self.moving = moving_of(nest, program)
        self.live = self._live()

    def _live(self) -> list[set[str]]:
        """The variables that are read after each step."""
        names = {name for argument in self.nest.rule.arguments for name in variables_of(argument)}
        found = [names]
        for step in reversed(self.steps[1:]):
            names = names | read_by(step)
            found.append(names)
        return found[::-1]

    def divided(self) -> tuple[list[Step], list[Step]]:
        """The steps that do not depend on the sum that changes, and those that do."""
        changing = [step for step in self.steps if isinstance(step, Check | Let) and self._moves(step)]
        return [step for step in self.steps if step not in changing], list(changing)

    def _moves(self, step: Check | Let) -> bool:
        return step.variable in self.moving if isinstance(step, Let) else not self.moving.isdisjoint(read_by(step))

    def column(self, term: Term, bindings: Bindings, wanted: Kind) -> Column:
        return self.terms.column(term, bindings.columns, bindings.rows, wanted)

    def argument(self, position: int, bindings: Bindings) -> Column:
        return self.column(self.nest.rule.arguments[position], bindings, self.table.kinds[position])

    def head(self, bindings: Bindings) -> list[Column]:
        return [self.argument(position, bindings) for position in range(len(self.table.kinds))]


def _wide(column: Column) -> Column:
    """Ids and numbers in 64 bits."""
    return column if column.dtype.kind == "f" else column.astype(np.int64)
