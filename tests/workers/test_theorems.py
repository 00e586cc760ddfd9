"""What the papers say of staleness and of rounds, held against simulated runs; with counter-examples to it.

A round of synchronisation is over when every worker has sent an update ("Coordination, read closely").
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from emberlog.workers.messages import Facts
from emberlog.workers.simulated import Costs, Simulation
from emberlog.workers.worker import Worker
from workers.programs import PROGRAMS, Inputs, Row, graph, inputs, state

State = dict[str, dict[Row, Any]]
MONOTONE = ("non-linear", "all pairs", "components", "linear", "shortest")
AT_ONCE = Costs(latency=0.0, message=0.0, bandwidth=1e18)  # updates are delivered when they are sent


def on_their_way(simulation: Simulation, to: int) -> bool:
    arriving = [message for _, _, message in simulation.network.arriving[to]]
    return any(isinstance(message.body, Facts) for message in (*arriving, *simulation.workers[to]._early))


def states_of_rounds(found: Inputs, size: int) -> dict[int, State]:
    """The state after each round of `bsp`: all stand at the barrier, and nothing is on its way."""
    states: dict[int, State] = {}

    def look(simulation: Simulation) -> None:
        workers = simulation.workers
        if all(worker._at_barrier for worker in workers) and len({worker.epoch for worker in workers}) == 1:
            if not any(on_their_way(simulation, rank) for rank in range(size)):
                states.setdefault(workers[0].epoch + 1, state(simulation.parts))  # type: ignore[arg-type]

    found.simulation("bsp", size, Costs(), look=look).run()
    return states


def covers(found: State, other: State) -> bool:
    """Does each fact of the other state, or a smaller value of its key, stand in this one?"""
    return all(
        key in found[name] and (value is None or found[name][key] <= value)
        for name, rows in other.items()
        for key, value in rows.items()
    )


def delivered(simulation: Simulation, batch: int) -> int | None:
    """The number r such that the r-th update of every worker that is at work was delivered everywhere; None if none
    is at work."""

    def is_done(worker: Worker) -> bool:
        return worker._finished and not worker.part.waiting and not on_their_way(simulation, worker.peers.rank)

    def seen(worker: Worker) -> int:
        others = [other for other in simulation.workers if other is not worker]
        return min(worker.clock, *(other.clocks.get(worker.peers.rank, 0) for other in others))

    clocks = [seen(worker) for worker in simulation.workers if not is_done(worker)]
    return min(clocks) // batch if clocks else None


def uncovered(found: Inputs, size: int, mode: str, costs: Costs, batch: int) -> list[int]:
    """The rounds r of which all updates were delivered in a state that does not cover that of `bsp` after r rounds."""
    states = states_of_rounds(found, size)
    bad: list[int] = []

    def look(simulation: Simulation) -> None:
        reached = delivered(simulation, batch)
        number = max(states) if reached is None else min(reached, max(states))
        if number and not covers(state(simulation.parts), states[number]):  # type: ignore[arg-type]
            bad.append(number)

    found.simulation(mode, size, costs, look=look).run()
    return bad


def rounds(found: Inputs, size: int, costs: Costs) -> int:
    simulation = found.simulation("bsp", size, costs)
    simulation.run()
    return simulation.workers[0].epoch + 1


@pytest.mark.parametrize("name", MONOTONE)
def test_theorem_2_and_lemma_3_hold_for_condensed_rounds(name: str) -> None:
    """With S = 0 and T iterations a message, delivered at once: no more rounds than BSP, and states that cover its."""
    random = Random(name)
    for _ in range(4):
        found, size, batch = inputs(PROGRAMS[name], graph(random, nodes=8)), random.randint(2, 4), random.randint(2, 4)
        ran = found.simulation(f"ssp:0:{batch}", size, AT_ONCE).run()
        assert ran.rounds <= rounds(found, size, AT_ONCE)
        assert uncovered(found, size, f"ssp:0:{batch}", AT_ONCE, batch) == []


def test_lemma_3_needs_updates_that_rest_on_the_others() -> None:
    """With S > 0 a worker runs ahead on its own facts: its r-th update may rest on none of the others', and the state
    in which all r-th updates were delivered need not cover BSP's after r rounds. The smallest case that was found."""
    found = inputs(PROGRAMS["all pairs"], [(0, 0, 8), (0, 1, 6), (1, 0, 5)])
    assert 2 in uncovered(found, 3, "ssp:2:1", Costs(iteration=1e-4, latency=1e-5), batch=1)


def test_theorem_2_counts_updates_that_others_have_not_seen() -> None:
    """With updates on their way, workers go on sending meanwhile: every one has sent more than BSP has rounds, to the
    same fixpoint. The smallest case that was found."""
    found = inputs(PROGRAMS["all pairs"], [(0, 1, 5), (0, 2, 3), (2, 0, 7)])
    costs = Costs(iteration=1e-4, latency=1e-5)
    simulation = found.simulation("ssp:1", 2, costs)
    assert simulation.run().rounds > rounds(found, 2, costs)
    assert covers(state(simulation.parts), states_of_rounds(found, 2)[rounds(found, 2, costs)])  # type: ignore[arg-type]


def iterations_of_slowest(found: Inputs, size: int, slow: int, costs: Costs) -> tuple[int, int]:
    """The local iterations of a worker that is twice as slow as the others: under DWS, and in rounds."""
    dws, bsp = (found.simulation(mode, size, costs, slowed={slow: 2.0}).run() for mode in ("dws", "bsp"))
    return dws.lanes[slow].iterations, bsp.lanes[slow].iterations


def test_the_slowest_worker_makes_no_more_rounds_under_dws_mostly() -> None:
    """DCDatalog 4.2 argues so informally. It holds for most random graphs where iterations are long."""
    random, kept = Random(0), 0
    for _ in range(10):
        found, size = inputs(PROGRAMS["components"], graph(random, nodes=12)), random.randint(2, 4)
        dws, bsp = iterations_of_slowest(found, size, random.randrange(size), Costs(iteration=1e-3, latency=1e-5))
        kept += dws <= bsp
    assert kept >= 8


def test_the_slowest_worker_may_make_more_rounds_under_dws() -> None:
    """Facts that arrive one by one are taken up one by one, where a round would have taken them up together. The
    smallest case that was found."""
    found = inputs(PROGRAMS["non-linear"], [(2, 3, 1), (3, 0, 1), (3, 2, 1)])
    assert iterations_of_slowest(found, 2, 0, Costs(iteration=1e-5, latency=1e-3)) == (4, 3)
