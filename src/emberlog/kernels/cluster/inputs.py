"""How relations come to the workers.

Where driver and workers see the same files, a relation is written once as Parquet and each worker reads it, all of it
or its share. Else all relations travel as one tagged DataFrame `(rel, part, i0.., d0..)`, cut into one partition for
each worker. The files are faster, even for a worker's share: 10 M pairs for two workers took a third of the time, since
the way of rows from Spark's shuffle into Python costs more than to write and read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster.exchange import Array
from emberlog.kernels.cluster.parts import Kind, Kinds
from emberlog.kernels.owners import owner_expression, owners


@dataclass(frozen=True)
class By:
    """Each row goes to the worker that owns the integers in these columns, see `owners`."""

    columns: tuple[int, ...]


Placement: TypeAlias = Literal["each", "first"] | By  # every worker has all rows; only worker 0 has them; shared out


@dataclass(frozen=True)
class Frame:
    """Rows that Spark has: a DataFrame with the columns `c0`, `c1`, .., without nulls."""

    frame: Any


@dataclass(frozen=True)
class Table:
    """Rows that the driver has: an Arrow table, columns by position."""

    table: Any


@dataclass(frozen=True)
class Files:
    """Rows that lie in Parquet files which Spark, and where possible the workers, can read; columns by position."""

    paths: tuple[Path, ...]


Source: TypeAlias = Frame | Table | Files


@dataclass(frozen=True)
class Input:
    """A relation that the workers read."""

    source: Source
    kinds: Kinds
    placement: Placement = "each"

    def __post_init__(self) -> None:
        if isinstance(self.placement, By) and any(self.kinds[column] != "int64" for column in self.placement.columns):
            raise ValueError("only integers have an owner")


@dataclass(frozen=True)
class Share:
    """Where a worker finds a relation, when it reads files."""

    paths: tuple[str, ...]
    kinds: Kinds
    placement: Placement


# --- through files -----------------------------------------------------------------------------------------------


def write_input(given: Input, folder: Path) -> Share:
    """Puts a relation where the workers can read it."""
    match given.source:
        case Files(paths):
            found = paths
        case Table(table):
            import pyarrow.parquet as pq

            folder.mkdir(parents=True)
            pq.write_table(table, folder / "0.parquet", compression="none", use_dictionary=False)
            found = (folder / "0.parquet",)
        case Frame(frame):
            writer = typed(frame, given.kinds).write
            # Plain values: to look for repeated ones and to compress costs Spark more than it saves here.
            writer.option("compression", "none").option("parquet.enable.dictionary", "false").parquet(folder.as_uri())
            found = tuple(sorted(folder.glob("*.parquet")))
        case _:
            assert_never(given.source)
    return Share(tuple(str(path) for path in found), given.kinds, given.placement)


def read_share(share: Share, rank: int, size: int) -> list[Array]:
    """The rows of a relation that a worker has, as one array for each column."""
    import pyarrow.parquet as pq

    if share.placement == "first" and rank:
        return [np.empty(0, kind) for kind in share.kinds]
    files = [pq.ParquetFile(path, memory_map=True) for path in share.paths]
    keys = share.placement.columns if isinstance(share.placement, By) and size > 1 else None
    gathered = _Gathered(share.kinds, sum(file.metadata.num_rows for file in files) if keys is None else None)
    for file in files:
        names = file.schema_arrow.names[: len(share.kinds)]
        for group in range(file.num_row_groups):
            read = file.read_row_group(group, columns=names, use_threads=False)
            columns = [_numbers(read.column(i), kind) for i, kind in enumerate(share.kinds)]
            if keys is not None:
                mine = owners([columns[key] for key in keys], read.num_rows, size) == rank
                columns = [column[mine] for column in columns]
            gathered.add(columns)
    return gathered.arrays()


def _numbers(column: Any, kind: Kind) -> Array:
    """An Arrow column as an array."""
    import pyarrow as pa

    if column.null_count:
        raise ExecutionError("a relation for the workers has nulls")
    found: Array = column.cast(pa.type_for_alias(kind)).to_numpy()
    return found


class _Gathered:
    """Columns that grow piece by piece; into their final place when the number of rows is known before."""

    def __init__(self, kinds: Kinds, rows: int | None) -> None:
        self._kinds = kinds
        self._whole = None if rows is None else [np.empty(rows, kind) for kind in kinds]
        self._pieces: list[Sequence[Array]] = []
        self._fill = 0

    def add(self, columns: Sequence[Array]) -> None:
        if self._whole is None:
            self._pieces.append(columns)
            return
        for whole, column in zip(self._whole, columns, strict=True):
            whole[self._fill : self._fill + column.size] = column
        self._fill += columns[0].size

    def arrays(self) -> list[Array]:
        if self._whole is not None:
            return self._whole
        empty = [np.empty(0, kind) for kind in self._kinds]
        return [np.concatenate(pieces) for pieces in zip(empty, *self._pieces, strict=True)]


# --- through Spark's shuffle -------------------------------------------------------------------------------------


def tagged_frame(session: Any, inputs: Mapping[str, Input], size: int) -> Any:
    """All relations as one DataFrame with one partition for each worker, in the order of their ranks."""
    from pyspark.sql import functions as f

    columns = slots(given.kinds for given in inputs.values())
    # A row for each worker that is of no relation: Spark drops what is empty, and a worker must start all the same.
    frames = [session.range(size).select(f.lit(-1).alias("rel"), f.col("id").cast("int").alias("part"))]
    for number, given in enumerate(inputs.values()):
        frame = typed(_as_frame(session, given), given.kinds)
        placed = [f.col(f"c{i}").alias(place) for i, place in enumerate(places(given.kinds))]
        frames.append(frame.select(f.lit(number).alias("rel"), _part(given.placement, size).alias("part"), *placed))
    united = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
    return united.select("rel", "part", *columns).repartitionById(size, "part")


def take_tagged(batches: Iterable[Any], inputs: Mapping[str, Kinds]) -> dict[str, list[Array]]:
    """What came in through `tagged_frame`, in a task."""
    import pyarrow.compute as pc

    gathered = {name: _Gathered(kinds, None) for name, kinds in inputs.items()}
    for batch in batches:
        for number, (name, kinds) in enumerate(inputs.items()):
            # Filtered by Arrow: a column has nulls where another relation has none, and NumPy would make it floats.
            mine = batch.filter(pc.equal(batch.column("rel"), number))
            if mine.num_rows:
                columns = zip(places(kinds), kinds, strict=True)
                gathered[name].add([_numbers(mine.column(place), kind) for place, kind in columns])
    return {name: found.arrays() for name, found in gathered.items()}


def typed(frame: Any, kinds: Kinds) -> Any:
    """The columns with exactly the types of their kinds."""
    from pyspark.sql import functions as f

    names = {"int64": "bigint", "float64": "double"}
    return frame.select(*(f.col(f"c{i}").cast(names[kind]).alias(f"c{i}") for i, kind in enumerate(kinds)))


def _as_frame(session: Any, given: Input) -> Any:
    match given.source:
        case Frame(frame):
            return frame
        case Table(table):
            return session.createDataFrame(table).toDF(*(f"c{i}" for i in range(len(given.kinds))))
        case Files(paths):
            found = session.read.parquet(*(path.absolute().as_uri() for path in paths))
            return found.select(*found.columns[: len(given.kinds)]).toDF(*(f"c{i}" for i in range(len(given.kinds))))
        case _:
            assert_never(given.source)


def _part(placement: Placement, size: int) -> Any:
    from pyspark.sql import functions as f

    match placement:
        case "each":
            return f.explode(f.sequence(f.lit(0), f.lit(size - 1)))
        case "first":
            return f.lit(0)
        case By(columns):
            return owner_expression([f"c{column}" for column in columns], size)
        case _:
            assert_never(placement)


def places(kinds: Kinds) -> list[str]:
    """The tagged frame's column for each column of a relation: integers and floats have columns of their own."""
    counts = {"int64": 0, "float64": 0}
    places = []
    for kind in kinds:
        places.append(f"{'i' if kind == 'int64' else 'd'}{counts[kind]}")
        counts[kind] += 1
    return places


def slots(relations: Iterable[Kinds]) -> dict[str, str]:
    """All columns of the tagged frame for some relations, with their SQL types."""
    found = {place for kinds in relations for place in places(kinds)}
    return {place: "bigint" if place[0] == "i" else "double" for place in sorted(found)}
