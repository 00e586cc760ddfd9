"""Workers under a simulated clock: the same loop and modes, with costs for work and messages, and a seed.

Each worker has its own time. The one that is earliest goes on; so that whatever may still be sent to it arrives later.
Costs may be disturbed by a seeded factor, which is how tests meet many orders of events.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from random import Random
from typing import Any

from emberlog.diagnostics import InternalError, UsageError, did_you_mean
from emberlog.workers.checkpoints import Keeper
from emberlog.workers.messages import Facts, Message
from emberlog.workers.part import Part, Work
from emberlog.workers.peers import Pause, Spend, Wait
from emberlog.workers.stats import Coordinated
from emberlog.workers.straggle import Straggle, disturbances
from emberlog.workers.termination import Choose, Settled, nothing_left
from emberlog.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds: for an iteration, each derivation, each fact that is taken up, each that is merged; for a message to
    be made and to arrive, and bytes a second. `jitter` multiplies costs and delays by up to 1 + jitter, by the `seed`,
    which stragglers have, too."""

    iteration: float = 20e-6
    derivation: float = 50e-9
    taken: float = 50e-9
    merged: float = 50e-9
    message: float = 5e-6
    latency: float = 100e-6
    bandwidth: float = 1e9
    jitter: float = 0.0
    seed: int = 0

    @staticmethod
    def parse(text: str) -> Costs:
        """From `latency=0.001,seed=3`, or nothing for what is usual. Raises UsageError."""
        known = {entry.name: entry.type for entry in fields(Costs)}
        found: dict[str, Any] = {}
        for word in text.split(",") if text else ():
            name, _, value = word.partition("=")
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"simulate: there is no cost {name!r}", fix=hint or f"costs are {', '.join(known)}")
            try:
                found[name] = int(value) if name == "seed" else float(value)
            except ValueError:
                found[name] = -1.0
            if not 0 <= found[name] < 1e18 or (name == "bandwidth" and not found[name]):
                raise UsageError(f"simulate: {word!r} is not a number that {name} can be", fix="such as latency=0.001")
        return Costs(**found)

    def of(self, work: Work) -> float:
        fixed = self.iteration if work.taken else 0.0
        return fixed + self.derivation * work.derivations + self.taken * work.taken + self.merged * work.merged


class Network:
    """The messages that are on their way. Channels exist from their first message on."""

    def __init__(self, size: int, costs: Costs) -> None:
        self.size = size
        self.costs = costs
        self.random = Random(costs.seed)
        self.times = [0.0] * size  # of each worker
        self.arriving: list[list[tuple[float, int, Message]]] = [[] for _ in range(size)]
        self.wake: Callable[[int, float], None] = lambda rank, time: None
        self.facts = 0  # on their way
        self._last: dict[tuple[int, int], float] = {}
        self._number = 0

    def jittered(self, seconds: float) -> float:
        return seconds * (1 + self.costs.jitter * self.random.random()) if self.costs.jitter else seconds

    def send(self, sender: int, to: int, message: Message) -> None:
        delay = 0.0
        if to != sender:
            self.times[sender] += self.costs.message
            volume = message.body.parcel.bytes if isinstance(message.body, Facts) else 0
            delay = self.jittered(self.costs.latency + volume / self.costs.bandwidth)
        # First in, first out.
        arrival = max(self.times[sender] + delay, self._last.get((sender, to), 0.0))
        self._last[sender, to] = arrival
        self._number += 1
        heappush(self.arriving[to], (arrival, self._number, message))
        self.wake(to, arrival)


class SimulatedPeers:
    """One worker's end of a network."""

    def __init__(self, rank: int, network: Network) -> None:
        self.rank = rank
        self.size = network.size
        self._network = network

    def now(self) -> float:
        return self._network.times[self.rank]

    def send(self, to: int, message: Message) -> None:
        self._network.send(self.rank, to, message)

    def receive(self) -> list[Message]:
        arriving, now, arrived = self._network.arriving[self.rank], self.now(), []
        while arriving and arriving[0][0] <= now:
            arrived.append(heappop(arriving)[2])
        return arrived


@dataclass
class Simulation:
    """Workers over parts that share a network. `look` is called after every event, with the simulation."""

    parts: Sequence[Part]
    mode: str
    costs: Costs = field(default_factory=Costs)
    straggle: Straggle | None = None
    choose: Choose | None = None
    settled: Settled = nothing_left
    slowed: Mapping[int, float] = field(default_factory=dict)  # workers whose work takes so many times as long
    look: Callable[[Simulation], None] | None = None
    keepers: Sequence[Keeper] = ()  # for checkpoints: one for each worker, or none

    def __post_init__(self) -> None:
        size = len(self.parts)
        self.network = Network(size, self.costs)
        self.network.wake = self._schedule
        keepers: Sequence[Keeper | None] = self.keepers or [None] * size
        self.workers = [
            Worker(
                part,
                SimulatedPeers(rank, self.network),
                self.mode,
                self.choose if rank == 0 else None,
                keeper,
                self.settled,
            )
            for rank, (part, keeper) in enumerate(zip(self.parts, keepers, strict=True))
        ]
        self._disturbances = disturbances(self.straggle, self.costs.seed, size)
        self._events: list[tuple[float, int, int]] = []  # time, worker, version
        self._versions = [0] * size  # an event of an older version is void
        self._wakes: list[float | None] = [0.0] * size  # when a waiting worker goes on; None while it does not wait

    def run(self) -> Coordinated:
        """Runs until every worker has ended. Raises InternalError if all of them wait for ever."""
        running: list[Generator[Pause] | None] = [worker.run() for worker in self.workers]  # type: ignore[misc]
        for rank in range(len(running)):
            self._schedule(rank, 0.0)
        left = len(running)
        while left:
            if not self._events:
                waiting = [rank for rank, one in enumerate(running) if one is not None]
                raise InternalError(f"workers {waiting} wait for ever")
            time, rank, version = heappop(self._events)
            generator = running[rank]
            if version != self._versions[rank] or generator is None:
                continue
            self._versions[rank] += 1
            self._wakes[rank] = None
            self.network.times[rank] = max(time, self.network.times[rank])
            try:
                self._pause(rank, next(generator))
            except StopIteration:
                running[rank] = None
                left -= 1
            if self.look is not None:
                self.look(self)
        return Coordinated(self.mode, [worker.lane for worker in self.workers], max(self.network.times))

    def _pause(self, rank: int, pause: Pause) -> None:
        now = self.network.times[rank]
        match pause:
            case Spend(work):
                seconds = self.network.jittered(self.costs.of(work)) * self.slowed.get(rank, 1.0)
                if self._disturbances is not None:
                    seconds = self._disturbances[rank].stretched(now, seconds)
                self._push(rank, now + seconds)
            case Wait(until):
                self._wakes[rank] = float("inf")
                arriving = self.network.arriving[rank]
                if until is not None:
                    self._schedule(rank, until)
                if arriving:
                    self._schedule(rank, arriving[0][0])

    def _schedule(self, rank: int, time: float) -> None:
        """A waiting worker goes on at this time at the latest."""
        wake = self._wakes[rank]
        if wake is not None and (time < wake or not time):
            self._wakes[rank] = time
            self._push(rank, max(time, self.network.times[rank]))

    def _push(self, rank: int, time: float) -> None:
        self._versions[rank] += 1
        heappush(self._events, (time, rank, self._versions[rank]))
