"""Many random programs, each in every way: `EMBERLOG_PROGRAMS=10000 EMBERLOG_JIT=off pytest -m slow -n 2 FILE`.

Programs are drawn in parts of a hundred, each from its own number, so that any part can be drawn again by itself and
processes share them out. Of ten parts seven are wide programs, one is of the other kinds, two are components for loops.
EMBERLOG_PART says where to begin. What was evaluated, and how, is added to files in the folder EMBERLOG_COUNTS.

Without EMBERLOG_JIT=off loops are compiled: so a sample of programs is run, and a part takes many minutes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from agreement import assert_all_agree, assert_spark_agrees
from strategies import (
    Case,
    aggregate_programs,
    arithmetic_programs,
    programs,
    recursive_programs,
    wide_programs,
)
from strategies.recursive import kernel_components

PART = 100
BEGIN = int(os.environ.get("EMBERLOG_PART", "0"))
OTHERS = st.one_of(programs(), recursive_programs(), aggregate_programs(), arithmetic_programs())


def parts(variable: str, usual: str) -> range:
    return range(BEGIN, BEGIN + -(-int(os.environ.get(variable, usual)) // PART))


def drawn(part: int, wanted: st.SearchStrategy[Case], check: Callable[[Case], None]) -> None:
    """Checks the programs of a part, each once: of a hundred that are drawn, some twenty were drawn before."""
    seen: set[str] = set()

    @seed(part)
    @settings(
        max_examples=PART,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(wanted)
    def each(case: Case) -> None:
        if repr(case) not in seen:
            check(case)
        seen.add(repr(case))

    each()


def tell(name: str, counts: Counter[str]) -> None:
    folder = os.environ.get("EMBERLOG_COUNTS")
    if folder:
        Path(folder, f"{name}.json").write_text(json.dumps(counts, sort_keys=True), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("part", parts("EMBERLOG_PROGRAMS", "300"))
def test_every_way_agrees(part: int) -> None:
    counts: Counter[str] = Counter()
    kind = {7: OTHERS, 8: kernel_components, 9: kernel_components}.get(part % 10, wide_programs())
    drawn(part, kind, lambda case: assert_all_agree(case, counts))
    tell(f"local-{part}", counts)


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", ["sql", "auto"])
@pytest.mark.parametrize("part", parts("EMBERLOG_SPARK_PROGRAMS", "100"))
def test_spark_agrees(part: int, evaluator: str, spark: Any) -> None:
    counts: Counter[str] = Counter()
    cases: list[Case] = []
    drawn(part, wide_programs(), cases.append)
    assert_spark_agrees(spark, cases, counts, evaluator=evaluator)
    tell(f"spark-{evaluator}-{part}", counts)
