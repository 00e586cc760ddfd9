"""How DuckDB spells what the SQL engines do not share."""

from __future__ import annotations

from sqlglot import exp

from emberlog.patterns import finder, for_re2
from emberlog.sql.build import Sql, call, cast, number, text, when
from emberlog.sql.dialect import SAFE_DIGITS, Dialect
from emberlog.sql.statement import LOWER, UPPER
from emberlog.types import MAX_DIGITS, Type


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

    def part_of_moment(self, part: str, value: Sql) -> Sql:
        return cast(call(part, value), self.int64)

    def days(self, date: Sql) -> Sql:
        return exp.paren(exp.Sub(this=date, expression=cast(text("1970-01-01"), "DATE")))

    def microseconds(self, moment: Sql) -> Sql:
        return call("epoch_us", moment)

    def date_at(self, days: Sql) -> Sql:
        return exp.paren(exp.Add(this=cast(text("1970-01-01"), "DATE"), expression=cast(days, "INTEGER")))

    def timestamp_at(self, microseconds: Sql) -> Sql:
        return call("make_timestamp", microseconds)

    def first_day(self, unit: str, date: Sql) -> Sql:
        return cast(call("date_trunc", text(unit), date), "DATE")

    def remainder(self, value: Sql, divisor: Sql) -> Sql:
        rest = exp.Mod(this=exp.paren(value), expression=divisor)
        return exp.Mod(this=exp.paren(exp.Add(this=rest, expression=divisor.copy())), expression=divisor.copy())

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
