"""Random aggregates in recursion once more, in a process that compiles nothing: there the kernels evaluate them too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *options]
    return subprocess.run(
        [*command, str(HERE / "test_property.py")],
        env={**os.environ, "EMBERLOG_JIT": "off"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_kernels_agree() -> None:
    done = run("-m", "not slow")
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]


@pytest.mark.slow
def test_kernels_agree_on_thousands() -> None:
    done = run("-m", "slow")
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]
