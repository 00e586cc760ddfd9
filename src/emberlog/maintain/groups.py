"""What a binding gives to the aggregates of a head, and the row that the contributions of a group make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import CoreRule, Signature
from emberlog.maintain.functions import Missing, canonical
from emberlog.maintain.nests import Unsupported
from emberlog.maintain.store import Row
from emberlog.syntax.nodes import Aggregate, Term
from emberlog.types import Type, integer_range


@dataclass(frozen=True, slots=True)
class Cell:
    """What a rule gives to one aggregated column: the place of its value among the rule's terms, that of the key of a
    `sum<(K,V)>`, and whether the head has no aggregate there: then it gives its value, also to a count."""

    value: int
    key: int | None
    plain: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """What a rule gives to each aggregated column, and the terms that compute it."""

    terms: tuple[Term, ...]
    cells: Mapping[int, Cell]


def cells_of(rule: CoreRule, signature: Signature) -> Cells:
    """What the bindings of a rule give to the aggregated columns of its relation."""
    terms: list[Term] = []
    cells: dict[int, Cell] = {}
    for position, function in signature.aggregates.items():
        argument = rule.arguments[position]
        given = argument.arguments if isinstance(argument, Aggregate) else (argument,)
        _check(function, type_of(given[-1], rule.types), signature.columns[position].type)
        terms += given
        key = len(terms) - 2 if len(given) == 2 else None
        cells[position] = Cell(len(terms) - 1, key, not isinstance(argument, Aggregate))
    return Cells(tuple(terms), cells)


def _check(function: str, operand: Type, column: Type) -> None:
    if function in ("sum", "avg") and operand.kind == "decimal":
        raise Unsupported(f"`{function}` of decimals")
    if column.kind == "float" and column.bits != 64:
        raise Unsupported(f"an aggregate of the type {column}")


def is_linear(signature: Signature, rules: Sequence[Cells]) -> bool:
    """True if totals say all of a group: counts and sums of whole numbers, in which every contribution counts."""
    whole = all(
        function == "count" or (function == "sum" and signature.columns[position].type.is_integer)
        for position, function in signature.aggregates.items()
    )
    return whole and all(cell.key is None for cells in rules for cell in cells.cells.values())


def weights(signature: Signature, cells: Cells, values: Row) -> list[int]:
    """What a contribution adds to each aggregated column of a linear relation."""
    return [
        1 if function == "count" and not cells.cells[position].plain else values[cells.cells[position].value]
        for position, function in signature.aggregates.items()
    ]


def row_of(signature: Signature, group: Row, totals: Iterable[Any]) -> Row:
    """The row of a group, with these values in its aggregated columns. Raises `Missing` if one does not fit."""
    found = {
        position: _entering(total, signature.columns[position].type)
        for position, total in zip(signature.aggregates, totals, strict=True)
    }
    rest = iter(group)
    return tuple(found[i] if i in found else next(rest) for i in range(len(signature.columns)))


def combine(signature: Signature, rules: Sequence[Cells], group: Row, members: Mapping[Any, int]) -> Row:
    """The row of a group: `members` are (number of the rule, values of its terms), with how often each comes."""
    totals = (_column(function, rules, place, members) for place, function in signature.aggregates.items())
    return row_of(signature, group, totals)


def _column(function: str, rules: Sequence[Cells], position: int, members: Mapping[Any, int]) -> Any:
    own: list[tuple[Any, int]] = []
    plain: list[tuple[Any, int]] = []
    keyed: dict[Any, Any] = {}
    for (number, values), times in members.items():
        cell = rules[number].cells[position]
        value = values[cell.value]
        if cell.plain:
            plain.append((value, times))
        elif cell.key is None:
            own.append((value, times))
        else:
            identity = number, values[cell.key]
            keyed[identity] = _best(max, [keyed.get(identity, value), value])
    own += ((value, 1) for value in keyed.values())
    return _total(function, own, plain)


def _total(function: str, own: list[tuple[Any, int]], plain: list[tuple[Any, int]]) -> Any:
    match function:
        case "count":
            return sum(times for _, times in own) + sum(value * times for value, times in plain)
        case "countd":
            return len({value for value, _ in own}) + sum(value * times for value, times in plain)
        case "min" | "max":
            return _best(min if function == "min" else max, [value for value, _ in (*own, *plain)])
        case "sum":
            return _sum([*own, *plain])
        case "avg":
            number = sum(times for _, times in (*own, *plain))
            return _sum([*own, *plain]) / number
        case _:
            raise AssertionError(f"no group has `{function}`")


def _sum(values: list[tuple[Any, int]]) -> Any:
    """The sum. Of floats it is the exact one, rounded once: the order in which they came does not matter."""
    if not isinstance(values[0][0], float):
        return sum(value * times for value, times in values)
    repeated = [value for value, times in values for _ in range(times)]
    try:
        return math.fsum(repeated)
    except (OverflowError, ValueError):  # infinities among them, or an intermediate sum that is too large
        return sum(repeated)


def _best(best: Any, values: Iterable[Any]) -> Any:
    """The least or greatest value; NaN wins over nothing only."""
    numbers = [value for value in values if value == value]
    return best(numbers) if numbers else math.nan


def _entering(value: Any, type: Type) -> Any:
    """The value in a column of this type."""
    if type.is_integer:
        low, high = integer_range(type)
        if not low <= value <= high:
            raise Missing
    return canonical(value)
