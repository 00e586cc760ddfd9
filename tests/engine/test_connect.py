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
    h(half(W)) <- arc(_,_,W). m(avg(D)) <- arc(_,_,W), D = to_decimal(W, 10, 2).
'''
answers = []
with emberlog.Engine(session) as engine:
    engine.register("arc", session.createDataFrame([(1,2,4),(2,3,1),(3,1,2)], ["a", "b", "w"]))
    engine.function("half", lambda n: n / 2, "float", "number")
    for placement in ("auto", "spark"):
        result = engine.run(program, placement=placement)
        answers.append({name: sorted(result[name].rows()) for name in result})
        assert result["sp"].to_spark().count() == 3
print("ANSWERS " + json.dumps(answers, default=str))
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
        "h": [[0.5], [1.0], [2.0]],
        "m": [["2.333333"]],
    }
    assert json.loads(line.removeprefix("ANSWERS ")) == [expected, expected]


STOPS = """
import json, os, signal, threading, time
from pyspark.sql import SparkSession
import emberlog

session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
told = {}

def tell(what, work, act=None, after=5.0):
    if act is not None:
        threading.Timer(after, act).start()
    try:
        work()
        told[what] = None
    except BaseException as error:
        told[what] = [type(error).__name__, getattr(error, "message", str(error))]

def run(evaluator, **limits):
    return engine.run(
        "n(0). n(Y) <- n(X), Y = X + 1.", placement="spark", evaluator=evaluator, limits={"rounds": 10**9, **limits}
    )

def interrupt_all():
    for _ in range(40):  # rounds of SQL have moments without a job
        session.interruptAll()
        time.sleep(0.05)

with emberlog.Engine(session) as engine:
    for evaluator in ("sql", "kernel"):
        tell(evaluator + " limit", lambda: run(evaluator, seconds=8))
        tell(evaluator + " cancel", lambda: run(evaluator), engine.cancel)
        tell(evaluator + " interrupt", lambda: run(evaluator), lambda: os.kill(os.getpid(), signal.SIGINT))
        tell(evaluator + " others", lambda: run(evaluator), interrupt_all)
        time.sleep(4)  # until the others have done
    told["usable"] = engine.run("p(1). p(2).", placement="spark")["p"].count()
print("TOLD " + json.dumps(told))
session.stop()
"""


@pytest.mark.slow
def test_whatever_ends_work_is_told_on_connect() -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    source = str(Path(__file__).parents[2] / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", STOPS], env=environment, capture_output=True, text=True, timeout=400)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert len(lines) == 1, done.stdout + done.stderr
    told = json.loads(lines[0].removeprefix("TOLD "))
    for evaluator in ("sql", "kernel"):
        assert told[f"{evaluator} limit"][0] == "LimitError", told
        assert told[f"{evaluator} cancel"] == ["CancelledError", "engine.cancel() ended this run"]
        assert told[f"{evaluator} interrupt"][0] == "KeyboardInterrupt", told
        kind, message = told[f"{evaluator} others"]
        assert kind == "ExecutionError" and message.startswith("somebody else cancelled the Spark job"), told
    assert told["usable"] == 2
