"""GraphX through the gateway of a classic Spark session: its ConnectedComponents and ShortestPaths.

ShortestPaths counts edges and looks for ways to a landmark, so the weights are left out and the answer is not compared.
Spark starts, and edges are read from text and cached, before the clock runs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.limits.common import Columns, Inputs, Limit, Watch
from benchmarks.programs import SOURCE
from benchmarks.rivals import THREADS

PROGRAMS = ("cc_undirected", "sssp")
UNCHECKED = ("sssp",)


def session() -> Any:
    """A classic session with two threads and room for graphs of ten million edges."""
    from pyspark.sql import SparkSession

    # Python workers must be this Python: another one on the PATH may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{THREADS}]").appName("rival")
    settings = {
        "spark.driver.memory": "6g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * THREADS),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.host": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def evaluate(program: str, inputs: Inputs) -> Limit:
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch()
        graph = _graph(spark, inputs, Path(folder))
        build = watch.lap()
        found = _components(spark, graph) if program == "cc_undirected" else _ways(spark, graph)
        facts = int(found.count())
        seconds = watch.lap()
        answer = _nothing if program in UNCHECKED else _answer(found)
        graph.unpersist(False)
    return Limit(facts, None, build, seconds, answer)


def _graph(spark: Any, inputs: Inputs, folder: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    x, y = (inputs["warc"] if "warc" in inputs else inputs["arc"])[:2]
    path = folder / "edges.txt"
    csv.write_csv(pa.table({"x": x, "y": y}), path, csv.WriteOptions(include_header=False, delimiter=" "))
    jvm = spark._jvm
    level = jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
    graph = jvm.org.apache.spark.graphx.GraphLoader.edgeListFile(
        spark._jsc.sc(), str(path), False, 2 * THREADS, level, level
    )
    graph.cache()
    graph.vertices().count()
    graph.edges().count()
    return graph


def _components(spark: Any, graph: Any) -> Any:
    jvm = spark._jvm
    tag = jvm.scala.reflect.ClassTag.Int()
    return jvm.org.apache.spark.graphx.lib.ConnectedComponents.run(graph, tag, tag).vertices()


def _ways(spark: Any, graph: Any) -> Any:
    jvm = spark._jvm
    landmarks = jvm.scala.jdk.javaapi.CollectionConverters.asScala([SOURCE]).toSeq()
    tag = jvm.scala.reflect.ClassTag.Int()
    return jvm.org.apache.spark.graphx.lib.ShortestPaths.run(graph.reverse(), landmarks, tag).vertices()


def _nothing() -> Columns:
    return ()


def _answer(found: Any) -> Callable[[], Columns]:
    """The pairs, through text: rows of the JVM come to Python no faster."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "answer"
        found.saveAsTextFile(str(target))
        text = "".join(part.read_text() for part in sorted(target.glob("part-*")))
    flat = np.array(text.replace("(", "").replace(")", "").replace("\n", ",").rstrip(",").split(","), np.int64)
    return lambda: (flat[0::2], flat[1::2])
