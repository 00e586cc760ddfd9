"""The data sets of the benchmarks, by name, as Parquet files that are written once.

A name is a kind and a size: `gnp10K` (a random graph with p = 0.001), `grid150`, `tree11`, `rmat1M` (10 edges a node),
`dag40K` (edges to the next twenty nodes), `road300` (a square grid, both ways, with lengths), `bom1M` (parts), `heap1M`
(facts). Rows stand in random order, as those of a table that somebody has may do: generators leave them sorted, and an
index over sorted rows costs next to nothing. With `-shuffled` behind its name a graph has the same edges, and its nodes
other numbers, at random.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.limits.common import Inputs
from emberlog import generate
from emberlog.diagnostics import UsageError

FOLDER = "EMBERLOG_BENCH_DATA"
VERSION = "v1"
"""Part of the path of the files: to be changed with whatever changes the rows."""

SHUFFLED = "-shuffled"

# Of 40 seeds the one whose tree is nearest in size to the published Tree11.
TREE_SEED = 2
# A program with n variables has about 1.93 n facts.
VARIABLES_A_FACT = 0.52


def _rmat(n: int) -> generate.Tables:
    return {**generate.rmat(n), "node": pa.table({"x": np.arange(n)})}


def _dag(n: int) -> generate.Tables:
    """Three edges from each node to some of the next twenty: long ways, and no cycle."""
    x = np.repeat(np.arange(n), 3)
    y = x + np.random.default_rng(0).integers(1, 21, len(x))
    edges = np.unique(np.stack([x[y < n], y[y < n]], axis=1), axis=0)
    return {"arc": pa.table({"x": edges[:, 0], "y": edges[:, 1]})}


def _road(n: int) -> generate.Tables:
    """A square of crossings, each way between neighbours with a length: paths are long."""
    x, y = (column.to_numpy() for column in generate.grid(n)["arc"].columns)
    length = np.random.default_rng(0).integers(1, 100, 2 * len(x))
    return {"warc": pa.table({"x": np.concatenate([x, y]), "y": np.concatenate([y, x]), "d": length})}


KINDS: dict[str, Callable[[int], generate.Tables]] = {
    "gnp": lambda n: generate.gnp(n, 0.001),
    "grid": generate.grid,
    "tree": lambda height: generate.tree(height + 1, seed=TREE_SEED),  # its root is no level of its own
    "rmat": _rmat,
    "dag": _dag,
    "road": _road,
    "bom": generate.bom,
    "heap": lambda facts: generate.heap(round(facts * VARIABLES_A_FACT)),
}


def default_folder() -> Path:
    """`EMBERLOG_BENCH_DATA`, or a folder in the user's cache."""
    given = os.environ.get(FOLDER)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(cache) / "emberlog" / "bench"


def parsed(name: str) -> tuple[str, int]:
    """Kind and size of a data set: `rmat100K` is ("rmat", 100000)."""
    match = re.fullmatch(r"([a-z]+)(\d+)([KM]?)", name.removesuffix(SHUFFLED))
    if match is None or match[1] not in KINDS:
        raise UsageError(f"unknown data `{name}`", fix=f"a kind and a size, such as rmat1M; kinds: {', '.join(KINDS)}")
    return match[1], int(match[2]) * {"": 1, "K": 1000, "M": 1_000_000}[match[3]]


def files(name: str, folder: Path | None = None) -> dict[str, Path]:
    """The Parquet file of each relation of a data set; they are made if they are not there."""
    kind, size = parsed(name)
    target = (folder or default_folder()) / VERSION / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{name}-"))
        try:
            made = KINDS[kind](size)
            for relation, table in (_relabelled(made) if name.endswith(SHUFFLED) else made).items():
                pq.write_table(_shuffled(table), partial / f"{relation}.parquet")
            partial.rename(target)
        except OSError:  # somebody else was faster
            if not target.exists():
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return {path.stem: path for path in sorted(target.glob("*.parquet"))}


def _relabelled(tables: generate.Tables) -> generate.Tables:
    """The same graph, with other numbers for its nodes, the columns `x` and `y`."""
    nodes = [(name, spot) for name, table in tables.items() for spot in table.column_names if spot in ("x", "y")]
    most = max(int(tables[name][spot].to_numpy().max()) for name, spot in nodes)
    labels = np.random.default_rng(2).permutation(most + 1)
    return {
        name: pa.table(
            {
                spot: labels[table[spot].to_numpy()] if (name, spot) in nodes else table[spot]
                for spot in table.column_names
            }
        )
        for name, table in tables.items()
    }


def _shuffled(table: pa.Table) -> pa.Table:
    order = np.random.default_rng(1).permutation(table.num_rows)
    return pa.table({name: table[name].to_numpy()[order] for name in table.column_names})


def columns(paths: dict[str, Path], relations: tuple[str, ...]) -> Inputs:
    """The columns of some relations, in memory."""
    return {
        name: tuple(column.to_numpy() for column in pq.read_table(paths[name]).combine_chunks().columns)
        for name in relations
    }
