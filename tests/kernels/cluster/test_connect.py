"""Workers inside Spark Connect. In a process of its own, since a process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark import cloudpickle
from pyspark.sql import SparkSession
import pyarrow as pa
from kernels.cluster import workers
from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster.inputs import By, Frame, Input, Table
from emberlog.kernels.cluster.job import Setup, run_workers
from emberlog.kernels.cluster.probe import Unavailable

cloudpickle.register_pickle_by_value(workers)
session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
folder = Path(sys.argv[1])
arcs = session.createDataFrame([(n, n + 1) for n in range(10)], ["c0", "c1"])
start = Table(pa.table({"c0": [4]}))
answers = []
for transfer in ("auto", "shuffle"):
    inputs = {"arc": Input(Frame(arcs), ("int64", "int64"), By((0,))), "start": Input(start, ("int64",), By((0,)))}
    done = run_workers(
        session, inputs, workers.reach, 2, folder / transfer, {"reach": ("int64", "int64")}, Setup(transfer)
    )
    rows = sorted(tuple(row) for row in done.frame(session, "reach").collect())
    answers.append([done.manifest is not None, done.rows("reach"), rows])
for worker, size in ((workers.breaks, 2), (workers.dies, 2), (workers.count, 3)):
    try:
        run_workers(session, {}, worker, size, folder / worker.__name__, {})
    except ExecutionError as error:
        answers.append(error.message.partition(" (on ")[0])
    except Unavailable as error:
        answers.append(error.reason)
print("ANSWERS " + json.dumps(answers))
session.stop()
"""


@pytest.mark.slow
def test_connect_runs_the_same_workers(tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    places = [str(tests.parent / "src"), str(tests), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=300
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert lines, done.stderr[-3000:]
    reached = [[node, node - 4] for node in range(4, 11)]
    assert json.loads(lines[0].removeprefix("ANSWERS ")) == [
        [True, 7, reached],
        [False, 7, reached],
        "worker 1 of 2 failed: ValueError: seven is not a node",
        "the workers failed: the process of a worker died",
        "3 workers need 3 slots at once, and the session has 2",
    ]
