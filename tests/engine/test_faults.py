"""Faults of the machines under Spark: a Python that cannot run workers, a worker that is killed, a JVM that is killed.
Where Python or the JVM is broken, the session stands in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from engine.places import Place

pytestmark = pytest.mark.spark

BEGIN = """
import json, os, signal, sys, tempfile, threading, time
import emberlog
from emberlog.executors.session import new_session

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
told = {}

def tell(what, work):
    try:
        work()
        told[what] = None
    except BaseException as error:
        told[what] = [type(error).__name__, getattr(error, "message", str(error)), getattr(error, "exit_code", None)]
"""
END = '\nprint("TOLD " + json.dumps(told))\n'


def told(script: str, folder: Path, **variables: str) -> dict[str, Any]:
    """What a script tells that runs in a process of its own, with its temporary files in a folder."""
    source = str(Path(__file__).parents[2] / "src")
    environment = {"PYSPARK_PYTHON": sys.executable, **os.environ, "TMPDIR": str(folder), **variables}
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", BEGIN + script + END]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert done.returncode == 0 and len(lines) == 1, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(lines[0].removeprefix("TOLD "))
    return answer


# --- Python ----------------------------------------------------------------------------------------------------------

WITH_BROKEN_PYTHON = """
with emberlog.Engine(new_session("local[2]"), workers=2) as engine:
    engine.register("arc", [(1, 2), (2, 3), (3, 1)])
    result = engine.run(TC, placement="spark")
    told["rows"] = len(result["tc"].rows())
    told["evaluator"], told["because"] = result.stats[-1].evaluator, result.stats[-1].because
    tell("kernel", lambda: engine.run(TC, placement="spark", evaluator="kernel"))
    engine.spark.stop()
"""
OTHER_VERSION = """
import sys

class Version(tuple):
    major, minor, micro, releaselevel, serial = 4, 1, 0, "final", 0

sys.version_info = Version((4, 1, 0, "final", 0))
"""


def broken_python(folder: Path, how: str) -> Path:
    """A Python for Spark's tasks without the packages that are installed, or that says it has another version."""
    path = folder / "python"
    if how == "no pyarrow":
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    else:
        (folder / "other").mkdir()
        (folder / "other" / "sitecustomize.py").write_text(OTHER_VERSION)
        path.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/other:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("no pyarrow", "pyarrow"),
        pytest.param("another version", "PYTHON_VERSION_MISMATCH", marks=pytest.mark.slow),
        pytest.param("none", "Cannot run program", marks=pytest.mark.slow),
    ],
)
def test_a_python_that_cannot_run_workers_is_left_to_sql(how: str, reason: str, tmp_path: Path) -> None:
    python = tmp_path / "nothing" if how == "none" else broken_python(tmp_path, how)
    found = told(WITH_BROKEN_PYTHON, tmp_path, PYSPARK_PYTHON=str(python))
    assert found["rows"] == 9
    assert found["evaluator"] == "sql"
    assert found["because"].startswith("Spark cannot run Python tasks: ") and reason in found["because"]
    kind, message, code = found["kernel"]
    assert (kind, code) == ("ExecutionError", 4)
    assert message.startswith("no workers for `tc` can run in this session: ") and reason in message


# --- a worker --------------------------------------------------------------------------------------------------------

REACH = "r(X) <- X = 0. r(Y) <- r(X), arc(X,Y)."


def python_workers(of: int) -> Iterator[int]:
    """The processes that Spark's daemon of Python forked for tasks, below the process of a JVM."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (path / "cmdline").read_bytes():
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    yield from (process for process, parent in parents.items() if parents.get(parent) == of)


def ticks(process: int) -> int:
    """The time that a process has worked so far."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])
    except OSError:
        return 0


def busiest(processes: list[int]) -> int:
    before = {process: ticks(process) for process in processes}
    sleep(0.5)
    return max(processes, key=lambda process: ticks(process) - before[process])


