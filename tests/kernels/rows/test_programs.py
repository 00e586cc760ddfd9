"""Whole programs of rows against naive evaluation, on every storage, with 1 to 8 workers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberlog.components.compositions import Storage
from emberlog.kernels import crew
from emberlog.kernels.rows.evaluate import RowsRun
from kernels.rows import twin
from kernels.rows.strategies import Case, cases

pytestmark = pytest.mark.apart

STORAGES: tuple[Storage, ...] = ("auto", "bits", "sparse")


def evaluated(case: Case, *, chunk: int = 7, **options: Any) -> dict[str, twin.Facts]:
    """The fixpoint by the kernels, as the twin gives it."""
    dtype = np.float64 if case.program.recursive[0].value == "float" else np.int64
    valued = {static.name: static.valued for static in case.program.statics}
    kinds = {relation.name: relation.kind for relation in case.program.recursive}
    run = RowsRun(
        case.program,
        case.domains,
        {name: twin.columns(rows, valued[name], dtype) for name, rows in case.statics.items()},
        {name: twin.columns(rows, kinds[name] != "set", dtype) for name, rows in case.exits.items()},
        **options,
    )
    while run.step():
        pass
    assert run.step() == 0
    found: dict[str, twin.Facts] = {}
    for name in kinds:
        facts = found[name] = {}
        for xs, ys, *values in run.chunks(name, chunk):
            made = values[0].tolist() if values else [0] * len(xs)
            for x, y, value in zip(xs.tolist(), ys.tolist(), made, strict=True):
                assert (x, y) not in facts
                facts[x, y] = value
        assert run.facts(name) == len(facts)
    run.close()
    return found


def check(case: Case, **options: Any) -> None:
    assert evaluated(case, **options) == twin.evaluate(case.program, case.statics, case.exits)


FEW = settings(
    max_examples=int(os.environ.get("ROWS_EXAMPLES", "60")), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("storage", STORAGES)
@FEW
@given(cases("sets"))
def test_sets(storage: Storage, case: Case) -> None:
    check(case, storage=storage)


@pytest.mark.parametrize("storage", ["auto", "sparse"])
@pytest.mark.parametrize("kinds", ["min", "max"])
@pytest.mark.parametrize("real", [False, True])
@FEW
@given(st.data())
def test_extrema(storage: Storage, kinds: Any, real: bool, data: st.DataObject) -> None:
    check(data.draw(cases(kinds, real)), storage=storage)


@FEW
@given(cases("mixed"))
def test_sets_and_minima_together(case: Case) -> None:
    check(case)


@FEW
@given(st.sampled_from(("sets", "min", "mixed")), st.integers(2, 8), st.data())
def test_many_workers(kinds: Any, workers: int, data: st.DataObject) -> None:
    case = data.draw(cases(kinds))
    storage = data.draw(st.sampled_from(STORAGES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "SHARED", 1)  # even the smallest work is shared
        check(case, workers=workers, storage=storage)
