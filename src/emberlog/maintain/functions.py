"""The functions of the language on Python's values, as maintained rules compute them.

`function_for` gives the name and the function that a call stands for, by the types of its arguments. A function
that is not here (`match`, logarithms, ...) has none: a rule that uses it is evaluated by the ordinary engine. An
operation without a value raises `Missing`; whether that is an error is for the ordinary engine to say, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache, reduce
from operator import and_, attrgetter, or_, xor
from typing import Any

from emberlog.analysis.arithmetic import is_mixed
from emberlog.analysis.functions import DEFAULT_STEP, NARROWING
from emberlog.callables import PythonFunction
from emberlog.sql.calling import calling_of
from emberlog.syntax.nodes import Constant
from emberlog.types import MAX_DIGITS, Type, integer_range

LONGEST_RANGE = 100_000_000
_ROOM = Context(prec=4 * MAX_DIGITS)  # for all digits of a product


class Missing(Exception):
    """An operation has no value."""


def constant_value(constant: Constant) -> Any:
    """The value of a constant of a checked program."""
    text = str(constant.value)
    match constant.kind:
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            return datetime.fromisoformat(text)
        case "decimal":
            return Decimal(text)
        case _:
            return canonical(constant.value)


def canonical(value: Any) -> Any:
    """The value, with one object for every NaN and without a negative zero: then rows with it are equal."""
    if not isinstance(value, float):
        return value
    return value + 0.0 if value == value else math.nan


def function_for(name: str, operands: tuple[Type, ...], result: Type) -> tuple[str, Callable[..., Any]] | None:
    """The function that a call of `name` with arguments of these types stands for, and a name that is unique to it;
    None if there is none."""
    kind = operands[0].kind
    if result.kind == "decimal" and name in _OF_DECIMALS:
        return f"decimal_{_plain(name)}_{result.precision}_{result.scale}", _decimal(name, result)
    if is_mixed(name, operands):
        kind = next((type.kind for type in operands if type.kind in _MOMENTS_OF), kind)
    if name in NARROWING:
        table: Mapping[str, Callable[..., Any]] = _NARROW
    else:
        table = _TABLES.get(kind, {})
    function = table.get(name)
    return None if function is None else (f"{kind}_{_plain(name)}", function)


@lru_cache(maxsize=1024)
def given_function(function: PythonFunction, kinds: tuple[Type, ...]) -> Callable[..., Any]:
    """A function of the user for arguments of these types."""
    calling = calling_of(function, kinds)

    def value(*arguments: Any) -> Any:
        try:
            return calling.of(arguments)
        except Exception:  # whether that is an error, the ordinary engine says
            raise Missing from None

    return value


def _plain(name: str) -> str:
    """The name of a function as part of a Python name."""
    return "".join(letter if letter.isalnum() else f"_{ord(letter)}" for letter in name)


# --- whole numbers ---------------------------------------------------------------------------------------------------


def _within(low: int, high: int) -> Callable[[int], int]:
    def check(value: int) -> int:
        if low <= value <= high:
            return value
        raise Missing

    return check


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise Missing
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _power(a: int, b: int) -> int:
    if b < 0 or (abs(a) > 1 and b > 64):
        raise Missing
    return int(a**b)


def _integers(kind: str) -> dict[str, Callable[..., Any]]:
    """The functions of numbers or of unsigned numbers: each checks that its result fits."""
    low, high = integer_range(Type("unsigned" if kind == "unsigned" else "number"))
    fit = _within(low, high)

    def wrap(value: int) -> int:
        bits = value & (2**64 - 1)
        return bits - 2**64 if bits > high else bits

    def add(a: int, b: int) -> int:
        found = a + b
        if low <= found <= high:
            return found
        raise Missing

    return {
        "+": add,
        "-": lambda a, b: fit(a - b),
        "*": lambda a, b: fit(a * b),
        "/": lambda a, b: fit(_quotient(a, b)),
        "%": lambda a, b: a - b * _quotient(a, b),
        "^": lambda a, b: fit(_power(a, b)),
        "pow": lambda a, b: fit(_power(a, b)),
        "neg": lambda a: fit(-a),
        "abs": lambda a: fit(abs(a)),
        "relu": lambda a: max(a, 0),
        "clip": lambda a, least, most: min(max(a, least), most),
        "min": min,
        "max": max,
        "band": lambda *values: wrap(reduce(and_, values)),
        "bor": lambda *values: wrap(reduce(or_, values)),
        "bxor": lambda *values: wrap(reduce(xor, values)),
        "bnot": lambda a: wrap(~a),
        "bshl": lambda a, b: wrap(a << (b & 63)),
        "bshr": lambda a, b: wrap(a >> (b & 63)),
        "land": lambda a, b: int(bool(a) and bool(b)),
        "lor": lambda a, b: int(bool(a) or bool(b)),
        "lnot": lambda a: int(not a),
        "to_number": _within(*integer_range(Type("number"))),
        "to_unsigned": _within(*integer_range(Type("unsigned"))),
        "to_float": float,
        "to_string": str,
        DEFAULT_STEP: lambda start, stop: 1 if start <= stop or kind == "unsigned" else -1,
    }


def steps(start: int, stop: int, step: int) -> range:
    """The values of a range of whole numbers."""
    if step == 0 or -((start - stop) // step) > LONGEST_RANGE:
        raise Missing
    return range(start, stop, step)


# --- floats ----------------------------------------------------------------------------------------------------------


def _float_quotient(a: float, b: float) -> float:
    if b == 0:
        raise Missing
    return _float(a / b)


def _float(value: float) -> float:
    return value + 0.0 if value == value else math.nan


def _root(a: float) -> float:
    if a < 0:
        raise Missing
    return _float(math.sqrt(a))


def _extremum(best: Callable[[Sequence[float]], float]) -> Callable[..., float]:
    """The best of some floats; NaN wins over nothing only."""

    def function(*values: float) -> float:
        numbers = [value for value in values if value == value]
        return best(numbers) if numbers else math.nan

    return function


def _whole(kind: str) -> Callable[[float], int]:
    fit = _within(*integer_range(Type("unsigned" if kind == "unsigned" else "number")))

    def function(value: float) -> int:
        if not math.isfinite(value):
            raise Missing
        return fit(int(value))

    return function


_least, _most = _extremum(min), _extremum(max)
_FLOATS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: _float(a + b),
    "-": lambda a, b: _float(a - b),
    "*": lambda a, b: _float(a * b),
    "/": _float_quotient,
    "neg": lambda a: _float(-a),
    "abs": abs,
    "sqrt": _root,
    "relu": lambda a: _most(a, 0.0),
    "clip": lambda a, low, high: _least(_most(a, low), high),
    "min": _least,
    "max": _most,
    "to_float": lambda a: a,
    "to_number": _whole("number"),
    "to_unsigned": _whole("unsigned"),
}

# --- other types -----------------------------------------------------------------------------------------------------

_TEXT: dict[str, Callable[..., Any]] = {
    "cat": lambda *texts: "".join(texts),
    "strlen": len,
    "substr": lambda text, start, length: text[start : start + length] if start >= 0 and length >= 0 else "",
    "contains": lambda part, text: part in text,
    "ord": lambda text: ord(text[0]) if text else 0,
    "to_string": lambda text: text,
    "min": min,
    "max": max,
}
_BOOLEANS: dict[str, Callable[..., Any]] = {
    "land": lambda a, b: a and b,
    "lor": lambda a, b: a or b,
    "lnot": lambda a: not a,
    "to_number": int,
    "to_unsigned": int,
    "to_float": float,
    "to_string": lambda a: "true" if a else "false",
    "min": min,
    "max": max,
}

_OF_DECIMALS: Mapping[str, Callable[..., Decimal]] = {
    "+": _ROOM.add,
    "-": _ROOM.subtract,
    "*": _ROOM.multiply,
    "neg": _ROOM.minus,
    "abs": _ROOM.abs,
}


@lru_cache(maxsize=1024)
def _decimal(name: str, type: Type) -> Callable[..., Decimal]:
    """Arithmetic on decimals and whole numbers whose result is a decimal of this type, with all its digits."""
    operation, bound, unit = (
        _OF_DECIMALS[name],
        Decimal(10) ** (type.precision - type.scale),
        Decimal(1).scaleb(-type.scale),
    )

    def function(*values: Any) -> Decimal:
        found = operation(*values)
        fitted = found.quantize(unit, context=_ROOM)
        if fitted != found or abs(fitted) >= bound:
            raise Missing
        return fitted

    return function


def _shift(moment: date, by: int) -> date:
    try:
        return moment + (timedelta(microseconds=by) if isinstance(moment, datetime) else timedelta(days=by))
    except OverflowError:
        raise Missing from None


def _add(a: Any, b: Any) -> date:
    return _shift(a, b) if isinstance(a, date) else _shift(b, a)


def _subtract(a: date, b: Any) -> Any:
    if isinstance(b, int):
        return _shift(a, -b)
    return (a - b) // timedelta(microseconds=1) if isinstance(a, datetime) else (a - b).days


_MOMENTS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "+": _add,
    "-": _subtract,
    **{name: attrgetter(name) for name in ("year", "month", "day", "hour", "minute", "second")},
}
_MOMENTS_OF = frozenset({"date", "timestamp"})
_NARROW = {name: _within(*integer_range(type)) for name, type in NARROWING.items() if type.is_integer}
_TABLES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "number": _integers("number"),
    "unsigned": _integers("unsigned"),
    "float": _FLOATS,
    "symbol": _TEXT,
    "bool": _BOOLEANS,
    "date": _MOMENTS,
    "timestamp": _MOMENTS,
    "decimal": {"to_float": float, "min": min, "max": max},
}
