"""Changes against naive rounds, on tiny data: the same answers, figures for each way, a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import mra
from typer.testing import CliRunner

from emberlog.cli import bench as command

pytestmark = pytest.mark.apart


@pytest.mark.parametrize("programs", [2, pytest.param(len(mra.PROGRAMS), marks=pytest.mark.slow)])
def test_the_table(programs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mra, "PROGRAMS", mra.PROGRAMS[:programs])
    written = mra.run(tmp_path / "out", 1, tmp_path / "data", ["rmat200"], 1, lambda text: None)
    table, figures = (path.read_text(encoding="utf-8") for path in written)
    lines = json.loads(figures)
    assert [line["program"] for line in lines] == [compared.program.name for compared in mra.PROGRAMS]
    for line in lines:
        ways = line["ways"]
        assert list(ways) == ["naive", "changes", "best first", "as planned"]
        assert all(way["edges"] > 0 and way["seconds"] > 0 and not way["error"] for way in ways.values())
        assert all(ways[way]["right"] for way in ("changes", "best first", "as planned"))
        assert all(ways[way]["less_work"] > 1 for way in ("changes", "best first"))
    assert table.count("| yes |") == len(lines)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mra, "PROGRAMS", mra.PROGRAMS[:1])
    options = ["mra", "--data", "rmat64", "--runs", "1", "--out", str(tmp_path / "out"), "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(command.commands, options)
    assert done.exit_code == 0, done.output
    assert "| sssp | rmat64 |" in done.output
