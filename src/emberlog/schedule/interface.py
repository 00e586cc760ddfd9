"""What drives a scheduler: the graph of tasks, the protocol, and schedulers by name.

    chosen = scheduler("hybrid")
    chosen.start(graph, active)
    while not chosen.done():
        node = chosen.ready()              # None: wait until a running task is finished
        chosen.finish(node, run(node))     # the successors that got a change

The same objects order the maintenance of views and the simulator's replays. They know nothing of what a node does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.schedule.finders import Queued
from emberlog.schedule.graph import Graph
from emberlog.schedule.level import Level, LookAhead
from emberlog.schedule.logicblox import LogicBlox
from emberlog.schedule.meta import Meta
from emberlog.schedule.signals import Signals

__all__ = ["DEFAULT", "SCHEDULERS", "Graph", "Scheduler", "scheduler"]


class Scheduler(Protocol):
    """Tells which tasks of a change may run, in which order. A driver with threads holds a lock around each call."""

    def start(self, graph: Graph, active: Iterable[int]) -> None:
        """Begins a change that activates these nodes at first. A scheduler may be started again."""

    def ready(self) -> int | None:
        """A node that may run now: no active, unfinished node is its ancestor. None if no such node is known now."""

    def finish(self, node: int, activated: Iterable[int]) -> None:
        """The node is done; these successors of it got a change."""

    def done(self) -> bool:
        """True if every active node is finished."""

    @property
    def operations(self) -> int:
        """The steps that scheduling took since `start`."""

    @property
    def memory(self) -> int:
        """How many numbers are kept, precomputation included."""


def _lookahead(depth: int) -> Scheduler:
    level = Level()
    return Queued(level, LookAhead(level, depth))


DEFAULT = "hybrid"

# By name: the word for the number that the name is followed by, if it has one, and what makes the scheduler.
SCHEDULERS: dict[str, tuple[str | None, Callable[[int], Scheduler]]] = {
    "level": (None, lambda _: Queued(Level())),
    "lookahead": ("K", _lookahead),
    "logicblox": (None, lambda _: Queued(LogicBlox())),
    "signal": (None, lambda _: Queued(Signals())),
    "hybrid": (None, lambda _: Queued(Level(), LogicBlox())),
    "meta": ("BUDGET", Meta),
}


def scheduler(spec: str = DEFAULT) -> Scheduler:
    """The scheduler of this name: level, lookahead:K, logicblox, signal, hybrid or meta:BUDGET."""
    name, colon, text = spec.partition(":")
    forms = ", ".join(key if word is None else f"{key}:{word}" for key, (word, _) in SCHEDULERS.items())
    if name not in SCHEDULERS:
        guess = did_you_mean(name, SCHEDULERS)
        raise UsageError(f"there is no scheduler {spec!r}", fix=guess or f"there are {forms}")
    word, make = SCHEDULERS[name]
    if word is None:
        if colon:
            raise UsageError(f"the scheduler `{name}` has no number: {spec!r}", fix=f"there are {forms}")
        return make(0)
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"the scheduler `{name}` needs a whole number: {spec!r}", fix=f"write {name}:{word}")
    return make(int(text))
