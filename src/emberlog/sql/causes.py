"""Why a call has no value: found by computing it again, where the values of its variables are known.

Where they are not, `CAUSES` has what a function may fail for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from emberlog.analysis.arithmetic import DURATIONS
from emberlog.analysis.functions import LONGEST_PADDED, NARROWING, type_of
from emberlog.callables import PythonFunction
from emberlog.patterns import BadPattern, read
from emberlog.sql.calling import calling_of
from emberlog.syntax.nodes import Call, Constant, Term, Variable
from emberlog.types import Type, integer_range

DOES_NOT_FIT = "does not fit"

_TOO_LARGE = f"an integer {DOES_NOT_FIT} in 64 bits"
_ZERO = "a divisor is zero"
_CONVERSIONS = ("to_number", "to_unsigned", "to_float")
_NUMBER = {"to_float": r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"}

CAUSES = {
    **dict.fromkeys(("+", "-", "*", "neg", "abs"), _TOO_LARGE),
    "/": f"{_ZERO} or the quotient {DOES_NOT_FIT} in 64 bits",
    "%": _ZERO,
    **dict.fromkeys(_CONVERSIONS, "a conversion fails"),
    "^": "a power has no value (too large a result, or a negative number with such an exponent)",
    **dict.fromkeys(("log", "sqrt"), "a logarithm or root has no value"),
    **dict.fromkeys(NARROWING, f"a value {DOES_NOT_FIT} in its column"),
    "match": "a pattern is not a regular expression",
    "to_decimal": f"a number {DOES_NOT_FIT} in the digits of a decimal",
    **dict.fromkeys(("to_date", "to_timestamp"), "a text is no date"),
    **dict.fromkeys(DURATIONS, _TOO_LARGE),
    "lpad": f"a text would be filled up to more than {LONGEST_PADDED} characters",
}

_OF_KINDS = {
    "decimal": f"a decimal {DOES_NOT_FIT} in the digits of its type (`round` takes off some behind the point)",
    **dict.fromkeys(("date", "timestamp"), "a date lies outside of the years 1 to 9999"),
}

Value: TypeAlias = bool | int | float | str | date | Decimal


class _Missing(Exception):
    """The term has no value; the text says why."""


class _Unknown(Exception):
    """The value of a term is not known."""


class Causes:
    """The causes for which calls of one rule have no value.

    `shown` are values of variables as text; `bound` are the terms that give other variables theirs.
    """

    def __init__(self, shown: Mapping[str, str], bound: Mapping[str, Term], types: Mapping[str, Type]) -> None:
        self._shown = shown
        self._bound = bound
        self._types = types

    def of(self, calls: Iterable[Call], others: Iterable[str] = ()) -> list[str]:
        """The cause, if one of the calls is known to have no value; else all that there might be, and the `others`."""
        possible: dict[str, None] = {}
        everything: dict[str, None] = {}
        for call in calls:
            general = CAUSES.get(call.function) if call.given is None else f"`{call.function}` gives no value"
            kind = type_of(call, self._types).kind
            if call.function == "/" and kind == "float":
                general = _ZERO
            elif call.function in ("+", "-", "*") and call.given is None:
                general = _OF_KINDS.get(kind, general)
            if general is None or (call.function == "match" and isinstance(call.arguments[0], Constant)):
                continue
            everything[general] = None
            try:
                self._value(call)
            except _Missing as found:
                return [str(found)]
            except _Unknown:
                possible[general] = None
        return [*(possible or everything), *others]

    def _value(self, term: Term, within: tuple[str, ...] = ()) -> Value:
        """The value of a term. `within` are the variables whose value it is a part of: equations may go in a circle."""
        match term:
            case Constant(value, kind):
                return Decimal(str(value)) if kind == "decimal" else value
            case Variable(name) if name in self._shown:
                return _read(self._shown[name], self._types.get(name))
            case Variable(name) if name in self._bound and name not in within:
                return self._value(self._bound[name], (*within, name))
            case Call(_, arguments, given=PythonFunction() as given):
                kinds = [type_of(argument, self._types) for argument in arguments]
                return _given(given, kinds, [self._value(argument, within) for argument in arguments])
            case Call(function, arguments):
                return _apply(function, [self._value(a, within) for a in arguments], type_of(term, self._types))
            case _:
                raise _Unknown


def _read(text: str, type: Type | None) -> Value:
    try:
        match type.kind if type is not None else None:
            case "number" | "unsigned":
                return int(text)
            case "float":
                return float(text)
            case "decimal":
                return Decimal(text)
            case "symbol":
                return text
            case "bool":
                return text.lower() == "true"
            case "date":
                return date.fromisoformat(text)
            case "timestamp":
                return datetime.fromisoformat(text)
            case _:
                raise _Unknown
    except (ValueError, ArithmeticError):
        raise _Unknown from None


def _given(function: PythonFunction, kinds: list[Type], values: list[Value]) -> Value:
    """The value of a function of the user, called once more."""
    try:
        found: Value = calling_of(function, kinds).of(values)
    except Exception as error:
        told = str(error) if isinstance(error, TypeError) and str(error).startswith("gave ") else ""
        raise _Missing(f"`{function.name}` {told or f'raised {type(error).__name__}: {error}'}") from error
    return found


def _apply(function: str, values: list[Value], type: Type) -> Value:
    """The value of a function that may have none. Raises `_Missing`, and `_Unknown` for all other functions."""
    match function, values:
        case "match", [str(pattern), _]:
            try:
                read(pattern)
            except BadPattern as error:
                raise _Missing(f"a pattern is not a regular expression: {error}") from None
            raise _Unknown
        case "lpad", [_, int(length), _] if length > LONGEST_PADDED:
            raise _Missing(CAUSES[function])
        case _, [one] if function in _CONVERSIONS:
            return _converted(function, one, type)
        case _, [int() as one] if function in NARROWING and type.is_integer:
            return _fitting(one, type, CAUSES[function])
        case "log" | "sqrt", [float() as one]:
            if one < 0 or (one == 0 and function == "log"):
                raise _Missing(CAUSES[function])
            return math.log(one) if function == "log" else math.sqrt(one)
        case _, [int() as one, int() as other] if type.is_integer:
            return _of_integers(function, one, other, type)
        case "neg" | "abs", [int() as one]:
            return _fitting(-one if function == "neg" or one < 0 else one, type)
        case "+" | "-" | "*" | "/" | "%", [float() as one, float() as other]:
            return _of_floats(function, one, other)
        case "^", [float() as one, float() as other] if one < 0 and other % 1 != 0:
            raise _Missing("a power has no value (a negative number has whole powers only)")
        case _:
            raise _Unknown


def _of_floats(function: str, one: float, other: float) -> float:
    match function:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/" if other != 0:
            return one / other
        case "%" if other != 0:
            raise _Unknown
        case _:
            raise _Missing(_ZERO)


def _of_integers(function: str, one: int, other: int, type: Type) -> int:
    match function:
        case "+":
            return _fitting(one + other, type)
        case "-":
            return _fitting(one - other, type)
        case "*":
            return _fitting(one * other, type)
        case "/" | "%" if other == 0:
            raise _Missing(_ZERO)
        case "/":
            quotient = abs(one) // abs(other)
            return _fitting(quotient if (one < 0) == (other < 0) else -quotient, type)
        case "%":
            return abs(one) % abs(other) * (-1 if one < 0 else 1)
        case "^" if other < 0:
            raise _Missing("a power has no value (an integer has no negative powers)")
        case "^":
            # A larger exponent only makes a result larger that is too large already.
            return _fitting(one ** (other if abs(one) < 2 else min(other, 65)), type)
        case _:
            raise _Unknown


def _converted(function: str, value: Value, type: Type) -> Value:
    failed = CAUSES[function]
    if isinstance(value, date):
        raise _Unknown
    if isinstance(value, str) and not re.fullmatch(_NUMBER.get(function, "[+-]?[0-9]+"), value):
        raise _Missing(f"{failed} ({value!r} is not a {type.kind})")
    try:
        if type.kind == "float":
            return float(value)
        return _fitting(int(value), type, f"{failed} (the number {DOES_NOT_FIT} in 64 bits)")
    except (ValueError, OverflowError):  # of what is not finite
        raise _Missing(f"{failed} ({value} is not a {type.kind})") from None


def _fitting(value: int, type: Type, cause: str = _TOO_LARGE) -> int:
    low, high = integer_range(type)
    if not low <= value <= high:
        raise _Missing(cause)
    return value
