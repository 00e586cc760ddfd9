"""Workers that claim parts: all of the work is done once, and nobody is long without a look at the clock."""

from __future__ import annotations

from threading import Lock
from time import monotonic, sleep

import pytest

from emberlog.kernels.rows.crew import Crew


class Over(Exception):
    """The time is over."""


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("count", "least"), [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 64), (1000, 1000)])
def test_all_is_done_once(count: int, least: int, size: int) -> None:
    done, lock, parts = [0] * count, Lock(), list[int]()

    def work(_: int, begin: int, end: int) -> None:
        with lock:
            parts.append(end - begin)
            for place in range(begin, end):
                done[place] += 1

    crew = Crew(size)
    crew.share(count, work, least=least)
    crew.close()
    assert done == [1] * count
    assert all(part >= least for part in sorted(parts)[1:])  # what is left for the last one may be less


@pytest.mark.parametrize("size", [1, 2])
def test_parts_that_take_long_become_smaller(size: int) -> None:
    began = monotonic()

    def look() -> None:
        if monotonic() - began > 1:
            raise Over

    crew = Crew(size, look)
    with pytest.raises(Over):
        crew.share(3200, lambda _, begin, end: sleep(0.02 * (end - begin)))
    crew.close()
    assert monotonic() - began < 2
