"""The tests of the loops once more, in a process that compiles nothing: the same source as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.apart

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def run(*files: str, slow: bool = False) -> subprocess.CompletedProcess[str]:
    paths = [str(HERE / name) for name in files]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-n0",
            *(["-m", "slow"] if slow else []),
            *paths,
        ],
        env={**os.environ, "EMBERLOG_JIT": "off"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


# A process takes seconds to start: few of them, of about the same length.
PARTS = {
    "owners": ("test_owned.py", "test_owned_ends.py", "test_shards.py"),
    "programs": ("test_programs.py", "test_known.py"),
    "strata": ("test_above.py",),
    "draws": ("test_differential.py", "test_runtime.py", "test_sorting.py", "test_waiting.py", "test_wide.py"),
}


@pytest.mark.parametrize("files", PARTS.values(), ids=PARTS)
def test_without_a_compiler(files: tuple[str, ...]) -> None:
    done = run(*files)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]


@pytest.mark.slow
def test_thousands_without_a_compiler() -> None:
    done = run("test_differential.py", slow=True)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]
