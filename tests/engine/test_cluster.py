"""A standalone cluster on this machine: executors are processes of their own. In processes that this test starts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
import emberlog
from emberlog.executors.session import new_session

session = new_session(sys.argv[1])
program = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). t(S) <- arc(X,_), S = to_string(to_float(X))."
answers = []
with emberlog.Engine(session) as engine:
    engine.register("arc", session.createDataFrame([(1, 2), (2, 3), (3, 4)], ["a", "b"]))
    for placement in ("auto", "spark"):
        result = engine.run(program, placement=placement)
        answers.append({name: sorted(result[name].rows()) for name in result})
        assert result["tc"].to_spark().count() == 6
print("ANSWERS " + json.dumps(answers))
session.stop()
"""
LOOPBACK = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def daemon(log: Path, environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Spark daemon in the foreground of a process, which is gone afterwards."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    with log.open("wb") as out:
        running = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(log: Path, text: str, running: subprocess.Popen[bytes], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while text not in log.read_text(errors="replace"):
        assert running.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.2)


@pytest.mark.slow
def test_a_standalone_cluster_gives_the_same_answers(tmp_path: Path) -> None:
    source = str(Path(__file__).parents[2] / "src")
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_HOSTNAME": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
    }
    port, master_log, worker_log = free_port(), tmp_path / "master.log", tmp_path / "worker.log"
    url = f"spark://{LOOPBACK}:{port}"
    where = ("--host", LOOPBACK, "--port", str(port), "--webui-port", "0")
    with daemon(master_log, environment, "org.apache.spark.deploy.master.Master", *where) as master:
        wait_for(master_log, "New state: ALIVE", master)
        size = ("--host", LOOPBACK, "--webui-port", "0", "--cores", "2", "--memory", "1g")
        work = ("--work-dir", str(tmp_path / "work"), url)
        with daemon(worker_log, environment, "org.apache.spark.deploy.worker.Worker", *size, *work) as worker:
            wait_for(worker_log, "Successfully registered with master", worker)
            command = [sys.executable, "-c", SCRIPT, url]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("ANSWERS "))
    closure = [[x, y] for x in range(1, 5) for y in range(x + 1, 5)]
    expected = {"tc": closure, "t": [["1.0"], ["2.0"], ["3.0"]]}
    assert json.loads(line.removeprefix("ANSWERS ")) == [expected, expected]
