"""What a run of the kernels may keep in memory, and where finished rows go beyond that."""

from __future__ import annotations

import errno
from mmap import MADV_DONTNEED
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

import numpy as np

from emberlog.diagnostics import ExecutionError, sized
from emberlog.kernels.watch import Unsuited
from emberlog.memory import NOISE, Budget

SHELF, TRIFLE = 1 << 23, 1 << 16  # bytes: of a place for many arrays, and of arrays that need none
LINE = 64


class Memory:
    """Holds a run of kernels to its budget. Finished rows over it go to files in `folder`, if there is one: in a folder
    of this run's own there, since rows of earlier runs are still read. They go there as soon as half of what the whole
    run may use (`meter`) is used: somebody has to read them."""

    def __init__(self, budget: int, folder: Path | None = None) -> None:
        self.budget = budget
        self.folder = folder
        self.meter: Budget | None = None
        self.kept = 0
        self.spilled = 0
        self.dismissed = 0  # workers that there was no room for
        self._files: list[Path] = []
        self._shelf = np.empty(0, np.uint8)
        self._lock = Lock()

    def check(self, needed: int, what: str) -> None:
        """Raises when so many bytes are too many."""
        if needed > self.budget:
            raise Unsuited(f"{what} need {sized(needed)}, and {sized(self.budget)} may be used (memory=)")

    def keep(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Finished rows that stay until somebody reads them: in memory, or in a file that is mapped into it."""
        return array if self._fits(array) else self._spilled(array)

    def keep_copy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same of rows in an array that will be used for others."""
        if not self._fits(array):
            return self._spilled(array)
        place: np.ndarray[Any, Any] = self._place(array.nbytes).view(array.dtype).reshape(array.shape)
        place[...] = array
        return place

    def _fits(self, array: np.ndarray[Any, Any]) -> bool:
        with self._lock:
            fits = self.kept + array.nbytes <= self.budget and (self.folder is None or not self._is_crowded())
            if fits:
                self.kept += array.nbytes
            elif self.folder is None:
                self.check(self.kept + array.nbytes, "the rows")
            return fits

    def _is_crowded(self) -> bool:
        return self.meter is not None and self.meter.used() > max(self.meter.total // 2, NOISE)

    def _place(self, size: int) -> np.ndarray[Any, Any]:
        """Bytes beside those of other arrays: memory comes in larger pages, and much sooner, where much is asked for
        at once."""
        if not TRIFLE < size < SHELF // 4:
            return np.empty(size, np.uint8)
        with self._lock:
            if size > len(self._shelf):
                self._shelf = np.empty(SHELF, np.uint8)
            place, self._shelf = self._shelf[:size], self._shelf[-(-size // LINE) * LINE :]
            return place

    def _spilled(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with self._lock:
            path = self._own_folder() / f"{len(self._files)}.npy"
            self._files.append(path)
            self.spilled += array.nbytes
        try:
            np.save(path, array)
        except OSError as error:
            raise unwritten(path, array.nbytes, error) from error
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]

    def forget(self) -> None:
        """What was kept is dropped: the run begins again in another way."""
        self.kept = self.spilled = 0
        for path in self._files:
            path.unlink()
        self._files.clear()

    def _own_folder(self) -> Path:
        if self._files:
            return self._files[0].parent
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(dir=self.folder))

    @property
    def told(self) -> str:
        fewer = f", {self.dismissed} fewer for want of memory" if self.dismissed else ""
        return fewer + (f", {sized(self.spilled)} of rows on disk" if self.spilled else "")


def unwritten(path: Path, size: int, error: OSError) -> ExecutionError:
    """The error for rows that did not fit on the disk either."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    why = "the disk is full" if full else error.strerror or str(error)
    return ExecutionError(
        f"{sized(size)} of rows had no room in memory, and could not be put into {path.parent}: {why}",
        fix="make room there, choose another folder with run_dir=, or allow more with memory=",
    )


def release(array: np.ndarray[Any, Any]) -> None:
    """Lets go of the pages of an array that lies in a file, until they are read again."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None:
        mapped.madvise(MADV_DONTNEED)
