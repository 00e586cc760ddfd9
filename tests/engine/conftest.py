"""Fixtures of the tests of the public interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from engine.places import Place


@pytest.fixture(
    params=[
        pytest.param(("local", "auto"), id="local"),
        pytest.param(("spark", "auto"), id="driver", marks=pytest.mark.spark),
        pytest.param(("spark", "spark"), id="spark", marks=pytest.mark.spark),
    ]
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each of the three places in turn."""
    executor, placement = request.param
    session = request.getfixturevalue("spark") if executor == "spark" else None
    with closing(Place(executor, placement, session)) as made:
        yield made


@pytest.fixture
def local() -> Iterator[Place]:
    """The local executor."""
    with closing(Place("local", "auto", None)) as made:
        yield made


@pytest.fixture
def on_spark(spark: Any) -> Iterator[Place]:
    """Spark SQL."""
    with closing(Place("spark", "spark", spark)) as made:
        yield made
