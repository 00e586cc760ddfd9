"""Every mode gives the same answer, on any number of workers and in any order of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import emberlog
from agreement import rows_by
from emberlog.diagnostics import UsageError
from emberlog.kernels.choices import Choices
from emberlog.kernels.parts.evaluate import _run
from emberlog.workers.simulated import Costs
from kernels.components import COMPONENTS
from strategies import Case, assert_agrees
from workers.programs import ACYCLIC, MODES, PROGRAMS, Inputs, Row, graph, inputs, state

TEXTS = {**PROGRAMS, **ACYCLIC}
State = dict[str, dict[Row, Any]]


def same(found: State, right: State) -> bool:
    """Equal, but for the rounding of sums."""
    return found.keys() == right.keys() and all(found[name] == pytest.approx(rows) for name, rows in right.items())


def costs(random: Random) -> Costs:
    latency, iteration = 10.0 ** random.randint(-6, -2), 10.0 ** random.randint(-6, -2)
    return Costs(iteration, latency=latency, jitter=random.choice((0.0, 2.0, 20.0)), seed=random.randrange(1 << 30))


def campaign(name: str, seed: int, runs: int) -> int:
    """So many simulated runs of a program on a random graph give what one worker gives."""
    random = Random(f"{name}/{seed}")
    found = inputs(TEXTS[name], graph(random, name in ACYCLIC))
    alone = found.simulation("bsp", 1, Costs())
    alone.run()
    right = state(alone.parts)  # type: ignore[arg-type]
    for _ in range(runs):
        mode, size = random.choice(MODES), random.randint(1, 8)
        simulation = found.simulation(mode, size, costs(random))
        simulation.run()
        assert same(state(simulation.parts), right), (name, seed, mode, size)  # type: ignore[arg-type]
    return runs


@pytest.mark.parametrize("name", TEXTS)
def test_modes_agree_on_simulated_peers(name: str) -> None:
    campaign(name, 0, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_modes_agree_on_simulated_peers_thousands_of_times(name: str) -> None:
    assert sum(campaign(name, seed, 20) for seed in range(1, 26)) == 500


def by_threads(found: Inputs, mode: str, size: int) -> State:
    parts = found.parts(size)
    _run(parts, mode, None, Choices(workers=size), lambda: None)
    return state(parts)


@pytest.mark.parametrize("name", TEXTS)
def test_modes_agree_on_threads(name: str) -> None:
    random = Random(name)
    found = inputs(TEXTS[name], graph(random, name in ACYCLIC))
    right = by_threads(found, "bsp", 1)
    for mode in MODES:
        assert same(by_threads(found, mode, random.randint(2, 6)), right), mode


@pytest.mark.parametrize("kind", COMPONENTS)
def test_random_components_give_the_answers_of_the_reference(kind: str) -> None:
    agree(kind, 6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMPONENTS)
def test_thousands_of_random_components_give_the_answers_of_the_reference(kind: str) -> None:
    agree(kind, 600)


def agree(kind: str, examples: int) -> None:
    """Random programs by workers on simulated peers against sets of Python; those that no worker takes are passed over,
    and are few."""
    ran = 0

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(COMPONENTS[kind], st.sampled_from(MODES), st.integers(1, 8), st.integers(0, 1 << 20))
    def agrees(case: Case, mode: str, workers: int, seed: int) -> None:
        nonlocal ran

        def run(case: Case) -> Mapping[str, Iterable[Row]]:
            nonlocal ran
            with emberlog.Engine(executor="local", workers=workers) as engine:
                rows = rows_by(engine, case, coordination=mode, simulate=f"jitter=5,seed={seed}")
                ran += 1
                return rows

        try:
            assert_agrees(case, run)
        except UsageError as error:
            event(f"not by workers: {error}")

    agrees()
    assert ran or kind == "any"
