"""A small evaluator of core rules on plain Python values: it confirms counter-examples.

It applies the rules of one predicate once, to rows that need not be aggregated yet, and aggregates what they derive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, assert_never, overload

from emberlog.analysis.functions import DEFAULT_STEP, NARROWING
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.syntax.nodes import (
    Aggregate,
    Anonymous,
    Call,
    Collect,
    Comparison,
    Constant,
    Parameter,
    Term,
    Test,
    Variable,
)
from emberlog.types import Value

Row: TypeAlias = tuple[Value, ...]
Relations: TypeAlias = Mapping[str, Sequence[Row]]
Binding: TypeAlias = Mapping[str, Value]

MOST_VALUES = 1000  # of a range


class NoValue(Exception):
    """An expression has no value, or this evaluator does not know its function."""


# --- terms -----------------------------------------------------------------------------------------------------------


def value_of(term: Term, binding: Binding) -> Value:
    """The value of a term. Raises `NoValue`."""
    match term:
        case Variable(name):
            return binding[name]
        case Constant(value):
            return value
        case Call(function, arguments):
            return apply(function, [value_of(argument, binding) for argument in arguments])
        case Aggregate(_, arguments):
            return value_of(arguments[-1], binding)
        case Anonymous() | Parameter() | Collect():
            raise NoValue(str(term))
        case _:
            assert_never(term)


def apply(function: str, arguments: Sequence[Any]) -> Value:
    """The value of a function."""
    if function in NARROWING:
        return arguments[0]  # type: ignore[no-any-return]
    known = _FUNCTIONS.get(function)
    if known is None:
        raise NoValue(function)
    try:
        return known(*arguments)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise NoValue(function) from error


def _divide(a: Any, b: Any) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return float(a / b)


def _remainder(a: Any, b: Any) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return math.fmod(a, b)


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "^": lambda a, b: a**b,
    "neg": lambda a: -a,
    "abs": abs,
    "min": min,
    "max": max,
    "relu": lambda a: max(a, type(a)(0)),
    "clip": lambda a, low, high: min(max(a, low), high),
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "to_float": float,
    "to_number": int,
    "to_unsigned": int,
    "to_string": str,
    "strlen": len,
    "cat": lambda *texts: "".join(texts),
    "contains": lambda part, text: part in text,
    DEFAULT_STEP: lambda start, stop: 1 if start <= stop else -1,
}


# --- bodies ----------------------------------------------------------------------------------------------------------


def bindings(body: Iterable[Literal], relations: Relations, start: Binding) -> Iterator[Binding]:
    """The bindings of a body that extend `start`; those for which an expression has no value are left out."""
    found: list[Binding] = [start]
    for literal in body:
        found = [extended for binding in found for extended in _extend(literal, binding, relations)]
    yield from found


def _extend(literal: Literal, binding: Binding, relations: Relations) -> Iterator[Binding]:
    try:
        match literal:
            case Match(predicate, arguments):
                for row in _candidates(arguments, relations.get(predicate, ()), binding):
                    yield from _matched(arguments, row, binding)
            case Absent(predicate, arguments):
                rows = relations.get(predicate, ())
                if not any(_same(arguments, row, binding) for row in rows):
                    yield binding
            case Filter(condition):
                if holds(condition, binding):
                    yield binding
            case Bind(variable, term):
                yield {**binding, variable: value_of(term, binding)}
            case Spread(variable, start, stop, step):
                ends = [int(value_of(term, binding)) for term in (start, stop, step)]
                if ends[2] == 0 or len(range(*ends)) > MOST_VALUES:
                    raise NoValue("range")
                yield from ({**binding, variable: value} for value in range(*ends))
            case Gather():
                yield from _gather(literal, binding, relations)
            case _:
                assert_never(literal)
    except NoValue:
        return


class Indexed(Sequence[Row]):
    """Rows that are found by the values of some of their columns."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, places: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows that have `key` at `places`."""
        if places not in self._indexes:
            index = self._indexes[places] = {}
            for row in self._rows:
                index.setdefault(tuple(row[place] for place in places), []).append(row)
        return self._indexes[places].get(key, ())


def _candidates(arguments: Sequence[Term], rows: Sequence[Row], binding: Binding) -> Sequence[Row]:
    """The rows that may match: with an index, those that agree with what is bound already."""
    if not isinstance(rows, Indexed):
        return rows
    bound = [
        (place, argument)
        for place, argument in enumerate(arguments)
        if not isinstance(argument, Variable) or argument.name in binding
    ]
    return rows.find(tuple(place for place, _ in bound), tuple(value_of(argument, binding) for _, argument in bound))


