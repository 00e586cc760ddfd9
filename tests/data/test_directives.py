"""`.input` and `.output` directives as sources and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlog.data.arrow import rows
from emberlog.data.directives import source_of_directive, write_directive
from emberlog.data.sources import DatasetSource, JdbcSource, Source, SparkTableSource, TextSource, load_table, source_of
from emberlog.diagnostics import DataError
from emberlog.source import Source as Text
from emberlog.syntax.nodes import Directive
from emberlog.syntax.parser import parse
from emberlog.types import NUMBER, SYMBOL, Column

COLUMNS = (Column("x", NUMBER), Column("y", SYMBOL))


def directive(text: str) -> Directive:
    [item] = parse(Text("program.dl", text)).items
    assert isinstance(item, Directive)
    return item


INPUTS: list[tuple[str, Source]] = [
    (".input R", TextSource(Path("facts/R.facts"), "\t", False, False)),
    (
        '.input R(IO=file, filename="r.txt", delimiter=",", headers=true)',
        TextSource(Path("facts/r.txt"), ",", True, False),
    ),
    ('.input R(io="FILE", filename="/abs/r")', TextSource(Path("/abs/r"), "\t", False, False)),
    (".input R(rfc4180=true)", TextSource(Path("facts/R.facts"), ",", False, True)),
    ('.input R(rfc4180=true, delimiter=";")', TextSource(Path("facts/R.facts"), ";", False, True)),
    (".input R(IO=csv)", TextSource(Path("facts/R.csv"), ",", None, True)),
    (".input R(IO=csv, headers=false)", TextSource(Path("facts/R.csv"), ",", False, True)),
    (".input R(IO=parquet)", DatasetSource("facts/R.parquet", "parquet")),
    ('.input R(IO=parquet, filename="s3://b/r.parquet")', DatasetSource("s3://b/r.parquet", "parquet")),
    (".input R(IO=table)", SparkTableSource("R")),
    ('.input R(IO=table, name="db.r")', SparkTableSource("db.r")),
    (
        '.input R(IO=jdbc, url="jdbc:x", dbtable="r", fetchSize=100)',
        JdbcSource((("url", "jdbc:x"), ("dbtable", "r"), ("fetchSize", "100"))),
    ),
]


@pytest.mark.parametrize(("text", "expected"), INPUTS)
def test_input(text: str, expected: Source) -> None:
    assert source_of_directive(directive(text), Path("facts")) == expected


def test_without_a_facts_folder_files_are_where_we_are() -> None:
    assert source_of_directive(directive(".input R"), None) == TextSource(Path("R.facts"), "\t", False, False)


def test_a_password_is_not_shown() -> None:
    source = source_of_directive(directive('.input R(IO=jdbc, url="u", query="q", password="secret")'), None)
    assert "secret" not in repr(source)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        (
            ".input R(IO=sqlite)",
            "`.input R`: IO=sqlite is not supported",
            "IO is one of file, csv, parquet, table, jdbc",
        ),
        (".input R(header=true)", "`.input R`: unknown option `header` for IO=file", "did you mean `headers`?"),
        (
            '.input R(IO=parquet, delimiter=",")',
            "`.input R`: unknown option `delimiter` for IO=parquet",
            "known: IO, filename",
        ),
        (".input R(headers=maybe)", "`.input R`: headers is true or false, not 'maybe'", None),
        (
            '.input R(IO=jdbc, url="u")',
            "`.input R`: IO=jdbc needs url, and dbtable or query",
            'for example IO=jdbc, url="jdbc:postgresql://host/db", dbtable="arc", user="...", password="..."',
        ),
    ],
)
def test_bad_options(text: str, message: str, fix: str | None) -> None:
    with pytest.raises(DataError) as caught:
        source_of_directive(directive(text), None)
    assert (caught.value.message, caught.value.fix) == (message, fix)
    assert caught.value.span is not None and caught.value.span.text == "R"


@pytest.mark.parametrize(
    ("text", "name", "content"),
    [
        (".output R", "R.csv", "1\ta,b\n"),
        ('.output R(IO=file, filename="r.txt", delimiter=";", headers=true)', "r.txt", "x;y\n1;a,b\n"),
        (".output R(rfc4180=true)", "R.csv", '1,"a,b"\n'),
        (".output R(IO=csv, headers=true)", "R.csv", 'x,y\n1,"a,b"\n'),
    ],
)
def test_output(tmp_path: Path, text: str, name: str, content: str) -> None:
    table = load_table("R", source_of("R", [(1, "a,b")]), COLUMNS)
    assert write_directive(directive(text), tmp_path, table, COLUMNS) == tmp_path / name
    assert (tmp_path / name).read_text() == content


def test_output_to_parquet(tmp_path: Path) -> None:
    table = load_table("R", source_of("R", [(1, "a")]), COLUMNS)
    write_directive(directive('.output R(IO=parquet, filename="r")'), tmp_path, table, COLUMNS)
    source = source_of_directive(directive('.input R(IO=parquet, filename="r")'), tmp_path)
    assert rows(load_table("R", source, None)) == [(1, "a")]
    with pytest.raises(DataError, match="IO=jdbc is not supported"):
        write_directive(directive(".output R(IO=jdbc)"), tmp_path, table, COLUMNS)
