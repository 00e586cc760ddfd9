"""Rows of simple plans, computed over Arrow's columns in this process.

Columns that are only copied stay where they are, however many rows they have. Conditions and joins are for few rows: a
small program is done before what writes and runs statements would have been loaded. Nothing here makes Arrow load
pandas, as `pa.array` and `to_numpy` do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from emberlog.analysis.functions import type_of
from emberlog.data.arrow import array_of, arrow_type
from emberlog.deep import Deep, run_deep
from emberlog.plan.logical import (
    Condition,
    Distinct,
    Extend,
    Fold,
    Group,
    Join,
    Plan,
    Project,
    Scan,
    Select,
    Union,
    Unit,
    columns,
    scans,
    walk,
)
from emberlog.syntax.nodes import Comparison, Constant, Term, Variable
from emberlog.thresholds import JOINED_ROWS, SMALL_ROWS
from emberlog.types import NUMBER, SYMBOL, Column, Type

if TYPE_CHECKING:
    import pyarrow as pa


COMPARED = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def direct_rows(plan: Plan, count: Callable[[str], int], fetch: Callable[[str], pa.Table]) -> pa.Table | None:
    """The rows of a plan, duplicates among them where the plan has them; None where a statement should give them.

    `count` gives the number of rows of a relation, `fetch` the rows.
    """
    import pyarrow as pa

    if not all(_is_simple(node) for node in walk(plan)):
        return None
    if not copies(plan) and sum(count(scan.relation) for scan in scans(plan)) > SMALL_ROWS:
        return None
    try:
        found = run_deep(_rows(plan, fetch))
    except _Many:
        return None
    return pa.table(list(found.columns.values()), names=list(found.columns))


def copies(plan: Plan) -> bool:
    """Does a plan only copy columns?"""
    return all(isinstance(node, Scan | Project | Union) and _is_simple(node) for node in walk(plan))


def different_rows(table: pa.Table, described: Sequence[Column]) -> pa.Table | None:
    """The rows of a table without duplicates; None where a statement should give them."""
    import pyarrow as pa

    if not described or table.num_rows > SMALL_ROWS or not all(column.type == NUMBER for column in described):
        return None
    rows = _Rows(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))
    found = _first_of_each(rows, table.column_names)
    return pa.table(list(found.columns.values()), names=table.column_names)


def _is_simple(plan: Plan) -> bool:
    match plan:
        case Unit() | Scan(version="all") | Union():
            return True
        case Select(child, conditions):
            return all(_is_simple_condition(condition, columns(child)) for condition in conditions)
        case Extend(_, _, Constant() as constant):
            return _is_plain(constant, {})
        case Project(_, items):
            return bool(items) and all(isinstance(term, Variable) for _, term in items)
        case Distinct(child):
            return all(type == NUMBER for type in columns(child).values())
        case Group(child, keys, (Fold(_, "min" | "max", str() as argument),)):
            return all(columns(child)[name] == NUMBER for name in (*keys, argument))
        case Join(left, right):
            return all(columns(left)[name] == columns(right)[name] == NUMBER for name in _shared(plan))
        case _:
            return False


def _is_simple_condition(condition: Condition, types: Mapping[str, Type]) -> bool:
    if not isinstance(condition, Comparison) or condition.operator not in COMPARED:
        return False
    sides = (condition.left, condition.right)
    # Whether Arrow orders texts as the engines do is left open: here they are equal or not.
    ordered = condition.operator not in ("=", "!=")
    return all(_is_plain(side, types, NUMBER if ordered else None) for side in sides)


def _is_plain(term: Term, types: Mapping[str, Type], only: Type | None = None) -> bool:
    """Is it a column or a constant whose values mean the same to Arrow as to us?"""
    match term:
        case Variable(name):
            type = types[name]
        case Constant(int() as value, "") if not isinstance(value, bool):
            type = NUMBER
        case Constant(str(), ""):
            type = SYMBOL
        case _:
            return False
    return type == only if only is not None else type in (NUMBER, SYMBOL)


# --- evaluation ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Columns by name; their number of rows, for there may be no columns."""

    count: int
    columns: Mapping[str, Any]

    def only(self, kept: Any) -> _Rows:
        """Those with these numbers."""
        from emberlog.kernels.dictionaries import as_arrow

        numbers = as_arrow(kept)
        return _Rows(len(kept), {name: column.take(numbers) for name, column in self.columns.items()})


