"""Where a stratum over Spark's tables is evaluated: in the driver, or on Spark.

What is small is fetched into the driver in any case. A recursion that loops can evaluate needs its inputs in Python
processes, here or in the tasks of a Spark job: both ways are estimated in seconds, and the shorter one is taken if the
driver has room. All figures were measured on one machine with two cores; those of a job are the least that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from emberlog.diagnostics import counted

SMALL_SOURCE = 100_000  # rows of a source that is fetched into the driver
SMALL_RESULT = 10_000_000  # rows of results with which a stratum leaves the driver

JOB = 2.5  # seconds: a barrier job with Python workers, and what it wrote is read
FETCHED = 60e6  # bytes a second from Spark to the driver
SHUFFLED = 12e6  # bytes a second that a task encodes, sends and reads
COPIES = 6  # of what is fetched, in the memory of the driver: Arrow's, encoded, sorted, tables


@dataclass(frozen=True)
class Placed:
    """Where to evaluate, and why."""

    here: bool
    why: str


def place(rows: int, size: int, tasks: int, room: int) -> Placed:
    """Where to evaluate a recursion whose inputs on Spark have so many rows and bytes, which so many `tasks` can share
    out; the driver has `room` for so many bytes."""
    told = counted(rows, "row")
    if COPIES * size > room:
        return Placed(False, f"its inputs on Spark have {told}, for which the driver has no room (memory=)")
    here, there = size / FETCHED, JOB + size / (SHUFFLED * tasks)
    told = f"to fetch its inputs of {told} takes about {here:.1f} s, a job of Spark {there:.1f} s"
    return Placed(here <= there, told)
