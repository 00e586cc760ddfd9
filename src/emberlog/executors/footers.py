"""What the footers of Parquet files say of their rows, so that nobody has to read these to know it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emberlog.types import Column


def plain_files(location: str) -> tuple[Path, ...]:
    """The Parquet files of a local path that hold rows in no other way than in their columns; none if it is no such."""
    path = Path(location)
    if path.is_file():
        return (path.absolute(),)
    if not path.is_dir() or any(child.is_dir() for child in path.iterdir()):
        return ()
    return tuple(file.absolute() for file in sorted(path.glob("*.parquet")))


def certain_rows(
    files: Sequence[Path], columns: Sequence[Column], positions: Sequence[int] | None = None
) -> int | None:
    """How many rows there are, if every column (at `positions`) is of the program's type, in 64 bits, and certain to
    have no null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = {"number": pa.int64(), "float": pa.float64()}
    rows = 0
    for file in files:
        try:
            footer = pq.read_metadata(file)
            schema = footer.schema.to_arrow_schema()
        except (OSError, pa.ArrowException):
            return None
        if len(schema) != len(columns) or footer.num_columns != len(columns):
            return None
        for spot in range(len(columns)) if positions is None else positions:
            column = columns[spot]
            if column.type.bits != 64 or schema.field(spot).type != wanted.get(column.type.kind):
                return None
            for group in range(footer.num_row_groups):
                told = footer.row_group(group).column(spot).statistics
                if told is None or not told.has_null_count or told.null_count:
                    return None
        rows += footer.num_rows
    return rows if files else None


def spark_schema(file: Path, positions: Sequence[int] | None = None) -> Any:
    """The columns of a file whose rows are certain (those at `positions`), as Spark names them."""
    import pyarrow.parquet as pq
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    whole = pq.read_schema(file)
    found = [whole.field(i) for i in (range(len(whole)) if positions is None else positions)]
    return StructType([StructField(f.name, LongType() if str(f.type) == "int64" else DoubleType()) for f in found])
