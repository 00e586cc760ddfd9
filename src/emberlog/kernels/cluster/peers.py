"""The peers of a worker in another process: messages over the links between them.

Facts and control to one receiver go through one socket, so that they arrive in the order of sending. A message to
oneself stays here. When a peer is gone, whatever it had sent is read first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from emberlog.kernels.cluster import wire
from emberlog.kernels.cluster.exchange import Array
from emberlog.kernels.cluster.links import Links
from emberlog.workers.messages import Message

GOODBYE = b"g"  # the head of a worker's last message
LOOK = 1.0  # seconds after which a waiting worker looks whether its peers are still there


class Read(wire.Announces, Protocol):
    """A head that was read."""

    def message(self, arrays: Sequence[Array]) -> Message: ...


@dataclass(frozen=True)
class Goodbye:
    """The sender has heard of the end."""

    arrays: tuple[tuple[str, int], ...] = ()


class Codec(Protocol):
    """How messages become bytes."""

    def encode(self, message: Message) -> Iterator[tuple[bytes, list[Array]]]: ...

    def decode(self, sender: int, head: bytes) -> Read:
        """Raises `WireError` for what no worker of ours sends."""


class SocketPeers:
    """One process's end."""

    def __init__(self, links: Links, codec: Codec) -> None:
        self.rank = links.rank
        self.size = links.size
        self._links = links
        self._codec = codec
        self._started = monotonic()
        self._own: deque[Message] = deque()
        self._left: set[int] = set()  # peers that have said goodbye

    def now(self) -> float:
        return monotonic() - self._started

    def send(self, to: int, message: Message) -> None:
        if to == self.rank:
            self._own.append(message)
            return
        for head, arrays in self._codec.encode(message):
            self._links.send(to, head, arrays)

    def receive(self) -> list[Message]:
        """What has arrived. Raises `PeerLost` if there is nothing, and a peer is gone that may still be waited for."""
        found = list(self._own)
        self._own.clear()
        for peer in self._links.others:
            while (arrived := self._links.receive(peer, self._decode)) is not None:
                head, arrays = arrived
                if isinstance(head, Goodbye):
                    self._left.add(peer)
                else:
                    found.append(head.message(arrays))
        if not found:
            for peer in self._links.others:
                if peer not in self._left:
                    self._links.check(peer)
        return found

    def _decode(self, sender: int, head: bytes) -> Read | Goodbye:
        return Goodbye() if head == GOODBYE else self._codec.decode(sender, head)

    def wait(self, until: float | None) -> None:
        """Returns when a message has arrived, it is that time, or it is time to look after the peers."""
        if not self._own:
            self._links.wait(LOOK if until is None else min(until - self.now(), LOOK))

    def leave(self) -> None:
        """Says goodbye, and waits until all have done so: whoever closes its links earlier would seem to be lost."""
        for peer in self._links.others:
            self._links.send(peer, GOODBYE)
        self.receive()
        while len(self._left) < self.size - 1:
            self.wait(None)
            self.receive()
