"""What the rows of a relation come from: values given to `engine.register`, and `.input` directives.

`source_of` and `source_of_directive` make a source without reading it; `schema_of` tells its columns where it can, and
`load_table` reads it. Tables of a Spark catalog and of JDBC databases are read by the `spark` executor only.

Columns are taken by position. A csv file given by its path has a header or not as `facts.find_header` finds, unless
`header=` says; `.tsv` and `.facts` are tab-separated, without quotes and header.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, assert_never

import pyarrow as pa

from emberlog.data.arrow import empty_table
from emberlog.data.convert import Nulls, Warn, columns_of_schema, conform, ignore, unsupported
from emberlog.data.facts import find_header, infer_columns, missing_file, read_facts
from emberlog.data.partitions import open_folder
from emberlog.data.paths import path_of
from emberlog.data.values import table_of_pandas, table_of_rows
from emberlog.diagnostics import DataError, UsageError
from emberlog.source import Span
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Column, Type


@dataclass(frozen=True, slots=True, eq=False)
class ArrowSource:
    """Rows in memory (`pyarrow.Table`), or an Arrow dataset, read when it is loaded.

    `misfits` has the columns that could not be made such (they are nulls in `data`), with the reasons: an error only if
    a program uses them.
    """

    data: Any
    misfits: Mapping[int, DataError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmptySource:
    """No rows, and nothing that tells the columns: an empty list."""


def known_rows(source: object) -> int | None:
    """The number of rows of a source, if it is known without reading it."""
    match source:
        case EmptySource():
            return 0
        case ArrowSource(data):
            return getattr(data, "num_rows", None)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TextSource:
    """A facts or csv file. `header` None: look. `span` is where the program asks for the file."""

    path: Path
    delimiter: str
    header: bool | None
    rfc4180: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A Parquet or Arrow file, or a folder of them, by path or URI. Folders named `key=value` give columns, see
    `partitions`."""

    location: str
    format: Literal["parquet", "feather"]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """A Spark DataFrame, classic or Connect."""

    frame: Any


