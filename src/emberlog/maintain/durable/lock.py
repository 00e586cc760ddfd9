"""One process at a time: the lock on the folder of a view."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from emberlog.diagnostics import UsageError, cannot_write


class Lock:
    """A lock that the process holds until it lets go or ends, however it ends."""

    def __init__(self, path: Path) -> None:
        """Takes the lock. Raises `UsageError` with who has it, if somebody has."""
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(os.pread(self._file, 4096, 0))
            os.close(self._file)
            raise UsageError(
                f"the view in {path.parent} is open already: {holder}",
                fix="close it there, or wait until that process ends",
            ) from error
        since = datetime.now(UTC).isoformat(timespec="seconds")
        told = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": since})
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, told.encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _holder(data: bytes) -> str:
    try:
        found = json.loads(data)
        return f"process {found['process']} on {found['host']} has it since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process has it"
