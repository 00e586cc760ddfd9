"""Facts files (tab-separated, no quotes, no header, as Souffle's) and csv files (RFC 4180), read into Arrow tables.

`pyarrow.csv` reads a file when nothing in it could be read differently by the rules of `records`; otherwise, and when a
value does not fit, `records` reads it again and names what is wrong.

The header of a csv file, where the caller does not say (`find_header`). The first line can be one only if its fields
are distinct names: a letter or `_` first, and not `true`, `false`, `nan`, `inf`. It is one if the fields are the names
of the declared columns, or if some column is not text: by its declaration, or because all its values in the first
lines of the file are numbers. Otherwise nothing tells, and the line is data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from emberlog.data.arrow import arrow_schema, empty_table, field_names, table_of
from emberlog.data.convert import narrow, without_signs
from emberlog.data.records import BOM, Layout, read_exactly, records, without_blank_end
from emberlog.data.text import infer_type, looks_numeric
from emberlog.diagnostics import DataError, UsageError, did_you_mean
from emberlog.source import Span
from emberlog.types import SYMBOL, Column

_BLOCK = 1 << 22
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 100
_NAME = re.compile(r"(?!(?:true|false|nan|inf|infinity)$)[^\W\d][\w .-]*", re.IGNORECASE)
_LISTED_FILES = 10


def read_facts(
    path: Path,
    columns: Sequence[Column] | None,
    delimiter: str = "\t",
    header: bool = False,
    rfc4180: bool = False,
    relation: str | None = None,
    span: Span | None = None,
    positions: Sequence[int] | None = None,
) -> pa.Table:
    """The rows of a text file, as columns c0..ck; with `columns` None, of the types that `infer_columns` finds. With
    `positions` only the columns there are read; what stands in the others does not matter.

    `relation` and `span` say in errors what is read and where the program asks for it. Raises DataError for a missing
    file (with the files of the folder) and for rows that do not fit (file, line, column, value, expected type).
    """
    layout = _layout(path, delimiter, header, rfc4180)
    data = _read_bytes(path, relation, span)
    if columns is None:
        columns = _infer(data, layout)
        if columns is None:
            raise DataError(
                f"{path} has no rows, so nothing tells its columns", span=span, fix="declare the relation with .decl"
            )
    return _read(data, columns, layout, positions)


def infer_columns(
    path: Path,
    delimiter: str = "\t",
    header: bool = False,
    rfc4180: bool = False,
    relation: str | None = None,
    span: Span | None = None,
) -> tuple[Column, ...] | None:
    """The columns of a file that nothing declares: number, unsigned, float or symbol by all of its rows, named by the
    header, or c0..ck. None if the file has no rows; no columns if it holds the one line `()`."""
    return _infer(_read_bytes(path, relation, span), _layout(path, delimiter, header, rfc4180))


def find_header(
    path: Path, columns: Sequence[Column] | None, delimiter: str = ",", rfc4180: bool = True
) -> bool | None:
    """Whether the first line of a csv file names its columns, None if nothing tells: see the top of this module."""
    with path.open("rb") as file:
        data = file.read(_SAMPLE_BYTES)
    whole = data.rfind(b"\n") + 1 if len(data) == _SAMPLE_BYTES else len(data)
    data = data[:whole].removeprefix(BOM)
    layout = _layout(path, delimiter, False, rfc4180)
    first, *others = [record.fields for record in islice(records(data, layout), _SAMPLE_ROWS)] or [()]
    if not first or len(set(first)) != len(first) or not all(map(_NAME.fullmatch, first)):
        return False
    sample = [fields for fields in others if len(fields) == len(first)]
    if sample and any(all(map(looks_numeric, values)) for values in zip(*sample, strict=True)):
        return True
    if columns is not None:
        names = [column.name.casefold() for column in columns]
        if [field.casefold() for field in first] == names or any(column.type != SYMBOL for column in columns):
            return True
    return None


def missing_file(path: Path, relation: str | None, span: Span | None) -> DataError:
    """The error for a file that is not there: it lists what is."""
    reason = f"cannot read `{relation}`: " if relation else ""
    folder = path.parent
    if not os.path.isdir(folder):
        return DataError(f"{reason}{path} does not exist, nor does the folder {folder}", span=span)
    try:
        files = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        return DataError(f"{reason}cannot look into {folder}: {error.strerror}", span=span)
    listed = ", ".join(files[:_LISTED_FILES]) + (", ..." if len(files) > _LISTED_FILES else "")
    fix = f"{folder} has {listed or 'no files'}"
    near = did_you_mean(path.name, files)
    return DataError(f"{reason}{path} does not exist", span=span, fix=f"{fix}; {near}" if near else fix)


def _layout(path: Path, delimiter: str, header: bool, quoted: bool) -> Layout:
    if not delimiter or "\n" in delimiter or "\r" in delimiter or (quoted and '"' in delimiter):
        raise UsageError(f"{path}: {delimiter!r} cannot be a delimiter")
    return Layout(path, delimiter, header, quoted)


def _read_bytes(path: Path, relation: str | None, span: Span | None) -> bytes:
    try:
        return path.read_bytes().removeprefix(BOM)  # a mark, not data
    except FileNotFoundError:
        raise missing_file(path, relation, span) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", span=span) from error


def _infer(data: bytes, layout: Layout) -> tuple[Column, ...] | None:
    if not layout.quoted and without_blank_end(data).rstrip(b"\r\n") == b"()":
        return ()
    first = next(records(data, layout), None)
    if first is None:
        return None
    # A first line that cannot be read has no fields; reading on with one column tells what is wrong with it.
    names = field_names(max(1, len(first.fields)))
    texts = _read(data, [Column(name, SYMBOL) for name in names], layout)
    if not texts.num_rows:
        return None
    if layout.header and len(set(first.fields)) == len(first.fields):
        names = list(first.fields)
    return tuple(Column(name, infer_type(values)) for name, values in zip(names, texts.columns, strict=True))


def _read(data: bytes, columns: Sequence[Column], layout: Layout, positions: Sequence[int] | None = None) -> pa.Table:
    spots = range(len(columns)) if positions is None else positions
    read = [columns[i] for i in spots]
    if not data and columns:
        return empty_table(read)
    table = _read_fast(data, columns, layout, spots) if _is_plain(data, columns, layout) and read else None
    if table is None:
        table = read_exactly(data, columns, layout, spots)
    if all(column.type.bits == 64 and column.type.kind != "float" for column in read):
        return table
    return table_of(
        [without_signs(narrow(values, column.type)) for values, column in zip(table.columns, read, strict=True)]
    )


def _is_plain(data: bytes, columns: Sequence[Column], layout: Layout) -> bool:
    """Whether `pyarrow.csv` reads this file as `records` does, if it reads it at all."""
    if not columns or len(layout.delimiter.encode()) > 1:
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False  # pyarrow ends a line at a lone carriage return
    if layout.quoted and data.count(b'"') % 2:
        return False  # pyarrow takes the end of the file for a missing quote
    if data.startswith(BOM):
        return False  # pyarrow would skip it: behind a mark it is data
    blank = data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data
    return len(columns) == 1 or not blank  # pyarrow takes an empty line for a row of empty fields


def _read_fast(data: bytes, columns: Sequence[Column], layout: Layout, spots: Sequence[int]) -> pa.Table | None:
    """The table of the columns at `spots`, or None if there may be a bad row."""
    schema = arrow_schema(columns)
    read = [columns[i] for i in spots]
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            read_options=pyarrow.csv.ReadOptions(
                column_names=schema.names, skip_rows_after_names=int(layout.header), block_size=_BLOCK
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"' if layout.quoted else False,
                newlines_in_values=layout.quoted,
                ignore_empty_lines=False,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=schema,
                null_values=[],
                true_values=["true"],
                false_values=["false"],
                include_columns=[schema.names[i] for i in spots],
            ),
        )
        for values, column in zip(table.columns, read, strict=True):
            narrow(values, column.type)
    except pa.ArrowInvalid:
        return None
    return None if _may_have_wrapped(data, table, read) else table_of(table.columns)


def _may_have_wrapped(data: bytes, table: pa.Table, columns: Sequence[Column]) -> bool:
    """pyarrow reads 0xFFFFFFFFFFFFFFFF as -1 where it is out of range."""
    if b"0x" not in data and b"0X" not in data:
        return False
    numbers = [values for values, column in zip(table.columns, columns, strict=True) if column.type.kind == "number"]
    return any(len(values) and pc.min(values).as_py() < 0 for values in numbers)
