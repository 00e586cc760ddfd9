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


@dataclass(frozen=True, slots=True)
class Halt:
    """From the coordinator: a checkpoint is due. Merge what comes, take up nothing and send no facts."""

    checkpoint: int


@dataclass(frozen=True, slots=True)
class Halted:
    """To the coordinator: this worker has halted, with these counts. Told again when it has consumed more. One that is
    idle has nothing that waits or is held."""

    checkpoint: int
    sent: int
    consumed: int
    idle: bool


@dataclass(frozen=True, slots=True)
class Save:
    """From the coordinator: nothing is on its way, so every worker writes its part down."""

    checkpoint: int


@dataclass(frozen=True, slots=True)
class Saved:
    """To the coordinator: what was written, and the derivations behind it; `error` says why it could not be."""

    checkpoint: int
    bytes: int = 0
    crc32: int = 0
    derivations: int = 0
    error: str = ""


Body: TypeAlias = Facts | Tick | Report | Poll | Answer | Release | End | Halt | Halted | Save | Saved


@dataclass(frozen=True, slots=True)
class Message:
    """`clock` counts the sender's local iterations in its `epoch`."""

    sender: int
    epoch: int
    clock: int
    body: Body
