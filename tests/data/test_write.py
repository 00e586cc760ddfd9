"""Writing files, whole or not at all; and reading them back."""

from __future__ import annotations

import errno
import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlog.data.arrow import arrow_schema, nullary_table, rows
from emberlog.data.facts import read_facts
from emberlog.data.sources import load_table, schema_of, source_of
from emberlog.data.write import write_facts, write_table
from emberlog.diagnostics import DataError, ExecutionError, UsageError
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Column, Type

DECIMAL = Type("decimal", precision=5, scale=2)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    NUMBER: st.integers(-(2**63), 2**63 - 1),
    UNSIGNED: st.integers(0, 2**64 - 1),
    FLOAT: st.floats(),
    SYMBOL: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n")),
    BOOL: st.booleans(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(),
    DECIMAL: st.decimals(-999, 999, places=2),
}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",\r\n\ufeff'))


def table_of(columns: tuple[Column, ...], listed: list[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(columns)
    by_column = list(zip(*listed, strict=True)) or [()] * len(columns)
    return pa.table([pa.array(v, t) for v, t in zip(by_column, schema.types, strict=True)], schema=schema)


@st.composite
def relations(draw: st.DrawFn, symbols: st.SearchStrategy[str] = VALUES[SYMBOL]) -> tuple[tuple[Column, ...], pa.Table]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = tuple(Column(f"x{i}", type) for i, type in enumerate(types))
    values = st.tuples(*(symbols if type == SYMBOL else VALUES[type] for type in types))
    return columns, table_of(columns, draw(st.lists(values, max_size=6)))


def shown(table: pa.Table) -> list[str]:
    """Rows as texts: tells -0.0 from 0.0, and finds a NaN equal to itself."""
    return sorted(map(repr, rows(table)))


@given(relation=relations(), header=st.booleans(), delimiter=st.sampled_from(["\t", "\t\t"]))
def test_facts_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    relation: tuple[tuple[Column, ...], pa.Table],
    header: bool,
    delimiter: str,
) -> None:
    columns, table = relation
    path = tmp_path_factory.getbasetemp() / "facts.csv"
    write_facts(path, table, columns, delimiter, header)
    assert shown(read_facts(path, columns, delimiter, header)) == shown(table)


@given(relation=relations(ANY_TEXT), header=st.booleans(), delimiter=st.sampled_from([",", ";", "||"]))
def test_quoted_files_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    relation: tuple[tuple[Column, ...], pa.Table],
    header: bool,
    delimiter: str,
) -> None:
    columns, table = relation
    path = tmp_path_factory.getbasetemp() / "quoted.csv"
    write_facts(path, table, columns, delimiter, header, rfc4180=True)
    assert shown(read_facts(path, columns, delimiter, header, rfc4180=True)) == shown(table)


@given(relation=relations(ANY_TEXT), ending=st.sampled_from(["csv", "parquet", "arrow", "feather"]))
def test_tables_read_back(
    tmp_path_factory: pytest.TempPathFactory, relation: tuple[tuple[Column, ...], pa.Table], ending: str
) -> None:
    columns, table = relation
    path = tmp_path_factory.getbasetemp() / f"table.{ending}"
    write_table(path, table, columns)
    source = source_of("p", path)
    assert shown(load_table("p", source, columns)) == shown(table)
    if ending != "csv":
        assert schema_of("p", source) == columns


def test_the_text_of_each_type(tmp_path: Path) -> None:
    types = (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP, DECIMAL)
    columns = tuple(Column(name, type) for name, type in zip("abcdefgh", types, strict=True))
    listed = [
        (2, 1, 1.0, 'a "b"', True, date(2020, 2, 29), datetime(2020, 2, 29, 1, 2, 3), Decimal("1.5")),
        (-1, 2**64 - 1, 1e-7, "", False, date(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1), Decimal("-0.01")),
        (10, 0, float("inf"), "é", False, date(9999, 12, 31), datetime(2020, 1, 1), Decimal("999.99")),
    ]
    write_facts(tmp_path / "p.csv", table_of(columns, listed), columns)
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        "-1\t18446744073709551615\t1e-07\t\tfalse\t0001-01-01\t0001-01-01 00:00:00.000001\t-0.01",
        '2\t1\t1.0\ta "b"\ttrue\t2020-02-29\t2020-02-29 01:02:03\t1.50',
        "10\t0\tinf\té\tfalse\t9999-12-31\t2020-01-01 00:00:00\t999.99",
    ]


def test_a_csv_has_a_header_and_quotes_where_needed(tmp_path: Path) -> None:
    columns = (Column("the, name", SYMBOL), Column("x", NUMBER))
    write_table(tmp_path / "p.csv", table_of(columns, [("b", 2), ('a,"', 1), ("", 3)]), columns)
    assert (tmp_path / "p.csv").read_text() == '"the, name",x\n"",3\n"a,""",1\nb,2\n'


@pytest.mark.parametrize(("holds", "text"), [(True, "()\n"), (False, "")])
def test_nullary(tmp_path: Path, holds: bool, text: str) -> None:
    for name in ("p.facts", "p.csv"):
        write_table(tmp_path / name, nullary_table(holds), ())
        assert (tmp_path / name).read_text() == text
    assert rows(load_table("p", source_of("p", tmp_path / "p.facts"), ())) == [()] * holds
    with pytest.raises(UsageError, match="without columns"):
        write_table(tmp_path / "p.parquet", nullary_table(holds), ())


@pytest.mark.parametrize(("symbol", "noun"), [("a\tb", "delimiter"), ("a\nb", "line break"), ("a\r", "line break")])
def test_a_symbol_that_would_break_the_file(tmp_path: Path, symbol: str, noun: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text("as it was")
    columns = (Column("x", NUMBER), Column("y", SYMBOL))
    with pytest.raises(DataError) as caught:
        write_facts(path, table_of(columns, [(1, "fine"), (2, symbol)]), columns)
    assert caught.value.message == f"cannot write {path}: column y has {symbol!r}, with a {noun} in it"
    assert caught.value.fix == "write it with rfc4180=true, which quotes, or as Parquet"
    assert path.read_text() == "as it was"


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / name
    path.write_text("as it was")
    columns = (Column("x", NUMBER),)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExecutionError, match="No space left on device"):
        write_table(path, table_of(columns, [(1,)]), columns)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made_and_bad_paths_told(tmp_path: Path) -> None:
    columns = (Column("x", NUMBER),)
    table = table_of(columns, [(1,)])
    write_facts(tmp_path / "a" / "b" / "p.csv", table, columns)
    assert (tmp_path / "a" / "b" / "p.csv").read_text() == "1\n"
    with pytest.raises(UsageError, match="cannot write"):
        write_facts(tmp_path / "a", table, columns)
    with pytest.raises(UsageError, match=r"cannot tell the format"):
        write_table(tmp_path / "p.xlsx", table, columns)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_a_device_is_written_to_in_place() -> None:
    write_facts(Path("/dev/null"), table_of((Column("x", NUMBER),), [(1,)]), (Column("x", NUMBER),))
    assert Path("/dev/null").is_char_device()


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_facts(tmp_path / "p.csv", nullary_table(True), ())
    (tmp_path / "other").touch()
    assert (tmp_path / "p.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_parquet_has_the_users_names(tmp_path: Path) -> None:
    columns = (Column("Name", SYMBOL), Column("name", NUMBER))
    write_table(tmp_path / "p.parquet", table_of(columns, [("b", 1), ("a", 2)]), columns)
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pylist() == [
        {"Name": "a", "name": 2},
        {"Name": "b", "name": 1},
    ]
