"""When all is done: counts of what was sent and consumed, as in Mattern's four-counter method.

Every worker counts the facts that it sent (at the flush, after condensing) and those that it consumed (after they were
merged). A worker is *idle* when nothing waits in its part, nothing is held in its buffers and all that arrived is
merged; only a message of facts ends that. When it becomes idle it reports its counts to the coordinator.

Once every worker has reported, with as much consumed as sent, the coordinator polls all of them. Let t be the moment of
that poll, r1(i) what worker i had consumed when it reported, s2(i) what it has sent when it answers. Counts only grow
and no more is consumed than was sent, so that

    sum r1  <=  consumed at t  <=  sent at t  <=  sum s2.

If the two ends are equal, all of it is equal: at t nothing was on its way, and nobody had consumed anything since its
report. Each was idle then, and only consuming ends that: so all were idle at t, for ever. That is the end, and it is
never told early. It is always told: after the last message was consumed every worker becomes idle and reports counts
that it has not told before, the sums are equal, and the poll finds no change. A poll that fails has met a count that
grew, of which there are finitely many. Idle workers send nothing but answers, so a finished worker wakes nobody.

Under rounds a worker reports at the barrier. It sends nothing more before it is released, so that its first report of
an epoch has its final count of sent facts; it reports again when it has consumed more. Equal sums then say, without a
poll, that nothing is on its way: the epoch is *quiescent*. If nothing is left to do it is the end, else the next epoch
begins, perhaps in another mode. What is left is the number of facts that wait; an iteration that replaces its state
says by how much each part moved, and `settled` whether that is little enough.

Sums are flushed whole before a worker is idle: a difference that is held back counts as held, however small it is
(PowerLog 5.4 compares global values while differences are held or in flight, which can be early; "Coordination, read
closely" asks to count them in). DCDatalog 6.1 keeps one global counter; here each worker has its own.

A checkpoint (`checkpoints`) delays all this and changes none of it: no poll is under way while workers are halted, and
the epoch that follows begins without reports. Halted workers send no facts, so that equal counts say, as at a barrier,
that nothing is on its way; if all of them are idle then, it is the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf

from emberlog.workers.messages import Answer, Body, End, Halt, Halted, Poll, Release, Report, Save, Saved

NEVER = inf

# What to do at a quiescent epoch: the reports of all workers lead to the next mode, or None to stay.
Choose = Callable[[int, Mapping[int, Report]], str | None]
# True if so little is left to do, part by part, that no other round is needed.
Settled = Callable[[Collection[float]], bool]
Publish = Callable[[int, Mapping[int, Saved]], None]


def nothing_left(lefts: Collection[float]) -> bool:
    return not any(lefts)


class Coordinator:
    """Hears reports and answers; each call returns what is to be told to all workers. `every` so many seconds it asks
    for a checkpoint, numbered from `first` on, and hands what was written to `publish`."""

    def __init__(
        self,
        size: int,
        stepped: bool,
        choose: Choose | None = None,
        every: float = NEVER,
        first: int = 0,
        publish: Publish = lambda _number, _saved: None,
        settled: Settled = nothing_left,
    ) -> None:
        self.size = size
        self.stepped = stepped
        self.epoch = 0
        self.waves = 0
        self._choose = choose
        self._settled = settled
        self._reports: dict[int, Report] = {}
        self._answers: dict[int, Answer] | None = None  # of the poll that goes on
        self._consumed = 0  # by all, as reported before that poll
        self.due = every  # when the next checkpoint is
        self._every = every
        self._checkpoint = first
        self._publish = publish
        self._halted: dict[int, Halted] | None = None  # while all are to halt
        self._saved: dict[int, Saved] | None = None  # while all write
        self._over = False

    def report(self, sender: int, epoch: int, report: Report, now: float = 0.0) -> list[Body]:
        if epoch == self.epoch:
            self._reports[sender] = report
        return self._next(now)

    def answer(self, sender: int, answer: Answer, now: float = 0.0) -> list[Body]:
        assert self._answers is not None and answer.wave == self.waves
        self._answers[sender] = answer
        if answer.idle:
            self._reports[sender] = replace(self._reports[sender], sent=answer.sent, consumed=answer.consumed)
        else:
            self._reports.pop(sender, None)
        if len(self._answers) < self.size:
            return []
        sent = sum(one.sent for one in self._answers.values())
        self._answers = None
        return self._end() if sent == self._consumed else self._next(now)

    def look(self, now: float) -> list[Body]:
        """Halts all workers when a checkpoint is due, but for rounds: they halt by themselves."""
        if now < self.due or self.stepped or self._over or self._is_busy:
            return []
        self._halted = {}
        return [Halt(self._checkpoint)]

    def halted(self, sender: int, halted: Halted) -> list[Body]:
        if self._halted is None:
            return []
        self._halted[sender] = halted
        told = self._halted.values()
        if len(told) < self.size or sum(one.sent for one in told) != sum(one.consumed for one in told):
            return []
        self._halted = None
        return self._end() if all(one.idle for one in told) else self._save()

    def saved(self, sender: int, saved: Saved, now: float) -> list[Body]:
        assert self._saved is not None
        self._saved[sender] = saved
        if len(self._saved) < self.size:
            return []
        self._publish(self._checkpoint, self._saved)
        self._checkpoint += 1
        self._saved = None
        self.due = now + self._every
        return self._release()

    @property
    def _is_busy(self) -> bool:
        """True while a poll or a checkpoint goes on."""
        return self._answers is not None or self._halted is not None or self._saved is not None

    def _next(self, now: float) -> list[Body]:
        reports = self._reports.values()
        if self._is_busy or len(reports) < self.size:
            return []
        if sum(one.sent for one in reports) != sum(one.consumed for one in reports):
            return []
        return self._quiescent(now) if self.stepped else self._poll()

    def _save(self) -> list[Body]:
        self._saved = {}
        return [Save(self._checkpoint)]

    def _poll(self) -> list[Body]:
        self.waves += 1
        self._answers = {}
        self._consumed = sum(one.consumed for one in self._reports.values())
        return [Poll(self.waves)]

    def _quiescent(self, now: float) -> list[Body]:
        if self._settled([one.left for one in self._reports.values()]):
            return self._end()
        return self._save() if now >= self.due else self._release()

    def _end(self) -> list[Body]:
        self._over = True
        return [End()]

    def _release(self) -> list[Body]:
        self.epoch += 1
        mode = self._choose(self.epoch, self._reports) if self._choose is not None and self.stepped else None
        if mode is not None:
            self.stepped = False
        self._reports.clear()
        return [Release(self.epoch, mode)]
