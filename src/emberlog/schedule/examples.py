"""Traces that show what a scheduler does at its worst."""

from __future__ import annotations

from emberlog.diagnostics import UsageError
from emberlog.schedule.graph import Graph
from emberlog.schedule.trace import Trace


def fig2(levels: int) -> Trace:
    """The paper's Fig. 2, where LevelBased's bound is tight (Theorem 9).

    A chain j_1 .. j_L of unit tasks; below j_(i-1) also hangs k_i, which takes L - i + 1 units on one processor.
    LevelBased waits for k_i before it takes up j_(i+1): Theta(ML) with M = L - 1. With P >= L - 1 processors and any
    scheduler that looks at ancestors it is Theta(M + L)."""
    if levels < 2:
        raise UsageError("Fig. 2 has at least two levels")
    chain = [(node, node + 1) for node in range(levels - 1)]
    hanging = [(node, levels + node) for node in range(levels - 1)]
    work = [1] * levels + [levels - place + 1 for place in range(2, levels + 1)]
    edges = chain + hanging
    return Trace.of(Graph.of(len(work), edges), [True] * len(work), work, work, [0], edges)


def worst(tasks: int) -> Trace:
    """Short tasks side by side, all of which a change reaches at once: the LogicBlox scheduler at its worst.

    Each reads a collector of its own, so that its interval list is not empty: the first look compares each of n nodes
    with n others. LevelBased has them in one step, and so has Hybrid, which is more than 100 times faster (Section
    VI)."""
    if tasks < 1:
        raise UsageError("there must be a task")
    edges = [(node, tasks + node) for node in range(tasks)]
    kinds = [False] * tasks + [True] * tasks
    return Trace.of(Graph.of(2 * tasks, edges), kinds, kinds, kinds, range(tasks, 2 * tasks), [], unit=1e-6)
