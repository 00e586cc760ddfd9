"""Random recursive programs: compiled loops, in every way there is, give the reference's answers.

A shape that was never seen takes a second to compile. So `test_interpreted` runs this file in a process where the same
loops are plain Python; the slow tests compile some programs too, and draw thousands without a compiler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from emberlog.diagnostics import UsageError
from emberlog.kernels.cache import COMPILES
from kernels.components import COMPONENTS
from kernels.variants import FEW, WAYS, by_kernels, in_every_way
from naive.values import Row
from strategies import Case, assert_agrees

SOME = settings(max_examples=5 if COMPILES else 10, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=40 if COMPILES else 2000, suppress_health_check=list(HealthCheck))

# Of the random components so many must be ones that loops evaluate; of all random programs only some are.
LEAST = {"plain": 0.9, "extremum": 0.9, "pair": 0.9, "sum": 0.5, "any": 0.05}


def agree(drawn: st.SearchStrategy[Case], how_many: settings, least: float) -> None:
    """Every program that loops can evaluate gives the reference's rows in every way."""
    seen: Counter[bool] = Counter()

    @how_many
    @given(drawn)
    def agrees(case: Case) -> None:
        refused: list[UsageError] = []

        def run(case: Case) -> Mapping[str, Iterable[Row]]:
            try:
                with in_every_way(FEW if COMPILES else WAYS):
                    return by_kernels(case)
            except UsageError as error:
                refused.append(error)
                raise

        try:
            assert_agrees(case, run)
        except UsageError as error:
            event(f"not by loops: {error}")
        seen[not refused] += 1

    agrees()
    if how_many.max_examples >= 1000:
        assert seen[True] >= least * seen.total(), f"loops evaluated {seen[True]} of {seen.total()} programs"


@pytest.mark.parametrize("kind", COMPONENTS)
def test_loops_agree(kind: str) -> None:
    agree(COMPONENTS[kind], SOME, LEAST[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMPONENTS)
def test_loops_agree_on_thousands(kind: str) -> None:
    agree(COMPONENTS[kind], LOTS, LEAST[kind])
