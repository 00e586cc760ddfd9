"""Workers that claim parts: all of the work is done once, and nobody is long without a look at the clock."""

from __future__ import annotations

from threading import Barrier, BrokenBarrierError, Event, Lock
from time import monotonic, sleep

import pytest

from emberlog.kernels.crew import Crew


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


@pytest.mark.parametrize("size", [1, 2, 5])
def test_answers_come_in_the_order_of_the_items(size: int) -> None:
    with Crew(size) as crew:
        assert crew.mapped(lambda item: item * item, range(20)) == [item * item for item in range(20)]
        assert crew.mapped(str, []) == []


@pytest.mark.parametrize("size", [1, 3])
def test_items_are_done_until_somebody_raises(size: int) -> None:
    done, stop = list[int](), Event()

    def work(item: int) -> None:
        if item == 5:
            raise Over
        done.append(item)

    with Crew(size) as crew:
        crew.each(range(5), done.append)
        assert sorted(done) == list(range(5))
        done.clear()
        with pytest.raises(Over):
            crew.each(range(1000), work, stop)
    assert len(done) < 1000


@pytest.mark.parametrize("size", [1, 2, 4])
def test_all_are_called_at_once(size: int) -> None:
    meeting, ranks, lock = Barrier(size), set[int](), Lock()

    def work(rank: int) -> None:
        meeting.wait(10)  # all others have to be there
        with lock:
            ranks.add(rank)

    with Crew(size) as crew:
        crew.together(work, meeting.abort, BrokenBarrierError)
    assert ranks == set(range(size))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_what_one_raises_ends_the_wait_of_the_others(failing: int) -> None:
    meeting = Barrier(3)

    def work(rank: int) -> None:
        if rank == failing:
            raise Over
        meeting.wait(10)

    with Crew(3) as crew, pytest.raises(Over):
        crew.together(work, meeting.abort, BrokenBarrierError)
