"""Where a stratum over Spark's tables is evaluated: in the driver, or on Spark.

What is small is fetched into the driver in any case. A recursion that loops can evaluate needs its inputs in Python
processes, here or in the tasks of a Spark job: both ways are estimated in seconds, and the shorter one is taken if the
driver has room.
"""

from __future__ import annotations

from dataclasses import dataclass

from emberlog.diagnostics import counted
from emberlog.thresholds import FETCHED_BYTES, FETCHED_COPIES, JOB_SECONDS, SHUFFLED_BYTES


@dataclass(frozen=True)
class Placed:
    """Where to evaluate, and why."""

    here: bool
    why: str


def place(rows: int, size: int, tasks: int, room: int) -> Placed:
    """Where to evaluate a recursion whose inputs on Spark have so many rows and bytes, which so many `tasks` can share
    out; the driver has `room` for so many bytes."""
    told = counted(rows, "row")
    if FETCHED_COPIES * size > room:
        return Placed(False, f"its inputs on Spark have {told}, for which the driver has no room (memory=)")
    here, there = size / FETCHED_BYTES, JOB_SECONDS + size / (SHUFFLED_BYTES * tasks)
    told = f"to fetch its inputs of {told} takes about {here:.1f} s, a job of Spark {there:.1f} s"
    return Placed(here <= there, told)
