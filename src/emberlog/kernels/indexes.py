"""Indexes over static relations: rows sorted by the columns by which they are found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emberlog.components.program import Id, Static
from emberlog.kernels.encode import Lazy
from emberlog.kernels.sorting import Owners, Pieces, by_key, pairs_by_key


@dataclass(frozen=True)
class Index:
    """`offsets` is the range of rows of each key; `keys` are its values where they are not positions themselves."""

    columns: dict[int, np.ndarray[Any, Any]]
    offsets: np.ndarray[Any, Any] | None
    keys: np.ndarray[Any, Any] | None
    rows: int
    packed: np.ndarray[Any, Any] | None = None  # two columns of 32 bits, the first one in the low half

    @property
    def nbytes(self) -> int:
        arrays = (*self.columns.values(), self.offsets, self.keys, self.packed)
        return sum(array.nbytes for array in arrays if array is not None)


def pair_of(bound: tuple[int, ...], columns: Lazy, needed: set[int]) -> tuple[int, int] | None:
    """The two columns of an index that fit in one word of 64 bits, if it is such a one."""
    kept = sorted(needed)
    fits = len(bound) == 1 and len(kept) == 2 and all(columns.dtype(spot).itemsize == 4 for spot in kept)
    return (kept[0], kept[1]) if fits else None


def kept_index(
    static: Static,
    bound: tuple[int, ...],
    columns: Lazy,
    needed: set[int],
    slots: int,
    workers: int = 1,
    pair: tuple[int, int] | None = None,
    owners: Owners | None = None,
) -> Index:
    """The same as `build`, or what an earlier run built of these columns."""
    by = None if owners is None else (owners.spot, owners.number, owners.of_block.tobytes())
    return columns.made(
        ("index", bound, frozenset(needed), slots, pair, by),
        lambda: build(static, bound, columns, needed, slots, workers, pair, owners),
        lambda made: made.nbytes,
    )


def build(
    static: Static,
    bound: tuple[int, ...],
    columns: Lazy,
    needed: set[int],
    slots: int,
    workers: int = 1,
    pair: tuple[int, int] | None = None,
    owners: Owners | None = None,
) -> Index:
    """The index of a static by its `bound` columns. Of the others the `needed` ones are kept, or a `pair`, packed.

    With owners, by one of the columns, which there may be where rows are found by one id, `offsets` are of both."""
    kept = [spot for spot in range(len(columns)) if spot in needed or spot in bound[1:]]
    if not bound:
        return Index({spot: columns[spot] for spot in kept}, None, None, columns.rows)
    first: Pieces = columns.pieces(bound[0])
    keys = None
    if not isinstance(static.kinds[bound[0]], Id):
        keys, inverse = np.unique(columns[bound[0]].astype(np.int64), return_inverse=True)
        first, slots = inverse.astype(np.uint32), len(keys)
    if owners is not None:
        owners = replace(owners, spot=(pair or kept).index(owners.spot))
    if pair is not None:
        low, high = (columns.pieces(spot) for spot in pair)
        offsets, packed = pairs_by_key(first, slots, low, high, workers, owners)
        return Index({}, offsets, keys, columns.rows, packed)
    if len(bound) == 1:
        dtypes = [columns.dtype(spot) for spot in kept]
        offsets, found = by_key(first, slots, [columns.pieces(spot) for spot in kept], workers, owners, dtypes)
        return Index(dict(zip(kept, found, strict=True)), offsets, keys, columns.rows)
    order = np.lexsort([columns[spot] for spot in reversed(bound)])
    offsets, _ = by_key(first, slots, [], workers)
    return Index({spot: np.ascontiguousarray(columns[spot][order]) for spot in kept}, offsets, keys, columns.rows)
