"""`.input` and `.output` directives: the source that one names, the file that one writes.

Options follow Souffle: `IO=file` (the default) is a text file with `filename` (default `R.facts` to read, `R.csv` to
write), `delimiter` (default a tab, a comma with `rfc4180=true`), `headers`, `rfc4180`. `IO=csv` is comma-separated with
quotes; `IO=parquet` a file or folder, written with `partition_by` (columns, with commas) and `mode`; `IO=table`
(`name`) a table of Spark's catalog; `IO=jdbc` (`url`, `dbtable` or `query`, and any option of Spark's reader) a
database. Names of files are relative to the facts or output folder, and with `files="confined"` they stay inside it.
"""

from __future__ import annotations

from pathlib import Path

from emberlog.data.folders import checked_mode, write_folder
from emberlog.data.paths import Files, check_kind, check_output, path_of_directive
from emberlog.data.sources import DatasetSource, JdbcSource, Source, SparkTableSource, TextSource
from emberlog.data.write import Rows, write_facts, write_table
from emberlog.diagnostics import DataError, did_you_mean
from emberlog.stopping import NEVER, Stop
from emberlog.syntax.nodes import Directive
from emberlog.types import Column

_TEXT_OPTIONS = ("IO", "filename", "delimiter", "headers", "rfc4180")
_OPTIONS = {
    "file": _TEXT_OPTIONS,
    "csv": _TEXT_OPTIONS,
    "parquet": ("IO", "filename"),
    "table": ("IO", "name"),
}
_OUTPUT_OPTIONS = ("partition_by", "mode")  # of Parquet


def source_of_directive(directive: Directive, facts_dir: Path | None, files: Files = "anywhere") -> Source:
    """The source that an `.input` names; nothing is read yet. Raises DataError at the directive for bad options."""
    kind = _kind(directive, ("file", "csv", "parquet", "table", "jdbc"))
    check_kind(directive, kind, files)
    if kind == "jdbc":
        return _jdbc(directive)
    _check_options(directive, kind)
    if kind == "table":
        return SparkTableSource(directive.option("name", directive.relation) or "", directive.span)
    ending = {"file": "facts", "csv": "csv", "parquet": "parquet"}[kind]
    name = directive.option("filename", f"{directive.relation}.{ending}") or ""
    if kind == "parquet":
        if "://" in name and files == "anywhere":
            return DatasetSource(name, "parquet", directive.span)
        return DatasetSource(str(path_of_directive(directive, facts_dir, name, files)), "parquet", directive.span)
    rfc4180 = kind == "csv" or _flag(directive, "rfc4180") is True
    delimiter = directive.option("delimiter", "," if rfc4180 else "\t") or ""
    header = _flag(directive, "headers")
    if header is None and kind == "file":
        header = False
    path = path_of_directive(directive, facts_dir, name, files)
    return TextSource(path, delimiter, header, rfc4180, directive.span)


def write_directive(
    directive: Directive,
    output_dir: Path | None,
    rows: Rows,
    columns: tuple[Column, ...],
    files: Files = "anywhere",
    stop: Stop = NEVER,
) -> Path:
    """Writes the file that an `.output` names, and returns its path."""
    kind = _kind(directive, ("file", "csv", "parquet"))
    _check_options(directive, kind)
    path = output_path(directive, output_dir, files)
    parts = [name.strip() for name in (directive.option("partition_by", "") or "").split(",") if name.strip()]
    mode = checked_mode(directive.option("mode", "overwrite") or "")
    if kind == "parquet" and columns and (parts or mode == "append" or not path.suffix):
        write_folder(path, rows, columns, parts, mode)
        return path
    if mode == "error" and path.exists():
        raise DataError(f"{path} is there already", span=directive.span, fix="mode=overwrite")
    if kind == "parquet":
        write_table(path, rows, columns, "parquet", stop)
        return path
    rfc4180 = kind == "csv" or _flag(directive, "rfc4180") is True
    delimiter = directive.option("delimiter", "," if rfc4180 else "\t") or ""
    write_facts(path, rows, columns, delimiter, _flag(directive, "headers") is True, rfc4180, stop)
    return path


def output_path(directive: Directive, output_dir: Path | None, files: Files = "anywhere") -> Path:
    """The file that an `.output` names. Raises DataError at the directive if it may not be written."""
    kind = _kind(directive, ("file", "csv", "parquet"))
    ending = "parquet" if kind == "parquet" else "csv"
    name = directive.option("filename", f"{directive.relation}.{ending}") or ""
    path = path_of_directive(directive, output_dir, name, files)
    check_output(directive, path, files)
    return path


def _kind(directive: Directive, known: tuple[str, ...]) -> str:
    kind = (directive.option("IO", "file") or "").lower()
    if kind not in known:
        raise DataError(
            f"`.{directive.kind} {directive.relation}`: IO={kind} is not supported",
            span=directive.span,
            fix=f"IO is one of {', '.join(known)}",
        )
    return kind


def _check_options(directive: Directive, kind: str) -> None:
    known = _OPTIONS[kind] + (_OUTPUT_OPTIONS if directive.kind == "output" and kind == "parquet" else ())
    for name, _ in directive.options:
        if name.lower() not in (option.lower() for option in known):
            raise DataError(
                f"`.{directive.kind} {directive.relation}`: unknown option `{name}` for IO={kind}",
                span=directive.span,
                fix=did_you_mean(name, known) or f"known: {', '.join(known)}",
            )


def _flag(directive: Directive, name: str) -> bool | None:
    text = directive.option(name)
    if text is None:
        return None
    if text.lower() not in ("true", "false"):
        raise DataError(
            f"`.{directive.kind} {directive.relation}`: {name} is true or false, not {text!r}", span=directive.span
        )
    return text.lower() == "true"


def _jdbc(directive: Directive) -> JdbcSource:
    options = tuple((name, directive.option(name) or "") for name, _ in directive.options if name.lower() != "io")
    names = {name.lower() for name, _ in options}
    if "url" not in names or not names & {"dbtable", "query"}:
        raise DataError(
            f"`.{directive.kind} {directive.relation}`: IO=jdbc needs url, and dbtable or query",
            span=directive.span,
            fix='for example IO=jdbc, url="jdbc:postgresql://host/db", dbtable="arc", user="...", password="..."',
        )
    return JdbcSource(options, directive.span)
