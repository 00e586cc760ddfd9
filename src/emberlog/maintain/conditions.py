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


def check_domains(signature: Signature, rows: Iterable[Row]) -> None:
    """Checks the declared conditions on the columns of a relation."""
    if signature.aggregates:
        return
    for position, bounds in signature.domains.items():
        for bound in bounds:
            row = first_outside(rows, position, bound)
            if row is not None:
                raise broken_domain(signature, position, bound, row)
