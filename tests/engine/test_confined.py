"""Programs of others: `files="confined"` and `--confine` keep what they read and write inside two folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog import cli

DECLARED = ".decl secret(line: symbol)\n"
READ = DECLARED + ".input secret({})\n.decl p(line: symbol)\np(X) :- secret(X).\n"
WRITE = '.decl p(x: symbol)\np("planted").\n.output p({})\n'


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with a secret, and in it the folders for facts and outputs."""
    (tmp_path / "secret.facts").write_text("hidden\n")
    pq.write_table(pa.table({"line": ["hidden"]}), tmp_path / "secret.parquet")
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "own.facts").write_text("shown\n")
    (tmp_path / "facts" / "below").mkdir()
    (tmp_path / "facts" / "below" / "own.facts").write_text("shown\n")
    (tmp_path / "out").mkdir()
    return tmp_path


def run(world: Path, text: str, executor: str = "local", session: Any = None, **options: Any) -> emberlog.Result:
    program = world / "program.dl"
    program.write_text(text)
    with emberlog.Engine(session, executor, files="confined", **options) as engine:
        result = engine.run_file(program, world / "facts", world / "out")
        {name: result[name].rows() for name in result}
        return result


INPUTS: dict[str, Callable[[Path], str]] = {
    "a parent": lambda world: 'filename="../secret.facts"',
    "a parent further down": lambda world: 'filename="below/../../secret.facts"',
    "an absolute path": lambda world: f'filename="{world / "secret.facts"}"',
    "a parent of Parquet": lambda world: 'IO=parquet, filename="../secret.parquet"',
    "an absolute path of Parquet": lambda world: f'IO=parquet, filename="{world / "secret.parquet"}"',
    "a URI": lambda world: f'IO=parquet, filename="file://{world / "secret.parquet"}"',
    "a pattern": lambda world: 'IO=parquet, filename="{..,x}/secret.parquet"',
    "csv": lambda world: 'IO=csv, filename="../secret.facts"',
    "a table": lambda world: 'IO=table, name="secret"',
    "a database": lambda world: 'IO=jdbc, url="jdbc:x", dbtable="secret"',
}


@pytest.mark.parametrize("options", INPUTS.values(), ids=INPUTS)
def test_inputs_outside_are_refused(world: Path, options: Callable[[Path], str]) -> None:
    with pytest.raises(emberlog.DataError, match="this program is confined") as raised:
        run(world, READ.format(options(world)))
    assert raised.value.span is not None and raised.value.span.line == 2


def link(world: Path) -> str:
    (world / "facts" / "link.facts").symlink_to(world / "secret.facts")
    return 'filename="link.facts"'


def link_of_a_folder(world: Path) -> str:
    (world / "facts" / "away").symlink_to(world)
    return 'filename="away/secret.facts"'


def link_in_a_folder_of_parquet(world: Path) -> str:
    (world / "facts" / "parts.parquet").mkdir()
    (world / "facts" / "parts.parquet" / "a.parquet").symlink_to(world / "secret.parquet")
    return 'IO=parquet, filename="parts.parquet"'


def pipe(world: Path) -> str:
    os.mkfifo(world / "facts" / "pipe.facts")
    return 'filename="pipe.facts"'


@pytest.mark.parametrize("make", [link, link_of_a_folder, link_in_a_folder_of_parquet, pipe])
def test_inputs_that_are_not_plain_files_inside_are_refused(world: Path, make: Callable[[Path], str]) -> None:
    with pytest.raises(emberlog.DataError, match="this program is confined"):
        run(world, READ.format(make(world)))


@pytest.mark.parametrize("name", ["own.facts", "below/own.facts", "./own.facts"])
def test_files_inside_are_read(world: Path, name: str) -> None:
    (world / "facts" / "inner").symlink_to(world / "facts" / "below")
    with emberlog.Engine(executor="local", files="confined") as engine:
        (world / "program.dl").write_text(READ.format(f'filename="{name}"'))
        assert engine.run_file(world / "program.dl", world / "facts")["p"].rows() == [("shown",)]


