"""What the generators share: checked sizes, distinct random keys, tables from columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from emberlog.diagnostics import UsageError

Tables: TypeAlias = dict[str, pa.Table]
Ints: TypeAlias = NDArray[np.int64]

CHUNK = 1 << 20
"""How many random rows are drawn at a time: working memory does not grow with the size asked for."""

BATCH = 1 << 10


def need(holds: bool, message: str) -> None:
    """A `UsageError` with `message` unless the condition holds."""
    if not holds:
        raise UsageError(message)


def need_size(name: str, size: float, least: int = 0) -> None:
    need(isfinite(size) and size >= least, f"{name} must be at least {least}, not {size}")


def need_probability(name: str, value: float) -> None:
    need(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], not {value}")


def table(**columns: Any) -> pa.Table:
    """A table from named columns (NumPy or Arrow arrays)."""
    return pa.table({name: pa.chunked_array([column]) for name, column in columns.items()})


def chunked(names: Sequence[str], chunks: Sequence[tuple[Ints, ...]]) -> pa.Table:
    """A table whose columns are given in pieces, without copying them together."""
    return pa.table(
        {name: pa.chunked_array([chunk[i] for chunk in chunks], type=pa.int64()) for i, name in enumerate(names)}
    )


def distinct(draw: Callable[[int], Ints], count: int, rng: np.random.Generator) -> Ints:
    """`count` different keys, ascending, from `draw(n)`, which gives at most n random keys, repetitions among them.

    The caller sees to it that `draw` can give that many different keys.
    """
    keys = once(_drawn(draw, count))
    while len(keys) < count:
        missing = count - len(keys)
        keys = once(np.concatenate([keys, _drawn(draw, missing + missing // 2 + BATCH)]))
    if len(keys) > count:
        # Dropping the largest would thin out the last nodes: drop at random.
        keys = np.delete(keys, rng.choice(len(keys), len(keys) - count, replace=False))
    return keys


def once(keys: Ints) -> Ints:
    """The different keys, ascending. (`np.unique` hashes, which takes seventy times as long on ten million keys.)"""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _drawn(draw: Callable[[int], Ints], count: int) -> Ints:
    whole, rest = divmod(count, CHUNK)
    return np.concatenate([draw(size) for size in [CHUNK] * whole + [rest]])


def ids(count: int) -> Ints:
    return np.arange(count, dtype=np.int64)


def names(prefix: str, numbers: Ints, width: int = 6) -> pa.Array:
    """`prefix-000042` for each number."""
    import pyarrow.compute as pc

    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(pa.scalar(prefix), digits, "-")
