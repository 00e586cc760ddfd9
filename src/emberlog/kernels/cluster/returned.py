"""What tasks yield: their reports, and where the driver does not see their files, the rows too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from emberlog.kernels.cluster.inputs import places, slots
from emberlog.kernels.cluster.parts import Kinds
from emberlog.kernels.cluster.task import Report

REPORT_SCHEMA = "head string, summary binary, raised binary"
ROWS_AT_ONCE = 1 << 16


def returned_schema(outputs: Mapping[str, Kinds]) -> str:
    """The schema of `send_rows`: a row is a report, with `rel` -1, or of a relation."""
    columns = [f"{slot} {type}" for slot, type in slots(outputs.values()).items()]
    return ", ".join(["rel int", "part int", REPORT_SCHEMA, *columns])


def send_report(report: Report, _folder: Path, _outputs: Mapping[str, Kinds]) -> Iterator[Any]:
    """One row: the report."""
    import pyarrow as pa

    head, summary, raised = report.encode()
    fields = [("head", pa.string()), ("summary", pa.binary()), ("raised", pa.binary())]
    yield pa.record_batch([[head], [summary], [raised]], schema=pa.schema(fields))


def send_rows(report: Report, folder: Path, outputs: Mapping[str, Kinds]) -> Iterator[Any]:
    """The report and all rows of the worker, whose parts lie below `folder`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = slots(outputs.values())
    schema = pa.schema(
        [("rel", pa.int32()), ("part", pa.int32()), ("head", pa.string()), ("summary", pa.binary())]
        + [("raised", pa.binary())]
        + [(slot, pa.int64() if type == "bigint" else pa.float64()) for slot, type in columns.items()]
    )
    for part in report.parts:
        number = list(outputs).index(part.relation)
        where = {place: i for i, place in enumerate(places(outputs[part.relation]))}
        file = pq.ParquetFile(folder / part.path)
        for number_in_part, batch in enumerate(file.iter_batches(ROWS_AT_ONCE, use_threads=False)):
            tags = {"rel": number, "part": number_in_part}
            arrays = [
                pa.repeat(pa.scalar(tags[field.name], field.type), batch.num_rows)
                if field.name in tags
                else batch.column(where[field.name])
                if field.name in where
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.record_batch(arrays, schema=schema)
    head, summary, raised = report.encode()
    told = {"rel": -1, "part": report.rank, "head": head, "summary": summary, "raised": raised}
    yield pa.RecordBatch.from_pylist([told], schema=schema)


def rows_of(returned: Any, relation: str, outputs: Mapping[str, Kinds]) -> Any:
    """A relation out of the DataFrame that rows came back in."""
    from pyspark.sql import functions as f

    columns = [f.col(place).alias(f"c{i}") for i, place in enumerate(places(outputs[relation]))]
    return returned.where(f.col("rel") == list(outputs).index(relation)).select(*columns)
