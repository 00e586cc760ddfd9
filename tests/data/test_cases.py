"""The golden texts of data that does not fit: `tests/cases/data_errors`, loaded without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlog.data.directives import source_of_directive
from emberlog.data.sources import load_table
from emberlog.diagnostics import DataError
from emberlog.source import Source
from emberlog.syntax.nodes import Declaration, Directive
from emberlog.syntax.parser import parse
from emberlog.types import Column, Type

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "cases" / "data_errors").glob("*/program.dl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_bad_data_is_told_as_written(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    items = parse(Source("program.dl", Path("program.dl").read_text())).items
    declared = {item.name: item for item in items if isinstance(item, Declaration)}
    with pytest.raises(DataError) as caught:
        for item in items:
            if isinstance(item, Directive) and item.kind == "input":
                attributes = declared[item.relation].attributes
                columns = tuple(Column(each.name, Type(each.type)) for each in attributes)  # type: ignore[arg-type]
                load_table(item.relation, source_of_directive(item, Path("facts")), columns)
    assert f"{caught.value}\n" == Path("errors.txt").read_text()
