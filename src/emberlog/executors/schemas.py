"""The columns of a source before it is loaded."""

from __future__ import annotations

from typing import Any

from emberlog.data.sources import JdbcSource, Source, SparkSource, SparkTableSource, TextSource, schema_of
from emberlog.types import Column


def columns_of_source(relation: str, source: Source, spark: Any, declared: bool) -> tuple[Column, ...] | None:
    """Names and types of the source's columns, None where the program has to tell them.

    `spark` has the session (None on the local executor), for sources that only Spark can open. The columns of a
    declared text file are those of its declaration: it is not read twice.
    """
    match source:
        case SparkTableSource(table) if spark is not None:
            return schema_of(relation, SparkSource(spark.spark.table(table)))
        case JdbcSource(options) if spark is not None:
            frame = spark.spark.read.format("jdbc").options(**dict(options)).load()
            return schema_of(relation, SparkSource(frame))
        case TextSource() if declared:
            return None
        case _:
            return schema_of(relation, source)
