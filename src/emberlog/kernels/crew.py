"""Threads that work side by side: kernels release the global lock.

Work is handed out in four ways: items whose answers are wanted (`mapped`), items that take long (`each`), a range in
parts that are claimed (`share`), and one call in every worker at once (`together`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event, Lock
from time import monotonic
from types import TracebackType
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

PARTS = 16  # of a range, for each worker: enough for the last one to be small, even where rows are very unequal
FIRST = 8  # times smaller is the first part: it tells how long a part takes
SLOW = 0.2  # seconds after which a part is long: nobody looks at the clock while it is at work
SHARED = 1 << 15  # facts below which a range is not shared: waking the others would take longer
LOOK = 0.1  # seconds between two looks while others work


class Crew:
    """`size` workers. The caller asks `look` meanwhile: what that raises ends the work, after what is at hand."""

    def __init__(self, size: int, look: Callable[[], None] = lambda: None) -> None:
        self.size = max(size, 1)
        self._look = look
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    @property
    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.size, "emberlog")
        return self._threads

    def mapped(self, work: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
        """What `work` gives for each item."""
        if min(self.size, len(items)) <= 1:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    def each(self, items: Sequence[Item], work: Callable[[Item], None], stop: Event | None = None) -> None:
        """Does `work` on every item, each worker taking the next one when it is done with its last. What ends the work
        sets `stop`, for those that look at it meanwhile."""
        if self.size == 1:
            for item in items:
                work(item)
                self._look()
            return
        waiting, lock, over = list(reversed(items)), Lock(), stop or Event()

        def worker() -> None:
            while not over.is_set():
                with lock:
                    if not waiting:
                        return
                    item = waiting.pop()
                work(item)

        running: set[Future[None]] = set()
        try:
            for _ in range(self.size):
                running.add(self._pool.submit(worker))
            while running:
                done, running = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
                for one in done:
                    one.result()
                self._look()
        except BaseException:
            over.set()
            wait(running)
            raise

    def least(self, count: int, facts: int) -> int:
        """How many of `count` rows a worker claims at least, if there are `facts` facts to look at."""
        return 1 if facts >= SHARED else max(count, 1)

    def share(self, count: int, work: Callable[[int, int, int], None], *, least: int = 1) -> None:
        """Calls `work(worker, begin, end)` until all of `count` is done, in parts of at least `least`.
        The caller is one of the workers.

        Parts become larger as long as they are done quickly. What one worker raises is raised here, after all have
        stopped.
        """
        least = max(least, 1)
        most = max(least, -(-count // (self.size * PARTS)))
        lock = Lock()
        claimed, part = 0, max(least, most // FIRST)

        def loop(worker: int) -> None:
            nonlocal claimed, part
            while True:
                if worker == 0:
                    self._look()
                with lock:
                    begin = claimed
                    end = claimed = min(begin + part, count)
                if begin >= count:
                    return
                started = monotonic()
                work(worker, begin, end)
                quick = monotonic() - started < SLOW
                with lock:
                    part = min(2 * part, most) if quick else max(part // 2, least)

        if self.size == 1 or count <= most:
            loop(0)
            return
        others: list[Future[None]] = []
        try:
            for worker in range(1, self.size):
                others.append(self._pool.submit(loop, worker))
            loop(0)
        finally:
            with lock:
                claimed = count
            wait(others)
        for other in others:
            other.result()

    def together(self, work: Callable[[int], None], stop: Callable[[], None], follows: type[Exception]) -> None:
        """Calls `work(rank)` in every worker at once, where they wait for each other; the caller is the first.

        If one raises, `stop` makes the others stop waiting, by errors of the kind `follows`. What one of them raised
        first is raised here.
        """
        failures: list[BaseException] = []

        def guarded(rank: int) -> None:
            try:
                work(rank)
            except BaseException as error:
                failures.append(error)
                stop()

        others: list[Future[None]] = []
        try:
            for rank in range(1, self.size):
                others.append(self._pool.submit(guarded, rank))
        except BaseException as error:  # no more threads can be started
            failures.append(error)
            stop()
        else:
            guarded(0)
        wait(others)
        if failures:
            raise next((error for error in failures if not isinstance(error, follows)), failures[0])


def mapped(work: Callable[[Item], Found], items: Sequence[Item], workers: int) -> list[Found]:
    """What `work` gives for each item, by so many workers that are there for this alone."""
    with Crew(min(workers, len(items))) as crew:
        return crew.mapped(work, items)
