"""The benchmark of what it costs workers to talk runs."""

from __future__ import annotations

import pytest
from benchmarks.links import TRANSPORTS, measure


@pytest.mark.apart
def test_two_processes_talk() -> None:
    talks = measure(quick=True)
    assert [talk.transport for talk in talks] == list(TRANSPORTS)
    assert all(talk.megabytes > 1 and 0 < talk.round < 1 for talk in talks)
