"""The loop of a worker, written once for all kinds of peers: collect, decide, iterate, send.

It is a generator. It yields `Spend` after work and `Wait` when it has nothing to do; whoever runs it lets time pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from emberlog.workers.checkpoints import Keeper
from emberlog.workers.messages import (
    COORDINATOR,
    Answer,
    Body,
    End,
    Facts,
    Halt,
    Halted,
    Message,
    Poll,
    Release,
    Report,
    Save,
    Saved,
    Tick,
)
from emberlog.workers.modes import mode_of
from emberlog.workers.modes.base import Go, Hold, View
from emberlog.workers.part import Part, Work
from emberlog.workers.peers import Pause, Peers, Spend, Wait
from emberlog.workers.stats import Lane
from emberlog.workers.termination import NEVER, Choose, Coordinator, Settled, nothing_left


class Worker:
    """One worker. That of rank `COORDINATOR` also tells the end, by `settled` where it goes by rounds, and by `choose`
    the mode at quiescent epochs. With a `keeper` it makes checkpoints."""

    def __init__(
        self,
        part: Part,
        peers: Peers,
        mode: str,
        choose: Choose | None = None,
        keeper: Keeper | None = None,
        settled: Settled = nothing_left,
    ) -> None:
        self.part = part
        self.peers = peers
        self.mode = mode_of(mode)
        self.mode_name = mode
        self.keeper = keeper
        self.lane = Lane(peers.rank)
        self.clock = 0  # local iterations in this epoch
        self.epoch = 0
        self.clocks: dict[int, int] = {}  # of peers that are not finished, as far as messages tell
        self.sent = 0
        self.consumed = 0
        self.ended = False
        self._others = [rank for rank in range(peers.size) if rank != peers.rank]
        self._coordinator = self._coordinating(choose, settled) if peers.rank == COORDINATOR else None
        self._at_barrier = False
        self._halted: int | None = None  # the checkpoint for which it halts
        self._moved = False  # in this epoch it has iterated, or sent what it held
        self._finished = False  # the peers were told that nothing waits here
        self._told: tuple[int, int, int] | None = None  # the counts of the last report
        self._early: list[Message] = []  # of an epoch that has not begun here
        self._merged = 0  # facts, since work was last paid for
        self._since: float | None = None  # when the worker began to wait for its next iteration
        self._begin_epoch()

    def run(self) -> Iterator[Pause]:
        """Works until the coordinator tells the end. Facts for others may be there from the start."""
        self._flush()
        while True:
            self._collect()
            if self.ended:
                return
            yield from self._pay(Work())
            if self._coordinator is not None:
                self._tell(self._coordinator.look(self.peers.now()))
            match self._decision():
                case Go(iterations):
                    yield from self._iterate(iterations)
                case Hold(until):
                    begun = self.peers.now()
                    yield Wait(self._until_checkpoint(until, begun))
                    self.lane.waited(begun, self.peers.now())

    def _coordinating(self, choose: Choose | None, settled: Settled) -> Coordinator:
        size, stepped, keeper = self.peers.size, self.mode.stepped, self.keeper
        if keeper is None:
            return Coordinator(size, stepped, choose, settled=settled)

        def publish(checkpoint: int, saved: Mapping[int, Saved]) -> None:
            keeper.publish(checkpoint, self.mode_name, saved)

        return Coordinator(size, stepped, choose, keeper.seconds, keeper.first, publish, settled)

    def _until_checkpoint(self, until: float | None, now: float) -> float | None:
        """Until when to wait, so that the coordinator asks for the next checkpoint in time."""
        due = NEVER if self._coordinator is None else self._coordinator.due
        return until if due == NEVER or due <= now else due if until is None else min(until, due)

    # --- what to do --------------------------------------------------------------------------------------------------

    def _decision(self) -> Go | Hold:
        if self._halted is not None:
            return self._halt(self._halted)
        if self._at_barrier:
            return self._report()
        if self.part.waiting:
            now = self.peers.now()
            self._since = now if self._since is None else self._since
            decision = self.mode.decide(View(now, self.part.waiting, self.clock, self.clocks, self._since))
            self.lane.mark(now, self.mode.figures())
            return decision
        if self.mode.stepped:
            self._reach_barrier()
            return self._report()
        due = self._flush()
        if due is not None:
            return Hold(due)
        if self.mode.tells_clock and not self._finished:
            self._finished = True
            self._broadcast(Tick(finished=True))
        return self._report()

    def _report(self) -> Hold:
        """Tells the coordinator that this worker does nothing more by itself, unless it knows."""
        told = (self.sent, self.consumed, self.epoch)
        if told != self._told:
            self._told = told
            part, lane = self.part, self.lane
            report = Report(self.sent, self.consumed, part.waiting, lane.compute, lane.wait, part.left)
            self._send(COORDINATOR, report)
        return Hold()

    def _halt(self, checkpoint: int) -> Go | Hold:
        """Tells the coordinator what was sent and consumed so far, unless it knows. Something is done in every epoch
        before that: checkpoints without a pause between them do not keep a run from its end."""
        if not self._moved:
            self._moved = True
            if self.part.waiting:
                return Go()
            self._flush(everything=True)
        told = (self.sent, self.consumed, self.epoch)
        if told != self._told:
            self._told = told
            self._send(COORDINATOR, Halted(checkpoint, self.sent, self.consumed, self._is_idle))
        return Hold()

    @property
    def _is_idle(self) -> bool:
        return not self.part.waiting and not any(self.part.held().values())

    # --- work --------------------------------------------------------------------------------------------------------

    def _iterate(self, iterations: int | None) -> Iterator[Pause]:
        """So many local iterations, or as long as facts wait; then sends what is due."""
        done = 0
        self._finished, self._since, self._moved = False, None, True
        while self.part.waiting and (iterations is None or done < iterations):
            begun = self.peers.now()
            work = self.part.take(self.mode.threshold)
            yield from self._pay(work)
            done += 1
            self.clock += 1
            self.lane.iterated(begun, self.peers.now(), work)
            self.mode.worked(work.taken, self.peers.now() - begun, self.peers.now())
        sent = self.lane.messages
        self._flush(tick=self.mode.tells_clock)
        self.lane.updates += self.lane.messages > sent
        if self.mode.stepped:
            self._reach_barrier()

    def _reach_barrier(self) -> None:
        """The round is done here: what others found in it may be merged."""
        self._at_barrier = True
        self._accept_early()

    def _pay(self, work: Work) -> Iterator[Pause]:
        """Lets the time pass that work takes, with what was merged since the last time."""
        if work.taken or self._merged:
            merged, self._merged = self._merged, 0
            yield Spend(work + Work(merged=merged))

    # --- messages ----------------------------------------------------------------------------------------------------

    def _flush(self, tick: bool = False, everything: bool = False) -> float | None:
        """Sends the buffers that are due, or `everything`, and with `tick` the clock to the other peers. When the next
        one is due."""
        now, later = self.peers.now(), list[float]()
        served = set()
        for peer, facts in self.part.held().items():
            due = None if not facts else now if everything else self.mode.due(peer, facts, now)
            if due is not None and due <= now:
                parcel = self.part.outbox(peer)
                self.sent += parcel.facts
                self.lane.send(parcel)
                self.mode.flushed(peer, facts, now)
                self._send(peer, Facts(parcel))
                served.add(peer)
            elif due is not None:
                later.append(due)
        if tick:
            self._broadcast(Tick(), but=served)
        return min(later, default=None)

    def _broadcast(self, body: Body, but: frozenset[int] | set[int] = frozenset()) -> None:
        for peer in self._others:
            if peer not in but:
                self._send(peer, body)

    def _send(self, to: int, body: Body) -> None:
        self.lane.controls += not isinstance(body, Facts)
        self.peers.send(to, Message(self.peers.rank, self.epoch, self.clock, body))

    def _collect(self) -> None:
        for message in self.peers.receive():
            self._accept(message)

    def _accept(self, message: Message) -> None:
        """Hears a message. Facts and clocks of an epoch that has not begun here, or of a round that is not done here,
        stay aside until then, in their order."""
        ahead = message.epoch > self.epoch or (self.mode.stepped and not self._at_barrier)
        if ahead and isinstance(message.body, Facts | Tick):
            self._early.append(message)
        else:
            self._hear(message)

    def _accept_early(self) -> None:
        early, self._early = self._early, []
        for message in early:
            self._accept(message)

    def _hear(self, message: Message) -> None:
        match message.body:
            case Facts(parcel):
                self._merge(message, parcel.facts)
                self.part.inbox(parcel)
                self.consumed += parcel.facts
            case Tick(finished):
                self._note_clock(message, finished)
            case Poll(wave):
                self._told = (self.sent, self.consumed, self.epoch) if self._is_idle else None
                self._send(COORDINATOR, Answer(wave, self.sent, self.consumed, self._is_idle))
            case Report() | Answer() | Halted() | Saved():
                self._tell(self._coordinate(message))
            case Halt(checkpoint):
                self._halted, self._told = checkpoint, None
            case Save(checkpoint):
                self._save(checkpoint)
            case Release(epoch, mode):
                self.epoch = epoch
                if mode is not None:
                    self.mode, self.mode_name = mode_of(mode), mode
                self._begin_epoch()
                self._accept_early()
            case End():
                self.ended = True
            case _:
                assert_never(message.body)

    def _coordinate(self, message: Message) -> list[Body]:
        """What the coordinator has to say to what a worker tells it."""
        coordinator, now = self._coordinator, self.peers.now()
        assert coordinator is not None
        match message.body:
            case Report() as report:
                return coordinator.report(message.sender, message.epoch, report, now)
            case Answer() as answer:
                return coordinator.answer(message.sender, answer, now)
            case Halted() as halted:
                return coordinator.halted(message.sender, halted)
            case Saved() as saved:
                return coordinator.saved(message.sender, saved, now)
            case _:
                raise AssertionError("nothing that a coordinator hears")

    def _save(self, checkpoint: int) -> None:
        """Writes the part down."""
        assert self.keeper is not None
        begun = self.peers.now()
        saved = self.keeper.save(checkpoint, self.part)
        self.lane.saved(begun, self.peers.now())
        self._send(COORDINATOR, saved)

    def _merge(self, message: Message, facts: int) -> None:
        self._merged += facts
        self.mode.arrived(message.sender, facts, self.peers.now())
        self._note_clock(message, finished=False)
        if self._finished:
            # It did nothing while the others went on: it goes on where they are, and holds nobody up.
            self.clock = max(self.clock, message.clock)

    def _note_clock(self, message: Message, finished: bool) -> None:
        if message.epoch != self.epoch or message.sender == self.peers.rank:
            return
        if finished:
            self.clocks.pop(message.sender, None)
        else:
            self.clocks[message.sender] = message.clock

    def _tell(self, bodies: list[Body]) -> None:
        """What the coordinator has to say goes to all, itself included."""
        for body in bodies:
            for rank in range(self.peers.size):
                self._send(rank, body)

    def _begin_epoch(self) -> None:
        """Clocks restart."""
        self.clock = 0
        self.clocks = dict.fromkeys(self._others, 0) if self.mode.tells_clock else {}
        self._at_barrier, self._finished, self._since, self._told = False, False, None, None
        self._halted, self._moved = None, False
