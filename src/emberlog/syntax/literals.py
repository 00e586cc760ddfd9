"""The values of number and string literals, and how a string is written."""

from __future__ import annotations

import math
import re

from emberlog.types import INT64_MIN, UINT64_MAX


class LiteralError(ValueError):
    """A literal has no value. `args` are the message and the help (or None)."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message, help)
        self.message = message
        self.help = help


_FLOAT = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(u?)")
_LONGEST_INTEGER = 100  # digits; more than enough for 64 bits in binary, and no work for a hostile text


def read_number(text: str, negative: bool = False) -> tuple[int | float, str]:
    """The value of a number literal and its kind ("unsigned" or ""). Raises LiteralError."""
    if match := _INTEGER.fullmatch(text):
        digits, suffix = match.groups()
        base = {"x": 16, "X": 16, "b": 2, "B": 2}.get(digits[1:2], 10)
        value = int(digits, base) if len(digits) <= _LONGEST_INTEGER else UINT64_MAX + 1
        if negative:
            value = -value
        if not INT64_MIN <= value <= UINT64_MAX:
            raise LiteralError("this integer does not fit in 64 bits", "write it as a float, with a `.0` at its end")
        return value, "unsigned" if suffix else ""
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise LiteralError("this number is too large for a float")
        return (-number + 0.0 if negative else number), ""  # no value is -0.0
    if text.startswith("."):
        raise LiteralError(f"`{text}` is not a number", f"write a digit before the point: 0{text}")
    raise LiteralError(f"`{text}` is not a number", "numbers look like 12, 5u, 0xff, 0b101, 1.5 or 1e-3")


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_WRITTEN = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\", '"': '\\"'}


def read_string(text: str) -> str:
    """The value of a string literal with its quotes. Raises LiteralError."""
    value = text[1:-1]
    if "\\" in value:
        value = _ESCAPE.sub(_unescape, value)
    if not value.isascii():
        try:
            # Two escapes \ud83d\ude00 make one character; half of such a pair is no text.
            value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise LiteralError("this string is not valid Unicode: half of a surrogate pair stands alone") from None
    return value


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    plain = _PLAIN.get(match[3])
    if plain is None:
        raise LiteralError(f"`\\{match[3]}` is not an escape", r"the escapes are \n \t \r \0 \\ \" \' \xNN \uNNNN")
    return plain


def write_string(value: str) -> str:
    """A literal that `read_string` reads as `value`."""
    return '"' + "".join(_write_char(char) for char in value) + '"'


def _write_char(char: str) -> str:
    if char in _WRITTEN:
        return _WRITTEN[char]
    return f"\\x{ord(char):02x}" if char < " " else char
