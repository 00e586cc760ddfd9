"""The exchange between processes: rounds in which everybody sends to everybody, over the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq

from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import Array, Received, Summary, check_outgoing, plain
from emberlog.kernels.cluster.links import Links


class SocketExchange:
    """One worker's end, over links that are connected."""

    def __init__(self, links: Links) -> None:
        self.rank = links.rank
        self.size = links.size
        self._links = links
        self._step = 0

    @property
    def bytes_sent(self) -> int:
        return self._links.bytes_sent

    def swap(self, outgoing: Sequence[Sequence[Array]], summary: Summary = ()) -> Received:
        check_outgoing(outgoing, self.size)
        self._step += 1
        summary = plain(summary)
        under_way = {peer: self._send(peer, outgoing[peer], summary) for peer in self._links.others}
        arrays: list[list[Array]] = [[] for _ in range(self.size)]
        summaries: list[Summary] = [()] * self.size
        arrays[self.rank], summaries[self.rank] = list(outgoing[self.rank]), summary
        for peer, (head, received) in self._receive().items():
            arrays[peer], summaries[peer] = received, head.summary
            if head.step != self._step:
                raise self._links.failure(f"worker {peer} is at step {head.step}, worker {self.rank} at {self._step}")
        for peer, trackers in under_way.items():
            self._await_sent(peer, trackers)
        return arrays, summaries

    def _send(self, peer: int, arrays: Sequence[Array], summary: Summary) -> list[Any]:
        return self._links.send(peer, wire.head_of(self._step, summary, arrays).encode(), arrays)

    def _receive(self) -> dict[int, tuple[wire.Head, list[Array]]]:
        """Waits for one message of every peer; one may be a step ahead, so that no more is read."""
        found: dict[int, tuple[wire.Head, list[Array]]] = {}
        has_waited = False
        while True:
            for peer in self._links.others:
                if peer not in found:
                    message = self._links.receive(peer, lambda _, head: wire.decode_head(head))
                    if message is not None:
                        found[peer] = message
                    elif has_waited:
                        self._links.check(peer)
            if len(found) == self.size - 1:
                return found
            self._links.wait(1.0)
            has_waited = True

    def _await_sent(self, peer: int, trackers: list[Any]) -> None:
        for tracker in trackers:
            while not tracker.done:
                try:
                    tracker.wait(0.2)
                except zmq.NotDone:
                    self._links.check(peer)

    def abort(self, reason: str) -> None:
        self._links.abort(reason)

    def close(self) -> None:
        self._links.close()
