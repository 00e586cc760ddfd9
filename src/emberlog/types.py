"""The types that values of a program have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Value: TypeAlias = bool | int | float | str  # a constant of a program
Params: TypeAlias = Mapping[
    str, Value | date | Decimal | list[Any]
]  # values of parameters, by name; a datetime is a date

Kind = Literal["number", "unsigned", "float", "symbol", "bool", "date", "timestamp", "decimal"]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the language, after aliases and subtypes are resolved.

    `bits` narrows number (`int8`..), unsigned (`uint8`..) and float (`float32`): values are computed in 64 bits and
    checked, or rounded, where they enter a column. `precision` and `scale` belong to decimal.
    """

    kind: Kind
    bits: int = 64
    precision: int = 0
    scale: int = 0

    @property
    def wide(self) -> Type:
        """The type that arithmetic on this one has."""
        return self if self.bits == 64 else Type(self.kind)

    def with_room_for(self, other: Type) -> Type:
        """The type of the same kind that holds the values of this one and of another, as far as there is one."""
        if self.kind != "decimal" or self == other:
            return self if self.bits == other.bits else self.wide
        scale = max(self.scale, other.scale)
        whole = max(self.precision - self.scale, other.precision - other.scale)
        return Type("decimal", precision=min(MAX_DIGITS, whole + scale), scale=scale)

    @property
    def is_integer(self) -> bool:
        return self.kind in ("number", "unsigned")

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("number", "unsigned", "float")

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.bits == 64:
            return self.kind
        return {"number": "int", "unsigned": "uint", "float": "float"}[self.kind] + str(self.bits)


NUMBER = Type("number")
UNSIGNED = Type("unsigned")
FLOAT = Type("float")
SYMBOL = Type("symbol")
BOOL = Type("bool")
DATE = Type("date")
TIMESTAMP = Type("timestamp")

MAX_DIGITS = 38  # of a decimal
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1


def integer_range(type: Type) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if type.kind == "unsigned":
        return 0, 2**type.bits - 1
    return -(2 ** (type.bits - 1)), 2 ** (type.bits - 1) - 1


def without_sign(value: Value) -> Value:
    """The value; 0.0 for -0.0, which no value of a program is."""
    return value + 0.0 if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation: the name that users see, and its type."""

    name: str
    type: Type
