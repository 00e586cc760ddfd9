"""Sums that gather against sums that hand on changes, and against the linear system that both solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emberlog

GATHERS, CHANGES = "sums gather what others give them (MRA)", "changes of sums are handed on (MRA)"

# What X contributes to Y, in ways that the loops write differently.
STEPS = {
    "plain": "r(i, X, q), edge(X, Y), v = 0.3 * q / 4",
    "looked up": "r(i, X, q), edge(X, Y), share(X, s), v = q * s",
    "several matches": "r(i, X, q), edge(X, Y), shares(X, s), v = q * s",
    "tested": "r(i, X, q), edge(X, Y), X != 3, share(X, s), s < 0.1, v = q * s",
    "not blocked": "r(i, X, q), edge(X, Y), !blocked(X), v = 0.05 * q",
    "backwards": "r(i, X, q), edge(Y, X), v = 0.05 * q",
}
NODES = 700  # more than groups that are renewed together


def factor(step: str, x: int, share: np.ndarray, shares: list[tuple[int, float]], blocked: set[int]) -> float:
    match step:
        case "plain":
            return 0.3 / 4
        case "looked up":
            return float(share[x])
        case "several matches":
            return sum(s for node, s in shares if node == x)
        case "tested":
            return float(share[x]) if x != 3 and share[x] < 0.1 else 0.0
        case "not blocked":
            return 0.0 if x in blocked else 0.05
        case _:
            return 0.05


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Data:
    """A random graph, and what its nodes have."""

    def __init__(self, nodes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.nodes = nodes
        self.edges = sorted({(int(x), int(y)) for x, y in rng.integers(0, nodes, (3 * nodes, 2))})
        self.share = rng.uniform(0.01, 0.12, nodes)
        self.shares = sorted({(int(x), round(float(rng.uniform(0, 0.05)), 6)) for x in rng.integers(0, nodes, nodes)})
        self.blocked = {int(x) for x in rng.integers(0, nodes, nodes // 4)}

    def run(self, text: str, constants: list[tuple[int, float]], **options: Any) -> tuple[list[str], dict[int, float]]:
        """How it was evaluated, and the values."""
        with emberlog.Engine(executor="local", workers=1) as engine:
            engine.register("edge", self.edges)
            engine.register("base", constants)
            engine.register("share", list(enumerate(self.share.tolist())))
            engine.register("shares", self.shares)
            engine.register("blocked", [(x,) for x in sorted(self.blocked)])
            result = engine.run(text, evaluator="kernel", **options)
            return [stats.how for stats in result.stats if stats.rounds], dict(result["r"].rows())

    def solved(self, step: str, constants: np.ndarray) -> np.ndarray:
        matrix = np.zeros((self.nodes, self.nodes))
        for x, y in self.edges:
            source, target = (y, x) if step == "backwards" else (x, y)
            matrix[target, source] += factor(step, source, self.share, self.shares, self.blocked)
        return np.asarray(np.linalg.solve(np.eye(self.nodes) - matrix, constants))


def program(step: str, start: str = "") -> str:
    return f".output r\n{start}r(i+1, Y, sum[v]) <- base(Y, v); <- {STEPS[step]}; {{sum[delta v] < 1e-9}}."


@pytest.mark.parametrize("seed", [0, 1])
def test_they_solve_the_system(step: str, seed: int) -> None:
    data = Data(NODES, seed)
    constants = np.random.default_rng(seed).uniform(-1, 1, NODES)
    given = list(enumerate(constants.tolist()))
    want = data.solved(step, constants)
    for storage, how in (("auto", GATHERS), ("loops", CHANGES)):
        told, found = data.run(program(step), given, storage=storage)
        assert told == [how]
        assert found.keys() == set(range(NODES))
        assert np.abs(np.array([found[x] for x in range(NODES)]) - want).sum() < 1e-7


def test_from_a_start(step: str) -> None:
    data, constants = Data(60, 5), np.linspace(-1, 1, 60)
    start = "r(0, X, v) <- base(X, w), v = 5.0 * w.\n"
    how, found = data.run(program(step, start), list(enumerate(constants.tolist())))
    assert how == [GATHERS]
    assert np.allclose([found[x] for x in range(60)], data.solved(step, constants), atol=1e-8)


def test_groups_that_come_to_be_are_handed_changes() -> None:
    """A group without a constant of its own is there only when something comes to it."""
    data = Data(40, 2)
    how, found = data.run(program("plain"), [(x, 1.0) for x in range(3)])
    assert how == [CHANGES]
    constants = np.zeros(40)
    constants[:3] = 1.0
    reached, waiting = set(range(3)), [0, 1, 2]
    while waiting:
        x = waiting.pop()
        for source, y in data.edges:
            if source == x and y not in reached:
                reached.add(y)
                waiting.append(y)
    want = data.solved("plain", constants)
    assert all(abs(found.get(x, 0.0) - want[x]) < 1e-8 for x in range(40))
    assert found.keys() <= reached


def test_rows_that_lead_nowhere_new_are_gathered() -> None:
    """Groups need a constant only if a row leads to them."""
    data = Data(50, 3)
    targets = {y for _, y in data.edges}
    constants = np.array([1.0 if y in targets else 0.0 for y in range(50)])
    how, found = data.run(program("plain"), [(y, 1.0) for y in sorted(targets)])
    assert how == [GATHERS]
    assert found.keys() == targets
    # What is not there gives nothing.
    want = data.solved("plain", constants)
    assert all(abs(found[y] - want[y]) < 1e-8 for y in targets)


def test_sums_that_grow_for_ever_end_in_an_error() -> None:
    data = Data(30, 4)
    text = ".output r\nr(i+1, Y, sum[v]) <- base(Y, v); <- r(i, X, q), edge(X, Y), v = 3.0 * q; {sum[delta v] < 1e-9}."
    with pytest.raises(emberlog.EmberlogError):
        data.run(text, [(x, 1.0) for x in range(30)])
