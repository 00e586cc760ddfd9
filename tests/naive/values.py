"""Values and functions, as Python values: what `+`, `<` or `substr` give, and when they give nothing.

An unsigned number is an `Unsigned`, so that a value carries its type along. A function that has no value for its
arguments raises `Undefined` with the reason. There is one NaN object: as an element of a set it is one element, and
`equal` says that it equals nothing.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import reduce
from itertools import count, takewhile
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | date | Decimal
Row: TypeAlias = tuple[Value, ...]

INT64 = (-(2**63), 2**63 - 1)
UINT64 = (0, 2**64 - 1)
LONGEST_RANGE = 100_000_000


class Undefined(Exception):
    """An expression has no value. The text says why."""


class Unsigned(int):
    """A value of the type `unsigned`."""


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def canonical(value: Value) -> Value:
    """The value, with one object for every NaN and without a negative zero."""
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def checked(value: int, like: Sequence[Value]) -> int:
    """`value` as an unsigned number if one of `like` is one, else as a number; `Undefined` if it does not fit."""
    unsigned = any(isinstance(other, Unsigned) for other in like)
    low, high = UINT64 if unsigned else INT64
    if not low <= value <= high:
        raise Undefined(f"{value} does not fit {'an unsigned' if unsigned else 'a'} 64-bit number")
    return Unsigned(value) if unsigned else value


def wrapped(value: int, like: Value) -> int:
    """The low 64 bits of `value`, read as an unsigned number if `like` is one, else as a number."""
    bits = value & UINT64[1]
    if isinstance(like, Unsigned):
        return Unsigned(bits)
    return bits - 2**64 if bits > INT64[1] else bits


def whole(*values: Value) -> bool:
    return all(isinstance(value, int) for value in values)


# --- comparisons -----------------------------------------------------------------------------------------------------


def compare(operation: str, left: Any, right: Any) -> bool:
    """The comparison of two values. NaN is different from everything and neither less nor greater.

    A number or a decimal against a float compares both as floats.
    """
    if isinstance(left, date) or isinstance(right, date):
        left, right = moment(left), moment(right)
    if float in (type(left), type(right)):
        left, right = float(left), float(right)
    match operation:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case _:
            raise ValueError(f"no comparison `{operation}`")


def moment(value: Value) -> datetime:
    """A date, a timestamp or ISO text as a timestamp, so that any two of them compare."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return datetime.fromisoformat(str(value))


def equal(left: Value, right: Value) -> bool:
    return compare("=", left, right)


# --- arithmetic ------------------------------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Value:
    if isinstance(a, date) or isinstance(b, date):
        return shifted(a, b) if isinstance(a, date) else shifted(b, a)
    return checked(a + b, (a, b)) if whole(a, b) else exact(operator.add, a, b)


def subtract(a: Any, b: Any) -> Value:
    if isinstance(a, date):
        return shifted(a, -b) if isinstance(b, int) else difference(a, b)
    return checked(a - b, (a, b)) if whole(a, b) else exact(operator.sub, a, b)


def multiply(a: Any, b: Any) -> Value:
    return checked(a * b, (a, b)) if whole(a, b) else exact(operator.mul, a, b)


