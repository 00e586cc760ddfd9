"""Every folder below `cases/data_errors` is a program whose facts do not fit it, and what is said of them.

`program.dl` is the program, `facts` the folder that it reads from, `errors.txt` the error as a user reads it. With
`UPDATE_CASES=1` in the environment `errors.txt` is written anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import emberlog

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases" / "data_errors").rglob("program.dl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_errors_read_as_expected(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)  # so that the paths in the errors are the same everywhere
    with emberlog.Engine(executor="local") as engine, pytest.raises(emberlog.DataError) as raised:
        engine.run_file(Path("program.dl"), Path("facts"), tmp_path)
    assert raised.value.exit_code == 1
    assert not list(tmp_path.iterdir())
    rendered = f"{raised.value}\n"
    if os.environ.get("UPDATE_CASES") == "1":
        Path("errors.txt").write_text(rendered, encoding="utf-8")
    assert rendered == Path("errors.txt").read_text(encoding="utf-8")
