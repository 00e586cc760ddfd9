"""What a worker has: its share of the state, what waits there to be taken up, what is held back for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Work:
    """What was done at once: facts taken up, derivations made from them, facts of others merged."""

    taken: int = 0
    derivations: int = 0
    merged: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.taken + other.taken, self.derivations + other.derivations, self.merged + other.merged)


class Parcel(Protocol):
    """Facts on their way from one part to another. It belongs to its receiver once it was sent."""

    @property
    def facts(self) -> int: ...

    @property
    def bytes(self) -> int: ...


class Part(Protocol):
    """A worker's share of the state of a component."""

    @property
    def waiting(self) -> int:
        """How many facts were merged and not taken up yet."""

    @property
    def left(self) -> float:
        """How far this part is from the end, as rounds report it: the facts that wait, or the size of changes."""

    def put(self, parcel: Parcel) -> None:
        """Merges first facts of this share; what is new waits."""

    def take(self, least: float = 0.0) -> Work:
        """One local iteration: takes up what waits, keeps what follows for this part, buffers what others own. Changes
        of sums that are less than `least` go on gathering while anything else waits."""

    def held(self) -> Mapping[int, int]:
        """The facts in the buffer of each peer, as they were derived. Buffers exist from their first fact on."""

    def outbox(self, peer: int) -> Parcel:
        """Empties the buffer for a peer and condenses it: duplicates go, of extrema to one key the best stays, of sums
        the differences are added up."""

    def inbox(self, parcel: Parcel) -> None:
        """Merges what a peer has sent; what is new or better waits."""

    def snapshot(self) -> object:
        """A copy of the whole state, buffers included."""

    def restore(self, state: object) -> None:
        """Returns to a snapshot, which stays as it is."""
