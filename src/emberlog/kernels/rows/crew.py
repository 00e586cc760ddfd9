"""Workers that share a piece of work: threads that claim parts of it until none is left."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
from time import monotonic

PARTS = 16
"""Parts for each worker: enough for the last one to be small, even where rows are very unequal."""

FIRST = 8
"""The first part is so many times smaller: it tells how long a part takes."""

SLOW = 0.2
"""Seconds after which a part is long: nobody looks at the clock while it is at work."""

SHARED = 1 << 15
"""Facts below which a piece of work is not shared: waking the others would take longer."""


class Crew:
    """`size` workers; the caller is one of them. Kernels release the global lock, so they run side by side.

    The caller asks `look` before each part that it claims: what that raises ends the work.
    """

    def __init__(self, size: int, look: Callable[[], None] = lambda: None) -> None:
        self.size = max(size, 1)
        self._look = look
        self._threads: ThreadPoolExecutor | None = None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def least(self, count: int, facts: int) -> int:
        """How many of `count` rows a worker claims at least, if there are `facts` facts to look at."""
        return 1 if facts >= SHARED else max(count, 1)

    def share(self, count: int, work: Callable[[int, int, int], None], *, least: int = 1) -> None:
        """Call `work(worker, begin, end)` until all of `count` is done, in parts of at least `least`.

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
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.size - 1, thread_name_prefix="rows")
        others = [self._threads.submit(loop, worker) for worker in range(1, self.size)]
        try:
            loop(0)
        finally:
            with lock:
                claimed = count
            wait(others)
        for other in others:
            other.result()
