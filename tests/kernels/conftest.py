"""Which tests of the loops wait for the compiler in a normal run.

`test_interpreted` runs all of them without one. A shape takes a second or more to compile, so that compiled only those
run whose subject is machine arithmetic, or size; the others are slow tests then.

Loops are tested on small data, which the interpreter would take: here it does not, unless a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emberlog.kernels import cache
from emberlog.kernels.cache import COMPILES

BOTH = {
    "test_above.py",
    "test_differential.py",
    "test_known.py",
    "test_programs.py",
    "test_runtime.py",
    "test_shards.py",
    "test_sorting.py",
    "test_waiting.py",
    "test_wide.py",
}
COMPILED = {
    "test_a_sum_above_that_leaves_64_bits_is_an_error_and_the_recursion_is_not",
    "test_what_leaves_64_bits_is_an_error_as_in_sql",
    "test_a_division_without_a_value",
    "test_values_near_the_ends_of_64_bits_are_exact",
    "test_hashed_tables_grow_in_the_middle_of_everything",
    "test_groups_that_wait_again_behind_a_sweep",
    "test_pivots_with_little_in_common_go_one_by_one",
    "test_a_sum_that_leaves_64_bits_is_told",
    "test_a_sum_up_to_the_end_of_64_bits_is_one",
    "test_division_rounds_toward_zero",
    "test_shortest_paths_with_unsigned_weights",
    "test_put_best",
    "test_galen_whatever_the_labels_the_workers_and_the_form",
    "test_takeuchi_of_a_cube",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mine = item.path.parent == Path(__file__).parent and item.path.name in BOTH
        if COMPILES and mine and getattr(item, "originalname", "") not in COMPILED:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="module")
def loops() -> Iterator[None]:
    """Whatever is small, loops evaluate it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "INTERPRETS", False)
        yield
