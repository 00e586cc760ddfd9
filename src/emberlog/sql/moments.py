"""Functions of dates and timestamps as SQL. A moment outside of the years 1 to 9999 is NULL.

Timestamps have no time zone. Spark's functions of timestamps would take that of the session: they are not used.
"""

from __future__ import annotations

from sqlglot import exp

from emberlog.analysis.arithmetic import DURATIONS, UNITS_OF_DATES
from emberlog.sql.build import Sql, cast, number, text, when
from emberlog.sql.dialect import Dialect
from emberlog.types import DATE, INT64_MAX, NUMBER, Type

DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIMESTAMP_TEXT = DATE_TEXT + "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?"

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999, counted from 1970-01-01
_FIRST, _LAST = FIRST_DAY * DURATIONS["days"], (LAST_DAY + 1) * DURATIONS["days"] - 1


def moment_function(function: str, values: list[Sql], kinds: list[Type], type: Type, dialect: Dialect) -> Sql | None:
    """The SQL of a function of dates or timestamps; None for others. `date_trunc` has its unit as first value."""
    match function, [kind.kind for kind in kinds]:
        case "-", ["date" | "timestamp" as kind, other] if kind == other:
            return _difference(values, kinds[0], dialect)
        case (("+" | "-"), ["date" | "timestamp", "number"]):
            return _shifted(function, values[0], values[1], type, dialect)
        case "+", ["number", "date" | "timestamp"]:
            return _shifted(function, values[1], values[0], type, dialect)
        case (("year" | "month" | "day" | "hour" | "minute" | "second"), _):
            return dialect.part_of_moment(function, values[0])
        case _, ["number"] if function in DURATIONS:
            longest = INT64_MAX // DURATIONS[function]
            product = exp.Mul(this=exp.paren(values[0]), expression=number(DURATIONS[function]))
            return when(exp.Between(this=values[0].copy(), low=number(-longest), high=number(longest)), product)
        case "to_date" | "to_timestamp", [kind]:
            return _converted(values[0], kind, type, dialect)
        case _:
            return None


def truncated(unit: str, value: Sql, type: Type, dialect: Dialect) -> Sql:
    """The start of the unit in which a date or timestamp lies."""
    if unit in UNITS_OF_DATES:
        day = value if type == DATE else cast(value, "DATE")
        return dialect.convert(day if unit == "day" else dialect.first_day(unit, day), type)
    size = number(DURATIONS[f"{unit}s"])
    passed = dialect.remainder(dialect.microseconds(value), size)
    start = exp.Sub(this=dialect.microseconds(value.copy()), expression=exp.paren(passed))
    return dialect.timestamp_at(start)


def _difference(values: list[Sql], type: Type, dialect: Dialect) -> Sql:
    left, right = (_number(value, type, dialect) for value in values)
    return exp.paren(exp.Sub(this=left, expression=right))


def _number(value: Sql, type: Type, dialect: Dialect) -> Sql:
    """Days, or microseconds, from the start of 1970."""
    return dialect.days(value) if type == DATE else dialect.microseconds(value)


def _shifted(operator: str, moment: Sql, by: Sql, type: Type, dialect: Dialect) -> Sql:
    """A date some days, or a timestamp some microseconds, later or earlier."""
    first, last = (FIRST_DAY, LAST_DAY) if type == DATE else (_FIRST, _LAST)
    signed = by if operator == "+" else dialect.arithmetic("-", dialect.convert(number(0), NUMBER), by, NUMBER)
    reached = dialect.arithmetic("+", _number(moment, type, dialect), signed, NUMBER)
    inside = when(exp.Between(this=reached, low=number(first), high=number(last)), reached.copy())
    return dialect.date_at(inside) if type == DATE else dialect.timestamp_at(inside)


def _converted(value: Sql, kind: str, type: Type, dialect: Dialect) -> Sql:
    if kind != "symbol":
        return dialect.convert(value, type)
    pattern = DATE_TEXT if type == DATE else TIMESTAMP_TEXT
    found = dialect.try_cast(value.copy(), dialect.type_name(type))
    first, last = ("0001-01-01", "9999-12-31") if type == DATE else ("0001-01-01", "9999-12-31 23:59:59.999999")
    inside = exp.Between(this=found, low=dialect.convert(text(first), type), high=dialect.convert(text(last), type))
    matches = dialect.full_match(value, text(dialect.pattern_text(pattern)))
    return when(exp.and_(matches, inside), found.copy())
