"""How a run is ended before it is done: at its time limit, by `engine.cancel()`, or by Ctrl-C.

There is one `Stop` for each run. What works in steps asks it in between (`check`). What is one long call, such as a
statement or a job of Spark, is interrupted by another thread (`interruptible`), and its error then means what `error`
says. So whatever was running, the user sees why it was ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import TIMEOUT_MAX, Event, Lock, Thread, current_thread
from typing import Literal

from emberlog.diagnostics import CancelledError, LimitError

LATEST = 5.0  # seconds: threads that interrupt are waited for, so that none is at work when the process ends
AGAIN = 0.2  # seconds until a call is interrupted again: it may have been between two statements


class Stop:
    """Whether somebody asked for the end of what a run is doing, and who.

    Nothing is done by asking while nothing is running; what runs later is not concerned. What begins while cancelled
    work of the same run is still ending is cancelled with it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._working = 0
        self._asked: Literal["cancelled", "interrupted"] | LimitError | None = None
        self._calls: dict[object, Callable[[], None]] = {}

    @contextmanager
    def working(self) -> Iterator[Stop]:
        """Work that can be stopped, which may have other such work inside."""
        with self._lock:
            self._working += 1
        try:
            yield self
        finally:
            with self._lock:
                self._working -= 1
                if not self._working:
                    self._asked = None

    def cancel(self) -> None:
        """For `engine.cancel()`: ends what is running now, from any thread, and does not wait for that."""
        self._ask("cancelled")

    def interrupt(self) -> None:
        """The same for Ctrl-C that came to a thread which only waits for the work."""
        self._ask("interrupted")

    @contextmanager
    def expiring(self, seconds: float, error: LimitError) -> Iterator[None]:
        """The same with this error for what goes on inside when these seconds are over."""
        over = Event()

        def watch() -> None:
            if not over.wait(min(max(seconds, 0.0), TIMEOUT_MAX)):
                self._ask(error)

        watcher = Thread(target=watch, name="emberlog-expire", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join(LATEST)

    def _ask(self, who: Literal["cancelled", "interrupted"] | LimitError) -> None:
        with self._lock:
            if not self._working:
                return
            self._asked = self._asked or who
            calls = list(self._calls.values())
        for call in calls:
            call()

    def error(self) -> BaseException | None:
        """What to raise if somebody asked for the end, else None."""
        match self._asked:
            case None:
                return None
            case "cancelled":
                return CancelledError("engine.cancel() ended this run")
            case "interrupted":
                return KeyboardInterrupt()
            case LimitError():
                return self._asked

    def check(self) -> None:
        """Raises if somebody asked for the end."""
        if self._asked is not None and (error := self.error()) is not None:
            raise error

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object], seconds: float | None = None) -> Iterator[None]:
        """Calls `interrupt` in another thread, again and again until what is inside has ended, from when somebody asks
        for the end, or from when these seconds are over."""
        over, now, key = Event(), Event(), object()
        watchers: list[Thread] = []

        def watch(event: Event, wait: float | None) -> None:
            event.wait(wait)
            while not over.is_set():
                with suppress(Exception):  # whatever is wrong there, the call that is interrupted tells it
                    interrupt()
                over.wait(AGAIN)

        def watch_from(event: Event, wait: float | None) -> None:
            watcher = Thread(target=watch, args=(event, wait), name="emberlog-stop", daemon=True)
            watcher.start()
            watchers.append(watcher)

        def ask() -> None:
            if not now.is_set():
                now.set()
                watch_from(now, None)

        with self._lock:
            self._calls[key] = ask
        try:
            self.check()
            if seconds is not None:
                watch_from(over, min(max(seconds, 0.0), TIMEOUT_MAX))
            yield
        finally:
            over.set()
            with self._lock:
                del self._calls[key]
            for watcher in watchers:
                if watcher is not current_thread():
                    watcher.join(LATEST)


NEVER = Stop()  # of work that belongs to no run: nobody asks for its end