def test_without_a_folder_nothing_is_read(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    with emberlog.Engine(executor="local", files="confined") as engine:
        with pytest.raises(emberlog.DataError, match="there is no folder to read from"):
            engine.run(READ.format('filename="secret.facts"'))
        engine.register("secret", [("given",)])
        assert engine.run(READ.format("IO=file"))["p"].rows() == [("given",)]


OUTPUTS = ['filename="../planted.csv"', 'filename="/{world}/planted.csv"', 'IO=parquet, filename="../planted.csv"']


@pytest.mark.parametrize("options", OUTPUTS)
def test_outputs_outside_are_refused(world: Path, options: str) -> None:
    with pytest.raises(emberlog.DataError, match="this program is confined"):
        run(world, WRITE.format(options.replace("{world}", str(world))))
    assert not (world / "planted.csv").exists()


@pytest.mark.parametrize("options", ["IO=file", "IO=csv", 'filename="below/p.csv"'])
def test_outputs_inside_are_written(world: Path, options: str) -> None:
    run(world, WRITE.format(options))
    assert [path.read_text() for path in (world / "out").rglob("p.csv")] == ["planted\n"]


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_the_output_folder_is_not_followed(world: Path, dangling: bool) -> None:
    target = world / ("nothing" if dangling else "secret.facts")
    (world / "out" / "p.csv").symlink_to(target)
    with pytest.raises(emberlog.DataError, match="confined"):
        run(world, WRITE.format("IO=file"))
    assert (world / "secret.facts").read_text() == "hidden\n"
    assert not (world / "nothing").exists()


def test_a_link_to_a_folder_outside_is_not_followed(world: Path) -> None:
    (world / "out" / "away").symlink_to(world)
    with pytest.raises(emberlog.DataError, match="confined"):
        run(world, WRITE.format('filename="away/planted.csv"'))
    assert not (world / "planted.csv").exists()


def test_a_link_to_a_file_inside_is_not_written_through(world: Path) -> None:
    (world / "out" / "other.csv").write_text("mine\n")
    (world / "out" / "p.csv").symlink_to("other.csv")
    with pytest.raises(emberlog.DataError, match="not a plain file"):
        run(world, WRITE.format("IO=file"))
    assert (world / "out" / "other.csv").read_text() == "mine\n"


def test_a_later_query_is_confined_too(world: Path) -> None:
    (world / "program.dl").write_text(READ.format('filename="own.facts"'))
    with emberlog.Engine(executor="local", files="confined") as engine:
        engine.run_file(world / "program.dl", world / "facts")
        (world / "facts" / "own.facts").unlink()
        (world / "facts" / "own.facts").symlink_to(world / "secret.facts")
        with pytest.raises(emberlog.DataError, match="confined"):
            engine.query("p(X)").rows()


def test_files_is_one_of_two() -> None:
    with pytest.raises(emberlog.UsageError, match="files 'inside' is not known"):
        emberlog.Engine(executor="local", files="inside")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "code"), [("own.facts", 0), ("../secret.facts", 1)])
def test_the_command_line(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, code: int
) -> None:
    (world / "program.dl").write_text(READ.format(f'filename="{name}"'))
    arguments = ["emberlog", "run", "program.dl", "-F", "facts", "-D", "out", "--executor", "local", "--confine"]
    monkeypatch.chdir(world)
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code or 0) == code
    assert ("confined" in capsys.readouterr().err) == (code == 1)


@pytest.mark.spark
def test_on_spark(world: Path, spark: Any) -> None:
    for options in (INPUTS["a table"](world), INPUTS["a URI"](world), link_in_a_folder_of_parquet(world)):
        with pytest.raises(emberlog.DataError, match="confined"):
            run(world, READ.format(options), "spark", spark)
    pq.write_table(pa.table({"line": ["shown"]}), world / "facts" / "own.parquet")
    text = READ.format('IO=parquet, filename="own.parquet"')
    assert run(world, text + ".output p\n", "spark", spark)
    assert (world / "out" / "p.csv").read_text() == "shown\n"


def test_links_in_a_circle_are_refused(world: Path) -> None:
    (world / "facts" / "one").symlink_to("two")
    (world / "facts" / "two").symlink_to("one")
    with pytest.raises(emberlog.DataError, match="confined"):
        run(world, READ.format('filename="one/own.facts"'))
