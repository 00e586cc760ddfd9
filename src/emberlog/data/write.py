"""Files of a relation: facts and csv, Parquet, Arrow.

Rows are written sorted, so that equal relations give equal files; those of very large relations, and of those that
would not fit in memory, come piece by piece (from a reader), and are written as they come. Text files are UTF-8; floats
have the shortest text that reads back, booleans are `true` and `false`, a relation without columns that is true is the
line `()`.

A file appears whole or not at all: it is written under another name in the same folder, forced to disk, then renamed.
Whoever writes asks the `stop` of its run again and again, so that time limits hold here too.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, assert_never, cast

import pyarrow as pa
import pyarrow.compute as pc

from emberlog.data.arrow import array_of, arrow_type, text_scalar, values_of
from emberlog.data.records import BOM
from emberlog.data.text import shown
from emberlog.deadline import beside
from emberlog.diagnostics import DataError, UsageError, cannot_write
from emberlog.stopping import NEVER, Stop
from emberlog.types import Column

Rows: TypeAlias = pa.Table | pa.RecordBatchReader  # all of them, or as they come

_BATCH = 1 << 16
_GROUP = 1 << 20  # rows of a group of Parquet
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".facts": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}


def write_facts(
    path: Path,
    rows: Rows,
    columns: Sequence[Column],
    delimiter: str = "\t",
    header: bool = False,
    rfc4180: bool = False,
    stop: Stop = NEVER,
) -> None:
    """A text file of the rows: Souffle's output, or with `rfc4180` fields quoted where they need it.

    Raises DataError, and leaves no file, if a symbol holds the delimiter or a line break and may not be quoted.
    """
    if not columns:
        assert isinstance(rows, pa.Table)
        text = b"()\n" if rows.num_rows else b""
        _replace(path, lambda file: file.write(text), stop)
        return
    if not rfc4180 and isinstance(rows, pa.Table):
        _check_symbols(path, rows, columns, delimiter, header)

    def lines() -> Iterator[Any]:
        if header:
            names = array_of([column.name for column in columns], pa.large_string())
            yield delimiter.join((_quoted(names, delimiter) if rfc4180 else names).to_pylist()).encode() + b"\n"
        for batch in _batches(rows, _BATCH, stop):
            if not rfc4180 and not isinstance(rows, pa.Table):
                _check_symbols(path, pa.Table.from_batches([batch]), columns, delimiter, header)
            yield _lines(batch, columns, delimiter, rfc4180)

    def write(file: BinaryIO) -> None:
        for number, text in enumerate(lines()):
            if number == 0 and bytes(text[: len(BOM)]) == BOM:
                file.write(BOM)  # readers take the first for a mark
            file.write(text)

    _replace(path, write, stop)


def write_table(
    path: Path, rows: Rows, columns: Sequence[Column], format: str | None = None, stop: Stop = NEVER
) -> None:
    """The rows under the users' column names, as the ending of `path` says: csv (comma, header, RFC 4180), tsv and
    facts (as `write_facts`), parquet, arrow or feather. `format` (csv, tsv, parquet, arrow) overrules the ending."""
    chosen = format or _SUFFIXES.get(path.suffix.lower())
    match chosen:
        case "csv":
            write_facts(path, rows, columns, delimiter=",", header=bool(columns), rfc4180=True, stop=stop)
        case "tsv":
            write_facts(path, rows, columns, stop=stop)
        case "parquet" | "arrow":
            if not columns:
                raise UsageError(f"{path}: a relation without columns goes into a text file (.csv, .tsv, .facts) only")
            if chosen == "parquet" and not isinstance(rows, pa.Table):
                write_pieces(path, rows, columns, stop)
                return
            _replace(path, lambda file: _write_binary(rows, columns, file, chosen, stop), stop)
        case _:
            raise UsageError(f"{path}: cannot tell the format", fix=f"known endings: {', '.join(_SUFFIXES)}")


def write_pieces(path: Path, pieces: pa.RecordBatchReader, columns: Sequence[Column], stop: Stop = NEVER) -> None:
    """A Parquet file of rows that come piece by piece, in their order: never more than a piece is in memory."""
    import pyarrow.parquet as pq

    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
    # Differences of integers take a tenth of the space and half of the time of a dictionary.
    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    others = [field.name for field in schema if field.name not in whole]
    encodings = dict.fromkeys(whole, "DELTA_BINARY_PACKED") or None

    def write(file: BinaryIO) -> None:
        with pq.ParquetWriter(file, schema, use_dictionary=others, column_encoding=encodings) as writer:
            for piece in pieces:
                arrays = [values.cast(field.type) for values, field in zip(piece.columns, schema, strict=True)]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema), row_group_size=_GROUP)

    _replace(path, write, stop)


def _write_binary(rows: Rows, columns: Sequence[Column], file: BinaryIO, format: str, stop: Stop) -> None:
    names = [column.name for column in columns]
    if format == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(_in_order(rows, stop).rename_columns(names), file)
        return
    schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, names, strict=True)])
    with pa.ipc.new_file(file, schema) as writer:
        for batch in _batches(rows, None, stop):
            writer.write_batch(batch.rename_columns(names))


def _batches(rows: Rows, most: int | None, stop: Stop) -> Iterator[pa.RecordBatch]:
    """The rows in order if they are all there, else as they come; `most` at a time."""
    if isinstance(rows, pa.Table):
        yield from _in_order(rows, stop).to_batches(max_chunksize=most)
        return
    for batch in rows:
        for start in range(0, len(batch), most or len(batch) or 1):
            yield batch.slice(start, most)


def _in_order(table: pa.Table, stop: Stop) -> pa.Table:
    return beside(stop, lambda: _sorted(table))


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _check_symbols(path: Path, table: pa.Table, columns: Sequence[Column], delimiter: str, header: bool) -> None:
    texts = [(column.name, table.column(i)) for i, column in enumerate(columns) if column.type.kind == "symbol"]
    if header:
        texts += [(column.name, pa.chunked_array([array_of([column.name], pa.string())])) for column in columns]
    for name, values in texts:
        for part, noun in ((delimiter, "delimiter"), ("\n", "line break"), ("\r", "line break")):
            found = pc.match_substring(values, part)
            if pc.any(found).as_py():
                value = values[pc.index(found, True).as_py()].as_py()
                raise DataError(
                    f"cannot write {path}: column {name} has {shown(value)}, with a {noun} in it",
                    fix="write it with rfc4180=true, which quotes, or as Parquet",
                )


def _lines(batch: pa.RecordBatch, columns: Sequence[Column], delimiter: str, quoted: bool) -> Any:
    """The batch as text: the buffer of an Arrow array of lines is what the file holds."""
    texts = [_texts(values, column) for values, column in zip(batch.columns, columns, strict=True)]
    if quoted:
        texts = [
            _quoted(text, delimiter) if column.type.kind == "symbol" else text
            for text, column in zip(texts, columns, strict=True)
        ]
    lines = pc.binary_join_element_wise(*texts, text_scalar(delimiter))
    lines = pc.binary_join_element_wise(lines, text_scalar("\n"), text_scalar(""))
    return lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())


def _texts(values: pa.Array, column: Column) -> pa.Array:
    match column.type.kind:
        case "symbol" | "number" | "unsigned" | "date" | "decimal" | "bool":
            return values.cast(pa.large_string())
        case "float":
            # Arrow writes 1 for 1.0, which would read back as another type where nothing is declared.
            return array_of([repr(value) for value in values_of(values)], pa.large_string())
        case "timestamp":
            return pc.replace_substring_regex(values.cast(pa.large_string()), r"\.000000$", "")
        case _:
            assert_never(column.type.kind)


def _quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    """Texts in double quotes where RFC 4180 asks for them; the empty one too, lest a line of it look like none."""
    needed = pc.or_(
        pc.match_substring(texts, delimiter),
        pc.match_substring_regex(texts, f'^$|^{BOM.decode()}|["\r\n]'),
    )
    if not pc.any(needed).as_py():
        return texts
    quote = text_scalar('"')
    doubled = pc.replace_substring(texts, '"', '""')
    inside = pc.binary_join_element_wise(quote, doubled, quote, text_scalar(""))
    return pc.if_else(needed, inside, texts)


def _replace(path: Path, write: Callable[[BinaryIO], object], stop: Stop) -> None:
    """The file `path` with what `write` puts into it; if that fails, what was there before stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            beside(stop, lambda: _write_to_device(path, write))
            return
        _write_and_rename(path, write, stop)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write_to_device(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """A pipe or a device has no whole to keep. It may wait for a reader for ever."""
    with path.open("wb") as device:
        write(device)


class _Asking(io.BufferedWriter):
    """A file that asks before each piece that is written whether the run is to end."""

    def __init__(self, path: Path, stop: Stop) -> None:
        super().__init__(io.FileIO(path, "xb"))
        self._stop = stop

    def write(self, data: Any) -> int:
        self._stop.check()
        return super().write(data)


def _write_and_rename(path: Path, write: Callable[[BinaryIO], object], stop: Stop) -> None:
    scratch = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with _Asking(scratch, stop) as file:
            write(cast("BinaryIO", file))
            file.flush()
            beside(stop, lambda: os.fsync(file.fileno()))
        stop.check()
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
