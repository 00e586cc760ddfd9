"""The folder of a view: its lock, the snapshot, and the log of the changes since then.

    lock                    who has the view open
    manifest.json           the snapshot that counts, by generation
    00000003-00017.parquet  a table of a snapshot
    log-00000003            the changes since the snapshot of that generation
    streams                 checkpoints of streaming queries that feed the view

A snapshot is final when the manifest is replaced: until then the old one and its log count. Tables that did not change
since the last snapshot stay the files that they are.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa

from emberlog.data.load import dummy_table, without_dummy
from emberlog.data.paths import make_folder
from emberlog.diagnostics import UsageError, cannot_write
from emberlog.maintain.durable.lock import Lock
from emberlog.maintain.durable.log import Log, damaged, read_bytes, read_records
from emberlog.maintain.durable.manifest import NAME, Manifest, SavedTable, read_manifest, write_manifest
from emberlog.maintain.durable.records import Record
from emberlog.types import Column

LOCK = "lock"
STREAMS = "streams"  # a folder of checkpoints of streaming queries
MIN_LOG_BYTES = 1 << 20  # a log of this length is never worth a snapshot
_NULLARY = {b"emberlog": b"no columns"}


@dataclass(frozen=True)
class Part:
    """Tables of a snapshot that belong together: what they are called, the relations whose change changes them, and
    what makes them."""

    name: str
    relations: Collection[str]
    tables: Callable[[], Mapping[str, pa.Table]]


class Folder:
    """The files of a durable view, of which there is one at a time.

    `manifest` is the snapshot that counts, None as long as there is none."""

    def __init__(self, path: Path) -> None:
        make_folder(path, "path")
        self.path = path
        self.manifest: Manifest | None = None
        self._log: Log | None = None
        self._records: list[bytes] = []
        self._changed: set[str] = set()  # relations that are not what they were in the snapshot
        self._sync = True
        self._least = MIN_LOG_BYTES
        self._lock = Lock(path / LOCK)
        try:
            self._refuse_others()
            if (manifest := read_manifest(path)) is not None:
                self._records, end = read_records(path / manifest.log)
                self._use(manifest, Log(path / manifest.log, end))
            self._clean()
        except BaseException:
            self.close()
            raise

    def _refuse_others(self) -> None:
        """Raises `UsageError` for a folder that holds something else."""
        if not (self.path / NAME).exists():
            strange = [file.name for file in self.path.iterdir() if not _is_ours(file.name)]
            if strange:
                raise UsageError(
                    f"{self.path} is no folder of a view: it holds {min(strange)}", fix="name an empty or a new folder"
                )

    # --- changes -------------------------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """The changes since the snapshot."""
        assert self._log is not None
        try:
            return [Record.decode(data) for data in self._records]
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise damaged(self._log.path, "a record has another form") from error
        finally:
            self._records = []

    @property
    def position(self) -> int:
        """Where the log ends: it grows with each commit, until a snapshot begins a new log."""
        return 0 if self._log is None else self._log.end

    def commit(self, record: Record, columns: Mapping[str, tuple[Column, ...]]) -> None:
        """Commits a change: when this returns, it outlives the process. `columns` are those of the record's rows."""
        assert self._log is not None
        self._log.append(record.encode(columns), self._sync)

    def touch(self, changed: Collection[str]) -> None:
        """Notes that relations, or what is kept for them, are not what they were in the snapshot."""
        self._changed.update(changed)

    def take_back(self) -> None:
        """Cuts off what is left of a change that was not committed."""
        if self._log is not None:
            self._log.take_back()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Changes that are forced to disk at the end, all at once."""
        assert self._log is not None
        self._sync = False
        try:
            yield
        finally:
            self._sync = True
            self._log.sync()

    # --- snapshots -----------------------------------------------------------------------------------------------

    @property
    def outgrown(self) -> bool:
        """True if the log is longer than the snapshot, so that it pays to make another one."""
        return self._log is not None and self._log.end > self._least

    def snapshot(self, manifest: Manifest, parts: Iterable[Part]) -> None:
        """Writes a snapshot and begins a new log. `manifest` says all but its generation and files."""
        old = self.manifest
        generation = 1 if old is None else old.generation + 1
        files = self._write_parts(generation, parts)
        new = replace(manifest, generation=generation, parts=files)
        log = Log.create(self.path / new.log)
        try:
            write_manifest(self.path, new)
            self._use(new, log)
        except BaseException:
            # Whether the manifest was replaced before this was raised, the disk says.
            found = read_manifest(self.path)
            if found is not None and found.generation == generation:
                self._use(new, log)
            else:
                log.close()
            raise
        self._clean()

    def _use(self, manifest: Manifest, log: Log) -> None:
        if self._log is not None and self._log is not log:
            self._log.close()
        self.manifest, self._log, self._changed = manifest, log, set()
        try:
            size = sum((self.path / file).stat().st_size for file in manifest.files)
        except FileNotFoundError as error:
            raise damaged(Path(error.filename), "it is missing") from error
        self._least = max(size, MIN_LOG_BYTES)

    def postpone(self) -> None:
        """Lets the log grow by half before the next snapshot is tried."""
        assert self._log is not None
        self._least = self._log.end + self._log.end // 2

    def _write_parts(self, generation: int, parts: Iterable[Part]) -> dict[str, Mapping[str, SavedTable]]:
        known = {} if self.manifest is None else self.manifest.parts
        found: dict[str, Mapping[str, SavedTable]] = {}
        numbers = count()
        for part in parts:
            if part.name in known and self._changed.isdisjoint(part.relations):
                found[part.name] = known[part.name]
                continue
            found[part.name] = written = {}
            for name, table in part.tables().items():
                file = f"{generation:08}-{next(numbers):05}.parquet"
                written[name] = SavedTable(file, _write_table(self.path / file, table))
        return found

    def tables(self, part: str) -> dict[str, pa.Table]:
        """The tables of a part of the snapshot."""
        assert self.manifest is not None
        return {name: _read_table(self.path, table) for name, table in self.manifest.parts[part].items()}

    def _clean(self) -> None:
        """Removes what an unfinished snapshot left, and what the last one replaced."""
        used = {LOCK, NAME, *(() if self.manifest is None else self.manifest.files)}
        for file in self.path.iterdir():
            if file.name not in used and _is_ours(file.name) and file.is_file():
                file.unlink(missing_ok=True)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        self._lock.release()


def _is_ours(name: str) -> bool:
    return name in (LOCK, f"{NAME}.new", NAME, STREAMS) or name.endswith(".parquet") or name.startswith("log-")


def _write_table(path: Path, table: pa.Table) -> int:
    """Writes a table to a file, and returns the checksum of its bytes."""
    import pyarrow.parquet as pq

    if not table.num_columns:
        table = dummy_table(table.num_rows > 0).replace_schema_metadata(_NULLARY)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data = sink.getvalue()
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise cannot_write(path, error) from error
    return zlib.crc32(data)


def _read_table(folder: Path, table: SavedTable) -> pa.Table:
    import pyarrow.parquet as pq

    data = read_bytes(folder / table.file)
    if zlib.crc32(data) != table.checksum:
        raise damaged(folder / table.file, "its checksum is wrong")
    found = pq.ParquetFile(pa.BufferReader(data)).read()
    is_nullary = (found.schema.metadata or {}).get(b"emberlog") == _NULLARY[b"emberlog"]
    return without_dummy(found) if is_nullary else found