def _matched(arguments: Sequence[Term], row: Row, binding: Binding) -> Iterator[Binding]:
    extended = dict(binding)
    for argument, value in zip(arguments, row, strict=True):
        if isinstance(argument, Variable) and argument.name not in extended:
            extended[argument.name] = value
        elif value_of(argument, extended) != value:
            return
    yield extended


def _same(arguments: Sequence[Term], row: Row, binding: Binding) -> bool:
    pairs = zip(arguments, row, strict=True)
    return all(isinstance(argument, Anonymous) or value_of(argument, binding) == value for argument, value in pairs)


def holds(condition: Comparison | Test, binding: Binding) -> bool:
    if isinstance(condition, Test):
        return value_of(condition.call, binding) is True
    left: Any = value_of(condition.left, binding)
    right: Any = value_of(condition.right, binding)
    operator = condition.operator
    if operator.startswith("!") and operator != "!=":
        return not _COMPARISONS[operator[1:]](left, right)
    return _COMPARISONS[operator](left, right)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _gather(gather: Gather, binding: Binding, relations: Relations) -> Iterator[Binding]:
    inner = [found for body in gather.bodies for found in bindings(body, relations, binding)]
    if gather.witnesses:
        raise NoValue("witnesses")
    values = [1 if gather.target is None else value_of(gather.target, found) for found in inner]
    if values or gather.function in ("count", "sum"):
        yield {**binding, gather.variable: fold(gather.function, values)}


# --- aggregates ------------------------------------------------------------------------------------------------------


def fold(function: str, values: Sequence[Any]) -> Value:
    """The aggregate of the values of a group."""
    match function:
        case "min" | "max":
            best: Value = min(values) if function == "min" else max(values)
            return best
        case "sum":
            total: Value = sum(values)
            return total
        case "count":
            return len(values)
        case "countd":
            return len(set(values))
        case _:
            raise NoValue(function)


def merge(function: str, values: Sequence[Any]) -> Value:
    """Partial results of an aggregate as one: counts are added up."""
    return fold("sum" if function in ("count", "countd") else function, values)


def settle(rows: Iterable[Row], position: int, function: str) -> list[Row]:
    """Rows of an aggregated predicate, one for each group."""
    groups: dict[Row, list[Value]] = {}
    for row in rows:
        groups.setdefault((*row[:position], *row[position + 1 :]), []).append(row[position])
    return [
        (*group[:position], merge(function, values), *group[position:]) for group, values in groups.items()
    ]  # fmt: skip


def contributions(rules: Iterable[CoreRule], relations: Relations) -> Iterator[Row]:
    """The rows that rules derive before they are aggregated, one for each binding; a count contributes 1."""
    for rule in rules:
        counted = {position for position, aggregate in rule.aggregates if aggregate.function == "count"}
        for binding in bindings(rule.body, relations, {}):
            with suppress(NoValue):
                row = tuple(value_of(argument, binding) for argument in rule.arguments)
                yield tuple(1 if position in counted else value for position, value in enumerate(row))


def derive(rules: Iterable[CoreRule], relations: Relations, spot: tuple[int, str] | None) -> list[Row]:
    """The rows that the rules of one predicate derive, aggregated if it is."""
    if spot is None:
        return list(dict.fromkeys(contributions(rules, relations)))
    position, function = spot
    rules = list(rules)
    counts = [rule for rule in rules if function == "countd" and not rule.aggregates]
    others = [rule for rule in rules if rule not in counts]
    total = "sum" if function == "count" else function
    found = _folded(contributions(others, relations), position, total)
    # A plain head under a `countd` contributes its value, as it does under a count.
    return _folded([*found, *contributions(counts, relations)], position, "sum") if counts else found


def _folded(rows: Iterable[Row], position: int, function: str) -> list[Row]:
    groups: dict[Row, list[Value]] = {}
    for row in rows:
        groups.setdefault((*row[:position], *row[position + 1 :]), []).append(row[position])
    return [(*group[:position], fold(function, values), *group[position:]) for group, values in groups.items()]


def same(a: Value, b: Value) -> bool:
    """Are two values the same, but for rounding?"""
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, str) or isinstance(b, str):
            return False
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b