class _Many(Exception):
    """A join gives too many rows."""


def _rows(plan: Plan, fetch: Callable[[str], pa.Table]) -> Deep[_Rows]:
    import pyarrow as pa
    import pyarrow.compute as pc

    match plan:
        case Unit():
            return _Rows(1, {})
        case Scan(relation, names):
            table = fetch(relation)
            kept = {name: table.column(spot) for spot, name in enumerate(names) if name is not None}
            return _Rows(table.num_rows, kept)
        case Select(child, conditions):
            rows: _Rows = yield _rows(child, fetch)
            return rows.only(_numbers(pc.indices_nonzero(reduce(pc.and_, [_mask(one, rows) for one in conditions]))))
        case Extend(child, column, Constant(value)):
            rows = yield _rows(child, fetch)
            made = array_of([value] * rows.count, arrow_type(columns(plan)[column]))
            return _Rows(rows.count, {**rows.columns, column: pa.chunked_array([made])})
        case Project(child, items):
            rows = yield _rows(child, fetch)
            return _Rows(rows.count, {n: rows.columns[term.name] for n, term in items if isinstance(term, Variable)})
        case Distinct(child):
            rows = yield _rows(child, fetch)
            return _first_of_each(rows, list(rows.columns))
        case Group(child, keys, (Fold(column, function, str() as argument),)):
            rows = yield _rows(child, fetch)
            values = _numbers(rows.columns[argument])
            # Turned round bit by bit, numbers are in the other order, and none is out of range.
            best = _first_of_each(rows, list(keys), values if function == "min" else ~values)
            return _Rows(best.count, {**{key: best.columns[key] for key in keys}, column: best.columns[argument]})
        case Join(left, right):
            return _joined((yield _rows(left, fetch)), (yield _rows(right, fetch)), _shared(plan))
        case Union(inputs):
            parts = []
            for child in inputs:
                parts.append((yield _rows(child, fetch)))
            first = list(parts[0].columns)
            tables = [pa.table(list(part.columns.values()), names=first) for part in parts]
            together = pa.concat_tables(tables, promote_options="permissive")
            return _Rows(together.num_rows, dict(zip(first, together.columns, strict=True)))
        case _:
            raise AssertionError("no simple plan")


def _mask(condition: Condition, rows: _Rows) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    assert isinstance(condition, Comparison)

    def side(term: Term) -> Any:
        match term:
            case Variable(name):
                return rows.columns[name]
            case Constant(value):
                return array_of([value], arrow_type(type_of(term, {})))[0]
        raise AssertionError("no plain term")

    found = pc.call_function(COMPARED[condition.operator], [side(condition.left), side(condition.right)])
    return array_of([found.as_py()] * rows.count, pa.bool_()) if isinstance(found, pa.Scalar) else found


def _first_of_each(rows: _Rows, keys: list[str], values: Any = None) -> _Rows:
    """One row of those that have the same keys: the one with the least value, if there are values."""
    import numpy as np

    from emberlog.kernels.columns.joins import begins

    if not keys:
        return rows.only(np.argsort(np.zeros(rows.count) if values is None else values)[:1])
    numbers = [_numbers(rows.columns[key]) for key in keys]
    order = np.lexsort([*(() if values is None else (values,)), *numbers])
    starts = reduce(np.logical_or, [begins(column[order]) for column in numbers])
    return rows.only(order[starts])


def _joined(left: _Rows, right: _Rows, shared: list[str]) -> _Rows:
    from emberlog.kernels.columns.joins import Index, expanded

    index = Index([_numbers(right.columns[name]) for name in shared], [None] * len(shared), right.count)
    low, high = index.ranges([_numbers(left.columns[name]) for name in shared], left.count)
    if int((high - low).sum()) > JOINED_ROWS:
        raise _Many
    first, places = expanded(low, high)
    found = left.only(first)
    rest = _Rows(right.count, {name: column for name, column in right.columns.items() if name not in shared})
    return _Rows(found.count, {**found.columns, **rest.only(index.order[places]).columns})


def _shared(join: Join) -> list[str]:
    right = columns(join.right)
    return [name for name in columns(join.left) if name in right]


def _numbers(column: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    from emberlog.kernels.dictionaries import joined

    return joined(column.cast(pa.int64()), np.int64)
