"""Compiled loops on disk: made once, by one process at a time, readable by their owner only."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.apart

# Compiles one shape (or loads it), and tells how many compilations Numba began and what the function gave.
CHILD = """
import json, sys
import numpy as np
from numba.core import event
from emberlog.kernels.cache import compiled, folder
from emberlog.kernels.code.source import Array, Source

listener = event.RecordingListener()
with event.install_listener("numba:compile", listener):
    text = "def run(counts, a):\\n    for i in range(a.size):\\n        counts[0] += a[i]\\n    return (a,)\\n"
    source = Source(text, (Array("counts", "int64"), Array("a", "int64")), (), ())
    function = compiled(source)
    assert compiled(source) is function
counts = np.zeros(1, np.int64)
function(counts, np.arange(5, dtype=np.int64))
started = sum(entry[1].is_start for entry in listener.buffer)
json.dump({"started": started, "sum": int(counts[0]), "folder": str(folder())}, sys.stdout)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "EMBERLOG_CACHE": str(cache), "EMBERLOG_JIT": "on"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(out)
    assert found["sum"] == 10
    return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A cache that two processes filled at the same time, and what they told."""
    cache = tmp_path_factory.mktemp("cache")
    processes = [start(cache), start(cache)]
    return cache, [finished(process) for process in processes]


def test_two_processes_at_once_compile_a_shape_once(filled: tuple[Path, list[dict[str, Any]]]) -> None:
    assert sorted(told["started"] > 0 for told in filled[1]) == [False, True]


def test_only_the_owner_may_look(filled: tuple[Path, list[dict[str, Any]]]) -> None:
    folder = Path(filled[1][0]["folder"])
    assert folder.is_relative_to(filled[0])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_process_compiles_nothing(filled: tuple[Path, list[dict[str, Any]]]) -> None:
    assert finished(start(filled[0]))["started"] == 0


@pytest.mark.parametrize(("suffix", "damage"), [(".nbi", b""), (".nbc", b"no cache at all")])
def test_a_damaged_file_is_made_anew(filled: tuple[Path, list[dict[str, Any]]], suffix: str, damage: bytes) -> None:
    folder = Path(filled[1][0]["folder"])
    damaged = [path for path in folder.rglob(f"*{suffix}") if path.name.startswith("k")]
    assert damaged
    for path in damaged:
        path.write_bytes(damage)
    finished(start(filled[0]))
    assert finished(start(filled[0]))["started"] == 0
