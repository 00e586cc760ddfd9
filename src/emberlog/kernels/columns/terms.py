"""Terms and conditions over columns: the arithmetic of the compiled loops, for all bindings at once.

An operation that has no value for some binding raises `Failed`, as the loops do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from emberlog.analysis.functions import NARROWING
from emberlog.components.domains import is_float, kind_of
from emberlog.components.program import Check, Kind
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.watch import Failed
from emberlog.syntax.nodes import Call, Constant, Term, Variable
from emberlog.types import INT64_MIN, integer_range

Constants: TypeAlias = Callable[[Kind, object], Any]

# As in the loops: a product of floats near this may be off by its rounding.
LARGE_PRODUCT = 9.2e18


class Terms:
    """Computes the terms of a rule. There is at least one binding: what is computed for none cannot fail."""

    def __init__(self, kinds: Mapping[str, Kind], constant: Constants) -> None:
        self.kinds = kinds
        self.constant = constant

    def column(self, term: Term, env: Mapping[str, Column], rows: int, wanted: Kind | None = None) -> Column:
        """The values of a term, for so many bindings."""
        if isinstance(term, Variable):
            return env[term.name]
        with np.errstate(all="ignore"):
            found = self._value(term, env, wanted)
        return found if found.ndim else np.full(rows, found)

    def holds(self, check: Check, env: Mapping[str, Column], rows: int) -> Column:
        """Where a condition holds."""
        left, right, operator = check.condition.left, check.condition.right, check.condition.operator
        kind = kind_of(left, self.kinds) or kind_of(right, self.kinds)
        with np.errstate(all="ignore"):
            one, other = self._value(left, env, kind), self._value(right, env, kind)
        if operator.startswith("!") and operator != "!=":
            found = ~_compared(operator[1:], one, other)
        else:
            found = _compared(operator, one, other)
        return found if found.ndim else np.full(rows, found)

    def _value(self, term: Term, env: Mapping[str, Column], wanted: Kind | None = None) -> Column:
        match term:
            case Variable(name):
                return env[name]
            case Constant(value):
                kind = wanted or ("float" if isinstance(value, float) else "int")
                return np.asarray(self.constant(kind, value), np.float64 if kind == "float" else np.int64)
            case Call(function, arguments):
                values = [self._value(argument, env) for argument in arguments]
                if is_float(arguments[0], self.kinds) or function == "to_float":
                    return np.asarray(_of_floats(function, values))
                return np.asarray(_of_integers(function, values))
            case _:
                raise AssertionError(f"{term} cannot stand in a loop")


def _compared(operator: str, one: Column, other: Column) -> Column:
    match operator:
        case "=":
            return np.asarray(one == other)
        case "!=":
            return np.asarray(one != other)
        case "<":
            return np.asarray(one < other)
        case "<=":
            return np.asarray(one <= other)
        case ">":
            return np.asarray(one > other)
        case ">=":
            return np.asarray(one >= other)
        case _:
            raise AssertionError(f"no loop compares by {operator}")


def _fail(where: Column) -> None:
    if np.any(where):
        raise Failed


def added(one: Column, other: Column) -> Column:
    """The sums of integers; `Failed` where one leaves 64 bits."""
    found = np.asarray(one + other)
    _fail(((one ^ found) & (other ^ found)) < 0)
    return found


def subtracted(one: Column, other: Column) -> Column:
    found = np.asarray(one - other)
    _fail(((one ^ other) & (one ^ found)) < 0)
    return found


def _of_floats(function: str, values: Sequence[Column]) -> Column:
    match function, values:
        case "to_float", [a]:
            return a.astype(np.float64)
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            _fail(b == 0.0)
            return a / b
        case "%", _:
            raise Failed  # left to the relational evaluator
        case "neg", [a]:
            return -a
        case (("abs" | "exp" | "tanh"), [a]):
            return np.asarray({"abs": np.abs, "exp": np.exp, "tanh": np.tanh}[function](a))
        case "log", [a]:
            _fail(~(a > 0.0))
            return np.log(a)
        case "sqrt", [a]:
            _fail(~(a >= 0.0))
            return np.sqrt(a)
        case "relu", [a]:
            return np.where(a > 0.0, a, 0.0)
        case _:
            return _of_either(function, values)


def _of_integers(function: str, values: Sequence[Column]) -> Column:
    match function, values:
        case "+", [a, b]:
            return added(a, b)
        case "-", [a, b]:
            return subtracted(a, b)
        case "*", [a, b]:
            _fail(np.abs(a.astype(np.float64) * b.astype(np.float64)) >= LARGE_PRODUCT)
            return a * b
        case (("/" | "%"), [a, b]):
            _fail((b == 0) | ((b == -1) & (a == INT64_MIN)))
            rest = np.fmod(a, b)  # rounds toward zero, as the quotient does
            return rest if function == "%" else (a - rest) // b
        case (("neg" | "abs"), [a]):
            _fail(a == INT64_MIN)
            return -a if function == "neg" else np.abs(a)
        case "relu", [a]:
            return np.maximum(a, 0)
        case "to_number", [a]:
            return a  # unsigned numbers of 2^63 and more are not among the columns
        case "to_unsigned", [a]:
            _fail(a < 0)
            return a
        case _, [a] if function in NARROWING:
            low, high = integer_range(NARROWING[function])
            _fail((a < low) | (a > high))
            return a
        case _:
            return _of_either(function, values)


def _of_either(function: str, values: Sequence[Column]) -> Column:
    match function, values:
        case "clip", [a, low, high]:
            return _of_either("min", [_of_either("max", [a, low]), high])
        case "min", _:
            return reduce(lambda later, a: np.where(a < later, a, later), reversed(values))
        case "max", _:
            return reduce(lambda later, a: np.where(a > later, a, later), reversed(values))
        case _:
            raise AssertionError(f"no loop computes {function}")
