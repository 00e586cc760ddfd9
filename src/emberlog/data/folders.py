"""Folders of Parquet files, visible whole or not at all.

Rows go into a scratch folder beside the target. When all are written, it takes the place of the target in one step. To
append is the same: the scratch folder gets links to the files that are there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from emberlog.data.arrow import arrow_type
from emberlog.data.write import Rows
from emberlog.diagnostics import DataError, UsageError, cannot_write, did_you_mean
from emberlog.types import Column

Mode: TypeAlias = Literal["overwrite", "append", "error"]
MODES = ("overwrite", "append", "error")

_PARTITION_KINDS = ("number", "unsigned", "symbol", "bool", "date")
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux


def checked_mode(mode: str) -> Mode:
    match mode:
        case "overwrite" | "append" | "error":
            return mode
        case _:
            raise UsageError(f"there is no mode {mode!r}", fix=f"the modes are {', '.join(MODES)}")


def write_folder(path: Path, rows: Rows, columns: Sequence[Column], partition_by: Sequence[str], mode: Mode) -> None:
    """The rows as Parquet files in a folder, with a folder `column=value` for each value of the `partition_by`."""
    target = path.absolute()
    _check_columns(columns, partition_by)
    _check_target(target, columns, partition_by, mode)
    scratch = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        scratch.mkdir(parents=True)
        _write_files(scratch, rows, columns, partition_by)
        if mode == "append" and target.exists():
            _link_files(target, scratch)
        _take_place(scratch, target)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_columns(columns: Sequence[Column], partition_by: Sequence[str]) -> None:
    types = {column.name: column.type for column in columns}
    for name in partition_by:
        if name not in types:
            hint = did_you_mean(name, types) or f"the columns are {', '.join(types)}"
            raise UsageError(f"there is no column `{name}` to partition by", fix=hint)
        if types[name].kind not in _PARTITION_KINDS:
            allowed = "text, whole numbers, dates or booleans"
            raise UsageError(f"a {types[name]} cannot be the name of a folder", fix=f"partition by {allowed}")
    if len(set(partition_by)) < len(partition_by) or len(partition_by) >= len(columns):
        raise UsageError("each column partitions once, and one at least stays in the files")


def _check_target(target: Path, columns: Sequence[Column], partition_by: Sequence[str], mode: Mode) -> None:
    """Raises where the target must not be replaced, or what is there does not go with the new rows."""
    if target.is_symlink():
        raise UsageError(f"{target} is a link", fix="give the path of the folder itself")
    if not target.exists():
        return
    if mode == "error":
        raise UsageError(f"{target} is there already", fix='mode="overwrite" or mode="append"')
    if not target.is_dir():
        raise UsageError(f"{target} is a file, and a folder is to be written", fix="give another path")
    foreign = next((file for file in _files(target) if file.suffix != ".parquet" and file.name[:1] not in "._"), None)
    if foreign is not None:
        raise UsageError(f"{target} has other files than Parquet: {foreign.name}", fix="give a folder of its own")
    if mode == "append":
        _check_same_columns(target, columns, partition_by)


def _check_same_columns(target: Path, columns: Sequence[Column], partition_by: Sequence[str]) -> None:
    import pyarrow.parquet as pq

    file = next((file for file in _files(target) if file.suffix == ".parquet"), None)
    if file is None:
        return
    folders = [part.partition("=")[0] for part in file.relative_to(target).parts[:-1]]
    if folders != list(partition_by):
        how = f"by {', '.join(folders)}" if folders else "not at all"
        raise DataError(f"{target} is partitioned {how}", fix=f"partition_by={folders}")
    there = {field.name: field.type for field in pq.read_schema(file)}
    new = {field.name: field.type for field in _schema(columns) if field.name not in partition_by}
    if there != new:
        listed = ", ".join(f"{name}: {type}" for name, type in there.items())
        raise DataError(f"{target} has other columns: {listed}", fix="append rows of the same columns")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if not path.is_dir())


# --- writing ---------------------------------------------------------------------------------------------------------


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def _write_files(folder: Path, rows: Rows, columns: Sequence[Column], partition_by: Sequence[str]) -> None:
    import pyarrow.dataset as ds

    schema = _schema(columns)
    pieces = rows.to_batches() if isinstance(rows, pa.Table) else rows

    def typed() -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            arrays = [values.cast(field.type) for values, field in zip(piece.columns, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            _refuse_empty_names(batch, partition_by)
            yield batch

    parts = [schema.field(name) for name in partition_by]
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(schema, typed()),
        folder,
        basename_template=f"part-{secrets.token_hex(8)}-{{i}}.parquet",
        format="parquet",
        partitioning=ds.partitioning(pa.schema(parts), flavor="hive") if parts else None,
        max_partitions=1 << 16,
    )
    if not parts and not any(_files(folder)):  # of no rows: a file tells the columns all the same
        import pyarrow.parquet as pq

        pq.write_table(schema.empty_table(), folder / f"part-{secrets.token_hex(8)}.parquet")


def _refuse_empty_names(batch: pa.RecordBatch, partition_by: Sequence[str]) -> None:
    import pyarrow.compute as pc

    for name in partition_by:
        values = batch.column(name)
        if pa.types.is_string(values.type) and pc.any(pc.equal(values, "")).as_py():
            raise DataError(
                f"an empty text in `{name}` cannot be the name of a folder", fix="partition by another column"
            )


def _link_files(source: Path, folder: Path) -> None:
    for file in _files(source):
        link = folder / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file, link)
        except OSError:  # a file system without links
            shutil.copy2(file, link)


def _take_place(scratch: Path, target: Path) -> None:
    """Puts the scratch folder where the target is; what was there is then in the scratch folder."""
    if not target.exists():
        scratch.rename(target)
    elif not _exchange(scratch, target):
        aside = scratch.with_suffix(".old")
        target.rename(aside)
        try:
            scratch.rename(target)
        except BaseException:
            aside.rename(target)
            raise
        aside.rename(scratch)


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two folders in one step; False where the system cannot."""
    rename: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    here = -100  # AT_FDCWD
    if rename(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code), str(other))
