"""What workers tell each other. Facts and control share one channel for each ordered pair, first in, first out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from emberlog.workers.part import Parcel

COORDINATOR = 0  # the rank of the worker that also tells the end


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the receiver owns."""

    parcel: Parcel


@dataclass(frozen=True, slots=True)
class Tick:
    """A clock alone. It wakes nobody; a sender that is `finished` blocks nobody until its next message."""

    finished: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """To the coordinator: this worker does nothing more by itself. Under rounds it stands at the barrier, with so many
    facts `waiting` and so much `left` to do; else none wait and none are held. Counts are of facts, since the
    beginning; seconds too."""

    sent: int
    consumed: int
    waiting: int = 0
    compute: float = 0.0
    idle: float = 0.0
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class Poll:
    """From the coordinator: what are your counts now?"""

    wave: int


@dataclass(frozen=True, slots=True)
class Answer:
    """To a poll."""

    wave: int
    sent: int
    consumed: int
    idle: bool


@dataclass(frozen=True, slots=True)
class Release:
    """From the coordinator at a quiescent epoch: the next one begins, in another mode if one is given."""

    epoch: int
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """From the coordinator: nothing waits, nothing is held, nothing is on its way."""


Body: TypeAlias = Facts | Tick | Report | Poll | Answer | Release | End


@dataclass(frozen=True, slots=True)
class Message:
    """`clock` counts the sender's local iterations in its `epoch`."""

    sender: int
    epoch: int
    clock: int
    body: Body
