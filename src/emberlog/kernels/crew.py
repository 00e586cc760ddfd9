"""Threads that share out independent pieces of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def mapped(work: Callable[[Item], Found], items: Sequence[Item], workers: int) -> list[Found]:
    """What `work` gives for each item, side by side."""
    if min(workers, len(items)) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items)), "emberlog-map") as pool:
        return list(pool.map(work, items))


def share(
    items: Sequence[Item],
    workers: int,
    work: Callable[[Item], None],
    look: Callable[[], None],
    stop: Event | None = None,
) -> None:
    """Does `work` on every item, each worker taking the next one when it is done with its last.

    `look` is called between items, or a few times a second; what it raises, and Ctrl-C, stops the others after their
    item, and sets `stop` for those that look at it meanwhile.
    """
    if workers == 1:
        for item in items:
            work(item)
            look()
        return
    waiting, lock, over = list(reversed(items)), Lock(), stop or Event()

    def worker() -> None:
        while not over.is_set():
            with lock:
                if not waiting:
                    return
                item = waiting.pop()
            work(item)

    with ThreadPoolExecutor(workers, "emberlog-kernel") as pool:
        running: set[Future[None]] = {pool.submit(worker) for _ in range(workers)}
        try:
            while running:
                done, running = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
                for one in done:
                    one.result()
                look()
        except BaseException:
            over.set()
            raise
