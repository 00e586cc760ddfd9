"""What all tests share: the Spark session, the marks that follow from it, and Hypothesis' settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: how long one example takes on Spark says more about the machine than about the code.
settings.register_profile("emberlog", deadline=None, print_blob=True)
# CI draws the same examples for the same code, so that it judges the change; runs at the desk go on looking.
settings.register_profile("ci", settings.get_profile("emberlog"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "emberlog")


# First: the choice by `-m` is made in this same hook and must see the mark.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark"):
            # One worker process runs all Spark tests, so that there is one JVM (with `--dist loadgroup`).
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True)
def strangers() -> None:
    """To each test all programs are new: what one of them interpreted for long, another one does not get compiled."""
    loaded = sys.modules.get("emberlog.kernels.evaluate")
    if loaded is not None:
        loaded._SPENT.clear()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real session on two cores, shared by all tests. Views and tables that a test makes are its own to remove."""
    # Imported here: tests without Spark start without it.
    from pyspark.sql import SparkSession

    # Else Spark's Python workers are whatever `python3` is on the PATH, without pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("emberlog-tests")
        .config("spark.ui.enabled", "false")  # no port to clash over when two test runs go on at once
        .config("spark.ui.showConsoleProgress", "false")  # progress bars would mix with pytest's output
        .config("spark.driver.host", "127.0.0.1")  # the machine's own name may not resolve
        .config("spark.driver.bindAddress", "127.0.0.1")  # nobody outside needs to reach the driver
        .config("spark.sql.shuffle.partitions", "2")  # 200 nearly empty tasks otherwise
        .config("spark.sql.session.timeZone", "UTC")  # timestamps mean the same wherever tests run
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))  # else it is made in the tree
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))  # scratch goes when the tests' folder goes
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")  # warnings about native libraries and plan sizes are noise here
    yield session
    session.stop()
