"""Small pieces of SQL trees.

The nodes given to these functions become part of what they return: one that is needed twice is copied by the caller.
(sqlglot's own builders copy at every step, which is quadratic for deep queries.)
"""

from __future__ import annotations

from sqlglot import exp

Sql = exp.Expr


def call(name: str, *arguments: Sql) -> Sql:
    """A function call, rendered as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number(value: int | float) -> Sql:
    """A literal that we choose ourselves. What a program says is passed as a parameter."""
    return exp.Literal.number(repr(value)) if value >= 0 else exp.Neg(this=exp.Literal.number(repr(-value)))


def text(value: str) -> Sql:
    """A text that we choose ourselves: letters, digits and blanks."""
    return exp.Literal.string(value)


def when(condition: Sql, then: Sql, otherwise: Sql | None = None) -> Sql:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def any_of(conditions: list[Sql]) -> Sql:
    return conditions[0] if len(conditions) == 1 else exp.or_(*conditions, copy=False)


def is_null(value: Sql) -> Sql:
    return exp.Is(this=exp.paren(value, copy=False), expression=exp.null())


def cast(value: Sql, type: str) -> Sql:
    return exp.Cast(this=value, to=exp.DataType.build(type, udt=True))


def select(
    items: list[Sql],
    source: Sql | None,
    where: list[Sql] | None = None,
    *,
    joined: tuple[Sql, str, Sql | None] | None = None,
    distinct: bool = False,
) -> exp.Select:
    """SELECT items FROM source [kind JOIN other ON condition] [WHERE ..]; SQL has no rows without columns, so nothing
    is a dummy."""
    query = exp.select(*(items or [named(exp.true(), "u")]), copy=False)
    if source is not None:
        query = query.from_(source, copy=False)
    if joined is not None:
        other, kind, on = joined
        query = query.join(other, on=on, join_type=kind, copy=False)
    if where:
        query = query.where(all_of(where), copy=False)
    return query.distinct(copy=False) if distinct else query


def named(value: Sql, name: str) -> Sql:
    return exp.Alias(this=value, alias=exp.to_identifier(name))


def all_of(conditions: list[Sql]) -> Sql:
    return conditions[0] if len(conditions) == 1 else exp.and_(*conditions, copy=False)


def negated(condition: Sql) -> Sql:
    return exp.Not(this=exp.paren(condition, copy=False))
