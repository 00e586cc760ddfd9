"""The exchange between threads of one process: arrays change hands, nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition
from typing import TypeAlias

from emberlog.kernels.cluster.exchange import Array, PeerLost, Received, Summary, check_outgoing, plain, volume

_Sent: TypeAlias = tuple[Sequence[Sequence[Array]], Summary]
_NOTHING: _Sent = ((), ())


class _Table:
    """What the threads of a run share. Two boards in turns: one is read while the other is filled."""

    def __init__(self, size: int) -> None:
        self.boards: tuple[list[_Sent], list[_Sent]] = ([_NOTHING] * size, [_NOTHING] * size)
        self._changed = Condition()
        self._arrived = [0] * size  # by worker: the last step that it came to
        self._ended: set[int] = set()
        self._reason: str | None = None

    def meet(self, rank: int, step: int) -> None:
        """Waits until everybody has come to the step; raises when somebody never will."""
        with self._changed:
            self._arrived[rank] = step
            self._changed.notify_all()
            while min(self._arrived) < step:
                early = next((w for w in self._ended if self._arrived[w] < step), None)
                if self._reason is not None:
                    raise PeerLost(self._reason)
                if early is not None:
                    raise PeerLost(f"worker {early} ended before the others")
                self._changed.wait()

    def end(self, rank: int, reason: str | None) -> None:
        with self._changed:
            self._ended.add(rank)
            self._reason = self._reason or reason
            self._changed.notify_all()


class ThreadExchange:
    """One thread's end. Made by `thread_exchanges`."""

    def __init__(self, rank: int, size: int, table: _Table) -> None:
        self.rank = rank
        self.size = size
        self.bytes_sent = 0
        self._table = table
        self._step = 0

    def swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary = ()) -> Received:
        check_outgoing(outgoing, self.size)
        self._step += 1
        board, before = self._table.boards[self._step % 2], self._table.boards[1 - self._step % 2]
        board[self.rank] = (outgoing, plain(summary))
        self.bytes_sent += volume(outgoing, self.rank)
        self._table.meet(self.rank, self._step)
        # Everybody is here, so nobody reads the board of the step before any more, and nobody fills this one before
        # everybody has come to the next step.
        before[self.rank] = _NOTHING
        return [list(arrays[self.rank]) for arrays, _ in board], [told for _, told in board]

    def abort(self, reason: str) -> None:
        self._table.end(self.rank, f"worker {self.rank} failed: {reason}")

    def close(self) -> None:
        self._table.end(self.rank, None)


def thread_exchanges(size: int) -> list[ThreadExchange]:
    """The ends of one exchange, one for each of `size` threads."""
    table = _Table(size)
    return [ThreadExchange(rank, size, table) for rank in range(size)]
