"""One value written as text: reading it exactly, and telling the type of a column of texts.

`parse_text` is the definition; `pyarrow.csv`, which reads most files, takes a part of what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from emberlog.data.arrow import array_of, arrow_type
from emberlog.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, integer_range

_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))")
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_SHOWN_LENGTH = 60
_BOOLS = {"true": True, "false": False}

# What a column must look like throughout to be taken for numbers where nothing is declared: only texts that come back
# as they were when the number is written, so that `007` and `0x10` stay the symbols they may well be.
_PLAIN_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_PLAIN_FLOAT = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_PLAIN_NOT_FINITE = r"^(?:-?inf|nan)$"


def parse_text(text: str, type: Type) -> Any:
    """The value that `text` writes. Raises ValueError, whose text goes on after the value: `is not a number`."""
    match type.kind:
        case "symbol":
            return text
        case "number" | "unsigned":
            return _parse_integer(text, type)
        case "float":
            if not _FLOAT.fullmatch(text.strip(" \t")):
                raise ValueError(f"is not {describe(type)}")
            return float(text)
        case "bool":
            if text not in _BOOLS:
                raise ValueError(f"is not {describe(type)}")
            return _BOOLS[text]
        case "date" | "timestamp" | "decimal":
            try:
                return pa.scalar(text.strip(" \t")).cast(arrow_type(type)).as_py()
            except (pa.ArrowException, ValueError, OverflowError):
                raise ValueError(f"is not {describe(type)}") from None
        case _:
            assert_never(type.kind)


def parse_texts(texts: Sequence[str], type: Type) -> tuple[Any, dict[int, str]]:
    """The values of `texts` as an Arrow array, or by position what is wrong with those that are none."""
    target = arrow_type(type)
    array = array_of(texts, pa.string())
    # Arrow reads 1 and True as booleans, and hexadecimal digits that are out of range as negative numbers.
    if type.kind != "bool" and type.bits == 64 and not (type.is_integer and any("x" in t.lower() for t in texts)):
        try:
            return array.cast(target), {}
        except pa.ArrowInvalid:
            pass
    values: list[Any] = []
    problems: dict[int, str] = {}
    for position, text in enumerate(texts):
        try:
            values.append(parse_text(text, type))
        except ValueError as error:
            problems[position] = f"{shown(text)} {error}"
    return None if problems else array_of(values, target), problems


def _parse_integer(text: str, type: Type) -> int:
    found = _INTEGER.fullmatch(text.strip(" \t"))
    if not found:
        raise ValueError(f"is not {describe(type)}")
    sign, hexadecimal, binary, decimal = found.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    # Python refuses to read thousands of decimal digits; no integer type has more than twenty.
    value = int(digits, base) if len(digits.lstrip("0")) <= 64 else 2**64
    value = -value if sign == "-" else value
    low, high = integer_range(type)
    if not low <= value <= high:
        raise ValueError(f"is out of range for {type} ({low} to {high})")
    return value


def describe(type: Type) -> str:
    """The type with its article and, where it is not plain, the form that its text has."""
    if type.bits != 64:
        return f"an {type}" if type.kind == "number" else f"a {type}"
    forms = {
        "unsigned": "an unsigned number",
        "bool": "a bool (true or false)",
        "date": "a date (YYYY-MM-DD)",
        "timestamp": "a timestamp (YYYY-MM-DD hh:mm:ss)",
    }
    return forms.get(type.kind, f"a {type}")


def looks_numeric(text: str) -> bool:
    """Whether a column of such texts is taken for numbers where nothing is declared."""
    return re.fullmatch(_PLAIN_FLOAT[1:-1], text) is not None


def infer_type(texts: pa.ChunkedArray) -> Type:
    """number, unsigned or float when every text writes one in its plain form, else symbol. There must be a row."""
    if _all(pc.match_substring_regex(texts, _PLAIN_INTEGER)):
        for type in (NUMBER, UNSIGNED):
            try:
                texts.cast(arrow_type(type))
            except pa.ArrowInvalid:
                continue
            return type
        return SYMBOL  # as floats, integers this long would lose digits
    finite = pc.match_substring_regex(texts, _PLAIN_FLOAT)
    if pc.any(finite).as_py() and _all(pc.or_(finite, pc.match_substring_regex(texts, _PLAIN_NOT_FINITE))):
        return FLOAT
    return SYMBOL


def shown(value: object) -> str:
    """A value in a message: quoted as Python does, and cut when it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."


def _all(flags: pa.ChunkedArray) -> bool:
    return bool(pc.all(flags).as_py())
