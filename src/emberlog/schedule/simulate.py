"""Replays of a trace on P processors, event by event.

A task of work w and span s is s stages of unit subtasks, as even as can be; a stage begins when the one before it is
done. Processors are given greedily: first to running tasks, the oldest first, then to nodes that the scheduler says
are ready. So in each unit of time in which a processor is idle, every running task gets one stage shorter, which is
all that Lemmas 5 and 7 need of its inner graph. Collectors cost nothing and need no processor.

The clock counts units of tasks alone. What scheduling costs is added: so many steps at so many seconds each, while all
processors wait. This is the most that it can cost, and one replay serves for every cost. Preprocessing is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from time import perf_counter

from emberlog.diagnostics import InternalError, UsageError
from emberlog.schedule.interface import Scheduler
from emberlog.schedule.meta import Meta
from emberlog.schedule.trace import Trace

# Seconds a step: about what one comparison takes in a compiled loop.
COST = 1e-9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay came to."""

    makespan: int  # in units of the trace, without scheduling
    unit: float
    operations: int
    cost: float  # seconds a step
    seconds: float  # what scheduling really took here
    preparation: float  # what starting on the graph without a change took, in seconds
    memory: int
    runs: int  # tasks and collectors that ran

    @property
    def overhead(self) -> float:
        """Seconds of scheduling at the stated cost."""
        return self.operations * self.cost

    @property
    def total(self) -> float:
        """The makespan in seconds, scheduling included, preprocessing not."""
        return self.makespan * self.unit + self.overhead


def simulate(trace: Trace, scheduler: Scheduler, processors: int, cost: float = COST) -> Outcome:
    """Replays a trace. `meta` gives half of the processors to each of its sides."""
    if processors < 1:
        raise UsageError("a simulation needs at least one processor")
    if isinstance(scheduler, Meta):
        return _race(trace, scheduler, processors, cost)
    replay = Replay(trace, scheduler, processors, cost)
    while not replay.done:
        replay.advance()
    return replay.outcome()


def _race(trace: Trace, meta: Meta, processors: int, cost: float) -> Outcome:
    """Both sides at once (Theorem 10): ends with the side that ends first, or gives LevelBased all processors when the
    heuristic reaches its half of the budget. The outcome has the steps of the side that won and the memory of both."""
    if processors < 2:
        raise UsageError("`meta` needs at least two processors, one for each side")
    level = Replay(trace, meta.level, processors // 2, cost)
    sides = [level]
    if meta.admits(trace.graph):
        sides.append(Replay(trace, meta.heuristic, processors // 2, cost))
    memory = 0
    while True:
        memory = max(memory, sum(side.scheduler.memory for side in sides))
        if len(sides) == 2 and meta.is_over():
            sides.pop()
        if len(sides) == 1:
            level.processors = processors
        first = min(sides, key=lambda side: side.time)
        if first.done:
            return first.outcome(memory)
        first.advance()


class Task:
    """A task that runs: what is left of it, and how many processors it has."""

    def __init__(self, node: int, work: int, span: int, clock: int) -> None:
        wide, more = divmod(work, span)
        self.node = node
        self.stages = [(wide, span - more), (wide + 1, more)] if more else [(wide, span)]
        self.left = self.width  # of the present stage
        self.processors = 0
        self.since = clock
        self.event = 0

    @property
    def width(self) -> int:
        return self.stages[-1][0]

    @property
    def done(self) -> bool:
        return not self.stages

    def steps(self) -> int:
        """Units of time until the task can use fewer processors, or is done."""
        if self.left > self.processors:
            return self.left // self.processors
        return self.stages[-1][1] if self.left == self.width else 1

    def advance(self, clock: int) -> None:
        """Brings the task up to date: it had its processors since it was last looked at, for at most `steps()`."""
        passed, self.since = clock - self.since, clock
        if not passed:
            return
        if self.left > self.processors:
            self.left -= passed * self.processors
            if self.left:
                return
            passed = 1
        width, count = self.stages.pop()
        if count > passed:
            self.stages.append((width, count - passed))
        if self.stages:
            self.left = self.width


class Replay:
    """One scheduler on one set of processors."""

    def __init__(self, trace: Trace, scheduler: Scheduler, processors: int, cost: float) -> None:
        self.scheduler = scheduler
        self.processors = processors
        self.clock = 0
        self._trace, self._cost = trace, cost
        self._work, self._span = trace.work.tolist(), trace.span.tolist()
        self._events: list[tuple[int, int, Task]] = []
        self._growing: dict[int, Task] = {}  # running tasks that could use more processors, the oldest first
        self._used = self._runs = self._numbered = 0
        begun = perf_counter()
        scheduler.start(trace.graph, ())
        self._preparation = perf_counter() - begun
        begun = perf_counter()
        scheduler.start(trace.graph, trace.initial.tolist())
        self._seconds = perf_counter() - begun

    @property
    def time(self) -> float:
        """Seconds until now, with scheduling."""
        return self.clock * self._trace.unit + self.scheduler.operations * self._cost

    @property
    def done(self) -> bool:
        return self.scheduler.done()

    def outcome(self, memory: int | None = None) -> Outcome:
        scheduler = self.scheduler
        return Outcome(
            self.clock,
            self._trace.unit,
            scheduler.operations,
            self._cost,
            self._seconds,
            self._preparation,
            scheduler.memory if memory is None else memory,
            self._runs,
        )

    def advance(self) -> None:
        """Gives out free processors, and goes on to the next event."""
        self._give()
        if self.done:
            return
        if not self._events:
            raise InternalError("the scheduler finds no task although none is running")
        self.clock = self._events[0][0]
        while self._events and self._events[0][0] == self.clock:
            _, number, task = heappop(self._events)
            if number == task.event:
                self._update(task)

    def _give(self) -> None:
        for task in [*self._growing.values()]:
            if self._used == self.processors:
                return
            self._place(task)
        while self._used < self.processors:
            begun = perf_counter()
            node = self.scheduler.ready()
            self._seconds += perf_counter() - begun
            if node is None:
                return
            if self._work[node]:
                self._place(Task(node, self._work[node], self._span[node], self.clock))
            else:
                self._finish(node)

    def _place(self, task: Task) -> None:
        """Gives a task as many free processors as it can use, and notes when that changes."""
        task.advance(self.clock)
        free = self.processors - self._used + task.processors
        self._used -= task.processors
        task.processors = min(free, task.left)
        self._used += task.processors
        if task.left > task.processors:
            self._growing[task.node] = task
        else:
            self._growing.pop(task.node, None)
        self._numbered += 1
        task.event = self._numbered
        heappush(self._events, (self.clock + task.steps(), task.event, task))

    def _update(self, task: Task) -> None:
        task.advance(self.clock)
        if not task.done:
            self._place(task)
            return
        self._used -= task.processors
        self._growing.pop(task.node, None)
        self._finish(task.node)

    def _finish(self, node: int) -> None:
        self._runs += 1
        changed = self._trace.changes[node].tolist()
        begun = perf_counter()
        self.scheduler.finish(node, changed)
        self._seconds += perf_counter() - begun
