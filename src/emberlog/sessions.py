"""What is asked of a Spark session apart from rows: its jobs by a tag, whether it is still there, work beside Ctrl-C.

Classic sessions and Spark Connect differ here, and only here. `sparkContext` is used to tag and cancel jobs, and to
know for which streaming query a thread works, no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, current_thread, local, main_thread
from typing import Any, TypeVar

from emberlog.causes import cause_of, is_cancellation
from emberlog.diagnostics import EmberlogError, ExecutionError
from emberlog.stopping import Stop

Answer = TypeVar("Answer")

# What Spark says once its context was stopped, or a server closed the session; and of a server that is not there.
STOPPED = re.compile(r"stopped SparkContext|SparkContext (was|has been) (shut ?down|stopped)|SESSION_CLOSED")
UNREACHABLE = re.compile(r"UNAVAILABLE|failed to connect to all addresses")
OUT_OF_MEMORY = 52  # the exit code by which Spark's Java process tells that it ran out of memory


class TaggedJobs:
    """The jobs that threads of this process start while they have a tag; any thread cancels them.

    In a classic session the tags of the context are used: those of the session itself are known to one thread alone,
    which is busy while there is something to cancel.
    """

    def __init__(self, session: Any, tag: str) -> None:
        context = None if is_connect(session) else session.sparkContext
        self._tag = tag
        self._depth = local()
        self._add = session.addTag if context is None else context.addJobTag
        self._remove = session.removeTag if context is None else context.removeJobTag
        self._cancel = session.interruptTag if context is None else context.cancelJobsWithTag

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Jobs that this thread starts inside have the tag."""
        depth = self._depth.number = getattr(self._depth, "number", 0) + 1
        try:
            if depth == 1:
                self._add(self._tag)
            yield
        finally:
            self._depth.number -= 1
            if depth == 1:
                with suppress(Exception):  # Spark may be gone, which what is inside told already
                    self._remove(self._tag)

    def cancel(self) -> None:
        self._cancel(self._tag)


def lost(session: Any, error: BaseException) -> ExecutionError | None:
    """The error to tell where something failed because of what happened to the session from outside: it is gone, or
    somebody cancelled its jobs. None where it is a failure of its own."""
    origin: BaseException | None = error
    while isinstance(origin, EmberlogError):
        origin = origin.__cause__
    if origin is None:
        return None
    if is_gone(session, origin):
        return session_gone(session)
    if is_cancellation(origin):
        return ExecutionError(
            f"somebody else cancelled the Spark job, not Emberlog: {cause_of(origin)}",
            fix="run again; jobs are cancelled in Spark's UI, and by all who call `cancelAllJobs` on the session",
        )
    return None


def session_gone(session: Any = None) -> ExecutionError:
    """The error for a session behind which nothing answers."""
    if _exit_code(session) == OUT_OF_MEMORY:
        return ExecutionError(
            "the Spark session is gone: its Java process ran out of memory, as its heap is too small for this",
            fix="raise spark.driver.memory when the session starts; PySpark needs a new process for that",
        )
    return ExecutionError(
        "the Spark session is gone: nothing answers, so its JVM has died or was stopped",
        fix="make a new Engine with a new session; where the JVM died, PySpark needs a new process for that",
    )


def _exit_code(session: Any) -> int | None:
    """How the Java process of a session ended, where this process started it."""
    gateway = getattr(getattr(session, "sparkContext", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    return None if process is None else process.poll()


def is_gone(session: Any, error: BaseException) -> bool:
    """True if an error came because nothing answers behind a session any more."""
    if getattr(session, "is_stopped", False) or STOPPED.search(str(error)):
        return True
    package = type(error).__module__.partition(".")[0]
    # Once it is stopped, Python's side of Spark misses the objects that it had in the JVM.
    if package not in ("py4j", "pyspark", "grpc") and not isinstance(error, OSError | AttributeError | AssertionError):
        return False
    if is_connect(session):  # which would ask a server that is gone again for minutes
        return UNREACHABLE.search(str(error)) is not None
    try:
        session.range(1)  # which runs nothing, and asks the context
    except Exception:
        return True
    return False


def is_same(one: Any, other: Any) -> bool:
    """True if two objects stand for one session: each sees the tables of the other."""
    if one is other:
        return True
    ids = [getattr(session, "session_id", None) for session in (one, other)]  # classic sessions have none
    if any(ids):
        return ids[0] == ids[1]
    return bool(one._jsparkSession == other._jsparkSession)


def is_connect(session: Any) -> bool:
    """True for a session of Spark Connect, whose driver is another process."""
    return getattr(session, "sparkContext", None) is None


def streaming_query(session: Any) -> str | None:
    """The id of the streaming query that this thread works for, which stands in the query's checkpoint."""
    found = session.sparkContext.getLocalProperty("sql.streaming.queryId")
    return None if found is None else str(found)


def beside_interrupts(session: Any, stop: Stop, work: Callable[[], Answer]) -> Answer:
    """Does `work` in a thread of its own if this is the main one, which waits for it and takes Ctrl-C.

    In the middle of a call to the JVM, Ctrl-C would leave that call's answer behind for the next one to take for its
    own; and Spark's answer to Ctrl-C is such a next call. After Ctrl-C the work is told to end, and waited for; after
    another Ctrl-C it is not.
    """
    if current_thread() is not main_thread():
        return work()
    from pyspark import InheritableThread

    answers: list[Answer] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)

    # It has the settings that the user made for the jobs of this thread.
    thread: Thread = InheritableThread(target, session=session, name="emberlog-spark", daemon=True)
    try:
        thread.start()
    except Exception as error:
        raise lost(session, error) or error from error
    try:
        thread.join()
    except BaseException:
        stop.interrupt()
        thread.join()
        raise
    if errors:
        raise errors[0]
    return answers[0]
