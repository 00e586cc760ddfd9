"""How much memory there is, how much of it a run uses, and how much it may.

`free_memory` asks the machine and every control group (cgroup) that this process is in. A `Budget` is one for a whole
run: kernels, DuckDB, Arrow's copies and results all look at it, and whoever works gets what the others left. What is
used is measured, not added up: anonymous pages of this process above what it has when it is idle. Pages of mapped files
are not counted: they are as they are on disk, and the system takes them back when somebody needs room.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from emberlog.diagnostics import LimitError, UsageError, sized

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SHARE = 0.7  # of what is free: a run without a budget gets so much, and leaves the rest to others
UNKNOWN = 4 * 2**30  # bytes taken to be free where the system does not tell
IDLE = 200 * 10**6  # anonymous bytes of a process that has loaded all libraries and compiled loops, and has no data
NOISE = 64 * 10**6  # bytes that libraries may take or leave at any time: below, measuring says nothing
COPIES = 4  # of the rows of a relation, while they are sorted and written
WHOLE = Path("/")

FEWER = "write(path), to_spark(), head(n) and a loop over the relation need no room for all rows"


def bytes_of(size: str | int) -> int:
    """A size such as `4GB`, or a number of bytes."""
    text = str(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?\s*", text.lower())
    number = float(found.group(1)) * UNITS[found.group(2)] if found is not None else 0
    if not 0 < number < math.inf:
        raise UsageError(f"memory is a size such as 4GB, not {text[:40]!r}")
    return int(number)


# --- the machine and its groups --------------------------------------------------------------------------------------


def free_memory(root: Path = WHOLE) -> int:
    """Bytes that this process could use without pushing anybody else out, or being ended for it."""
    return max(min([_available(root), *_left_in_groups(root)]), 0)


def _available(root: Path) -> int:
    found = _figures(root / "proc/meminfo").get("MemAvailable:")
    return UNKNOWN if found is None else found * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """What each group that this process is in, and each group around it, has left."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            for folder in _folders(root, controllers, path):
                yield from _left(folder)


def _folders(root: Path, controllers: str, path: str) -> Iterator[Path]:
    """The folders of a group and of those around it. Inside a container the path may be that of the host, which is not
    there: the mounted folder is then the group itself."""
    for mount in _mounts(root, controllers):
        inside = mount / path.lstrip("/")
        folder = inside if inside.is_dir() else mount
        while True:
            yield folder
            if folder == mount:
                break
            folder = folder.parent


def _mounts(root: Path, controllers: str) -> Iterator[Path]:
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = [*after.split(" ", 2), "", ""][:3]
        unified = kind == "cgroup2" and controllers == ""
        if unified or (kind == "cgroup" and controllers and "memory" in options.split(",")):
            yield root / before.split(" ")[4].lstrip("/")


def _left(folder: Path) -> Iterator[int]:
    """What a group may still take, by each of its limits. Its cache of files goes when room is needed."""
    stat = _figures(folder / "memory.stat")
    pairs = (
        ("memory.max", "memory.current", "inactive_file", "active_file"),
        ("memory.high", "memory.current", "inactive_file", "active_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"),
    )
    for limit, usage, *caches in pairs:
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None:
            yield most - max(used - sum(stat.get(name, 0) for name in caches), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _figures(path: Path) -> dict[str, int]:
    """A file of names and numbers."""
    rows = (line.split() for line in _lines(path))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, or the word `max`."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None


# --- this process ----------------------------------------------------------------------------------------------------


def anonymous() -> int:
    """Bytes of memory that this process has and no file stands behind; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _page()


@cache
def _page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Returns memory that was freed, and is kept for later by the allocators of this process, to the system."""
    if "pyarrow" in sys.modules:
        import pyarrow

        pyarrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the C library may be another
        if trim is not None:
            trim(0)


@dataclass(frozen=True)
class Budget:
    """What a run may keep in memory: `total` bytes of data above the `idle` anonymous bytes of this process."""

    total: int
    idle: int
    asked: bool = False  # by the user; else it is a share of what was free

    @staticmethod
    def of(memory: str | int | None, shares: int = 1, reserved: int = 0) -> Budget:
        """The budget that begins now: what was asked for, else a share of what is free and not `reserved`; of that one
        of so many shares."""
        if memory is None:
            total = int(SHARE * max(free_memory() - reserved, 0))
        else:
            total = bytes_of(memory)
        return Budget(max(total // shares, 1), max(anonymous(), IDLE), memory is not None)

    def used(self) -> int:
        """Bytes of data in this process, as measured."""
        return max(anonymous() - self.idle, 0)

    def left(self) -> int:
        """Bytes for whoever works next; never so few that nothing could be done, for measuring is not exact."""
        used = self.used()
        if used > min(NOISE, self.total):
            give_back()
            used = self.used()
        return max(self.total - used, min(self.total, NOISE))

    def is_full(self) -> bool:
        """Is more used than there may be?"""
        most = max(self.total, NOISE)
        if self.used() <= most:
            return False
        give_back()
        return self.used() > most

    def check(self, needed: int, what: str) -> None:
        """Raises where so many more bytes are too many. Few always fit."""
        if needed > NOISE and needed > (left := self.left()):
            raise self.exceeded(f"{what} needs about {sized(needed)}, and {sized(left)} are left of")

    def exceeded(self, told: str) -> LimitError:
        """The error for what does not fit; `told` is all but the size of the budget."""
        return LimitError(f"{told} {self.told}", fix=f"{FEWER}; or {self.more}")

    @property
    def told(self) -> str:
        kind = "memory=" if self.asked else f"{SHARE:.0%} of what was free"
        return f"the {sized(self.total)} that the run may keep in memory ({kind})"

    @property
    def more(self) -> str:
        return "allow more with memory=" if self.asked else "run it where more memory is free"
