"""Who owns a row: a hash of some of its integers, which NumPy and Spark's SQL compute alike.

Spark has no integers without a sign, and an overflow is an error there. So the hash has 32 bits: a number is folded
into as many, and its product with an odd number below 2^31 stays below 2^63.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from emberlog.kernels.columns.joins import Column

GOLDEN = 0x61C88647  # 2^32 less its golden section: products of successive numbers are far apart
LOW_BITS = 0xFFFFFFFF
HALF, QUARTER = 32, 16  # of the bits of a number


def owners(columns: Sequence[Column], rows: int, size: int) -> Column:
    """The worker that owns each row; without any columns it is the first one."""
    mixed = np.zeros(rows, np.uint64)
    for column in columns:
        bits = column.astype(np.uint64)
        folded = ((mixed >> np.uint64(QUARTER)) ^ bits ^ (bits >> np.uint64(HALF))) & np.uint64(LOW_BITS)
        mixed = (folded * np.uint64(GOLDEN)) & np.uint64(LOW_BITS)
    return (mixed * np.uint64(size) >> np.uint64(HALF)).astype(np.uint16)


def owner_expression(columns: Sequence[str], size: int) -> Any:
    """The same as a column of Spark, of columns of type bigint."""
    from pyspark.sql import functions as f

    def number(value: int) -> Any:
        return f.lit(value).cast("bigint")

    mixed = number(0)
    for name in columns:
        bits = f.col(name).bitwiseXOR(f.shiftrightunsigned(name, HALF))
        folded = f.shiftrightunsigned(mixed, QUARTER).bitwiseXOR(bits).bitwiseAND(number(LOW_BITS))
        mixed = (folded * number(GOLDEN)).bitwiseAND(number(LOW_BITS))
    return f.shiftrightunsigned(mixed * number(size), HALF).cast("int")
