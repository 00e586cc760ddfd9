"""Long work: what a terminal is told, and how Ctrl-C ends it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from emberlog.progress import TerminalProgress, default_progress
from emberlog.stats import Silent


def test_ctrl_c_ends_a_run_and_leaves_no_scratch(tmp_path: Path) -> None:
    program, scratch = tmp_path / "endless.dl", tmp_path / "scratch"
    program.write_text("a(0). a(X+1) <- a(X).")
    scratch.mkdir()
    command = [sys.executable, "-m", "emberlog", "run", str(program), "--executor", "local"]
    running = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(scratch.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == "interrupted\n"
    assert not list(scratch.iterdir())


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
