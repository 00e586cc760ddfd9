"""How a worker reaches the others, and what it says while it works or waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from emberlog.workers.messages import Message
from emberlog.workers.part import Work


class Peers(Protocol):
    """One worker's view of all of them."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def now(self) -> float:
        """Seconds, by a clock that only this worker need agree with."""

    def send(self, to: int, message: Message) -> None:
        """Hands a message over, also to oneself. Messages to one receiver arrive in the order of sending."""

    def receive(self) -> list[Message]:
        """What has arrived since the last call."""


@dataclass(frozen=True, slots=True)
class Spend:
    """The worker has done some work: whoever runs it may let the time pass that this takes."""

    work: Work


@dataclass(frozen=True, slots=True)
class Wait:
    """The worker waits for a message, until a time if one is given."""

    until: float | None = None


Pause: TypeAlias = Spend | Wait
