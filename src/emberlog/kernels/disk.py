"""Numba's cache of compiled functions, in our folder and with files that were checked before they are loaded.

Numba by itself keeps what it compiled beside the source, or where its settings say, and unpickles whatever lies there.
Here every function, of this package or generated, is kept in `cache.folder()`; a file that others could have written is
as good as none, and what cannot be written is compiled again by the next process.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import resources
from pathlib import Path
from secrets import token_hex
from typing import Any

from numba.core import caching as _caching

from emberlog.kernels.folders import distrust, refuse_file, refuse_to_write

caching: Any = _caching  # typed in part only


def keep_on_disk(made: Any, folder: Path | None, stamp: str) -> Any:
    """A function of Numba that is loaded from the folder if it is there, and stored there when it was compiled.

    `stamp` tells versions of the function's source apart. Without a folder nothing is kept.
    """
    if folder is not None and hasattr(made, "enable_caching"):
        made._cache = LoopCache(made.py_func, folder, stamp)
    return made


@lru_cache(maxsize=1)
def package_stamp() -> str:
    """A hash of all sources of the kernels: a compiled function has those that it calls inside it."""
    digest = hashlib.sha256()
    for name, data in sorted(_sources(resources.files("emberlog.kernels"), "")):
        digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()[:16]


def _sources(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()


class _Place:
    """Where a function is kept, as Numba asks for it."""

    def __init__(self, function: Any, folder: Path, stamp: str) -> None:
        self._py_file = function.__code__.co_filename
        self.folder = folder
        self.stamp = stamp

    def ensure_cache_path(self) -> None:
        """The folder was made when it was chosen."""

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return self.stamp


class _Results(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """What Numba stores of a function, under a name with its module in it."""

    def __init__(self, function: Any, folder: Path, stamp: str) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function, folder, stamp)
        module = function.__module__.removeprefix("emberlog_")
        self._filename_base = self.get_filename_base(f"{module}.{function.__qualname__}", getattr(sys, "abiflags", ""))


class _CheckedFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The two files of a function; what others could have written is not read."""

    def _load_index(self) -> Any:
        reason = distrust(Path(self._index_path))
        if reason is not None:
            refuse_file(reason)
            return {}
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        reason = distrust(Path(self._data_path(name)))
        if reason is not None:
            refuse_file(reason)
            raise FileNotFoundError(reason)  # which Numba takes for a function that is not there yet
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        scratch = f"{filepath}.{token_hex(8)}.tmp"
        try:
            with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
            os.replace(scratch, filepath)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise


class LoopCache(caching.FunctionCache):  # type: ignore[misc]
    """What Numba asks for a function before it compiles it, and gives what it compiled."""

    def __init__(self, function: Any, folder: Path, stamp: str) -> None:
        self._name = repr(function)
        self._py_func = function
        self._folder = folder
        self._impl = _Results(function, folder, stamp)
        self._cache_path = str(folder)
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)
        self.enable()

    def flush(self) -> None:
        with self._unwritable():
            super().flush()

    def save_overload(self, sig: Any, data: Any) -> None:
        with self._unwritable():
            super().save_overload(sig, data)

    @contextmanager
    def _unwritable(self) -> Iterator[None]:
        """A full or read-only disk costs the next process time, and this one nothing."""
        try:
            yield
        except OSError as error:
            refuse_to_write(self._folder, error)
