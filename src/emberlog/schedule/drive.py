"""Real work in the order of a scheduler: one task at a time, or several on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from time import perf_counter

from emberlog.schedule.interface import Graph, Scheduler

Run = Callable[[int], Iterable[int]]


class Drive:
    """Runs the tasks that a change activates, each once. `run` does a task, and returns the successors that got a
    change. `seconds` is what scheduling took."""

    def __init__(self, scheduler: Scheduler, run: Run) -> None:
        self._scheduler = scheduler
        self._run = run
        self._ran: set[int] = set()
        self.seconds = 0.0

    def start(self, graph: Graph, active: Iterable[int], threads: int = 1) -> None:
        """Runs all tasks, up to so many of them at once. What a task raises ends the change when the tasks that run at
        that time are done."""
        begun = perf_counter()
        self._scheduler.start(graph, active)
        self.seconds += perf_counter() - begun
        if threads == 1:
            while (node := self._ready()) is not None:
                self._finish(node, self._run(node))
        else:
            with ThreadPoolExecutor(threads) as pool:
                self._on_threads(pool, threads)
        assert self._scheduler.done(), "a task is neither done nor ready"

    def _on_threads(self, pool: ThreadPoolExecutor, threads: int) -> None:
        running: dict[Future[Iterable[int]], int] = {}
        while True:
            while len(running) < threads and (node := self._ready()) is not None:
                running[pool.submit(self._run, node)] = node
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                self._finish(running.pop(future), future.result())

    def _ready(self) -> int | None:
        begun = perf_counter()
        node = None if self._scheduler.done() else self._scheduler.ready()
        self.seconds += perf_counter() - begun
        assert node is None or node not in self._ran, "a task of a change runs once"
        if node is not None:
            self._ran.add(node)
        return node

    def _finish(self, node: int, activated: Iterable[int]) -> None:
        begun = perf_counter()
        self._scheduler.finish(node, activated)
        self.seconds += perf_counter() - begun
