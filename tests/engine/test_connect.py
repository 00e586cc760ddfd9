"""Spark Connect: the same answers. In a process of its own, since a process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json
from pyspark.sql import SparkSession
import emberlog

session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
program = '''
    tc(X,Y) <- arc(X,Y,_). tc(X,Y) <- tc(X,Z), arc(Z,Y,_).
    sp(Y,min<D>) <- Y=1, D=0. sp(Y,min<D>) <- sp(X,C), arc(X,Y,W), D=C+W.
    n(count(X)) <- tc(X,_). t(S) <- arc(_,_,W), S = to_string(to_float(W)).
'''
answers = []
with emberlog.Engine(session) as engine:
    engine.register("arc", session.createDataFrame([(1,2,4),(2,3,1),(3,1,2)], ["a", "b", "w"]))
    for placement in ("auto", "spark"):
        result = engine.run(program, placement=placement)
        answers.append({name: sorted(result[name].rows()) for name in result})
        assert result["sp"].to_spark().count() == 3
print("ANSWERS " + json.dumps(answers))
session.stop()
"""


@pytest.mark.slow
def test_connect_gives_the_same_answers() -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    source = str(Path(__file__).parents[2] / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("ANSWERS "))
    expected = {
        "tc": [[x, y] for x in (1, 2, 3) for y in (1, 2, 3)],
        "sp": [[1, 0], [2, 4], [3, 5]],
        "n": [[9]],
        "t": [["1.0"], ["2.0"], ["4.0"]],
    }
    assert json.loads(line.removeprefix("ANSWERS ")) == [expected, expected]