def test_a_killed_worker_is_replaced(on_spark: Place, tmp_path: Path) -> None:
    """A local session retries nothing: the job is submitted again, and `stats` say so."""
    engine = on_spark.engine({"arc": [(i, i + 1) for i in range(6_000)]}, workers=2, run_dir=tmp_path)
    options: dict[str, Any] = {"placement": "spark", "evaluator": "kernel", "exchange": True, "decompose": False}
    jvm = on_spark.session.sparkContext._gateway.proc.pid

    def kill() -> None:
        while not list(tmp_path.glob("*/kernel*/workers/worker-1")) and monotonic() < started + 60:
            sleep(0.1)
        sleep(0.5)
        os.kill(busiest(list(python_workers(jvm))), signal.SIGKILL)

    started = monotonic()
    Thread(target=kill, daemon=True).start()
    result = engine.run(REACH, **options)
    assert len(result["r"]) == 6_001
    (again,) = (event for stratum in result.stats.strata for event in stratum.events)
    assert again.what == "started again" and "the workers of r failed" in again.why


# --- the JVM ---------------------------------------------------------------------------------------------------------

WITH_KILLED_JVM = """
m = [(i,) for i in range(1000)]
engine = emberlog.Engine(workers=2)  # which has a session of its own
other = emberlog.Engine(engine.spark)
for one in (engine, other):
    one.register("m", m)
results = [one.run("p(X) <- m(X).", placement="spark") for one in (engine, engine, other, other)]
told["folders before"] = sum(name.startswith("emberlog-") for name in os.listdir(tempfile.gettempdir()))

def kill():
    time.sleep(2)
    os.kill(engine.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)

threading.Thread(target=kill).start()
endless = "n(0). n(Y) <- n(X), Y = X + 1."
tell("during", lambda: engine.run(endless, placement="spark", evaluator=EVALUATOR, limits={"rounds": 10**9}))
tell("after", lambda: engine.run("p(X) <- m(X).", placement="spark"))
tell("other", lambda: other.run("p(X) <- m(X).", placement="spark"))
tell("reading", lambda: results[0]["p"].rows())
tell("new", lambda: emberlog.Engine().run("p(1)."))
tell("cancelling", engine.cancel)
tell("closing", engine.close)
tell("closing other", other.close)
told["folders after"] = sum(name.startswith("emberlog-") for name in os.listdir(tempfile.gettempdir()))
"""


@pytest.mark.parametrize("evaluator", ["kernel", pytest.param("sql", marks=pytest.mark.slow)])
def test_a_killed_jvm_is_told_and_everything_is_closed(evaluator: str, tmp_path: Path) -> None:
    found = told(WITH_KILLED_JVM.replace("EVALUATOR", repr(evaluator)), tmp_path)
    for what in ("during", "after", "other", "reading", "new"):
        kind, message, code = found[what]
        assert (kind, code) == ("ExecutionError", 4), (what, found[what])
        assert message.startswith("the Spark session is gone"), (what, message)
    assert found["cancelling"] is None
    assert found["closing"] is None
    assert found["closing other"] is None
    assert (found["folders before"], found["folders after"]) == (4, 0)


WITHOUT_MEMORY = """
engine = emberlog.Engine(workers=2)
engine.register("m", [(1,)])
told["heap"] = engine.spark.conf.get("spark.driver.memory")
context = engine.spark.sparkContext
threading.Thread(target=lambda: context._gateway.jvm.System.exit(52)).start()  # as Spark does after an OutOfMemoryError
context._gateway.proc.wait(30)
tell("after", lambda: engine.run("p(X) <- m(X).", placement="spark"))
tell("closing", engine.close)
"""


def test_a_jvm_that_ran_out_of_memory_is_told_as_such(tmp_path: Path) -> None:
    found = told(WITHOUT_MEMORY, tmp_path)
    kind, message, code = found["after"]
    assert (kind, code) == ("ExecutionError", 4)
    assert "its Java process ran out of memory" in message
    assert found["closing"] is None
    assert 1024 <= int(found["heap"].removesuffix("m")) <= 8192


WITH_STOPPED_SESSION = """
session = new_session("local[2]")
with emberlog.Engine(session) as engine:
    engine.register("m", [(1,), (2,)])
    result = engine.run("p(X) <- m(X).", placement="spark")
    session.stop()
    tell("after", lambda: engine.run("p(X) <- m(X).", placement="spark"))
    tell("reading", lambda: result["p"].rows())
    tell("closing", engine.close)
"""


@pytest.mark.slow
def test_a_session_that_was_stopped_is_told(tmp_path: Path) -> None:
    found = told(WITH_STOPPED_SESSION, tmp_path)
    for what in ("after", "reading"):
        kind, message, _ = found[what]
        assert kind == "ExecutionError" and message.startswith("the Spark session is gone"), (what, found[what])
    assert found["closing"] is None
