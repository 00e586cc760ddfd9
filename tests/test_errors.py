"""Every folder below `cases/errors` is a program with mistakes, and what is said of them.

`program.dl` is the program, `errors.txt` the diagnostics as a user reads them, `sources.txt` the registered sources as
lines `name(column: type, ...)`. With `UPDATE_CASES=1` in the environment `errors.txt` is written anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.checking import read_sources
from emberlog.analysis.check import check
from emberlog.analysis.codes import CODES
from emberlog.diagnostics import ProgramError
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import Column

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases" / "errors").rglob("program.dl"))


def sources(case: Path) -> dict[str, tuple[Column, ...]]:
    """The registered sources of a case."""
    path = case / "sources.txt"
    return read_sources(path.read_text(encoding="utf-8")) if path.exists() else {}


def diagnosed(case: Path) -> ProgramError:
    """The error that the program of a case raises."""
    text = (case / "program.dl").read_text(encoding="utf-8")
    with pytest.raises(ProgramError) as raised:
        check(parse(Source("program.dl", text)), sources(case))
    return raised.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_errors_read_as_expected(case: Path) -> None:
    rendered = f"{diagnosed(case)}\n"
    expected = case / "errors.txt"
    if os.environ.get("UPDATE_CASES") == "1":
        expected.write_text(rendered, encoding="utf-8")
    assert rendered == expected.read_text(encoding="utf-8")


def test_every_code_of_the_analysis_has_a_case() -> None:
    shown = {diagnostic.code for case in CASES for diagnostic in diagnosed(case).diagnostics()}
    assert set(CODES) <= shown
