"""Wide random programs: the loops give what the interpreter, DuckDB and the reference give.

`test_interpreted` runs this where loops are plain Python; a compiler would take seconds for each program.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings

from agreement import assert_all_agree
from strategies import Case, wide_programs


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(wide_programs())
def test_every_way_agrees_on_wide_programs(case: Case) -> None:
    assert_all_agree(case, Counter())
