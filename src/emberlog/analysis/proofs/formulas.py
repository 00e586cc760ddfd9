"""Terms of the language as Z3 terms.

Numbers are integers or reals as their types say. With `loose` integers are reals too, which is easier to decide: what
holds for all reals holds for all integers, unless whole-number division is involved. With `small` every symbol is an
integer, so that a counter-example is easy to read. Text, dates and decimals only have an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias, assert_never

import z3

from emberlog.analysis.functions import NARROWING, type_of
from emberlog.analysis.proofs.steps import Differs, Guard
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
from emberlog.types import Type

Z3: TypeAlias = Any  # z3's expressions have no types that mypy could use
Values: TypeAlias = Mapping[str, Z3]

# Functions without an exact form here, that grow with their argument, and bounds of their values.
_GROWING: Mapping[str, tuple[float | None, float | None]] = {
    "exp": (0, None), "log": (None, None), "sqrt": (0, None), "tanh": (-1, 1),
}  # fmt: skip
_NEVER_NEGATIVE = frozenset({"strlen", "ord"})
_NEGATED = {"!<": "<", "!<=": "<=", "!>": ">", "!>=": ">="}
_MOST_POWER = 6


class NotReal(Exception):
    """The term has whole-number division: reals do not tell what integers do."""


class Encoder:
    """Makes Z3 terms of the terms of one step.

    `sides` collects what must be true for every term made so far to have a value, `inexact` says that a function
    without an exact form was met: a proof still holds, a counter-example may not.
    """

    def __init__(self, types: Mapping[str, Type], loose: bool = False, small: bool = False) -> None:
        self._types = types
        self._loose = loose
        self._small = small
        self._symbols: dict[str, Z3] = {}
        self._functions: dict[str, Z3] = {}
        self._grown: dict[str, list[tuple[Z3, Z3]]] = {}
        self.sides: list[Z3] = []
        self.inexact = False

    # --- symbols ---

    def symbol(self, name: str, like: str = "") -> Z3:
        """The symbol `name`; one that the step does not have is of the type of `like`."""
        if name not in self._symbols:
            self._symbols[name] = self._new(name, self._types[like or name])
        return self._symbols[name]

    def symbols(self) -> Mapping[str, Z3]:
        return self._symbols

    def _new(self, name: str, type: Type) -> Z3:
        match type.kind:
            case "bool":
                return z3.Bool(name)
            case "float" | "decimal":
                return z3.ToReal(z3.Int(name)) if self._small else z3.Real(name)
            case "number" | "unsigned":
                return z3.Real(name) if self._loose else z3.Int(name)
            case "symbol" | "date" | "timestamp":
                return z3.Int(name)
            case _:
                assert_never(type.kind)

    def known(self) -> list[Z3]:
        """What types, and functions that grow, tell of the symbols and terms made so far."""
        found = [
            self._symbols[name] >= 0
            for name in self._symbols
            if name in self._types and self._types[name].kind == "unsigned"
        ]
        for function, pairs in self._grown.items():
            low, high = _GROWING[function]
            for argument, result in pairs:
                found += [] if low is None else [result >= low]
                found += [] if high is None else [result <= high]
                found += [z3.Implies(argument <= other, result <= above) for other, above in pairs]
        return found

    def range(self, most: int) -> list[Z3]:
        """Every number is between -`most` and `most`."""
        return [z3.And(s >= -most, s <= most) for s in self._symbols.values() if not z3.is_bool(s)]

    # --- conditions ---

    def guard(self, guard: Guard, values: Values) -> Z3:
        condition = guard.condition
        if isinstance(condition, Differs):
            return z3.Or([self.term(a, values) != self.term(b, values) for a, b in condition.pairs])
        return self.condition(condition, values)

    def condition(self, condition: Comparison | Test, values: Values) -> Z3:
        if isinstance(condition, Test):
            return self._unknown(
                condition.call, [self.term(a, values) for a in condition.call.arguments]
            ) == z3.BoolVal(True)
        left, right = self.term(condition.left, values), self.term(condition.right, values)
        if condition.operator in _NEGATED:
            return z3.Not(compare(_NEGATED[condition.operator], left, right))
        return compare(condition.operator, left, right)

    # --- terms ---

    def term(self, term: Term, values: Values) -> Z3:
        """The term, with `values` for some of the symbols."""
        match term:
            case Variable(name):
                return values[name] if name in values else self.symbol(name)
            case Constant():
                return self._constant(term)
            case Call(function, arguments):
                return self._call(term, function, [self.term(argument, values) for argument in arguments])
            case Anonymous() | Parameter() | Aggregate() | Collect():
                raise ValueError(f"not a term of a step: {term}")
            case _:
                assert_never(term)

    def _constant(self, constant: Constant) -> Z3:
        match constant.value:
            case bool() as value:
                return z3.BoolVal(value)
            case int() as value:
                return z3.RealVal(value) if self._loose else z3.IntVal(value)
            case float() as value:
                return z3.RealVal(repr(value)) if abs(value) < 1e300 else self._free(repr(value), z3.RealSort())
            case str() as value if constant.kind == "decimal":
                return z3.RealVal(value)
            case str() as value:
                # Texts have an order that is not written down here.
                return self._free(repr(value), z3.IntSort())
            case _:
                assert_never(constant.value)

    def _free(self, name: str, sort: Z3) -> Z3:
        self.inexact = True
        return z3.Const(f"constant {name}", sort)

    def _call(self, call: Call, function: str, arguments: list[Z3]) -> Z3:
        whole = type_of(call.arguments[0], self._types).is_integer
        match function:
            case "+" | "-" | "*":
                return _OPERATIONS[function](*arguments)
            case "neg":
                return -arguments[0]
            case "/":
                return self._quotient(arguments[0], arguments[1], whole)
            case "%" if whole:
                quotient = self._quotient(arguments[0], arguments[1], whole)
                return arguments[0] - arguments[1] * quotient
            case "^":
                return self._power(call, arguments)
            case "min" | "max":
                return reduce(least if function == "min" else greatest, arguments)
            case "abs":
                return z3.If(arguments[0] >= 0, arguments[0], -arguments[0])
            case "relu":
                return z3.If(arguments[0] >= 0, arguments[0], 0)
            case "clip":
                return least(greatest(arguments[0], arguments[1]), arguments[2])
            case _ if function in NARROWING or function in ("to_float", "to_number", "to_unsigned"):
                return self._converted(call, function, arguments[0])
            case _ if function in _GROWING:
                return self._growing(function, arguments[0])
            case _:
                result = self._unknown(call, arguments)
                if function in _NEVER_NEGATIVE:
                    self.sides.append(result >= 0)
                return result

    def _quotient(self, left: Z3, right: Z3, whole: bool) -> Z3:
        self.sides.append(right != 0)
        if not whole:
            return left / right
        if self._loose:
            raise NotReal
        # z3 rounds so that the remainder is not negative: for a dividend from 0 up that is toward zero.
        return z3.If(left >= 0, left / right, -((-left) / right))

    def _power(self, call: Call, arguments: list[Z3]) -> Z3:
        exponent = call.arguments[1]
        if isinstance(exponent, Constant) and isinstance(exponent.value, int | float):
            number = exponent.value
            if number == int(number) and 1 <= number <= _MOST_POWER:
                return reduce(lambda a, b: a * b, [arguments[0]] * int(number))
        return self._unknown(call, arguments)

    def _converted(self, call: Call, function: str, argument: Z3) -> Z3:
        given = type_of(call.arguments[0], self._types)
        if given.kind in ("symbol", "bool", "date", "timestamp"):
            return self._unknown(call, [argument])
        if function == "to_float":
            return z3.ToReal(argument) if z3.is_int(argument) else argument
        if given.kind != "float" or function == "float32":
            if function == "to_unsigned":
                self.sides.append(argument >= 0)
            return argument
        if self._loose:
            raise NotReal
        return z3.If(argument >= 0, z3.ToInt(argument), -z3.ToInt(-argument))

    def _growing(self, function: str, argument: Z3) -> Z3:
        self.inexact = True
        if function in ("log", "sqrt"):
            self.sides.append(argument > 0 if function == "log" else argument >= 0)
        declared = self._functions.setdefault(function, z3.Function(function, z3.RealSort(), z3.RealSort()))
        result = declared(argument)
        self._grown.setdefault(function, []).append((argument, result))
        return result

    def _unknown(self, call: Call, arguments: list[Z3]) -> Z3:
        """A function of which nothing is known but that equal arguments give equal values."""
        self.inexact = True
        sort = self._new("result", type_of(call, self._types)).sort()
        name = f"{call.function}/{len(arguments)}/{sort}/{[a.sort() for a in arguments]}"
        declared = z3.Function(name, *(argument.sort() for argument in arguments), sort)
        return declared(*arguments)


def least(a: Z3, b: Z3) -> Z3:
    return z3.And(a, b) if z3.is_bool(a) else z3.If(a <= b, a, b)


def greatest(a: Z3, b: Z3) -> Z3:
    return z3.Or(a, b) if z3.is_bool(a) else z3.If(a >= b, a, b)


_OPERATIONS: Mapping[str, Callable[[Z3, Z3], Z3]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def compare(operator: str, left: Z3, right: Z3) -> Z3:
    """The comparison of two Z3 terms. Booleans are ordered, false before true."""
    if z3.is_bool(left) and operator not in ("=", "!="):
        left, right = z3.If(left, 1, 0), z3.If(right, 1, 0)
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case _:
            raise ValueError(f"no comparison: {operator}")


def combine(function: str, a: Z3, b: Z3) -> Z3:
    """Two partial results of an aggregate as one."""
    match function:
        case "min":
            return least(a, b)
        case "max":
            return greatest(a, b)
        case _:
            return a + b


def better(function: str, a: Z3, b: Z3) -> Z3:
    """A min or max prefers `a` to `b`, or does not care."""
    if z3.is_bool(a):
        a, b = z3.If(a, 1, 0), z3.If(b, 1, 0)
    return a <= b if function == "min" else a >= b
