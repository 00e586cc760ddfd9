"""Workers of Spark whose folder for compiled loops cannot be used evaluate all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import emberlog

with emberlog.Engine(executor="spark", workers=2) as engine:
    engine.register("arc", [(1, 2), (2, 3)])
    text = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
    result = engine.run(text, evaluator="kernel", placement="spark")
    print(sorted(result["tc"].rows()), [row.placement for row in result.stats if "tc" in str(row)])
"""


@pytest.mark.apart
@pytest.mark.spark
@pytest.mark.slow
def test_a_cache_that_is_a_file_in_a_home_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "EMBERLOG_CACHE": str(tmp_path / "file"), "HOME": str(tmp_path / "nobody")}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "[(1, 2), (1, 3), (2, 3)]" in done.stdout
    assert "spark (tasks)" in done.stdout
    assert "is not a folder" in done.stderr
