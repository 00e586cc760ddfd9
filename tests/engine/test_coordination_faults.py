"""Workers in Spark's tasks that are killed or stopped: noticed, told, and done again from the last checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

import emberlog
from engine.test_faults import busiest, python_workers

LENGTH = 2500
REACH = "r(X) <- X = 0. r(Y) <- r(X), arc(X, Y)."  # a round for each node
pytestmark = pytest.mark.apart


@pytest.fixture
def jvm(spark: Any) -> int:
    return int(spark.sparkContext._gateway.proc.pid)


def strike(how: signal.Signals, jvm: int, run_dir: Path, when: Callable[[], bool]) -> Iterator[float]:
    """Sends a signal to a worker once it is at work; yields when that was."""
    began = monotonic()
    while not (list(run_dir.glob("*/kernel*/workers/worker-1")) and when()) and monotonic() < began + 40:
        sleep(0.05)
    victim = busiest(list(python_workers(jvm)))
    yield monotonic()
    os.kill(victim, how)


def struck_run(
    spark: Any, jvm: int, tmp_path: Path, how: signal.Signals, **options: Any
) -> tuple[emberlog.Result, float]:
    """A run whose worker gets a signal in the middle of it, and the seconds from there to its end."""
    kept, at = options.get("checkpoint"), list[float]()
    with emberlog.Engine(spark, workers=2, run_dir=tmp_path / "run", **options) as engine:
        engine.register("arc", [(i, i + 1) for i in range(LENGTH)])
        striking = Thread(
            target=lambda: at.extend(
                strike(how, jvm, tmp_path / "run", lambda: kept is None or bool(list(Path(kept).glob("*/*.json"))))
            ),
            daemon=True,
        )
        striking.start()
        result = engine.run(REACH, coordination="bsp")
        took = monotonic() - at[0]
        assert sorted(result["r"].rows()) == [(i,) for i in range(LENGTH + 1)]
        striking.join()
        return result, took


def test_a_killed_worker_costs_what_was_done_since_the_last_checkpoint(spark: Any, jvm: int, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    kept = tmp_path / "kept"
    result, _ = struck_run(spark, jvm, tmp_path, signal.SIGKILL, checkpoint=kept, checkpoint_seconds=0.2)
    again, resumed = result.stats[-1].events
    assert again.what == "started again" and "the workers of r failed" in again.why
    assert resumed.what == "resumed" and "derivations were not made again" in resumed.why
    assert not kept.exists()
    assert list((tmp_path / "run").rglob("*")) == []  # of a closed engine nothing is left


def test_a_stopped_worker_is_noticed_in_seconds(spark: Any, jvm: int, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    before = listening()
    result, took = struck_run(spark, jvm, tmp_path, signal.SIGSTOP)
    (again,) = result.stats[-1].events
    assert again.what == "started again" and "the workers of r failed: worker" in again.why
    assert "its connection ended at" in again.why and "silence" in again.why
    assert took < 40
    assert listening() == before


def listening() -> set[str]:
    """The sockets of ours that somebody can reach: files, and ports of tcp."""
    lines = subprocess.run(["ss", "-ltnxH"], capture_output=True, text=True, check=False).stdout.splitlines()
    return {line for line in lines if "emberlog" in line or "kernel" in line}


INTERRUPTED = """
import emberlog
with emberlog.Engine(workers=2) as engine:
    print(engine.spark.sparkContext._gateway.proc.pid, flush=True)
    engine.run("n(0). n(Y) <- n(X), Y = X + 1.", coordination="async", limits={"rounds": 10**9})
"""


@pytest.mark.slow
def test_after_ctrl_c_no_process_and_no_folder_is_left(tmp_path: Path) -> None:
    """The JVM, the processes of its tasks, the folders of the run and of sockets: all is gone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    with running.stdout as out:
        java = int(out.readline())
    began = monotonic()
    while not list(folder.rglob("worker-1")) and monotonic() < began + 60:
        sleep(0.1)
    sleep(1)
    workers = list(python_workers(java))
    assert len(workers) >= 2
    running.send_signal(signal.SIGINT)
    running.wait(60)
    began = monotonic()
    while any(Path(f"/proc/{process}").exists() for process in (java, *workers)) and monotonic() < began + 20:
        sleep(0.2)
    assert not any(Path(f"/proc/{process}").exists() for process in (java, *workers))
    assert [path.name for path in folder.iterdir() if path.name.startswith("emberlog")] == []
