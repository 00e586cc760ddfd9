"""Real work in the order of schedulers: each task once, after what it depends on, also on threads."""

from __future__ import annotations

import random
import time
from threading import Lock

import pytest

from emberlog.schedule.drive import Drive
from emberlog.schedule.interface import Graph, scheduler

SCHEDULERS = ("level", "lookahead:2", "logicblox", "signal", "hybrid", "meta:1000000")


def graph_of(size: int, seed: int) -> tuple[Graph, list[tuple[int, int]]]:
    draw = random.Random(seed)
    edges = sorted({(draw.randrange(head), head) for head in range(1, size) for _ in range(2)})
    return Graph.of(size, edges), edges


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_tasks_run_once_and_after_what_they_depend_on(name: str, threads: int) -> None:
    graph, edges = graph_of(60, seed=threads)
    sends = {edge for edge in edges if sum(edge) % 3}
    begun: list[int] = []
    ended: set[int] = set()
    lock = Lock()

    def run(node: int) -> list[int]:
        with lock:
            begun.append(node)
            reached = {head for tail, head in sends if tail in ended} | {0, 1}
            assert node in reached
        time.sleep(0.0002)
        with lock:
            ended.add(node)
        return [head for tail, head in edges if tail == node and (tail, head) in sends]

    Drive(scheduler(name), run).start(graph, [0, 1], threads)
    wanted, waiting = {0, 1}, [0, 1]
    while waiting:
        tail = waiting.pop()
        new = {head for start, head in sends if start == tail} - wanted
        wanted |= new
        waiting += new
    assert sorted(begun) == sorted(wanted)


def test_independent_tasks_run_at_the_same_time_on_threads() -> None:
    together, most, lock = 0, 0, Lock()

    def run(node: int) -> list[int]:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.02)
        with lock:
            together -= 1
        return []

    Drive(scheduler("hybrid"), run).start(Graph.of(4, []), range(4), 2)
    assert most == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_task_raises_ends_the_change(threads: int) -> None:
    def run(node: int) -> list[int]:
        if node == 1:
            raise KeyError(node)
        return [node + 1]

    with pytest.raises(KeyError):
        Drive(scheduler("level"), run).start(Graph.of(3, [(0, 1), (1, 2)]), [0], threads)
