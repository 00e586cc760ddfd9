"""How long the tasks of a generated trace take: as in a recorded one, or by one of three distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from emberlog.diagnostics import DataError, UsageError, did_you_mean
from emberlog.schedule.graph import Ints
from emberlog.schedule.trace import Trace

# Units in a task of mean length: fine enough that rounding does not show.
MEAN = 1000

# The Pareto distribution of the heavy tail has a mean and no variance.
TAIL = 1.5

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "constant": lambda _, count: np.ones(count),
    "exponential": lambda draw, count: draw.exponential(1.0, count),
    "heavy": lambda draw, count: (draw.pareto(TAIL, count) + 1) * (TAIL - 1) / TAIL,
}


def known_distribution(name: str) -> str:
    """The name, if there is such a distribution. Raises `UsageError` else."""
    if name not in DISTRIBUTIONS:
        guess = did_you_mean(name, DISTRIBUTIONS)
        raise UsageError(f"there is no distribution {name!r}", fix=guess or f"there are {', '.join(DISTRIBUTIONS)}")
    return name


def drawn(trace: Trace, distribution: str, mean: float, seed: int = 0) -> Trace:
    """The trace with tasks of `mean` seconds without inner parallelism, distributed so."""
    draw_lengths = DISTRIBUTIONS[known_distribution(distribution)]
    if not (np.isfinite(mean) and mean > 0):
        raise UsageError(f"tasks cannot take {mean} seconds in the mean")
    lengths = draw_lengths(np.random.default_rng(seed), int(trace.tasks.sum()))
    work = _whole(lengths * MEAN)
    return trace.with_costs(work, work, mean / MEAN)


def recorded(trace: Trace, given: Trace, seed: int = 0) -> Trace:
    """The trace with work and span of tasks drawn from those that ran in the given one."""
    ran = given.active[given.tasks[given.active] & (given.work[given.active] > 0)]
    if not ran.size:
        raise DataError("the recorded trace has no task that took any time")
    chosen = np.random.default_rng(seed).choice(ran, int(trace.tasks.sum()))
    return trace.with_costs(given.work[chosen], given.span[chosen], given.unit)


def _whole(lengths: NDArray[np.float64]) -> Ints:
    return np.maximum(1, np.rint(lengths)).astype(np.int64)
