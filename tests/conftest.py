"""What all tests share: the Spark session, the marks that follow from it, and Hypothesis' settings."""

from __future__ import annotations

import os
import sys
from collections import Counter
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


# First: the choice by `-m` is made in this same hook and must see the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = Counter[str]()  # of each test, those on Spark so far
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        sample = item.get_closest_marker("spark_sample")
        if sample is not None and is_evaluated_by_spark(item):
            test = item.nodeid.partition("[")[0]
            if cases[test] % sample.args[0] != 0:
                item.add_marker(pytest.mark.slow)
            cases[test] += 1
    # Each process starts at its own place of this list, and one that has no more tests takes over the last ones of
    # another (`--dist worksteal`). So the first process has what needs Spark, and others start a JVM of their own only
    # if there is nothing else left to do.
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def is_evaluated_by_spark(item: pytest.Item) -> bool:
    """True for what needs Spark, but for small programs at the place `driver` (engine/conftest.py)."""
    call = getattr(item, "callspec", None)
    in_driver = call is not None and call.params.get("place") == ("spark", "auto")
    return item.get_closest_marker("spark") is not None and not in_driver


@pytest.fixture(autouse=True)
def strangers() -> None:
    """To each test all programs are new: what one of them interpreted for long, another one does not get compiled."""
    loaded = sys.modules.get("emberlog.kernels.evaluate")
    if loaded is not None:
        loaded._SPENT.clear()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real session on two cores, one for each process. Views and tables that a test makes are its own to remove."""
    # Imported here: tests without Spark start without it.
    from pyspark.sql import SparkSession

    # Else Spark's Python workers are whatever `python3` is on the PATH, without pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("emberlog-tests")
        # Programs of tests run once: the JVM's second compiler takes several times what it would gain for them.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
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
