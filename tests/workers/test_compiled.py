"""Parts that compiled loops evaluate give what parts over columns give, in every mode."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from emberlog.kernels.parts.parcels import Rows
from emberlog.workers.simulated import Costs, Simulation
from workers.programs import ACYCLIC, MODES, PROGRAMS, graph, inputs, state
from workers.test_iterations import KATZ, RANK, by_statements, run

TEXTS = {**PROGRAMS, **ACYCLIC}
# Each shape takes a second or more to compile.
FEW = ("same generation", "mutual", "all pairs", "count", "cost")


def compare(name: str, seed: int) -> None:
    random = Random(f"{name}/{seed}")
    found = inputs(TEXTS[name], graph(random, name in ACYCLIC))
    over_columns = found.simulation("bsp", 1, Costs())
    over_columns.run()
    right = state(over_columns.parts)  # type: ignore[arg-type]
    for number, mode in enumerate(MODES):
        costs = Costs(jitter=random.choice((0.0, 5.0)), seed=seed)
        compiled = Simulation(found.parts(number % 4 + 1, compiled=True), mode, costs)
        compiled.run()
        there = state(compiled.parts)  # type: ignore[arg-type]
        assert there.keys() == right.keys()
        assert all(there[table] == pytest.approx(rows) for table, rows in right.items()), (mode, number)


@pytest.mark.parametrize("name", FEW)
def test_loops_give_what_columns_give(name: str) -> None:
    compare(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_loops_give_what_columns_give_for_many_graphs(name: str) -> None:
    for seed in range(20):
        compare(name, seed)


@pytest.mark.parametrize("text", [RANK, KATZ])
def test_sums_of_iterations_hand_on_changes_in_loops(text: str) -> None:
    right, _ = by_statements(text, 1)
    for mode in ("bsp", "async", "adaptive:tau=0.1,beta=64,threshold=0.001"):
        found, stats = run(text, 1, 3, coordination=mode, storage="loops", simulate="jitter=2")
        assert found == pytest.approx(right, abs=2e-3)
        assert stats.how.startswith("3 workers by compiled loops")
        assert stats.residual < 1e-3


def test_a_part_holds_its_own_facts_alone_and_returns_to_a_snapshot() -> None:
    found = inputs(PROGRAMS["components"], [(a, (a * 7 + 1) % 60, 1) for a in range(60)])
    parts = found.parts(3, compiled=True)
    before = parts[1].snapshot()
    waited = parts[1].waiting
    parts[1].take()
    sent = {peer: parts[1].outbox(peer) for peer in parts[1].held()}
    assert sent.keys() <= {0, 2}
    parts[1].restore(before)
    assert parts[1].waiting == waited and not parts[1].held()
    parts[1].take()
    again = {peer: parts[1].outbox(peer) for peer in parts[1].held()}
    assert {peer: _plain(rows) for peer, rows in again.items()} == {peer: _plain(rows) for peer, rows in sent.items()}


def _plain(rows: Rows) -> dict[str, list[list[int]]]:
    return {name: [np.asarray(column).tolist() for column in columns] for name, columns in rows.tables.items()}
