"""How Spark spells what the SQL engines do not share."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from emberlog.patterns import finder, for_java
from emberlog.sql.build import Sql, call, cast, is_null, negated, number, text, when
from emberlog.sql.dialect import Dialect, in_range
from emberlog.sql.statement import TOO_MANY_DIGITS
from emberlog.types import INT64_MAX, INT64_MIN, MAX_DIGITS, UINT64_MAX, Type


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

    def part_of_moment(self, part: str, value: Sql) -> Sql:
        return cast(call(part, value), self.int64)

    def days(self, date: Sql) -> Sql:
        return cast(call("datediff", date, cast(text("1970-01-01"), "DATE")), self.int64)

    def microseconds(self, moment: Sql) -> Sql:
        # `unix_micros` is for timestamps of the session's time zone, in which hours are left out or come twice.
        whole = [
            exp.Mul(this=self.days(cast(moment, "DATE")), expression=number(86_400_000_000)),
            exp.Mul(this=self.part_of_moment("hour", moment.copy()), expression=number(3_600_000_000)),
            exp.Mul(this=self.part_of_moment("minute", moment.copy()), expression=number(60_000_000)),
        ]
        seconds = call("date_part", text("SECOND"), moment.copy())  # with six digits behind the point
        rest = cast(exp.Mul(this=seconds, expression=number(1_000_000)), self.int64)
        return exp.paren(reduce(lambda a, b: exp.Add(this=a, expression=b), [*whole, rest]))

    def date_at(self, days: Sql) -> Sql:
        return call("date_add", cast(text("1970-01-01"), "DATE"), cast(days, "INT"))

    def timestamp_at(self, microseconds: Sql) -> Sql:
        count = exp.paren(cast(microseconds, "DECIMAL(18,0)"))
        seconds = cast(exp.Mul(this=count, expression=cast(text("0.000001"), "DECIMAL(6,6)")), "DECIMAL(18,6)")
        interval = call("make_dt_interval", number(0), number(0), number(0), seconds)
        return exp.paren(exp.Add(this=cast(text("1970-01-01"), self.timestamp), expression=interval))

    def first_day(self, unit: str, date: Sql) -> Sql:
        return call("trunc", date, text(unit))

    def remainder(self, value: Sql, divisor: Sql) -> Sql:
        return call("pmod", value, divisor)

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
