"""The Spark session of an engine that was given none."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from emberlog.diagnostics import ExecutionError


def local_session(workers: int | None) -> tuple[Any, bool]:
    """The active session, or a new one on this machine; and whether it is new."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    return new_session(f"local[{workers or '*'}]", workers), True


def active_session() -> Any:
    """The session that is active in this process, None when there is none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


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
        with _own_interrupts():
            return builder.getOrCreate()
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExecutionError(
            f"Spark did not start: {reason}",
            fix='Spark 4 needs Java 17 or later (JAVA_HOME or `java` on the PATH); or use executor="local"',
        ) from error


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Leaves Ctrl-C as it was: Spark would call the JVM in the middle of another call. We cancel jobs ourselves."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, handler)


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
    }
    return {**everywhere, **here}
