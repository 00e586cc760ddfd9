"""Tables into files that `.input` and `engine.register` read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from emberlog.diagnostics import UsageError, cannot_write
from emberlog.generate.draw import Tables

FORMATS = ("facts", "csv", "parquet")


def check_format(format: str) -> None:
    """A `UsageError` unless `write` knows the format."""
    if format not in FORMATS:
        raise UsageError(f"unknown format `{format}`", fix=f"one of: {', '.join(FORMATS)}")


def write(tables: Tables, folder: str | Path, format: str = "facts") -> dict[str, Path]:
    """One file a relation, `<relation>.<format>`; the folder is made if need be. Returns the path of each relation.

    `facts` is tab-separated, `csv` comma-separated with text in quotes; both have no header, so column order is all
    that counts.
    """
    check_format(format)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {target}: {error.strerror}") from error
    paths = {name: target / f"{name}.{format}" for name in tables}
    for name, path in paths.items():
        try:
            with path.open("wb") as file:
                _write_one(tables[name], file, format)
        except OSError as error:
            raise cannot_write(path, error) from error
    return paths


def _write_one(table: pa.Table, file: BinaryIO, format: str) -> None:
    if format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
        return
    from pyarrow import csv

    tabs = format == "facts"
    options = csv.WriteOptions(
        include_header=False, delimiter="\t" if tabs else ",", quoting_style="none" if tabs else "needed"
    )
    csv.write_csv(table, file, options)
