"""How the workers of one run talk: rounds in which everybody sends arrays to everybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from emberlog.diagnostics import ExecutionError

Array: TypeAlias = np.ndarray[Any, Any]
Summary: TypeAlias = tuple[int | float | np.integer[Any] | np.floating[Any], ...]  # arrives as int and float
Received: TypeAlias = tuple[list[list[Array]], list[Summary]]


class PeerLost(ExecutionError):
    """Another worker of the run failed or is gone, so this one cannot go on."""


class PeerGone(PeerLost):
    """The process of another worker has died, or answers no more."""


class Exchange(Protocol):
    """One worker's end of the exchange. All workers call `swap` equally often."""

    rank: int
    size: int

    @property
    def bytes_sent(self) -> int:
        """Of arrays that went to other workers."""

    def swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary = ()) -> Received:
        """Sends `outgoing[w]` and the summary to each worker `w`; waits for what they all send here.

        Returns by worker the arrays that it sent and its summary. Arrays have one dimension. One that was handed over
        belongs to its receiver: write to it no more. Raises `PeerLost` when a worker is gone.
        """

    def abort(self, reason: str) -> None:
        """Tells the others that this worker gives up: their next `swap` raises."""

    def close(self) -> None:
        """Lets go of everything. What was sent still arrives."""


class Alone:
    """The exchange of a single worker."""

    rank = 0
    size = 1
    bytes_sent = 0

    def swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary = ()) -> Received:
        check_outgoing(outgoing, 1)
        return [list(outgoing[0])], [plain(summary)]

    def abort(self, reason: str) -> None:
        pass

    def close(self) -> None:
        pass


def check_outgoing(outgoing: Sequence[Sequence[Array]], size: int) -> None:
    if len(outgoing) != size:
        raise ValueError(f"{len(outgoing)} lists of arrays for {size} workers")


def plain(summary: Summary) -> Summary:
    """The summary as Python's own numbers."""
    return tuple(value.item() if isinstance(value, np.generic) else value for value in summary)


def volume(outgoing: Sequence[Sequence[Array]], rank: int) -> int:
    """The bytes that leave the worker `rank`."""
    return sum(array.nbytes for peer, arrays in enumerate(outgoing) if peer != rank for array in arrays)
