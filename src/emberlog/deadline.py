"""The time that a run may take, from the moment it is called: one value that every stage can ask.

Stages that make small steps ask between them (`check`, `Meter`). What asks nobody (parsing, planning, writing
statements, the prover) is interrupted: inside `enforced` another thread raises `TimeUp` in the one that works, a moment
after the time is over. It arrives between two steps of Python, as Ctrl-C does. If that is within a destructor or a
callback of the garbage collector, Python drops it there, and it is raised again. What must not be interrupted, or
cannot be (the compiler, reading a file), is a `Call` in a thread of its own: those who wait for it are interrupted.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from time import monotonic
from types import FrameType
from typing import Generic, TypeVar

from emberlog.diagnostics import LimitError
from emberlog.stopping import Stop

GRACE = 0.3  # seconds in which those who ask may tell more precisely what was being done
AGAIN = 0.5  # seconds: what was raised may have met code that dropped it
COMPILER = "emberlog-compile"  # the name of threads that compile
POLL = 0.05  # seconds between two looks at a call that goes on

Answer = TypeVar("Answer")


class TimeUp(BaseException):
    """The time is over, or the run was asked to end. No `except Exception` of other people's code catches it; `during`
    makes an error of it."""


@dataclass(frozen=True)
class Deadline:
    """`seconds` from `started` on; None is no limit. `stop` knows who else asks for the end of the run."""

    seconds: float | None = None
    started: float = field(default_factory=monotonic)
    stop: Stop = field(default_factory=Stop)

    @property
    def left(self) -> float | None:
        return None if self.seconds is None else self.seconds - (monotonic() - self.started)

    @property
    def is_over(self) -> bool:
        left = self.left
        return left is not None and left <= 0

    def error(self, doing: str) -> LimitError:
        assert self.seconds is not None
        unit = "second" if self.seconds == 1 else "seconds"
        return LimitError(
            f"stopped at the limit of {self.seconds:g} {unit} while {doing}", fix="raise limits={'seconds': ...}"
        )

    def check(self, doing: str) -> None:
        """Raises when the time is over."""
        if self.is_over:
            raise self.error(doing)

    @contextmanager
    def during(self, doing: str) -> Iterator[None]:
        """Names what is done, for the error when the time is over before or within it."""
        self.check(doing)
        try:
            yield
        except TimeUp:
            raise (self.stop.error() or self.error(doing)) from None

    @contextmanager
    def enforced(self, doing: str) -> Iterator[None]:
        """Interrupts what is done inside when the time is over, or somebody asks for the end of the run."""
        left = self.left
        with self.during(doing):
            raised = _Raised()
            try:
                with self.stop.interruptible(raised.again, left):
                    yield
            finally:
                raised.end()

    @contextmanager
    def held(self, doing: str) -> Iterator[None]:
        """Ends what is done inside as `engine.cancel()` does, when the time is over: for work that asks `stop`, and for
        statements and jobs of Spark, which are not to be interrupted in any other way."""
        self.check(doing)
        left = self.left
        if left is None:
            yield
            return
        with self.stop.expiring(left, self.error(doing)):
            yield

    def bounded(self, work: Callable[[], Answer], doing: str) -> Answer:
        """What `work` returns, which may spend long in one call of a library, such as reading a large file.

        With a limit it runs in another thread, which is left alone when the time is over: it ends after that call.
        """
        if self.left is None:
            with self.enforced(doing):
                return work()
        call = Call(work, "emberlog-read", daemon=True)
        while not call.done.wait(POLL):
            self.stop.check()
            self.check(doing)
        return call.answer()


class _Raised:
    """Raises `TimeUp` in the thread that made it, for another one that asks again and again, until it is ended."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self._target = ctypes.c_ulong(self._thread)
        self._lock = Lock()
        self._next: float | None = None  # when it may be raised: what ends already is not to be interrupted too
        self._over = False
        self._quiet: _Quiet | None = None

    def again(self) -> None:
        with self._lock, _shielding:
            now = monotonic()
            if self._next is None:
                self._next = now + GRACE
            if self._over or now < self._next or self._thread in _shielded or _is_importing(self._thread):
                return
            self._next = now + AGAIN
            self._quiet = self._quiet or _Quiet(self._thread, self._raise_soon)
            self._raise()

    def end(self) -> None:
        """No more is raised from here on, not even what was raised and has not arrived."""
        with self._lock:
            self._over = True
            if self._quiet is None:
                return
            # Clearing it would leave the interpreter with the mark that something is to be raised: a tracer or
            # profiler then waits for ever. So one is raised, in the place of what may not have arrived, and caught.
            with suppress(TimeUp):
                self._raise()
                while True:
                    pass
            self._quiet.end()

    def _raise_soon(self) -> None:
        """What was raised is lost: the next time that somebody asks is time enough."""
        self._next = monotonic()

    def _raise(self) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(TimeUp))


class _Quiet:
    """Python writes to the terminal what it dropped within a destructor or a callback of the garbage collector. Of
    `TimeUp` this is no news, because it is raised again."""

    def __init__(self, thread: int, dropped: Callable[[], None]) -> None:
        self._thread = thread
        self._dropped = dropped
        self._before = sys.unraisablehook
        self._hook = self._tell  # one object: each access makes another bound method
        sys.unraisablehook = self._hook

    def _tell(self, dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, TimeUp) and get_ident() == self._thread:
            self._dropped()
        else:
            self._before(dropped)

    def end(self) -> None:
        """Others that came later lead to this one: then it stays, and does no harm."""
        if sys.unraisablehook is self._hook:
            sys.unraisablehook = self._before


_shielding = Lock()
_shielded: set[int] = set()  # threads that must not be interrupted now


@contextmanager
def shielded() -> Iterator[None]:
    """What is inside is interrupted by nothing: `TimeUp` comes later, and Ctrl-C when it is done.

    For calls of compiled loops. An exception that arrives while these hand back their arrays crashes the process, or
    is taken for a failure of theirs.
    """
    thread, held = get_ident(), list[tuple[int, FrameType | None]]()
    handler = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    with _shielding:
        _shielded.add(thread)
    try:
        if callable(handler):
            signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
        yield
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
        with _shielding:
            _shielded.discard(thread)
        if held and callable(handler):
            handler(*held[0])


def _is_importing(thread: int) -> bool:
    """True while a thread loads a module: an interruption would leave half of it behind, for the whole process."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def beside(stop: Stop, work: Callable[[], Answer]) -> Answer:
    """What `work` returns, which is one long call of a library, and changes nothing that others see.

    It runs in another thread, which is left alone when somebody asks for the end of the run.
    """
    call = Call(work, "emberlog-beside", daemon=True)
    while not call.done.wait(POLL):
        stop.check()
    return call.answer()


class Call(Thread, Generic[Answer]):
    """A call in a thread of its own, which goes on whatever becomes of those who wait for it."""

    def __init__(self, work: Callable[[], Answer], name: str, *, daemon: bool) -> None:
        super().__init__(name=name, daemon=daemon)
        self._work = work
        self._error: BaseException | None = None
        self.done = Event()
        self.start()

    def run(self) -> None:
        try:
            self._answer = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()

    def answer(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answer
