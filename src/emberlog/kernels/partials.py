"""What a worker computes over its own rows, in place of handing them on: numbers of rows, and statements of SQL.

The rows go through DuckDB piece by piece, as the kernels give them out; they are never all there as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlog.diagnostics import ExecutionError

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.kernels.choices import Evaluated

ROWS = "kernel_rows"  # the table that statements read
AT_ONCE = 1 << 16


class NotInParts(ExecutionError):
    """A worker's part of an answer does not fit in 64 bits, though all parts together might."""


@dataclass(frozen=True)
class Asked:
    """What is computed of the rows of `table`; `relation` is where it goes.

    `sql` reads the rows from the table `kernel_rows`. None asks for their number, in so many columns as `width` says.
    """

    relation: str
    table: str
    sql: str | None
    width: int
    parameters: Mapping[str, Any]
    prelude: tuple[str, ...] = ()


def answer(asked: Asked, done: Evaluated, threads: int, memory: int, scratch: Path) -> Iterator[list[pa.Array]]:
    """The answer of one worker, some rows at a time; over nothing there is none. `memory` is bytes for groups."""
    import pyarrow as pa

    if asked.sql is None:
        count = done.counts[asked.table]
        if count:
            yield [pa.array([count], pa.int64())] * asked.width
        return
    import duckdb

    kinds = done.encoder.program.kinds(asked.table)
    schema = pa.schema([(f"c{i}", pa.float64() if kind == "float" else pa.int64()) for i, kind in enumerate(kinds)])
    rows = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in done.batches(asked.table)))
    settings: dict[str, Any] = {
        "threads": threads,
        "memory_limit": f"{memory // 2**20}MiB",
        "temp_directory": str(scratch),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        for macro in asked.prelude:
            connection.execute(macro)
        connection.register(ROWS, rows)
        found = connection.sql(asked.sql, params=dict(asked.parameters) or None).to_arrow_reader(AT_ONCE)
        for batch in found:
            if any(column.null_count for column in batch.columns):
                raise NotInParts("a worker's part of a sum does not fit in 64 bits")
            yield batch.columns
