"""The end is told when all is done: never before, and always. On simulated peers, over many orders of events."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from emberlog.workers.alone import Alone, run_alone
from emberlog.workers.messages import Answer, End, Facts, Poll, Report
from emberlog.workers.part import Work
from emberlog.workers.simulated import Costs, Simulation
from emberlog.workers.termination import Coordinator
from emberlog.workers.threads import run_threads, thread_peers
from emberlog.workers.worker import Worker
from workers.tokens import Token, TokenPart, Tokens, family

SPELLINGS = ("bsp", "ssp:1", "ssp:3:2", "ssp:0:3", "async", "dws", "aap", "adaptive", "adaptive:tau=0.1", "auto")


def seeded(seed: int) -> tuple[list[TokenPart], list[Token], Costs, str]:
    random = Random(seed)
    size = random.randint(1, 8)
    parts = [TokenPart(rank, size) for rank in range(size)]
    first = [(random.randint(0, 6), number) for number in range(random.randint(0, 6))]
    for token in first:
        parts[random.randrange(size)].put(Tokens((token,)))
    latency, iteration = 10.0 ** random.randint(-6, -2), 10.0 ** random.randint(-6, -2)
    costs = Costs(iteration, latency=latency, jitter=random.choice((0.0, 1.0, 50.0)), seed=seed)
    return parts, first, costs, random.choice(SPELLINGS)


def check(seed: int) -> None:
    """The end comes once every token was taken up, with nothing on its way, and idle workers are quiet."""
    parts, first, costs, mode = seeded(seed)

    def quiet(simulation: Simulation) -> None:
        for worker in simulation.workers:
            if worker.ended:
                assert all(not part.waiting and not part.buffers for part in parts), (seed, "early")

    simulation = Simulation(parts, mode, costs, look=quiet)
    ran = simulation.run()
    assert sum((Counter(part.taken) for part in parts), Counter()) == family(first, len(parts)), seed
    assert sum(w.sent for w in simulation.workers) == sum(w.consumed for w in simulation.workers), seed
    left = [message for arriving in simulation.network.arriving for _, _, message in arriving]
    assert not any(isinstance(message.body, Facts) for message in left), seed
    assert ran.seconds >= 0


def test_the_end_is_never_early_and_always_told() -> None:
    for seed in range(400):
        check(seed)


@pytest.mark.slow
def test_the_end_over_ten_thousand_seeds() -> None:
    for seed in range(400, 10_400):
        check(seed)


@pytest.mark.parametrize("mode", ["ssp:2", "async", "dws", "adaptive"])
def test_finished_workers_wake_nobody(mode: str) -> None:
    """With one worker at work and the others idle, these send a report, a clock and answers, however long it takes."""
    long, short = TokenPart(0, 4), TokenPart(0, 4)
    for part, generations in ((long, 3), (short, 3)):
        part.size = 1  # its tokens beget tokens here only
        part.put(Tokens(tuple((generations, number) for number in range(50 if part is long else 1))))

    def controls(first: TokenPart) -> list[int]:
        parts = [first, *(TokenPart(rank, 4) for rank in (1, 2, 3))]
        return [lane.controls for lane in Simulation(parts, mode).run().lanes[1:]]

    assert controls(long) == controls(short)
    assert max(controls(long)) <= 2 + 3  # a report, an answer, and under ssp a clock to each peer


def test_equal_counts_are_no_end_while_a_message_came_after_a_report() -> None:
    """Worker 1 reports, then consumes what worker 2 sent before: sums agree by chance, and the poll tells."""
    coordinator = Coordinator(3, stepped=False)
    assert coordinator.report(0, 0, Report(0, 1)) == []
    assert coordinator.report(1, 0, Report(1, 0)) == []
    assert coordinator.report(2, 0, Report(1, 1)) == [Poll(1)]
    assert coordinator.answer(0, Answer(1, 0, 1, idle=True)) == []
    assert coordinator.answer(1, Answer(1, 2, 1, idle=True)) == []
    # Three were sent and two reported as consumed: not the end. The answers are reports, so there is another wave.
    assert coordinator.answer(2, Answer(1, 1, 1, idle=True)) == [Poll(2)]
    for sender, counts in enumerate(((0, 1), (2, 1))):
        assert coordinator.answer(sender, Answer(2, *counts, idle=True)) == []
    assert coordinator.answer(2, Answer(2, 1, 1, idle=True)) == [End()]


@pytest.mark.parametrize("mode", SPELLINGS)
def test_threads_and_a_single_worker_end_too(mode: str) -> None:
    first = [(6, number) for number in range(8)]
    parts = [TokenPart(rank, 4) for rank in range(4)]
    parts[0].put(Tokens(tuple(first)))
    peers = thread_peers(4)
    run_threads([Worker(part, own, mode) for part, own in zip(parts, peers, strict=True)], peers)
    assert sum((Counter(part.taken) for part in parts), Counter()) == family(first, 4)

    alone = TokenPart(0, 1)
    alone.put(Tokens(tuple(first)))
    run_alone(Worker(alone, Alone(), mode))
    assert Counter(alone.taken) == family(first, 1)


def test_a_worker_that_fails_ends_the_others() -> None:
    class Broken(TokenPart):
        def take(self, least: float = 0.0) -> Work:
            raise ValueError("broken")

    parts = [TokenPart(0, 3), TokenPart(1, 3), Broken(2, 3)]
    parts[2].put(Tokens(((1, 1),)))
    peers = thread_peers(3)
    with pytest.raises(ValueError, match="broken"):
        run_threads([Worker(part, own, "async") for part, own in zip(parts, peers, strict=True)], peers)
