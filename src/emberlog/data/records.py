"""A text file split into records, exactly, in Python: the line of each, and what is wrong with the bad ones.

`pyarrow.csv` is some thirty times faster and is tried first (see `facts`). This module reads what that cannot (long
delimiters, carriage returns inside symbols, numbers such as `+5`), and finds the bad rows, which that does not name.

Lines end with a line feed; one carriage return before it belongs to the line end. Nothing else ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from emberlog.data.arrow import nullary_table, table_of
from emberlog.data.text import parse_texts
from emberlog.diagnostics import DataError, counted
from emberlog.types import SYMBOL, Column

BOM = "\ufeff".encode()  # the byte-order mark that some programs write at the start of a file
_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text file is written. With `quoted`, RFC 4180: fields may stand in double quotes, `""` is a quote."""

    path: Path
    delimiter: str
    header: bool
    quoted: bool


class Record(NamedTuple):
    """The fields of a record that starts at `line`, or what is wrong with it."""

    line: int
    fields: Sequence[str]
    problem: str = ""


def records(data: bytes, layout: Layout) -> Iterator[Record]:
    """The records of a file, its header included."""
    if layout.quoted:
        return _quoted_records(data, layout.delimiter)
    return _plain_records(data, layout.delimiter)


def _plain_records(data: bytes, delimiter: str) -> Iterator[Record]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            yield Record(number, line.removesuffix(b"\r").decode().split(delimiter))
        except UnicodeDecodeError:
            yield Record(number, (), "the text is not UTF-8")


def _quoted_records(data: bytes, delimiter: str) -> Iterator[Record]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        yield Record(data.count(b"\n", 0, error.start) + 1, (), "the text is not UTF-8")
        return
    field = re.compile(rf'(?:"((?:[^"]|"")*)"|(?!")([^\n]*?))({re.escape(delimiter)}|\r?\n|\Z)')
    position, line, fields, start = 0, 1, list[str](), 1
    while position < len(text) or fields:
        found = field.match(text, position)
        if not found:
            yield Record(line, (), "a quoted field does not end, or text follows its closing quote")
            return
        inside, plain, end = found.groups()
        fields.append(plain if inside is None else inside.replace('""', '"'))
        line += found.group().count("\n")
        position = found.end()
        if end != delimiter:
            yield Record(start, fields)
            fields, start = [], line


def without_blank_end(data: bytes) -> bytes:
    """`data` without the empty lines at its end."""
    while data.endswith((b"\n\n", b"\n\r\n")):
        data = data[:-1].removesuffix(b"\r")
    return b"" if data in (b"\n", b"\r\n") else data


def read_exactly(
    data: bytes, columns: Sequence[Column], layout: Layout, positions: Sequence[int] | None = None
) -> pa.Table:
    """The table that `data` holds, or its columns at `positions`: of others only their number matters.

    Raises DataError with the first bad row and the lines of the others.
    """
    if not columns:
        return _read_nullary(data, layout)
    if [column.type for column in columns] != [SYMBOL]:
        # An empty line is the empty string in a file of one symbol a line; elsewhere it is no row.
        data = without_blank_end(data)
    bad: dict[int, str] = {}
    good: list[Record] = []
    for rank, record in enumerate(records(data, layout)):
        if layout.header and rank == 0:
            continue
        if problem := record.problem or _wrong_width(record.fields, columns, layout):
            bad[record.line] = problem
        else:
            good.append(record)
    arrays = []
    by_column = zip(*(record.fields for record in good), strict=True) if good else [()] * len(columns)
    read = frozenset(range(len(columns)) if positions is None else positions)
    for spot, (texts, column) in enumerate(zip(by_column, columns, strict=True)):
        if spot not in read:
            continue
        array, problems = parse_texts(texts, column.type)
        arrays.append(array)
        for position, problem in problems.items():
            bad.setdefault(good[position].line, f"column {column.name}: {problem}")
    if bad:
        raise _bad_rows(bad, layout)
    return table_of(arrays) if arrays else nullary_table(bool(good))


def _read_nullary(data: bytes, layout: Layout) -> pa.Table:
    found = list(records(without_blank_end(data), layout))
    bad = {record.line: "a relation without columns is the line `()`" for record in found if record.fields != ["()"]}
    if bad:
        raise _bad_rows(bad, layout)
    return nullary_table(bool(found))


def _wrong_width(fields: Sequence[str], columns: Sequence[Column], layout: Layout) -> str:
    if len(fields) == len(columns):
        return ""
    if list(fields) == [""]:
        return "the line is empty"
    names = ", ".join(column.name for column in columns)
    text = f"{counted(len(fields), 'field')} where {len(columns)} are expected ({names})"
    line = layout.delimiter.join(fields)
    for other in "\t", ",", ";", "|", " ":
        if other != layout.delimiter and line.count(other) == len(columns) - 1:
            return f"{text}; the delimiter is {layout.delimiter!r}, this line seems to use {other!r}"
    return text


def _bad_rows(bad: dict[int, str], layout: Layout) -> DataError:
    first, *others = sorted(bad)
    fix = None
    if others:
        lines = [f"line {line}: {bad[line]}" for line in others[:_SHOWN_LINES]] + ["..."] * (len(others) > _SHOWN_LINES)
        fix = "\n    ".join([f"{counted(len(others), 'more bad row')}:", *lines])
    return DataError(f"{layout.path}:{first}: {bad[first]}", fix=fix)
