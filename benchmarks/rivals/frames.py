"""Connected components as a loop over Spark DataFrames, as one writes it by hand.

New labels only travel on, and the plan is cut each round. Both directions of the edges are cached before the clock
runs.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.limits.common import Columns, Inputs, Limit, Watch
from benchmarks.rivals.graphx import session

PROGRAMS = ("cc_undirected",)


def evaluate(program: str, inputs: Inputs) -> Limit:
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import functions as f

    spark = session()
    x, y = inputs["arc"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arc.parquet"
        pq.write_table(pa.table({"x": x, "y": y}), path)
        watch = Watch()
        arc = spark.read.parquet(str(path))
        both = arc.union(arc.select(f.col("y").alias("x"), f.col("x").alias("y"))).distinct().cache()
        both.count()
        build = watch.lap()
        labels = both.select("x").distinct().withColumn("l", f.col("x")).localCheckpoint()
        delta, rounds = labels, 0
        while not delta.isEmpty():
            rounds += 1
            offered = delta.join(both, "x").groupBy(f.col("y").alias("x")).agg(f.min("l").alias("n"))
            joined = labels.join(offered, "x", "left").localCheckpoint()
            delta = joined.where("n < l").select("x", f.col("n").alias("l"))
            labels = joined.select("x", f.least("l", "n").alias("l"))
        facts = labels.count()
        seconds = watch.lap()
        found = labels.toPandas()
        both.unpersist()

    def answer() -> Columns:
        return found["x"].to_numpy(), found["l"].to_numpy()

    return Limit(facts, None, build, seconds, answer, rounds)
