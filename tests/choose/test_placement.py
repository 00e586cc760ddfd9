"""Where a recursion over Spark's tables is evaluated, from figures alone."""

from __future__ import annotations

from emberlog.choose.placement import place
from emberlog.thresholds import FETCHED_BYTES, FETCHED_COPIES, JOB_SECONDS

GB = 10**9


def test_what_is_fetched_sooner_than_a_job_starts_is_fetched() -> None:
    placed = place(rows=495_000, size=24_000_000, tasks=2, room=8 * GB)
    assert placed.here
    assert placed.why == "to fetch its inputs of 495,000 rows takes about 0.4 s, a job of Spark 3.5 s"


def test_many_tasks_take_their_share_of_much_data() -> None:
    size = int(20 * JOB_SECONDS * FETCHED_BYTES)
    assert place(10**8, size, tasks=2, room=100 * size).here
    assert not place(10**8, size, tasks=200, room=100 * size).here


def test_what_has_no_room_in_the_driver_stays_on_spark() -> None:
    placed = place(rows=1_000_000, size=16_000_000, tasks=1, room=FETCHED_COPIES * 16_000_000 - 1)
    assert not placed.here
    assert "the driver has no room" in placed.why
