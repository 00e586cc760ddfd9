"""`range(start, stop, step)` as SQL: one row for each value, and one row with null for what is no range.

Engines make rows of a list, and a list of a hundred million numbers is memory that nobody counts. So a range is spread
twice: over blocks of places, then over the places of each block. Numbers are exact up to the ends of 64 bits. No range
is: step 0, a bound that is not finite or has no value, too many values.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from emberlog.sql.build import Sql, all_of, any_of, call, cast, is_null, named, number, select, text, when
from emberlog.sql.dialect import Dialect
from emberlog.types import NUMBER, Type

MOST_VALUES = 100_000_000
BLOCK = 10_000  # places

# Columns beside those of the rows: how many places there are, a block's number, a place (of numbers: the value there).
COUNT, NUMBERED, PLACE = "places", "block", "place"
NESTED = 3  # sub-queries between those rows and the values

Bounds = Callable[[], tuple[Sql, Sql, Sql]]  # start, stop and step, over the columns of the rows


def expanded(dialect: Dialect, type: Type, bounds: Bounds, kept: list[Sql], rows: Sql, name: str) -> exp.Query:
    """The rows with one more column, the values of a range. `kept` are the columns of the rows."""
    count_places = _places_of_floats if type.kind == "float" else _places

    def columns() -> list[Sql]:
        return [column.copy() for column in kept]

    counted = select([*columns(), named(count_places(dialect, *bounds()), COUNT)], rows)
    blocks = dialect.spread(_blocks(dialect))
    cut = select([*columns(), exp.column(COUNT), named(blocks, NUMBERED)], _source(counted))
    inside = when(is_null(exp.column(NUMBERED)), dialect.no_number(), _block(dialect, type, bounds))
    placed = select([*columns(), named(dialect.spread(inside), PLACE)], _source(cut))
    value, conditions = _value(dialect, type, bounds)
    return select([*columns(), named(value, name)], _source(placed), conditions)


def _source(query: exp.Query) -> Sql:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("s")))


def _blocks(dialect: Dialect) -> Sql:
    """The list of the blocks' numbers; of one null where there is no range."""
    full = exp.paren(exp.Add(this=exp.column(COUNT), expression=_whole(dialect, BLOCK - 1)))
    number_of_blocks = exp.IntDiv(this=full, expression=_whole(dialect, BLOCK))
    some = dialect.numbers_between(_whole(dialect, 0), exp.paren(number_of_blocks), _whole(dialect, 1))
    there = when(_above(exp.column(COUNT), 0), some, dialect.no_numbers())
    return when(is_null(exp.column(COUNT)), dialect.no_number(), there)


def _places(dialect: Dialect, start: Sql, stop: Sql, step: Sql) -> Sql:
    """How many integers a range has; null for what is none."""
    first, last, by = (cast(bound, dialect.wide) for bound in (start, stop, step))
    sign = when(_above(step.copy(), 0), number(1), number(-1))
    width = exp.paren(exp.Sub(this=last, expression=first))
    rounded = exp.Sub(this=exp.Add(this=width, expression=by), expression=cast(sign, dialect.wide))
    count = when(_not_zero(step), dialect.wide_quotient(exp.paren(rounded), by.copy()))
    return when(_at_most(count), cast(call("greatest", count.copy(), number(0)), dialect.int64))


def _places_of_floats(dialect: Dialect, start: Sql, stop: Sql, step: Sql) -> Sql:
    """The same of floats, and one more: rounding may leave the last one out."""
    width = exp.paren(exp.Sub(this=exp.paren(stop), expression=exp.paren(start)))
    count = when(_not_zero(step), call("ceil", exp.Div(this=width, expression=exp.paren(step))))
    infinite = cast(text("infinity"), dialect.float64)
    finite = [exp.LT(this=call("abs", bound.copy()), expression=infinite.copy()) for bound in (start, stop, step)]
    more = exp.Add(this=call("greatest", count.copy(), number(0)), expression=number(1))
    return when(all_of([*finite, _at_most(count)]), cast(exp.paren(more), dialect.int64))


def _block(dialect: Dialect, type: Type, bounds: Bounds) -> Sql:
    """The list of a block: of numbers the values, of others their places."""
    first = _times(dialect, exp.column(NUMBERED), BLOCK)
    following = exp.paren(exp.Add(this=exp.column(NUMBERED), expression=_whole(dialect, 1)))
    after = _times(dialect, following, BLOCK)
    if type.kind != "number":
        return dialect.numbers_between(first, call("least", after, exp.column(COUNT)), _whole(dialect, 1))
    start, stop, step = bounds()
    is_last = exp.GTE(this=after.copy(), expression=exp.column(COUNT))
    end = when(is_last, stop, _moved(dialect, NUMBER, start, after, step))
    return dialect.numbers_between(_moved(dialect, NUMBER, start, first, step), end, step)


def _value(dialect: Dialect, type: Type, bounds: Bounds) -> tuple[Sql, list[Sql]]:
    """The value of a place, and what must hold for it to be one of the range."""
    place: Sql = exp.column(PLACE)
    start, stop, step = bounds()
    match type.kind:
        case "number":
            return place, []
        case "unsigned":
            return _moved(dialect, type, start, place, step), []
        case _:
            moved = exp.Mul(this=cast(place, dialect.float64), expression=exp.paren(step))
            found = exp.paren(exp.Add(this=exp.paren(start), expression=moved))
            below = exp.LT(this=found.copy(), expression=exp.paren(stop))
            above = exp.GT(this=found.copy(), expression=exp.paren(stop.copy()))
            before = when(_above(step.copy(), 0), below, above)
            return found, [exp.paren(any_of([is_null(place.copy()), before]))]


def _moved(dialect: Dialect, type: Type, start: Sql, places: Sql, step: Sql) -> Sql:
    """`start` and so many steps, as an integer of the type."""
    way = exp.Mul(this=cast(places.copy(), dialect.wide), expression=cast(step.copy(), dialect.wide))
    return dialect.convert(exp.paren(exp.Add(this=cast(start.copy(), dialect.wide), expression=way)), type)


def _whole(dialect: Dialect, value: int) -> Sql:
    return cast(number(value), dialect.int64)


def _times(dialect: Dialect, value: Sql, factor: int) -> Sql:
    return exp.paren(exp.Mul(this=value.copy(), expression=_whole(dialect, factor)))


def _above(value: Sql, bound: int) -> Sql:
    return exp.GT(this=exp.paren(value), expression=number(bound))


def _not_zero(step: Sql) -> Sql:
    return exp.NEQ(this=exp.paren(step.copy()), expression=number(0))


def _at_most(count: Sql) -> Sql:
    return exp.LTE(this=exp.paren(count), expression=number(MOST_VALUES))
