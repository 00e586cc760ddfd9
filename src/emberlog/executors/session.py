"""The Spark session of an engine that was given none, and settings of a session while a run goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, NoReturn

from emberlog.causes import cause_of
from emberlog.diagnostics import ExecutionError, UsageError
from emberlog.memory import free_memory
from emberlog.sessions import lost, session_gone

HEAP_SHARE, LEAST_HEAP, MOST_HEAP = 0.25, 1 << 30, 8 << 30  # of what is free, for Spark's Java process on this machine


def local_session(workers: int | None) -> tuple[Any, bool]:
    """The active session, or a new one on this machine; and whether it is new."""
    active = active_session()
    if active is not None:
        return active, False
    return new_session(f"local[{workers or '*'}]", workers), True


def active_session() -> Any:
    """The session that is active in this process, None when there is none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    try:
        return SparkSession.getActiveSession()
    except Exception as error:  # it asks the JVM
        raise session_gone() from error


def usable_session(session: Any = None) -> Any:
    """The Spark session to make frames in: the given one, or that which is active now."""
    usable = session or active_session()
    if usable is None:
        raise UsageError(
            "there is no Spark session to make a DataFrame in", fix="to_arrow(), to_pandas() and to_polars() need none"
        )
    return usable


def is_on_this_machine(session: Any) -> bool:
    """Does a session read the files of this machine, for certain?"""
    classic = getattr(session, "sparkContext", None) is not None
    return classic and _setting(session, "spark.master", "").startswith("local")


def heap_of(session: Any) -> int:
    """Bytes that the Java process of a session on this machine may take for its heap; 0 for one elsewhere."""
    if not is_on_this_machine(session):
        return 0
    told = _setting(session, "spark.driver.memory", "1g").strip().lower()
    units = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    number, unit = told.rstrip("bkmgt"), told.lstrip("0123456789")[:1]
    return int(number) * units[unit or "m"] if number.isdigit() else 2**30


def _setting(session: Any, name: str, default: str) -> str:
    try:
        return str(session.conf.get(name, default))
    except Exception as error:  # it asks the JVM
        told = lost(session, error)
        if told is None:
            raise
        raise told from error


def new_session(master: str, workers: int | None = None) -> Any:
    """A session on a master; `sc://host:port` is a Spark Connect server."""
    from pyspark.sql import SparkSession

    # Python workers must be this Python: another one on the PATH may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        if master.startswith("sc://"):
            return SparkSession.builder.remote(master).getOrCreate()
        builder = SparkSession.builder.master(master).appName("emberlog")
        for name, value in _settings(master, workers).items():
            builder = builder.config(name, value)
        return _started(builder)
    except Exception as error:
        raise ExecutionError(
            f"Spark did not start: {cause_of(error)}",
            fix='Spark 4 needs Java 17 or later (JAVA_HOME or `java` on the PATH); or use executor="local"',
        ) from error


def _started(builder: Any) -> Any:
    """A new session, with Ctrl-C put off meanwhile: a JVM that is interrupted while it starts would stay behind.

    Spark's own answer to Ctrl-C calls the JVM, also in the middle of another call, which breaks both: it is replaced.
    """
    if current_thread() is not main_thread():
        return builder.getOrCreate()
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        session = builder.getOrCreate()
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        session.stop()
        raise KeyboardInterrupt
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: _interrupted(session))
    return session


def _interrupted(session: Any) -> NoReturn:
    def cancel() -> None:
        with suppress(Exception):
            session.interruptAll()

    Thread(target=cancel, daemon=True).start()
    raise KeyboardInterrupt


def _settings(master: str, workers: int | None) -> dict[str, str]:
    everywhere = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    if not master.startswith("local"):
        return everywhere
    here = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(workers or os.cpu_count() or 2),  # 200 would be mostly empty
        **_heap(),
    }
    return {**everywhere, **here}


def _heap() -> dict[str, str]:
    """The heap of a new Java process on this machine, unless somebody set it: Spark's own choice of 1 GB is too small
    to sort a few hundred million rows, whatever is spilled."""
    if "SPARK_DRIVER_MEMORY" in os.environ or "driver" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return {}
    size = min(max(int(HEAP_SHARE * free_memory()), LEAST_HEAP), MOST_HEAP)
    return {"spark.driver.memory": f"{size >> 20}m"}


BROADCAST = {"broadcast": str(1 << 33), "shuffle": "-1"}


# Catalyst fails on unions that share columns with what they are joined with ("key not found", in `rewriteConstraints`).
OPTIMIZER = {"spark.sql.constraintPropagation.enabled": "false"}

_SETTING = Lock()
_HELD: dict[tuple[int, str], tuple[int, str | None]] = {}  # how many hold a setting of a session, and what it was


@contextmanager
def run_settings(session: Any, join: str) -> Iterator[None]:
    """The settings that our statements need while they run: how Spark joins, what its optimizer may do. The session's
    own come back when the last of those who hold them is done."""
    names = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold")
    wanted = {**OPTIMIZER, **({} if join == "auto" else dict.fromkeys(names, BROADCAST[join]))}
    try:
        with _SETTING:
            for name, value in wanted.items():
                _hold(session, name, value)
    except Exception as error:  # it asks the JVM
        raise lost(session, error) or error from error
    try:
        yield
    finally:
        with _SETTING, suppress(Exception):  # a session that is gone has no settings
            for name in wanted:
                _let_go(session, name)


def _hold(session: Any, name: str, value: str) -> None:
    count, before = _HELD.get((id(session), name), (0, None))
    before = before if count else session.conf.get(name, None)
    session.conf.set(name, value)
    _HELD[id(session), name] = count + 1, before


def _let_go(session: Any, name: str) -> None:
    count, before = _HELD.pop((id(session), name))
    if count > 1:
        _HELD[id(session), name] = count - 1, before
    elif before is None:
        session.conf.unset(name)
    else:
        session.conf.set(name, before)


def slots_of(session: Any) -> int:
    """How many tasks a session runs at once, as far as its settings tell."""
    told = session.conf.get("spark.default.parallelism", None)
    if told:
        return int(told)
    master = str(session.conf.get("spark.master", "local[*]"))
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    return int(inside) if inside.isdigit() else os.cpu_count() or 1
