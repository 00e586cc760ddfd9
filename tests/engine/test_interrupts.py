"""Long work: what a terminal is told, and how Ctrl-C ends it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emberlog.executors.session import _started
from emberlog.progress import TerminalProgress, default_progress
from emberlog.stats import Silent


@pytest.mark.apart
@pytest.mark.parametrize(
    "how",
    [
        ("--executor", "local"),
        pytest.param(("--placement", "spark"), marks=pytest.mark.spark),
        pytest.param(("--placement", "spark", "--evaluator", "sql"), marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
    ids=["local", "workers", "rounds"],
)
def test_ctrl_c_ends_a_run_and_leaves_no_scratch(how: tuple[str, ...], tmp_path: Path) -> None:
    program, scratch = tmp_path / "endless.dl", tmp_path / "scratch"
    program.write_text("a(0). a(X+1) <- a(X).")
    scratch.mkdir()
    command = [sys.executable, "-m", "emberlog", "run", str(program), "--rounds", "1000000000", *how]
    running = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(scratch.glob("emberlog-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5 if "local" in how else 4)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors.splitlines()[-1] == "interrupted"  # Spark logs that it starts
    assert errors == "interrupted\n" or "local" not in how
    assert not list(scratch.glob("emberlog-*"))


@pytest.mark.apart
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_a_time_limit_on_spark_has_its_exit_code(evaluator: str, tmp_path: Path) -> None:
    program = tmp_path / "endless.dl"
    program.write_text("a(0). a(X+1) <- a(X).")
    command = [sys.executable, "-m", "emberlog", "run", str(program), "--placement", "spark", "--evaluator", evaluator]
    limits = ["--seconds", "12", "--rounds", "1000000000"]
    done = subprocess.run([*command, *limits], capture_output=True, text=True, timeout=200)
    assert done.returncode == 3
    assert "error[E0700]: stopped at the limit of 12 seconds while computing a" in done.stderr


class Starting:
    """A builder of a session during whose start somebody presses Ctrl-C; and the session."""

    def __init__(self, presses: int) -> None:
        self.presses = presses
        self.done: list[str] = []

    def getOrCreate(self) -> Starting:
        for _ in range(self.presses):
            signal.raise_signal(signal.SIGINT)
        self.done.append("started")
        return self

    def stop(self) -> None:
        self.done.append("stopped")

    def interruptAll(self) -> None:
        self.done.append("interrupted")


def test_ctrl_c_waits_until_a_session_has_started() -> None:
    before = signal.getsignal(signal.SIGINT)
    starting = Starting(presses=2)
    with pytest.raises(KeyboardInterrupt):
        _started(starting)
    assert starting.done == ["started", "stopped"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_after_the_start_cancels_the_jobs_of_the_session() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        session = _started(Starting(presses=0))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 10
        while "interrupted" not in session.done and time.monotonic() < deadline:
            time.sleep(0.01)
        assert session.done == ["started", "interrupted"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_progress_tells_stratum_round_delta_facts_and_rate() -> None:
    out = io.StringIO()
    progress = TerminalProgress(out, patience=0.0)
    progress.stratum(("tc",), 1, 3, "")
    time.sleep(0.11)
    progress.round(4, 1500, 20000, 1234.5)
    progress.done()
    assert "stratum 1/3 tc  round 4  delta 1,500  facts 20,000  1,234 facts/s" in out.getvalue()


def test_progress_is_silent_without_a_terminal() -> None:
    assert isinstance(default_progress(), Silent)
