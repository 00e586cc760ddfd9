"""How the two SQL engines spell what they do not share.

An operation that can fail (an overflow, a division by zero, a bad number) gives NULL in both; no value of a program is
ever NULL, so NULL means "has no value". Operands given here are SQL expressions of the program's types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from emberlog.patterns import finder, for_java, for_re2
from emberlog.sql.build import Sql, call, cast, is_null, negated, number, text, when
from emberlog.sql.statement import FLOAT_TEXT, LOWER, TOO_MANY_DIGITS, UPPER
from emberlog.types import INT64_MAX, INT64_MIN, UINT64_MAX, Type, integer_range


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


MAX_DIGITS = 38  # of a decimal
SAFE_DIGITS = 24  # as long as these are the digits of decimals, no sum of fewer than 10^14 of them has more than 38


def in_range(value: Sql, type: Type, convert: Sql) -> Sql:
    """`convert` when the value is in the range of an integer type, else NULL."""
    low, high = integer_range(type)
    return when(exp.Between(this=value, low=number(low), high=number(high)), convert)


class DuckDB(Dialect):
    name = "duckdb"
    deepest = 64
    largest = 64
    wide = "HUGEINT"
    int64, uint64, float64, symbol, timestamp = "BIGINT", "UBIGINT", "DOUBLE", "VARCHAR", "TIMESTAMP"

    def arithmetic(self, operator: str, left: Sql, right: Sql, type: Type) -> Sql:
        node = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[operator]
        return call("TRY", node(this=exp.paren(left), expression=exp.paren(right)))

    def quotient(self, left: Sql, right: Sql, type: Type) -> Sql:
        return call("TRY", exp.IntDiv(this=exp.paren(left), expression=exp.paren(right)))

    def power(self, base: Sql, exponent: Sql, type: Type) -> Sql:
        return call("emberlog_power", base, exponent)

    def bitwise(self, function: str, arguments: list[Sql], type: Type) -> Sql:
        signed = type.kind == "number"
        first = exp.paren(arguments[0])
        match function:
            case "bnot":
                return exp.BitwiseNot(this=first)
            case "bxor":
                return call("xor", *arguments)
            case "bshl":
                shifted = call("emberlog_shift_left", *arguments)
                return call("emberlog_signed", shifted) if signed else cast(shifted, self.uint64)
        second = exp.paren(arguments[1])
        if function == "bshr":
            count = exp.paren(exp.BitwiseAnd(this=second, expression=cast(number(63), self.type_name(type))))
            return exp.BitwiseRightShift(this=first, expression=count)
        node = exp.BitwiseAnd if function == "band" else exp.BitwiseOr
        return node(this=first, expression=second)

    def total(self, value: Sql, type: Type) -> Sql:
        return self.try_cast(exp.Sum(this=value), self.type_name(type))

    def decimal_total(self, value: Sql, type: Type) -> Sql:
        name = f"DECIMAL({MAX_DIGITS},{type.scale})"
        if type.precision <= SAFE_DIGITS:
            return cast(exp.Sum(this=value), name)
        # DuckDB ends the statement at a sum that is too large, also on the way. So the digits before the point are
        # summed in two halves, as integers, and those after it by themselves.
        half = number(10 ** (MAX_DIGITS // 2))
        whole = call("trunc", value)
        digits = exp.paren(cast(whole, "HUGEINT"))
        high = exp.Sum(this=exp.IntDiv(this=digits, expression=half))
        low = exp.Sum(this=exp.Mod(this=digits.copy(), expression=half.copy()))
        rest = exp.Sum(this=exp.Sub(this=value.copy(), expression=whole.copy()))
        put_together = exp.Add(this=exp.Mul(this=high, expression=half.copy()), expression=low)
        fits = exp.LT(this=call("abs", high.copy()), expression=half.copy())
        return when(fits, exp.Add(this=self.try_cast(put_together, name), expression=cast(rest, name)))

    def try_cast(self, value: Sql, type: str) -> Sql:
        return exp.TryCast(this=value, to=exp.DataType.build(type, udt=True))

    def truncate(self, value: Sql, type: Type) -> Sql:
        # A cast would round.
        whole = call("floor", call("abs", value))
        negative = exp.LT(this=value.copy(), expression=number(0))
        return cast(when(negative, exp.Neg(this=whole), whole.copy()), self.type_name(type))

    def full_match(self, value: Sql, pattern: Sql) -> Sql:
        return call("regexp_full_match", value, pattern)

    def pattern_text(self, pattern: str) -> str:
        return for_re2(pattern)

    def finder_text(self, pattern: str, group: int) -> str:
        return finder(pattern, group, "re2")

    def change_case(self, function: str, value: Sql) -> Sql:
        # DuckDB makes one letter of each letter. Where all are of ASCII, which is as many bytes, that is the same.
        plain = exp.EQ(this=call("strlen", value), expression=call("length", value.copy()))
        full = call(LOWER if function == "lower" else UPPER, value.copy())
        return when(plain, call(function, value.copy()), full)

    def strip(self, value: Sql, chars: Sql) -> Sql:
        return call("trim", value, chars)

    starts_with, ends_with = "starts_with", "ends_with"

    def first_code_point(self, value: Sql) -> Sql:
        return cast(when(exp.EQ(this=value, expression=text("")), number(0), call("unicode", value)), self.int64)

    def wide_quotient(self, left: Sql, right: Sql) -> Sql:
        return exp.IntDiv(this=left, expression=right)

    def numbers_between(self, start: Sql, stop: Sql, step: Sql) -> Sql:
        return call("range", start, stop, step)

    def no_numbers(self) -> Sql:
        return call("range", number(0))

    def no_number(self) -> Sql:
        return call("list_value", cast(exp.null(), self.int64))

    def spread(self, numbers: Sql) -> Sql:
        return call("unnest", numbers)

    def complain(self, message: Sql) -> Sql:
        return cast(call("error", message), "BOOLEAN")


class Spark(Dialect):
    """Means the same with and without `spark.sql.ansi.enabled`, which is the user's: without it a cast of a value that
    does not fit gives NULL or another value, and large or small decimals become text with an exponent."""

    name = "spark"
    longest_text = 200
    deepest = 24
    largest = 24
    wide = "DECIMAL(20,0)"
    # Spark has no unsigned 64-bit integer: DECIMAL(20,0) holds every one of them.
    int64, uint64, float64, symbol, timestamp = "BIGINT", "DECIMAL(20,0)", "DOUBLE", "STRING", "TIMESTAMP_NTZ"

    def fit_decimal(self, value: Sql, own: Type, type: Type) -> Sql:
        if type.precision - type.scale >= own.precision - own.scale:
            return super().fit_decimal(value, own, type)
        name = self.type_name(type)
        message = call("concat", self.as_text(value.copy(), own), text(f" {TOO_MANY_DIGITS} {name}"))
        misfit = when(negated(is_null(value.copy())), call("raise_error", message))
        return exp.Coalesce(this=self.try_cast(value, name), expressions=[misfit])

    def arithmetic(self, operator: str, left: Sql, right: Sql, type: Type) -> Sql:
        name = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[operator]
        result = call(name, left, right)
        return result if type.kind == "number" else in_range(result, type, cast(result.copy(), self.uint64))

    def quotient(self, left: Sql, right: Sql, type: Type) -> Sql:
        if type.kind == "unsigned":
            # DIV on decimals gives a BIGINT, which is too small.
            exact = exp.Sub(this=left, expression=exp.paren(exp.Mod(this=left.copy(), expression=right)))
            return cast(exp.Div(this=exp.paren(exact), expression=right.copy()), self.uint64)
        smallest = exp.and_(exp.EQ(this=left, expression=number(INT64_MIN)), exp.EQ(this=right, expression=number(-1)))
        return when(smallest, exp.null(), exp.IntDiv(this=exp.paren(left.copy()), expression=exp.paren(right.copy())))

    def power(self, base: Sql, exponent: Sql, type: Type) -> Sql:
        product = self.arithmetic("*", exp.column("p"), base, type)
        step = exp.Lambda(this=product, expressions=[exp.to_identifier("p"), exp.to_identifier("i")])
        steps = call("sequence", number(1), cast(exponent, "INT"))
        return call("aggregate", steps, cast(number(1), self.type_name(type)), step)

    def bitwise(self, function: str, arguments: list[Sql], type: Type) -> Sql:
        bits = arguments if type.kind == "number" else [self._as_bits(argument) for argument in arguments]
        first = exp.paren(bits[0])
        match function:
            case "bnot":
                result: Sql = exp.BitwiseNot(this=first)
            case "bshl" | "bshr":
                name = "shiftleft" if function == "bshl" else "shiftright"
                if function == "bshr" and type.kind == "unsigned":
                    name = "shiftrightunsigned"
                count = exp.BitwiseAnd(this=exp.paren(bits[1]), expression=number(63))
                result = call(name, first, cast(count, "INT"))
            case _:
                node = {"band": exp.BitwiseAnd, "bor": exp.BitwiseOr, "bxor": exp.BitwiseXor}[function]
                result = node(this=first, expression=exp.paren(bits[1]))
        return result if type.kind == "number" else self._from_bits(result)

    def _as_bits(self, value: Sql) -> Sql:
        """An unsigned integer as the signed one with the same 64 bits."""
        high = exp.GT(this=value, expression=number(INT64_MAX))
        lowered = exp.Sub(this=value.copy(), expression=number(UINT64_MAX + 1))
        return cast(when(high, lowered, value.copy()), self.int64)

    def _from_bits(self, bits: Sql) -> Sql:
        value = cast(exp.paren(bits), self.uint64)
        raised = exp.Add(this=value, expression=number(UINT64_MAX + 1))
        return cast(when(exp.LT(this=value.copy(), expression=number(0)), raised, value.copy()), self.uint64)

    def total(self, value: Sql, type: Type) -> Sql:
        if type.kind == "unsigned":
            result = exp.Sum(this=value)
            return in_range(result, type, cast(result.copy(), self.uint64))
        # The high and the low half are summed as integers, which cannot overflow below 2^32 rows, and put together as
        # decimals: exact, and several times faster than a sum of decimals.
        high = exp.Sum(this=call("shiftright", value, number(32)))
        low = exp.Sum(this=exp.BitwiseAnd(this=exp.paren(value.copy()), expression=number(2**32 - 1)))
        scaled = exp.Mul(this=cast(high, "DECIMAL(20,0)"), expression=cast(number(2**32), "DECIMAL(10,0)"))
        result_ = exp.paren(exp.Add(this=scaled, expression=cast(low, "DECIMAL(20,0)")))
        return in_range(result_, type, cast(result_.copy(), self.int64))

    def decimal_total(self, value: Sql, type: Type) -> Sql:
        return cast(call("try_sum", value), f"DECIMAL({MAX_DIGITS},{type.scale})")

    def try_cast(self, value: Sql, type: str) -> Sql:
        # Without `safe` sqlglot writes CAST for Spark, which is an error for what does not fit.
        return exp.TryCast(this=value, to=exp.DataType.build(type, udt=True), safe=True)

    def truncate(self, value: Sql, type: Type) -> Sql:
        if type.kind == "number":
            return cast(value, self.int64)
        # The cast of a float to a decimal rounds. What is too large for a BIGINT is an integer, and its half fits.
        high = exp.GTE(this=value, expression=cast(number(2.0**63), self.float64))
        half = cast(cast(exp.Div(this=exp.paren(value.copy()), expression=number(2)), self.int64), self.uint64)
        doubled = exp.Mul(this=half, expression=number(2))
        low = cast(cast(value.copy(), self.int64), self.uint64)
        return cast(when(high, doubled, low), self.uint64)

    def as_text(self, value: Sql, type: Type) -> Sql:
        return self.try_cast(value, self.symbol) if type.kind == "decimal" else super().as_text(value, type)

    def full_match(self, value: Sql, pattern: Sql) -> Sql:
        return call("regexp_like", value, pattern)

    def pattern_text(self, pattern: str) -> str:
        return for_java(pattern)

    def finder_text(self, pattern: str, group: int) -> str:
        return finder(pattern, group, "java")

    def change_case(self, function: str, value: Sql) -> Sql:
        return call(function, value)

    def strip(self, value: Sql, chars: Sql) -> Sql:
        return call("btrim", value, chars)

    starts_with, ends_with = "startswith", "endswith"

    def first_code_point(self, value: Sql) -> Sql:
        return cast(call("ascii", value), self.int64)

    def wide_quotient(self, left: Sql, right: Sql) -> Sql:
        # DIV on decimals gives a BIGINT, which is too small.
        exact = exp.Sub(this=left, expression=exp.paren(exp.Mod(this=left.copy(), expression=right)))
        return exp.Div(this=exp.paren(exact), expression=right.copy())

    def numbers_between(self, start: Sql, stop: Sql, step: Sql) -> Sql:
        sign = call("sign", step)
        last = exp.Sub(this=exp.paren(stop), expression=cast(sign, self.int64))  # `sequence` has its end in it
        return call("sequence", start, last, step.copy())

    def no_numbers(self) -> Sql:
        return cast(call("array"), "ARRAY<BIGINT>")

    def no_number(self) -> Sql:
        return call("array", cast(exp.null(), self.int64))

    def spread(self, numbers: Sql) -> Sql:
        return call("explode", numbers)

    def complain(self, message: Sql) -> Sql:
        # Spark takes raise_error for deterministic; with rand() beside it the filter stays where it is. The seed is
        # fixed: with another one each time Spark would compile the same stage again for every statement.
        return cast(call("raise_error", call("concat", message, cast(call("rand", number(0)), "STRING"))), "BOOLEAN")