def exact(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Value:
    """The operation on floats, or on decimals with as many digits as it takes. A float makes floats of both."""
    if float in (type(a), type(b)):
        a, b = float(a), float(b)
    with localcontext(prec=200):
        return canonical(operation(a, b))


def shifted(moment: date, by: int) -> Value:
    """A date some days, or a timestamp some microseconds, later."""
    try:
        return moment + (timedelta(microseconds=by) if isinstance(moment, datetime) else timedelta(days=by))
    except OverflowError:
        raise Undefined(f"{moment} + {by} is no date") from None


def difference(a: Any, b: Any) -> Value:
    """Days from one date to another, or microseconds from one timestamp to another. A text is one of them, too."""
    other: Any = b if isinstance(b, date) else moment(b) if isinstance(a, datetime) else moment(b).date()
    return int((a - other) // timedelta.resolution) if isinstance(a, datetime) else int((a - other).days)


def part(name: str) -> Callable[..., Value]:
    return lambda moment: int(getattr(moment, name))


def duration(size: int) -> Callable[..., Value]:
    return lambda count: checked(count * size, ())


def truncated(unit: str, moment: Any) -> Value:
    """The start of the unit, taken apart field by field."""
    if unit == "week":
        day = truncated("day", moment)
        return day - timedelta(days=moment.weekday())  # type: ignore[operator, return-value]
    if unit == "quarter":
        return truncated("month", moment.replace(day=1, month=(moment.month - 1) // 3 * 3 + 1))
    fields = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    smaller = fields[fields.index(unit) + 1 :]
    starts = {"month": 1, "day": 1}
    return moment.replace(**{f: starts.get(f, 0) for f in smaller if hasattr(moment, f)})  # type: ignore[no-any-return]


def to_moment(value: Any, form: str, kind: Callable[[datetime], Value]) -> Value:
    if isinstance(value, str) and not re.fullmatch(form, value):
        raise Undefined(f"{value!r} is no date")
    try:
        return kind(moment(value))
    except ValueError:
        raise Undefined(f"{value!r} is no date") from None


def to_decimal(value: Any, precision: int, scale: int) -> Value:
    try:
        return within(Decimal(value), precision, scale)
    except InvalidOperation:
        raise Undefined(f"{value!r} is no decimal") from None


def within(value: Decimal, precision: int, scale: int) -> Decimal:
    """The decimal, if it has no more digits than these."""
    with localcontext(prec=200):
        unscaled = value.scaleb(scale)
        if unscaled != unscaled.to_integral_value() or abs(unscaled) >= 10**precision:
            raise Undefined(f"{value} does not fit decimal({precision},{scale})")
        return value


def rounded(value: Decimal, places: int) -> Value:
    with localcontext(prec=200):
        return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def divide(a: Any, b: Any) -> Value:
    if b == 0:
        raise Undefined(f"{a} / {b}: division by zero")
    if not whole(a, b):
        return float(a / b)
    quotient = abs(a) // abs(b)
    return checked(quotient if (a < 0) == (b < 0) else -quotient, (a, b))


def remainder(a: Any, b: Any) -> Value:
    if b == 0:
        raise Undefined(f"{a} % {b}: division by zero")
    if not whole(a, b):
        return math.nan if math.isinf(a) else math.fmod(a, b)
    rest = abs(a) % abs(b)
    return checked(-rest if a < 0 else rest, (a, b))


def power(a: Any, b: Any) -> Value:
    if not whole(a, b):
        return float_power(float(a), float(b))
    if b < 0:
        raise Undefined(f"{a} ^ {b}: a negative exponent of an integer")
    if abs(a) > 1 and b > 64:
        raise Undefined(f"{a} ^ {b} does not fit 64 bits")
    return checked(a**b, (a, b))


def float_power(a: float, b: float) -> float:
    """What IEEE 754 says, also where Python raises; a root of a negative number has no value."""
    if a < 0 and math.isfinite(b) and not b.is_integer():
        raise Undefined(f"{a} ^ {b}")
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:  # zero with a negative exponent
        return math.inf


def negate(a: Any) -> Value:
    return checked(-a, (a,)) if whole(a) else -a


def absolute(a: Any) -> Value:
    return checked(abs(a), (a,)) if whole(a) else abs(a)


def exponential(a: Any) -> Value:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def logarithm(a: Any) -> Value:
    if a <= 0:
        raise Undefined(f"log({a})")
    return math.log(a)


def root(a: Any) -> Value:
    if a < 0:
        raise Undefined(f"sqrt({a})")
    return math.sqrt(a)


def extremum(best: Callable[..., Any], values: Sequence[Any]) -> Value:
    """The least or greatest value. NaN wins only over nothing; one float makes the result a float."""
    numbers = [value for value in values if not is_nan(value)]
    if not numbers:
        return math.nan
    found: Value = best(numbers)
    if not isinstance(found, int) or isinstance(found, bool):
        return found
    return float(found) if any(isinstance(value, float) for value in values) else checked(found, values)


def clip(value: Value, low: Value, high: Value) -> Value:
    return extremum(min, [extremum(max, [value, low]), high])


def steps(start: Any, stop: Any, step: Any = None) -> list[Value]:
    """The values of `range(start, stop, step)`."""
    if step is None:
        step = 1 if start <= stop or isinstance(start, Unsigned) else -1
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        raise Undefined("a range with step 0, or with a bound that is not finite")
    if whole(start, stop, step):
        if -((start - stop) // step) > LONGEST_RANGE:
            raise Undefined(f"a range of more than {LONGEST_RANGE} values")
        return [checked(value, (start,)) for value in range(start, stop, step)]
    if (stop - start) / step > LONGEST_RANGE:
        raise Undefined(f"a range of more than {LONGEST_RANGE} values")
    values = map(lambda number: start + number * step, count())
    return [canonical(v) for v in takewhile(lambda value: value < stop if step > 0 else value > stop, values)]


# --- bits and truth --------------------------------------------------------------------------------------------------


def bitwise(operation: Callable[[int, int], int]) -> Callable[..., Value]:
    return lambda *values: wrapped(reduce(operation, values), next((v for v in values if isinstance(v, Unsigned)), 0))


def complement(a: Any) -> Value:
    return wrapped(~a, a)


def shift_left(a: Any, b: Any) -> Value:
    return wrapped(a << (b & 63), a)


def shift_right(a: Any, b: Any) -> Value:
    return wrapped(a >> (b & 63), a)


def truth(value: bool, like: Value) -> Value:
    """Of booleans a boolean, of numbers 0 or 1."""
    return value if isinstance(like, bool) else int(value)


# --- text and conversions --------------------------------------------------------------------------------------------


def substring(text: Any, start: Any, length: Any) -> Value:
    return str(text[start : start + length]) if start >= 0 and length >= 0 else ""


def text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def integer_of(value: Any) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise Undefined(f"{value!r} is not a number")
    elif isinstance(value, float) and not math.isfinite(value):
        raise Undefined(f"{value} is not a number")
    return int(value)


def to_number(value: Value) -> Value:
    return checked(integer_of(value), ())


def to_unsigned(value: Value) -> Value:
    return checked(integer_of(value), (Unsigned(0),))


def to_float(value: Any) -> Value:
    if isinstance(value, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        raise Undefined(f"{value!r} is not a float")
    return float(value)


def part_of(text: str, separator: str, index: int) -> Value:
    parts = text.split(separator) if separator else [text]
    return parts[index] if 0 <= index < len(parts) else ""


def padded(text: str, length: int, padding: str) -> Value:
    """`text` with `padding` before it, again and again, up to `length` characters; cut there if it is longer."""
    if length > 1_000_000:
        raise Undefined(f"a text of {length} characters")
    lack = max(length - len(text), 0)
    return ((padding * lack)[:lack] + text)[: max(length, 0)]


def extracted(text: str, pattern: str, group: int) -> Value:
    """What the group matches where the pattern is found first, empty if nowhere."""
    found = re.search(as_python(pattern), text)
    return (found[group] or "") if found else ""


def matches(pattern: Any, text: Any) -> Value:
    """Does the pattern match the whole text? `Undefined` if it is no pattern. Flags amid it are not known here."""
    plain = re.sub(r"\\.", "a", pattern, flags=re.DOTALL)
    numbers = (number for found in re.findall(r"\{([0-9,]+)\}", plain) for number in found.split(",") if number)
    refused = re.search(ESCAPE, pattern) or any(re.search(form, plain) for form in REFUSED)
    if refused or any(int(number) > 1000 for number in numbers):
        raise Undefined(f"{pattern!r} is no pattern")
    try:
        return re.fullmatch(as_python(pattern), text) is not None
    except re.error as error:
        if "global flags" in str(error):
            raise
        raise Undefined(f"{pattern!r} is no pattern: {error}") from error


# What Python reads and the language refuses: escapes, and other forms, escapes apart.
ESCAPE = r"(?<!\\)(?:\\\\)*\\(?![dwsDWStnrfvaxubBAz])[0-9A-Za-z]"
REFUSED = (
    r"\\$",
    r"\(\?(?!P?<\w|[ims]*(?:-[ims]+)?[:)])",  # groups that are none
    r"\[\^?\]?[^]]*(?:\[|&&)",  # sets in sets
    r"[*+?}]\+(?![^[]*\])",  # possessive repetitions
    r"[\^$][*+?{](?![^[]*\])",  # repeated borders
    r"\{,",
)
WORD = "0-9A-Za-z_"
SETS = {"d": "0-9", "w": WORD, "s": r" \t\n\r\f\v"}
BORDER = f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"
NO_BORDER = f"(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))"


def as_python(pattern: str) -> str:
    """A pattern in Python's spelling: digits, words, blanks and borders are those of ASCII, the end is the end."""
    pattern = re.sub(r"\(\?<(?=\w)", "(?P<", pattern)
    pattern = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
    written, inside, lines = "", False, re.match(r"\(\?[is]*m", pattern) is not None
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        if piece[0] == "\\" and piece[1] in SETS:
            written += SETS[piece[1]] if inside else f"[{SETS[piece[1]]}]"
        elif piece[0] == "\\" and piece[1].lower() in SETS and not inside:
            written += f"[^{SETS[piece[1].lower()]}]"
        elif not inside and piece in (r"\b", r"\B", r"\z", "$"):
            end = "$" if piece == "$" and lines else r"\Z"
            written += {r"\b": BORDER, r"\B": NO_BORDER}.get(piece, end)
        else:
            inside = piece == "[" or (inside and piece != "]")
            written += piece
    return written


DATE_FORM = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIMESTAMP_FORM = DATE_FORM + r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"

FUNCTIONS: dict[str, Callable[..., Value]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "^": power,
    "pow": power,
    "neg": negate,
    "abs": absolute,
    "min": lambda *values: extremum(min, values),
    "max": lambda *values: extremum(max, values),
    "relu": lambda value: extremum(max, [value, 0]),
    "clip": clip,
    "exp": exponential,
    "log": logarithm,
    "sqrt": root,
    "tanh": lambda value: math.tanh(value),
    "band": bitwise(operator.and_),
    "bor": bitwise(operator.or_),
    "bxor": bitwise(operator.xor),
    "bnot": complement,
    "bshl": shift_left,
    "bshr": shift_right,
    "land": lambda a, b: truth(bool(a) and bool(b), a),
    "lor": lambda a, b: truth(bool(a) or bool(b), a),
    "lnot": lambda a: truth(not a, a),
    "ord": lambda text: ord(text[0]) if text else 0,
    "cat": lambda *texts: "".join(map(text_of, texts)),
    "strlen": len,
    "substr": substring,
    "contains": lambda part, text: part in text,
    "match": matches,
    "starts_with": lambda text, part: text[: len(part)] == part,
    "ends_with": lambda text, part: not part or text[-len(part) :] == part,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" \t\n\r\f\v"),
    "replace": lambda text, old, new: new.join(text.split(old)) if old else text,
    "split": part_of,
    "lpad": padded,
    "regexp_extract": extracted,
    "concat_ws": lambda separator, *texts: separator.join(texts),
    "to_number": to_number,
    "to_string": text_of,
    "to_float": to_float,
    "to_unsigned": to_unsigned,
    "to_decimal": to_decimal,
    "to_date": lambda value: to_moment(value, DATE_FORM, datetime.date),
    "to_timestamp": lambda value: to_moment(value, TIMESTAMP_FORM, lambda found: found),
    "round": rounded,
    "date_trunc": truncated,
    **{name: part(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "days": duration(86_400_000_000),
    "hours": duration(3_600_000_000),
    "minutes": duration(60_000_000),
    "seconds": duration(1_000_000),
}
