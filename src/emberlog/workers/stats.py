"""What each worker did: seconds of work and of waiting, iterations, messages, bytes, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from emberlog.workers.part import Parcel, Work

MOST_SPANS = 20_000  # of a lane; past that only totals grow
HEADINGS = ("worker", "compute", "wait", "iterations", "updates", "messages", "control", "facts sent", "bytes")


@dataclass(frozen=True, slots=True)
class Span:
    """What a worker did from one moment to another."""

    start: float
    end: float
    what: Literal["compute", "wait"]


@dataclass
class Lane:
    """One worker. `updates` are batches after which facts were sent: a round of synchronisation is over when every
    worker has sent one (SSP, Theorem 2)."""

    rank: int
    compute: float = 0.0
    wait: float = 0.0
    iterations: int = 0
    derivations: int = 0
    updates: int = 0
    messages: int = 0
    controls: int = 0
    facts: int = 0
    bytes: int = 0
    checkpoints: int = 0
    saving: float = 0.0  # seconds in which checkpoints were written
    spans: list[Span] = field(default_factory=list)
    figures: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)

    def iterated(self, start: float, end: float, work: Work) -> None:
        self.iterations += 1
        self.derivations += work.derivations
        self.compute += end - start
        self._span(start, end, "compute")

    def waited(self, start: float, end: float) -> None:
        self.wait += end - start
        self._span(start, end, "wait")

    def saved(self, start: float, end: float) -> None:
        self.checkpoints += 1
        self.saving += end - start

    def send(self, parcel: Parcel) -> None:
        self.messages += 1
        self.facts += parcel.facts
        self.bytes += parcel.bytes

    def mark(self, now: float, figures: Mapping[str, float]) -> None:
        """Notes what the mode goes by, where it changed."""
        if figures and len(self.figures) < MOST_SPANS and (not self.figures or self.figures[-1][1] != figures):
            self.figures.append((now, figures))

    def _span(self, start: float, end: float, what: Literal["compute", "wait"]) -> None:
        if end > start and len(self.spans) < MOST_SPANS:
            self.spans.append(Span(start, end, what))

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Lane:
        """A lane from the fields that `dataclasses.asdict` gives, after they have travelled as JSON."""
        spans = [Span(**span) for span in fields["spans"]]
        return Lane(**{**fields, "spans": spans, "figures": [(now, figures) for now, figures in fields["figures"]]})

    def cells(self) -> tuple[str, ...]:
        counts = (self.iterations, self.updates, self.messages, self.controls, self.facts, self.bytes)
        return (str(self.rank), f"{self.compute:.4f}", f"{self.wait:.4f}", *(f"{count:,}" for count in counts))


@dataclass(frozen=True)
class Coordinated:
    """What ran: the mode, why, and the lane of every worker. Prints as one line; `table` has a row for each worker."""

    mode: str
    lanes: Sequence[Lane]
    seconds: float
    why: str = ""

    @property
    def compute(self) -> float:
        """Average compute time of a worker, as in SSP's Tables 1 and 2."""
        return sum(lane.compute for lane in self.lanes) / len(self.lanes)

    @property
    def wait(self) -> float:
        """Average waiting time of a worker."""
        return sum(lane.wait for lane in self.lanes) / len(self.lanes)

    @property
    def rounds(self) -> int:
        """Rounds of synchronisation: the fewest updates that any worker sent."""
        return min(lane.updates for lane in self.lanes)

    def to_svg(self) -> str:
        """A picture: a lane for each worker."""
        from emberlog.workers.timeline import timeline

        return timeline(self)

    def table(self) -> list[tuple[str, ...]]:
        """A row for each worker, under `HEADINGS`."""
        return [HEADINGS, *(lane.cells() for lane in self.lanes)]

    def __str__(self) -> str:
        told = (
            f"{self.mode} on {len(self.lanes)} workers: {self.compute:.3f} s of work and {self.wait:.3f} s of waiting "
            f"each, {sum(lane.messages for lane in self.lanes):,} messages, "
            f"{sum(lane.bytes for lane in self.lanes):,} bytes"
        )
        if any(lane.checkpoints for lane in self.lanes):
            saving = max(lane.saving for lane in self.lanes)
            told += f", {max(lane.checkpoints for lane in self.lanes)} checkpoints in {saving:.3f} s"
        return f"{told} ({self.why})" if self.why else told
