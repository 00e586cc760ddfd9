"""A worker's part of a component: it holds its share alone, condenses what it sends, and can be put back."""

from __future__ import annotations

import numpy as np
import pytest

from emberlog.components.program import Table
from emberlog.components.shares import WorkerPlan, plan_workers
from emberlog.kernels.columns.facts import SumFacts
from emberlog.kernels.owners import owners
from emberlog.kernels.parts.parcels import condensed, divided
from emberlog.workers.simulated import Costs
from workers.programs import ACYCLIC, PROGRAMS, inputs, state

ARCS = [(a, b, 1 + (a * b) % 7) for a in range(40) for b in range(40) if (a * 7 + b * 3) % 11 == 0]


def plan(name: str) -> WorkerPlan:
    found = plan_workers(inputs(PROGRAMS[name], [(0, 1, 1)]).plan.program)
    assert isinstance(found, WorkerPlan)
    return found


def test_a_fact_has_one_copy_for_each_list_of_columns() -> None:
    found = plan("non-linear")
    assert (found.homes, found.copies) == ({"tc": (1,), "tc@0": (0,)}, {"tc@0": "tc"})
    assert plan("linear").copies == {} and plan("linear").statics == {"arc@0": (0,)}
    assert plan("right linear").homes == {"tc": (0,)} and plan("right linear").statics == {"arc@1": (1,)}
    assert plan("mutual").copies == {"odd@0": "odd"}


def test_rules_are_cut_where_the_next_atom_is_owned_elsewhere() -> None:
    assert str(plan("same generation")).splitlines() == [
        "sg: partition by (0)",
        "sg#1: partition by (0)",
        "arc: partition by (0)",
        "delta sg -> Join arc by its index (0) -> Distribute distinct by (0) -> Gather sg#1",
        "delta sg#1 -> Join arc by its index (0) -> Distribute distinct by (0) -> Gather sg",
    ]


def test_aggregates_are_divided_by_columns_of_their_group() -> None:
    for name, text in {**PROGRAMS, **ACYCLIC}.items():
        found = plan_workers(inputs(text, [(0, 1, 1)]).plan.program)
        assert isinstance(found, WorkerPlan), name
        for table in found.placed.tables:
            assert set(found.homes[table.name]) <= set(table.keys)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_parts_hold_their_share_alone(size: int) -> None:
    simulation = inputs(PROGRAMS["non-linear"], ARCS).simulation("bsp", size, Costs())
    simulation.run()
    facts = len(state(simulation.parts)["tc"])  # type: ignore[arg-type]
    for part in simulation.parts:
        for table in part.tables.values():  # type: ignore[attr-defined]
            assert table.count <= 2.5 * facts / size  # keys are few, so that shares differ
            assert max(len(column) for column in table.stored.values()) <= max(2 * 2.5 * facts / size, 16)
    copies = sum(part.tables["tc@0"].count for part in simulation.parts)  # type: ignore[attr-defined]
    assert copies == facts


def test_statics_are_divided_or_whole() -> None:
    found = inputs(PROGRAMS["linear"], ARCS)
    rows = [len(part.statics["arc@0"][0]) for part in found.parts(4)]
    assert sum(rows) == len(ARCS) and max(rows) < len(ARCS) / 2
    assert [len(part.statics["arc"][0]) for part in found.parts(4, small=["arc"])] == [len(ARCS)] * 4


def test_condensing() -> None:
    pieces = [[np.array([1, 2, 1]), np.array([5, 6, 3])], [np.array([2, 1]), np.array([9, 3])]]

    def folded(fold: str, value: int | None) -> list[list[int]]:
        table = Table("t", ("int", "int"), fold, value)  # type: ignore[arg-type]
        return [column.tolist() for column in condensed(table, pieces)]

    assert folded("min", 1) == [[1, 2], [3, 6]]
    assert folded("max", 1) == [[1, 2], [5, 9]]
    assert folded("sum", 1) == [[1, 2], [11, 15]]
    rows = folded("set", None)
    assert sorted(zip(*rows, strict=True)) == [(1, 3), (1, 5), (2, 6), (2, 9)]
    everything = condensed(Table("t", ("int",), "sum", 0), [[np.array([1, 2])], [np.array([4])]])
    assert [column.tolist() for column in everything] == [[7]]


def test_owners_are_spread_and_found_again() -> None:
    column = np.arange(-1000, 1000)
    owner = owners([column], 2000, 7)
    assert np.bincount(owner, minlength=7).min() > 200 and owners([], 3, 7).tolist() == [0, 0, 0]
    shares = dict(divided([column], owner))
    assert sorted(value for (share,) in shares.values() for value in share.tolist()) == column.tolist()
    assert all((owners(share, len(share[0]), 7) == rank).all() for rank, share in shares.items())
    assert list(divided([column[:0]], owner[:0])) == []


@pytest.mark.parametrize("name", ["all pairs", "mutual", "paths"])
def test_a_snapshot_can_be_put_back(name: str) -> None:
    found = inputs({**PROGRAMS, **ACYCLIC}[name], [(i, i + 1, i % 3 + 1) for i in range(8)])

    def finish() -> object:
        simulation = found.simulation("bsp", 1, Costs())
        simulation.run()
        return state(simulation.parts)  # type: ignore[arg-type]

    (part,) = found.parts(1)
    part.take()
    saved = part.snapshot()
    for _ in range(2):
        while part.waiting:
            part.take()
        assert state([part]) == finish()
        part.restore(saved)
        assert state([part]) != finish()


def test_small_changes_of_sums_wait_while_larger_ones_do() -> None:
    (part,) = inputs(ACYCLIC["paths"], [(0, 1, 1), (1, 2, 1), (0, 2, 1), (2, 3, 1)]).parts(1)
    whole = part.waiting
    assert part.take(least=10.0).taken == whole  # nothing else waits
    assert part.waiting
    sums = part.tables["n"]
    assert isinstance(sums, SumFacts)
    sums.pending[:1] += 50
    sums.waits[:1] = True
    waited = part.waiting
    assert part.take(least=10.0).taken == 1 and waited > 1
