"""The log: a file of records, each with its length and checksums, which only grows at its end.

    emberlog-log 1\\n
    length (8 bytes)  checksum of the record (4)  checksum of these 12 bytes (4)  the record
    ...

A record that a killed process left unfinished at the end was never confirmed to anybody: it is dropped. Damage anywhere
else is an error. Numbers are little-endian; checksums are CRC-32.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from emberlog.diagnostics import DataError, ExecutionError, cannot_write

HEADER = b"emberlog-log 1\n"
_FRAME = struct.Struct("<QI")
_CHECK = struct.Struct("<I")
FRAME_BYTES = _FRAME.size + _CHECK.size


def damaged(path: Path, what: str) -> DataError:
    """The error for a file whose content is not what was written."""
    fix = "bring the folder back from a copy, or delete it and evaluate the program anew"
    return DataError(f"{path} is damaged: {what}", fix=fix)


def frame(record: bytes) -> bytes:
    """A record as it stands in the file."""
    head = _FRAME.pack(len(record), zlib.crc32(record))
    return head + _CHECK.pack(zlib.crc32(head)) + record


def read_records(path: Path) -> tuple[list[bytes], int]:
    """The records of a log, and where the last whole one ends. Raises `DataError` for damage before the end."""
    data = read_bytes(path)
    if not data.startswith(HEADER):
        raise damaged(path, f"it does not begin with {HEADER.decode().strip()!r}")
    records, end = [], len(HEADER)
    for record in _records(path, data):
        records.append(record)
        end += FRAME_BYTES + len(record)
    return records, end


def read_bytes(path: Path) -> bytes:
    """What a file holds. Raises `DataError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(path, f"it cannot be read: {error.strerror or error}") from error


def _records(path: Path, data: bytes) -> Iterator[bytes]:
    at = len(HEADER)
    while at + FRAME_BYTES <= len(data):
        head = data[at : at + _FRAME.size]
        if zlib.crc32(head) != _CHECK.unpack_from(data, at + _FRAME.size)[0]:
            if not any(data[at:]):  # the file had grown, and its bytes had not come to the disk
                return
            raise damaged(path, f"the record at byte {at:,} has a wrong length or checksum")
        length, check = _FRAME.unpack(head)
        begin, end = at + FRAME_BYTES, at + FRAME_BYTES + length
        if end > len(data):
            return
        record = data[begin:end]
        if zlib.crc32(record) != check:
            if end == len(data):
                return
            raise damaged(path, f"the record at byte {at:,} has a wrong checksum")
        yield record
        at = end


class Log:
    """A log that is open for writing. `end` is where its last confirmed record ends."""

    def __init__(self, path: Path, end: int) -> None:
        self.path = path
        self.end = end
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._broken = ""
        self.take_back()

    @staticmethod
    def create(path: Path) -> Log:
        """An empty log."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                _write(file, HEADER)
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise cannot_write(path, error) from error
        return Log(path, len(HEADER))

    def append(self, record: bytes, sync: bool = True) -> None:
        """Writes a record. When this returns it is on the disk, or will be after `sync`."""
        if self._broken:
            raise ExecutionError(f"{self.path} takes no more changes: {self._broken}", fix="open the view again")
        framed = frame(record)
        try:
            _write(self._file, framed)
            if sync:
                os.fsync(self._file)
        except OSError as error:
            self.take_back()
            raise cannot_write(self.path, error) from error
        self.end += len(framed)

    def sync(self) -> None:
        """Forces to disk what was appended without. If that fails, nobody knows what is there: the log is closed."""
        try:
            os.fsync(self._file)
        except OSError as error:
            self._broken = f"it could not be forced to disk ({error.strerror or error})"
            raise cannot_write(self.path, error) from error

    def take_back(self) -> None:
        """Cuts off what stands behind the last confirmed record."""
        try:
            os.ftruncate(self._file, self.end)
            os.lseek(self._file, self.end, os.SEEK_SET)
        except OSError as error:
            self._broken = f"an unfinished record could not be cut off ({error.strerror or error})"

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file, self._broken = -1, "it is closed"


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
