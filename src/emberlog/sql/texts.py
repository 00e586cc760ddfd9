"""Functions of texts as SQL. What engines differ in is asked of the dialect; patterns are in `terms`."""

from __future__ import annotations

from sqlglot import exp

from emberlog.analysis.functions import LONGEST_PADDED
from emberlog.sql.build import Sql, call, cast, number, text, when
from emberlog.sql.dialect import Dialect

BLANKS = " \t\n\r\f\v"  # what `\s` of a pattern matches
_LONGEST = 2**31 - 2  # positions and lengths are 32-bit integers in the engines


def text_function(function: str, values: list[Sql], dialect: Dialect) -> Sql:
    match function:
        case "cat":
            return _concatenation(values)
        case "concat_ws":
            separator, *parts = values
            separated = [piece for part in parts for piece in (separator.copy(), part)]
            return _concatenation(separated[1:])
        case "strlen":
            return cast(call("length", values[0]), dialect.int64)
        case "ord":
            return dialect.first_code_point(values[0])
        case "substr":
            return _piece(*values)
        case "contains":
            return call("contains", values[1], values[0])
        case "starts_with" | "ends_with":
            return call(dialect.starts_with if function == "starts_with" else dialect.ends_with, *values)
        case "lower" | "upper":
            return dialect.change_case(function, values[0])
        case "trim":
            return dialect.strip(values[0], text(BLANKS))
        case "replace":
            return call("replace", *values)
        case "split":
            return _part(*values)
        case "lpad":
            return _padded(*values)
        case _:
            raise AssertionError(f"no SQL for {function}")


def _concatenation(values: list[Sql]) -> Sql:
    joined = values[0]
    for value in values[1:]:
        joined = exp.DPipe(this=joined, expression=value)
    return exp.paren(joined)


def _piece(subject: Sql, start: Sql, length: Sql) -> Sql:
    """`substr(subject, start, length)`: empty for a negative start or length."""
    outside = exp.or_(_is_negative(start), exp.LTE(this=length, expression=number(0)))
    piece = call("substring", subject, _position(start), _short(length))
    return when(outside, text(""), piece)


def _part(subject: Sql, separator: Sql, index: Sql) -> Sql:
    """`split(subject, separator, index)`: a text without separator is one part, and so is one with an empty one."""
    whole = exp.EQ(this=separator.copy(), expression=text(""))
    first = exp.EQ(this=index.copy(), expression=number(0))
    part = call("split_part", subject, separator, _position(index))
    return exp.Case(
        ifs=[
            exp.If(this=_is_negative(index), true=text("")),
            exp.If(this=whole, true=when(first, subject.copy(), text(""))),
        ],
        default=part,
    )


def _padded(subject: Sql, length: Sql, padding: Sql) -> Sql:
    """`lpad(subject, length, padding)`: a longer text is cut, and nothing fills up nothing. NULL if it is too long."""
    too_long = exp.GT(this=length.copy(), expression=number(LONGEST_PADDED))
    nothing = exp.EQ(this=padding.copy(), expression=text(""))
    return exp.Case(
        ifs=[
            exp.If(this=too_long, true=exp.null()),
            exp.If(this=exp.LTE(this=length.copy(), expression=number(0)), true=text("")),
            exp.If(this=nothing, true=call("substring", subject.copy(), number(1), _short(length))),
        ],
        default=call("lpad", subject, _short(length), padding),
    )


def _is_negative(value: Sql) -> Sql:
    return exp.LT(this=value.copy(), expression=number(0))


def _position(index: Sql) -> Sql:
    """A place in a text: the language counts from 0, the engines from 1."""
    return exp.Add(this=_short(index), expression=number(1))


def _short(value: Sql) -> Sql:
    return cast(call("least", value.copy(), number(_LONGEST)), "INT")
