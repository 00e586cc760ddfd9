"""How the two SQL engines spell what they do not share.

An operation that can fail (an overflow, a division by zero, a bad number) gives NULL in both; no value of a program is
ever NULL, so NULL means "has no value". Operands given here are SQL expressions of the program's types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from emberlog.sql.build import Sql, call, cast, number, when
from emberlog.sql.statement import FLOAT_TEXT
from emberlog.types import Type, integer_range


class Dialect(ABC):
    """The parts of SQL in which an engine is itself."""

    name: str  # as sqlglot knows it
    # How deep sub-queries may nest in a statement, and how many inputs they may have. Past this the engines' parsers
    # and optimisers refuse, or take more than linear time.
    deepest: int
    largest: int
    int64: str
    uint64: str
    float64: str
    symbol: str

    def type_name(self, type: Type) -> str:
        match type.kind:
            case "number":
                return self.int64
            case "unsigned":
                return self.uint64
            case "float":
                return self.float64
            case "symbol":
                return self.symbol
            case "bool":
                return "BOOLEAN"
            case "date":
                return "DATE"
            case "timestamp":
                return self.timestamp
            case "decimal":
                return f"DECIMAL({type.precision},{type.scale})"

    timestamp: str

    def convert(self, value: Sql, type: Type) -> Sql:
        return cast(value, self.type_name(type))

    def fit_decimal(self, value: Sql, own: Type, type: Type) -> Sql:
        """A decimal of type `own` as one of another type, with no fewer digits behind the point; an error where it has
        too many before it."""
        return value if own == type else self.convert(value, type)

    @abstractmethod
    def arithmetic(self, operator: str, left: Sql, right: Sql, type: Type) -> Sql:
        """Integer + - * with NULL on overflow."""

    @abstractmethod
    def quotient(self, left: Sql, right: Sql, type: Type) -> Sql:
        """Integer division that truncates; the divisor is not zero. NULL on overflow."""

    @abstractmethod
    def power(self, base: Sql, exponent: Sql, type: Type) -> Sql:
        """Exact integer power; the exponent is in 2..63. NULL on overflow."""

    @abstractmethod
    def bitwise(self, function: str, arguments: list[Sql], type: Type) -> Sql:
        """band bor bxor bnot bshl bshr on 64 bits; a shift takes its count modulo 64."""

    @abstractmethod
    def total(self, value: Sql, type: Type) -> Sql:
        """The sum of a group of integers, NULL when it does not fit."""

    @abstractmethod
    def decimal_total(self, value: Sql, type: Type) -> Sql:
        """The sum of a group of decimals of this type, NULL when it does not fit in 38 digits."""

    @abstractmethod
    def try_cast(self, value: Sql, type: str) -> Sql: ...

    @abstractmethod
    def truncate(self, value: Sql, type: Type) -> Sql:
        """A float that is in the range of an integer type, without its fraction."""

    def as_text(self, value: Sql, type: Type) -> Sql:
        """A value as text; `float_text` is for floats."""
        return cast(value, self.symbol)

    # Characters of a text that every pattern may be matched with: Java's engine takes stack for each repetition.
    longest_text: int | None = None

    @abstractmethod
    def full_match(self, value: Sql, pattern: Sql) -> Sql:
        """Does the whole text match? The pattern is one that `pattern_text` or the function PATTERN made."""

    @abstractmethod
    def pattern_text(self, pattern: str) -> str:
        """A pattern of the language as the engine reads it."""

    @abstractmethod
    def finder_text(self, pattern: str, group: int) -> str:
        """A pattern of the language that is found in a text, as the engine reads it."""

    @abstractmethod
    def change_case(self, function: str, value: Sql) -> Sql:
        """`lower` or `upper` of a text: Unicode's full mapping, by which one letter may become several."""

    @abstractmethod
    def strip(self, value: Sql, chars: Sql) -> Sql:
        """The text without these characters at its start and end."""

    # Names of functions: does the first text start, end with the second?
    starts_with: str
    ends_with: str

    @abstractmethod
    def first_code_point(self, value: Sql) -> Sql: ...

    # Dates and timestamps, of the years 1 to 9999. NULL gives NULL.

    @abstractmethod
    def part_of_moment(self, part: str, value: Sql) -> Sql:
        """year month day hour minute second of a date or timestamp, as a number."""

    @abstractmethod
    def days(self, date: Sql) -> Sql:
        """Days from 1970-01-01 to a date."""

    @abstractmethod
    def microseconds(self, moment: Sql) -> Sql:
        """Microseconds from the start of 1970 to a timestamp."""

    @abstractmethod
    def date_at(self, days: Sql) -> Sql:
        """The date so many days after 1970-01-01."""

    @abstractmethod
    def timestamp_at(self, microseconds: Sql) -> Sql:
        """The timestamp so many microseconds after the start of 1970."""

    @abstractmethod
    def first_day(self, unit: str, date: Sql) -> Sql:
        """The first day of the year, quarter, month or week in which a date lies."""

    @abstractmethod
    def remainder(self, value: Sql, divisor: Sql) -> Sql:
        """The remainder from 0 up of a number by a positive one."""

    wide: str  # integers of which sums and products of two 64-bit ones are

    @abstractmethod
    def wide_quotient(self, left: Sql, right: Sql) -> Sql:
        """Division of wide integers that truncates; the divisor is not zero."""

    @abstractmethod
    def numbers_between(self, start: Sql, stop: Sql, step: Sql) -> Sql:
        """The list `start`, `start + step`, .. before `stop` of numbers, of which there is one."""

    @abstractmethod
    def no_numbers(self) -> Sql:
        """An empty list."""

    @abstractmethod
    def no_number(self) -> Sql:
        """A list of one null."""

    @abstractmethod
    def spread(self, numbers: Sql) -> Sql:
        """A generator: the numbers of a list, one a row."""

    @abstractmethod
    def complain(self, message: Sql) -> Sql:
        """A boolean whose evaluation is an error with this message.

        It must not be moved by the engine's optimizer to where it would see rows that later conditions drop, or behind
        conditions that would hide a row from it: it is volatile.
        """

    def float_text(self, value: Sql) -> Sql:
        """The shortest text that reads back, made by a function that the engine registers."""
        return call(FLOAT_TEXT, value)


SAFE_DIGITS = 24  # as long as these are the digits of decimals, no sum of fewer than 10^14 of them has more than 38


def in_range(value: Sql, type: Type, convert: Sql) -> Sql:
    """`convert` when the value is in the range of an integer type, else NULL."""
    low, high = integer_range(type)
    return when(exp.Between(this=value, low=number(low), high=number(high)), convert)
