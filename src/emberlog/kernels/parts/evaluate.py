"""A component evaluated by workers: on threads of this process, or under a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import pyarrow as pa

from emberlog.components.program import COMPILED, OVER_COLUMNS, End, KernelProgram, Table
from emberlog.components.shares import WorkerPlan, plan_workers
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.parts.build import build_parts, compiles
from emberlog.kernels.parts.checkpoints import Checkpoints, PartKeeper, latest
from emberlog.kernels.parts.iterations import settles
from emberlog.kernels.parts.part import EvaluatedPart
from emberlog.kernels.watch import Watch
from emberlog.stats import Event
from emberlog.workers.alone import Alone, run_alone
from emberlog.workers.modes import Auto
from emberlog.workers.part import Part
from emberlog.workers.simulated import Costs, Simulation
from emberlog.workers.stats import Coordinated
from emberlog.workers.straggle import Straggle, disturbances
from emberlog.workers.termination import Settled, nothing_left
from emberlog.workers.threads import run_threads, thread_peers
from emberlog.workers.worker import Worker

SEED = 0  # of stragglers: a run is disturbed in the same way each time


def evaluate_by_workers(
    plan: WorkerPlan,
    statics: Mapping[str, pa.Table],
    exits: Mapping[str, pa.Table],
    watch: Watch,
    choices: Choices,
    starts: Mapping[str, pa.Table] | None = None,
    end: End | None = None,
) -> Evaluated:
    """The fixpoint, or the end of an iteration, under the coordination that is wished. Raises `Failed` as the
    interpreter does."""
    size, mode = choices.workers, choices.coordination
    assert mode is not None
    events: list[Event] = []
    if plan.program.mode == "accumulate" and not starts_within(plan.program, starts or {}, exits):
        events.append(Event("each round replaces the state", "nothing contributes to a group of the start"))
        plan = _replacing(plan, choices)
    facts = [0] * size
    given = (statics, exits, size, lambda rank: PartWatch(watch, facts, rank), starts, end)
    rows = sum(table.num_rows for table in (*statics.values(), *exits.values()))
    compiled = compiles(plan, choices.storage, rows)
    encoder, parts = build_parts(plan, *given, compiled=compiled)
    settled: Settled = nothing_left
    auto = Auto(plan.condenses) if mode == "auto" else None
    if plan.program.mode == "replace":
        settled, auto, mode = settles(end), None, "bsp"
    checkpoints = Checkpoints.asked(choices, plan)
    keepers = [] if checkpoints is None else [checkpoints.of(part) for part in parts]
    resumed = latest([keeper.found() for keeper in keepers]) if keepers else []
    for part, found in zip(parts, resumed, strict=False):
        part.restore(found.state)
    begins = resumed[0].mode if resumed and auto is not None else mode

    def stop() -> None:
        for part in parts:
            part.stop()

    with watch.halting(stop):
        ran = _run(parts, begins, auto, choices, lambda: watch.look(sum(facts)), keepers, settled)
    ran = replace(ran, mode=mode)
    counts = {table.name: sum(part.size_of(table.name) for part in parts) for table in plan.program.tables}
    watch.look(sum(counts.values()))
    events += [*(found.event for found in resumed[:1]), *(event for keeper in keepers for event in keeper.events)]
    if checkpoints is not None:
        checkpoints.remove()
    lanes = ran.lanes
    residual = _residual(parts, end)
    return Evaluated(
        encoder,
        counts,
        f"{size} workers {COMPILED if compiled else OVER_COLUMNS}, {mode}",
        rounds=max(lane.iterations for lane in lanes),
        derivations=sum(lane.derivations for lane in lanes),
        bytes_exchanged=sum(lane.bytes for lane in lanes),
        residual=residual,
        converged=bool(residual),
        events=events,
        pieces=lambda name: (part.rows(name) for part in parts),
        coordination=ran,
    )


def starts_within(program: KernelProgram, starts: Mapping[str, pa.Table], constants: Mapping[str, pa.Table]) -> bool:
    """True if every group of the start has a constant contribution, so that it stays."""

    def keys(table: Table, rows: pa.Table) -> pa.Table:
        names = [str(key) for key in table.keys]
        return pa.table([rows.column(key) for key in table.keys], names)

    for table in program.tables:
        begin, always = keys(table, starts[table.name]), keys(table, constants[table.name])
        if begin.num_rows and begin.join(always, begin.column_names, join_type="left anti").num_rows:
            return False
    return True


def _replacing(plan: WorkerPlan, choices: Choices) -> WorkerPlan:
    """The plan for a program whose rounds replace its state."""
    whole = [plan.sources[name] for name, columns in plan.statics.items() if columns is None]
    found = plan_workers(replace(plan.program, mode="replace"), choices.partition, whole)
    assert isinstance(found, WorkerPlan)
    return found


def _residual(parts: Sequence[EvaluatedPart], end: End | None) -> float | None:
    """How far an iteration was from its fixpoint when it ended; None where nothing measures it."""
    if end is None:
        return None
    changes = [part.residual for part in parts]
    return max(changes) if end.function == "max" else sum(changes)


def _run(
    parts: Sequence[Part],
    mode: str,
    auto: Auto | None,
    choices: Choices,
    look: Callable[[], None],
    keepers: Sequence[PartKeeper] = (),
    settled: Settled = nothing_left,
) -> Coordinated:
    """Lets workers with these parts work: on threads, or one after the other under a simulated clock. Checkpoints are
    made by `keepers`, if there are any."""
    size, straggle = len(parts), None if choices.straggle is None else Straggle.of(choices.straggle)
    if choices.simulate is not None:
        simulated = Simulation(parts, mode, Costs.parse(choices.simulate), straggle, auto, settled).run()
        return replace(simulated, why=_why(auto, "simulated"))
    if size == 1 and straggle is None:
        alone = Worker(parts[0], Alone(), mode, auto, keepers[0] if keepers else None, settled)
        return Coordinated(mode, [alone.lane], run_alone(alone), _why(auto))
    peers = thread_peers(size)
    each: Sequence[PartKeeper | None] = keepers or [None] * size
    workers = [
        Worker(part, own, mode, auto, keeper, settled) for part, own, keeper in zip(parts, peers, each, strict=True)
    ]
    seconds = run_threads(workers, peers, disturbances(straggle, SEED, size), look)
    return Coordinated(mode, [worker.lane for worker in workers], seconds, _why(auto))


def _why(auto: Auto | None, *more: str) -> str:
    return "; ".join((*([] if auto is None else [auto.why]), *more))


class PartWatch:
    """What one worker asks: limits hold for the facts of all of them."""

    def __init__(self, watch: Watch, facts: list[int], rank: int) -> None:
        self._watch = watch
        self._facts = facts
        self._rank = rank

    @property
    def most_rounds(self) -> int:
        return self._watch.most_rounds

    def look(self, facts: int) -> None:
        self._facts[self._rank] = facts
        self._watch.look(sum(self._facts))

    def rounds(self, deltas: list[int], facts: int) -> None:
        self.look(facts)

    def failed(self, code: int) -> None:
        self._watch.failed(code)

    def halting(self, halt: Callable[[], None]) -> AbstractContextManager[None]:
        return self._watch.halting(halt)

    def halted(self) -> None:
        self._watch.halted()
