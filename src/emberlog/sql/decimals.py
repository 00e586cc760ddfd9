"""Arithmetic on decimals as SQL: exact, and NULL where the result does not fit its type.

Where 38 digits have room for every result, the engines compute. Where they may not, engines round or end the statement:
operands with few digits are computed in types that have room, others as texts, by a function that engines are given.
"""

from __future__ import annotations

from sqlglot import exp

from emberlog.analysis.arithmetic import MIN_SCALE, always_fits, as_decimal
from emberlog.sql.build import Sql, all_of, call, cast, number, text, when
from emberlog.sql.dialect import Dialect
from emberlog.sql.statement import EXACT
from emberlog.types import MAX_DIGITS, Type

_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_HALF = MAX_DIGITS // 2  # digits of a factor, so that products have room


def decimal_function(function: str, values: list[Sql], kinds: list[Type], type: Type, dialect: Dialect) -> Sql | None:
    """The SQL of a function that gives decimals; None for others."""
    match function:
        case "+" | "-" | "*":
            return _arithmetic(function, values, kinds, type, dialect)
        case "neg":
            return exp.Neg(this=exp.paren(values[0]))
        case "abs":
            return call("abs", values[0])
        case "round":
            if kinds[0] == type:
                return values[0]
            return dialect.convert(call("round", values[0], number(type.scale)), type)
        case "to_decimal" if kinds[0].kind == "symbol":
            return _as_text("+", values[0], text("0"), type, dialect)
        case "to_decimal":
            own = as_decimal(kinds[0])
            assert own is not None
            return _exactly(dialect.convert(values[0], own), own, type, dialect)
        case "#mean":
            return mean(values[0], kinds[0], values[1], type, dialect)
        case _:
            return None


def mean(total: Sql, own: Type, count: Sql, type: Type, dialect: Dialect) -> Sql:
    """The average of decimals from their sum, of type `own`, and their number, rounded half up."""
    return _as_text("/", dialect.as_text(total, own), cast(count, dialect.symbol), type, dialect)


def _arithmetic(operator: str, values: list[Sql], kinds: list[Type], type: Type, dialect: Dialect) -> Sql:
    left, right = (as_decimal(kind) for kind in kinds)
    assert left is not None and right is not None
    one, other = (dialect.convert(value, own) for value, own in zip(values, (left, right), strict=True))
    if always_fits(operator, *kinds):
        # DuckDB would take fewer digits for a product of small types than it needs.
        wide = Type("decimal", precision=type.precision, scale=left.scale)
        return dialect.convert(_compute(operator, dialect.convert(one, wide), other), type)
    return _with_narrow_operands(operator, (one, left), (other, right), type, dialect)


def _compute(operator: str, left: Sql, right: Sql) -> Sql:
    return exp.paren(_OPERATORS[operator](this=exp.paren(left), expression=exp.paren(right)))


def _with_narrow_operands(
    operator: str, left: tuple[Sql, Type], right: tuple[Sql, Type], type: Type, dialect: Dialect
) -> Sql:
    """Arithmetic whose result may not fit: by the engine if both operands fit in types for which it has room."""
    if operator == "*":
        one = Type("decimal", precision=_HALF, scale=min(left[1].scale, MIN_SCALE))
        other = Type("decimal", precision=_HALF - 1, scale=min(right[1].scale, MIN_SCALE))
        room = Type("decimal", precision=MAX_DIGITS, scale=one.scale + other.scale)
    else:
        one = other = Type("decimal", precision=MAX_DIGITS - 1, scale=type.scale)
        room = Type("decimal", precision=MAX_DIGITS, scale=type.scale)
    narrow = [_exactly(value.copy(), own, few, dialect) for (value, own), few in ((left, one), (right, other))]
    both = all_of([exp.Not(this=exp.Is(this=value.copy(), expression=exp.null())) for value in narrow])
    wide = dialect.convert(narrow[0], Type("decimal", precision=MAX_DIGITS, scale=one.scale))
    first = wide if dialect.name == "duckdb" else narrow[0]
    short = _exactly(dialect.convert(_compute(operator, first, narrow[1]), room), room, type, dialect)
    texts = [when(both.copy(), exp.null(), dialect.as_text(value, own)) for value, own in (left, right)]
    return when(both, short, _as_text(operator, texts[0], texts[1], type, dialect))


def _exactly(value: Sql, own: Type, type: Type, dialect: Dialect) -> Sql:
    """A decimal of type `own` as one of another type; NULL if it does not fit, or would lose digits."""
    if own == type:
        return value
    fitted = dialect.try_cast(value.copy(), dialect.type_name(type))
    if type.scale >= own.scale:
        return fitted
    back = dialect.try_cast(fitted, dialect.type_name(own))
    return when(exp.EQ(this=back, expression=value), fitted.copy())


def _as_text(operator: str, left: Sql, right: Sql, type: Type, dialect: Dialect) -> Sql:
    """Arithmetic on the texts of decimals."""
    found = call(EXACT, text(operator), left, right, number(type.precision), number(type.scale))
    return dialect.try_cast(found, dialect.type_name(type))
