"""Conditions on the values of columns, checked on rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt
from typing import Any

from emberlog.analysis.program import Bound, Signature
from emberlog.executors.base import broken_domain
from emberlog.maintain.store import Row

# What breaks a bound. A NaN breaks none, as in the statements that look for rows outside.
_BREAKS: Mapping[str, Callable[[Any, Any], bool]] = {"<": ge, "<=": gt, ">": le, ">=": lt, "!=": eq}


def first_outside(rows: Iterable[Row], position: int, bound: Bound) -> Row | None:
    """A row whose value at a position is not within a bound."""
    breaks = _BREAKS[bound.operator]
    return next((row for row in rows if breaks(row[position], bound.value)), None)


def frame_outside(frame: Any, position: int, bound: Bound) -> Row | None:
    """A row of a frame with the columns `c0`, `c1`, .. whose value at a position is not within a bound."""
    from pyspark.sql import functions as f

    value = f.col(f"c{position}")
    found = frame.where(_BREAKS[bound.operator](value, bound.value) & ~f.isnan(value.cast("double"))).first()
    return None if found is None else tuple(found)


def check_domains(
    signature: Signature, rows: Any, find: Callable[[Any, int, Bound], Row | None] = first_outside
) -> None:
    """Checks the declared conditions on the columns of a relation. `find` finds a row outside."""
    if signature.aggregates:
        return
    for position, bounds in signature.domains.items():
        for bound in bounds:
            row = find(rows, position, bound)
            if row is not None:
                raise broken_domain(signature, position, bound, row)