class Rows(Protocol):
    """A relation of an earlier run. Its methods raise UsageError when its rows are gone."""

    schema: tuple[Column, ...]

    def count(self) -> int: ...

    def to_arrow(self) -> pa.Table: ...

    def to_spark(self, session: Any) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class RelationSource:
    """The rows of an earlier run, read where they are when a run needs them."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class SparkTableSource:
    """A table of the Spark session's catalog."""

    table: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class JdbcSource:
    """A table of a database, with the options of Spark's JDBC reader. They may hold a password: never shown."""

    options: tuple[tuple[str, str], ...] = field(repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


Source: TypeAlias = (
    ArrowSource
    | EmptySource
    | TextSource
    | DatasetSource
    | SparkSource
    | RelationSource
    | SparkTableSource
    | JdbcSource
)

_SUFFIXES = ".csv, .tsv, .facts, .parquet, .arrow, .feather"


def source_of(name: str, value: object, *, header: bool | None = None, delimiter: str | None = None) -> Source:
    """The source that a value given to `engine.register` is. `header` and `delimiter` are for text files only."""
    if isinstance(value, str | Path):
        return _source_of_path(name, str(value), header, delimiter)
    if header is not None or delimiter is not None:
        raise UsageError(
            f"`{name}`: header and delimiter are for text files, not for values of type {type(value).__name__}"
        )
    match _library(value):
        case "pyspark.sql":
            return SparkSource(value)
        case "pyspark.pandas":
            return SparkSource(value.to_spark())  # type: ignore[attr-defined]
        case "pandas":
            return _in_memory(*table_of_pandas(name, value))
        case "polars" if hasattr(value, "collect"):
            return ArrowSource(value.collect().to_arrow())
        case _:
            return _source_of_data(name, value)


def _library(value: object) -> str:
    """The library whose frame `value` is, or "". By name: what was not imported cannot have made the value."""
    kind = type(value)
    if kind.__name__ not in ("DataFrame", "LazyFrame"):
        return ""
    known = ("pyspark.sql", "pyspark.pandas", "pandas", "polars")
    return next((name for name in known if f"{kind.__module__}.".startswith(f"{name}.")), "")


def _is_dataset(value: object) -> bool:
    # pyarrow.dataset imports pandas: not here, only to look.
    loaded = sys.modules.get("pyarrow.dataset")
    return loaded is not None and isinstance(value, loaded.Dataset)


def _source_of_data(name: str, value: object) -> Source:
    if isinstance(value, pa.Table) or _is_dataset(value):
        return ArrowSource(value)
    if isinstance(value, pa.RecordBatch):
        return ArrowSource(pa.Table.from_batches([value]))
    if isinstance(value, pa.RecordBatchReader):
        return ArrowSource(value.read_all())
    if hasattr(value, "__arrow_c_stream__"):  # Polars frames, DuckDB relations and others
        return ArrowSource(pa.table(value))
    if hasattr(value, "tolist"):  # NumPy arrays
        value = value.tolist()
    if isinstance(value, bytes | bytearray | dict) or not isinstance(value, Iterable):
        raise UsageError(
            f"`{name}`: a value of type {type(value).__name__} cannot be registered",
            fix="give a list of tuples, a Spark, pandas or Polars frame, an Arrow table, or the path of a file",
        )
    found = table_of_rows(name, value)
    return EmptySource() if found is None else _in_memory(*found)


def _in_memory(table: pa.Table, misfits: Mapping[int, DataError]) -> ArrowSource:
    """A source of these rows. Raises DataError if it has no column that a program could use."""
    if misfits and len(misfits) == table.num_columns:
        raise misfits[0]
    return ArrowSource(table, misfits)


def _source_of_path(name: str, text: str, header: bool | None, delimiter: str | None) -> Source:
    remote = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None
    path = path_of(text, f"`{name}`:")
    suffix = path.suffix.lower()
    if not remote and not os.path.exists(path):
        raise missing_file(path, name, None)
    if suffix not in _SUFFIXES.split(", ") and not (path.is_dir() and not suffix):
        raise UsageError(f"`{name}`: cannot tell the format of {text}", fix=f"known endings: {_SUFFIXES}")
    if suffix in (".csv", ".tsv", ".facts"):
        if remote:
            raise UsageError(f"`{name}`: text files are read from paths only, not from {text}")
        csv = suffix == ".csv"
        return TextSource(path, delimiter or ("," if csv else "\t"), header if csv else bool(header), csv)
    if header is not None or delimiter is not None:
        raise UsageError(f"`{name}`: header and delimiter are for text files, not for {text}")
    return DatasetSource(text, "feather" if suffix in (".arrow", ".feather") else "parquet")


def schema_of(relation: str, source: Source, unread: Container[int] = ()) -> tuple[Column, ...] | None:
    """Names and types of a source's columns. None where only the program can tell (no rows), or only Spark
    (`SparkTableSource`, `JdbcSource`). Reads the metadata of Parquet, but all rows of a text file.

    Columns at the positions `unread` may be of any type.
    """
    match source:
        case ArrowSource(data, misfits):
            _refuse_misfits(misfits, unread)
            return columns_of_schema(relation, data.schema, unread)
        case EmptySource() | SparkTableSource() | JdbcSource():
            return None
        case TextSource(path, delimiter, _, rfc4180, span):
            header = _header(relation, source, None, ignore)
            return infer_columns(path, delimiter, header, rfc4180, relation, span)
        case DatasetSource():
            return columns_of_schema(relation, _open(relation, source).schema, unread)
        case RelationSource(rows):
            return rows.schema
        case SparkSource(frame):
            return tuple(_spark_column(relation, e, i in unread) for i, e in enumerate(frame.schema.fields))
        case _:
            assert_never(source)


def load_table(
    relation: str,
    source: Source,
    columns: tuple[Column, ...] | None,
    nulls: Nulls = "error",
    warn: Warn = ignore,
    positions: tuple[int, ...] | None = None,
) -> pa.Table:
    """The rows of a source, as columns c0..ck of exactly the types of `columns`, or of the source's own if None.

    With `positions` only the columns there are read: nulls and types of the others do not matter. Duplicates stay.
    `warn` gets a sentence for rows dropped and for what looks like a mistake. Raises DataError where the data does not
    fit, UsageError for a source that only the `spark` executor reads.
    """
    if columns is None:
        columns = schema_of(relation, source)
    match source:
        case SparkTableSource() | JdbcSource():
            kind = "a table of Spark's catalog" if isinstance(source, SparkTableSource) else "a JDBC table"
            raise UsageError(f'`{relation}` is {kind}: it needs executor="spark"', span=source.span)
        case _ if columns is None:
            raise DataError(
                f"the source of `{relation}` has no rows, so nothing tells its columns",
                fix="declare the relation with .decl",
            )
        case EmptySource():
            return empty_table(columns if positions is None else [columns[i] for i in positions])
        case TextSource(path, delimiter, _, rfc4180, span):
            header = _header(relation, source, columns, warn)
            return read_facts(path, columns, delimiter, header, rfc4180, relation, span, positions)
        case ArrowSource(data, misfits):
            _refuse_misfits(misfits, () if positions is None else set(range(len(columns))) - set(positions))
            table = data if isinstance(data, pa.Table) else data.to_table()
        case DatasetSource():
            table, positions = _read_dataset(relation, source, columns, positions)
        case SparkSource(frame):
            table = frame.toArrow()
        case RelationSource(rows):
            table = rows.to_arrow()
        case _:
            assert_never(source)
    return conform(relation, table, columns, nulls, warn, positions)


def _refuse_misfits(misfits: Mapping[int, DataError], unread: Container[int]) -> None:
    error = next((error for position, error in misfits.items() if position not in unread), None)
    if error is not None:
        raise error.with_traceback(None)


def _header(relation: str, source: TextSource, columns: tuple[Column, ...] | None, warn: Warn) -> bool:
    if source.header is not None:
        return source.header
    if not source.path.is_file():
        raise missing_file(source.path, relation, source.span)
    found = find_header(source.path, columns, source.delimiter, source.rfc4180)
    if found is None:
        warn(
            f"{source.path}: cannot tell if the first line is a header; it is taken as data (header=True or False says)"
        )
    return found is True


def _open(relation: str, source: DatasetSource) -> Any:
    import pyarrow.dataset

    try:
        if Path(source.location).is_file():
            # A file alone has its own columns only, wherever it lies; so it is in Spark.
            dataset = pyarrow.dataset.dataset(source.location, format=source.format)
        else:
            dataset = open_folder(source.location, source.format)
    except FileNotFoundError:
        raise missing_file(Path(source.location), relation, source.span) from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(relation, source, error) from error
    if not dataset.files:
        raise DataError(f"cannot read `{relation}`: {source.location} has no files in it", span=source.span)
    return dataset


def _read_dataset(
    relation: str, source: DatasetSource, columns: tuple[Column, ...], positions: tuple[int, ...] | None
) -> tuple[pa.Table, tuple[int, ...] | None]:
    """The table of a dataset, and where the columns at `positions` are in it. Others are not read if that can be."""
    dataset = _open(relation, source)
    names = dataset.schema.names
    by_name = positions is not None and len(names) == len(columns) == len(set(names))
    try:
        if positions is None or not by_name:
            return dataset.to_table(), positions
        table = dataset.to_table(columns=[names[i] for i in positions])
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(relation, source, error) from error
    # The others are there again as columns of nulls, which cost nothing: `conform` looks at all names.
    read = {names[i]: table.column(rank) for rank, i in enumerate(positions)}
    arrays = [read[name] if name in read else pa.nulls(table.num_rows) for name in names]
    return pa.table(arrays, names=names), positions


def _unreadable(relation: str, source: DatasetSource, error: Exception) -> DataError:
    kind = {"parquet": "Parquet", "feather": "Arrow"}[source.format]
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(
        f"cannot read `{relation}`: {source.location} is not a good {kind} file: {reason}", span=source.span
    )


_SPARK_TYPES = {
    "tinyint": NUMBER,
    "smallint": NUMBER,
    "int": NUMBER,
    "bigint": NUMBER,
    "float": FLOAT,
    "double": FLOAT,
    "string": SYMBOL,
    "varchar": SYMBOL,
    "char": SYMBOL,
    "boolean": BOOL,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
}


def type_of_spark(text: str) -> Type | None:
    """The type of the language for a Spark type by its `simpleString()`, None if there is none."""
    if found := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", text):
        return Type("decimal", precision=int(found[1]), scale=int(found[2]))
    return _SPARK_TYPES.get(re.sub(r"\(\d+\)$| collate .*$", "", text))


def _spark_column(relation: str, entry: Any, unread: bool) -> Column:
    text = entry.dataType.simpleString()
    type = type_of_spark(text) or (SYMBOL if unread else None)
    if type is None:
        raise unsupported(relation, entry.name, text)
    return Column(entry.name, type)
