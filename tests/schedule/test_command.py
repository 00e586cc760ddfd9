"""`emberlog schedule`: what it prints and writes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from emberlog.cli.schedule import commands
from emberlog.diagnostics import UsageError
from emberlog.schedule.files import read


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(commands, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_generate_and_simulate(tmp_path: Path) -> None:
    trace = tmp_path / "fig2.trace.gz"
    assert "19" in run("generate", "--fig2", "--size", "10", "-o", trace)
    specs = ("level", "hybrid", "lookahead:10", "meta:1000")
    options = [option for spec in specs for option in ("--scheduler", spec)]
    out = run("simulate", trace, *options, "--processors", "18", "--cost", "0", "--markdown")
    rows = {cells(line)[0]: cells(line) for line in out.splitlines() if line.startswith("| ")}
    # 1 + 45 units of a microsecond for LevelBased, L for those that look at ancestors; `meta` has nine processors for
    # each side, one less than there are tasks at the end.
    assert {spec: rows[spec][1] for spec in specs} == {
        "level": "46.0 us", "hybrid": "10.0 us", "lookahead:10": "10.0 us", "meta:1000": "11.0 us",
    }  # fmt: skip


def test_generate_like_a_trace_with_recorded_durations(tmp_path: Path) -> None:
    first, second = tmp_path / "worst.trace", tmp_path / "like.trace"
    run("generate", "--worst", "--size", "10", "-o", first)
    assert "1,719" in run("generate", "--like", "5", "--durations", first, "-o", second)
    assert set(read(second).work.tolist()) == {0, 1}


def test_tables_and_pictures(tmp_path: Path) -> None:
    picture = tmp_path / "overhead.svg"
    out = run(
        "tables", "--trace", "5", "--distribution", "constant", "--workers", "1", "--markdown", "--svg", picture
    )  # fmt: skip
    assert "**Table II in form, constant durations: makespan with scheduling**" in out
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert "| level | 29 | 121 | 497 | 2,017 | 8,129 | 2.01 |" in run("slopes", "--markdown", "--svg", picture)


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate", "-o", "x"),
        ("generate", "--like", "12", "-o", "x"),
        ("generate", "--fig2", "--size", "1", "-o", "x"),
        ("generate", "--worst", "--size", "0", "-o", "x"),
        ("generate", "--like", "5", "--size", "3", "-o", "x"),
        ("generate", "--like", "1", "--fig2", "-o", "x"),
        ("simulate", "x", "--scheduler", "fast"),
        ("tables", "--trace", "12"),
        ("tables", "--distribution", "normal"),
    ],
)
def test_calls_that_make_no_sense(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        CliRunner().invoke(commands, arguments, catch_exceptions=False)
