"""Terms and conditions of rules as SQL expressions.

Constants of the program become parameters: no text of the user's ever stands in the statement. A term without a value
is NULL; a comparison of such a term is NULL too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import reduce
from typing import assert_never

from sqlglot import exp

from emberlog.analysis import functions
from emberlog.analysis.arithmetic import as_decimal
from emberlog.analysis.functions import may_lack, type_of
from emberlog.callables import PythonFunction
from emberlog.patterns import may_go_deep
from emberlog.plan.logical import Condition
from emberlog.sql.build import Sql, any_of, call, cast, is_null, negated, number, text, when
from emberlog.sql.calling import calling_of
from emberlog.sql.decimals import decimal_function
from emberlog.sql.dialect import Dialect, in_range
from emberlog.sql.moments import moment_function, truncated
from emberlog.sql.statement import EXTRACT, MATCHES, PATTERN, GivenFunction, Parameter
from emberlog.sql.texts import text_function
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Test, Variable
from emberlog.types import FLOAT, INT64_MAX, Type

INTEGER_TEXT = "[+-]?[0-9]+"
FLOAT_TEXT = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"

COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


class Terms:
    """Compiles the terms of one statement and collects its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.parameters: dict[str, Parameter] = {}
        self.calls: dict[str, GivenFunction] = {}

    def parameter(self, value: Parameter) -> Sql:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return exp.Placeholder(this=name)

    # --- conditions ----------------------------------------------------------------------------------------------

    def condition(
        self, condition: Condition, scope: Mapping[str, Sql], types: Mapping[str, Type], unsure: Collection[str] = ()
    ) -> Sql:
        match condition:
            case Comparison(operator, left, right):
                first, second = (self.term(side, scope, types, unsure) for side in (left, right))
                type = type_of(left, types)
                first, second = self.in_common_type([first, second], [type, type_of(right, types)])
                return self.compare(
                    operator,
                    first,
                    second,
                    type,
                    isinstance(left, Constant),
                    isinstance(right, Constant),
                )
            case Test(goal):
                return self.term(goal, scope, types, unsure)
            case _:
                assert_never(condition)

    def in_common_type(self, values: list[Sql], types: list[Type]) -> list[Sql]:
        """Values of which one is compared with the others. Left to themselves, engines may drop digits to compare
        decimals of different types."""
        if all(type.kind != "decimal" for type in types):
            return values
        own = [as_decimal(type) or type for type in types]
        room = reduce(Type.with_room_for, own)
        return [self.dialect.fit_decimal(value, type, room) for value, type in zip(values, own, strict=True)]

    def compare(
        self,
        operator: str,
        left: Sql,
        right: Sql,
        type: Type,
        left_constant: bool = False,
        right_constant: bool = False,
    ) -> Sql:
        """A comparison of two values of one type. NaN equals nothing; the engines take it for the largest number."""
        if operator in ("!<", "!<=", "!>", "!>="):
            return negated(self.compare(operator[1:], left, right, type, left_constant, right_constant))
        plain = COMPARISONS[operator](this=exp.paren(left), expression=exp.paren(right))
        if type.kind != "float":
            return plain
        match operator:
            case "=" | "!=" if left_constant or right_constant:
                return plain
            case "=":
                return exp.and_(plain, exp.not_(call("isnan", left.copy())))
            case "!=":
                return exp.paren(exp.or_(plain, call("isnan", left.copy())))
            case "<" | "<=" if not right_constant:
                return exp.and_(plain, exp.not_(call("isnan", right.copy())))
            case ">" | ">=" if not left_constant:
                return exp.and_(plain, exp.not_(call("isnan", left.copy())))
            case _:
                return plain

    # --- terms ---------------------------------------------------------------------------------------------------

    def term(
        self, term: Term, scope: Mapping[str, Sql], types: Mapping[str, Type], unsure: Collection[str] = ()
    ) -> Sql:
        """A term over the columns of `scope`, of which those named in `unsure` may be null."""
        match term:
            case Variable(name):
                return scope[name].copy()
            case Constant():
                return self.constant(term)
            case Call("match", (Constant(str() as pattern), subject)):
                value = self.term(subject, scope, types, unsure)
                if not may_go_deep(pattern):
                    return self.dialect.full_match(value, self._pattern(pattern))
                return self._matched(value, self._pattern(pattern), self.parameter(pattern))
            case Call("date_trunc", (Constant(str() as unit), moment)):
                return truncated(unit, self.term(moment, scope, types, unsure), type_of(moment, types), self.dialect)
            case Call("regexp_extract", (subject, Constant(str() as pattern), Constant(int() as group))):
                return self._extracted(self.term(subject, scope, types, unsure), pattern, group)
            case Call(_, arguments, given=PythonFunction() as given):
                values = [self.term(argument, scope, types, unsure) for argument in arguments]
                return self._given(given, values, [type_of(argument, types) for argument in arguments])
            case Call(function, arguments):
                values = [self.term(argument, scope, types, unsure) for argument in arguments]
                kinds = [type_of(argument, types) for argument in arguments]
                result = self._call(function, values, kinds, type_of(term, types))
                if function in _NOT_STRICT and any(may_lack(argument, types, unsure) for argument in arguments):
                    return when(any_of([is_null(value.copy()) for value in values]), exp.null(), result)
                return result
            case _:
                raise AssertionError(f"{term} cannot stand in a plan")

    def constant(self, constant: Constant) -> Sql:
        type = type_of(constant, {})
        value: Parameter = constant.value
        if type.kind == "unsigned" and self.dialect.name == "spark":
            value = Decimal(int(constant.value))
        return self.dialect.convert(self.parameter(value), type)

    def _call(self, function: str, values: list[Sql], kinds: list[Type], type: Type) -> Sql:
        found = moment_function(function, values, kinds, type, self.dialect)
        if found is None and type.kind == "decimal":
            found = decimal_function(function, values, kinds, type, self.dialect)
        if found is not None:
            return found
        match function:
            case "+" | "-" | "*":
                return self._arithmetic(function, values[0], values[1], type)
            case "/" | "%":
                return self._divide(function, values[0], values[1], type)
            case "^" | "pow":
                return self._power(values[0], values[1], type)
            case "neg":
                zero = self.dialect.convert(number(0), type)
                if type.kind == "float":
                    return self._unsigned_zero(exp.Neg(this=exp.paren(values[0])))
                return self.dialect.arithmetic("-", zero, values[0], type)
            case "abs":
                return self._absolute(values[0], type)
            case "min" | "max" | "relu" | "clip":
                return self._extremum(function, self.in_common_type(values, kinds), type)
            case functions.DEFAULT_STEP:
                one, down = self.dialect.convert(number(1), type), exp.GT(this=values[0], expression=values[1])
                return one if type.kind == "unsigned" else when(down, exp.Neg(this=one), one.copy())
            case functions.MISSING:
                return when(any_of([is_null(value) for value in values]), number(1), number(0))
            case functions.UNLESS:
                return when(exp.EQ(this=values[1], expression=number(0)), values[0])
            case functions.FIRST:
                first, *others = self.in_common_type(values, kinds)
                return exp.Coalesce(this=first, expressions=others)
            case functions.DIGITS:
                return self.dialect.fit_decimal(values[0], kinds[0], type)
            case "exp" | "tanh":
                return call(function, values[0])
            case "log" | "sqrt":
                bad = exp.LTE if function == "log" else exp.LT
                name = "ln" if function == "log" else "sqrt"
                return when(bad(this=values[0], expression=number(0)), exp.null(), call(name, values[0].copy()))
            case "band" | "bor" | "bxor" | "bnot" | "bshl" | "bshr":
                return self.dialect.bitwise(function, values, type)
            case "land" | "lor" | "lnot":
                return self._logical(function, values, kinds)
            case "to_number" | "to_unsigned" | "to_float" | "to_string":
                return self._conversion(values[0], kinds[0], type)
            case "int8" | "int16" | "int32" | "uint8" | "uint16" | "uint32" | "float32":
                return self._narrow(function, values[0], kinds[0])
            case "match":
                return self._matched(values[1], call(PATTERN, values[0]), values[0].copy())
            case _:
                return text_function(function, values, self.dialect)

    def _given(self, function: PythonFunction, values: list[Sql], kinds: list[Type]) -> Sql:
        """A call of a function of the user. Each list of types is a function of its own to the engine."""
        own = "_".join(f"{kind.kind}{kind.precision}{kind.scale}" for kind in kinds)
        name = f"emberlog_call_{function.number}_{own}"
        types = tuple(self.dialect.type_name(kind) for kind in kinds)
        self.calls[name] = GivenFunction(calling_of(function, kinds), types, self.dialect.type_name(function.result))
        return call(name, *(cast(value, type) for value, type in zip(values, types, strict=True)))

    def _arithmetic(self, operator: str, left: Sql, right: Sql, type: Type) -> Sql:
        if type.is_integer:
            return self.dialect.arithmetic(operator, left, right, type.wide)
        node = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[operator]
        result = exp.paren(node(this=exp.paren(left), expression=exp.paren(right)))
        return self._unsigned_zero(result) if operator == "*" else result

    def _divide(self, operator: str, left: Sql, right: Sql, type: Type) -> Sql:
        if operator == "%":
            result: Sql = exp.Mod(this=exp.paren(left), expression=exp.paren(right))
            if type.kind == "number":
                # The remainder by -1 is 0, also of the one number whose quotient overflows.
                result = when(exp.EQ(this=right.copy(), expression=number(-1)), number(0), result)
            result = self.dialect.convert(result, type.wide)
        elif type.is_integer:
            result = self.dialect.quotient(left, right, type.wide)
        else:
            result = exp.Div(this=exp.paren(left), expression=exp.paren(right))
        if type.kind == "float":
            result = self._unsigned_zero(result)
        return when(exp.EQ(this=right.copy(), expression=number(0)), exp.null(), result)

    def _power(self, base: Sql, exponent: Sql, type: Type) -> Sql:
        if not type.is_integer:
            # A negative number has whole powers only; floats of 2^53 and more are whole, and so is infinity here.
            large = exp.GTE(this=call("abs", exponent.copy()), expression=number(2**53))
            rest = exp.Mod(this=exp.paren(exponent.copy()), expression=number(1))
            positive = exp.GTE(this=base.copy(), expression=number(0))
            whole = exp.EQ(this=rest, expression=number(0))
            return when(any_of([positive, large, whole]), self._unsigned_zero(call("power", base, exponent)))
        one = self.dialect.convert(number(1), type.wide)

        def is_(value: Sql, other: int) -> Sql:
            return exp.EQ(this=value.copy(), expression=number(other))

        odd = exp.EQ(this=exp.Mod(this=exp.paren(exponent), expression=number(2)), expression=number(1))
        minus = self.dialect.convert(number(-1), type.wide) if type.kind == "number" else one
        return exp.Case(
            ifs=[
                exp.If(this=exp.LT(this=exponent.copy(), expression=number(0)), true=exp.null()),
                exp.If(this=exp.or_(is_(exponent, 0), is_(base, 1)), true=one),
                exp.If(this=exp.or_(is_(base, 0), is_(exponent, 1)), true=base.copy()),
                exp.If(this=is_(base, -1), true=when(odd, minus, one.copy())),
                exp.If(this=exp.GT(this=exponent.copy(), expression=number(63)), true=exp.null()),
            ],
            default=self.dialect.power(base, exponent, type.wide),
        )

    def _absolute(self, value: Sql, type: Type) -> Sql:
        if type.kind == "number":
            negated = self.dialect.arithmetic("-", self.dialect.convert(number(0), type), value, type)
            return when(exp.LT(this=value.copy(), expression=number(0)), negated, value.copy())
        return value if type.kind == "unsigned" else call("abs", value)

    def _extremum(self, function: str, values: list[Sql], type: Type) -> Sql:
        if function == "relu":
            return self._extremum("max", [values[0], self.dialect.convert(number(0), type)], type)
        if function == "clip":
            raised = self._extremum("max", values[:2], type)
            return self._extremum("min", [raised, values[2]], type)
        if function == "min":
            return call("least", *values)
        if type.kind != "float":
            return call("greatest", *values)
        # NaN is the engines' largest number; it must not win. Nulls are passed over, so all NaN gives null, then NaN.
        best = call("greatest", *(when(call("isnan", value), exp.null(), value.copy()) for value in values))
        return exp.Coalesce(this=best, expressions=[cast(text("NaN"), self.dialect.float64)])

    def _logical(self, function: str, values: list[Sql], kinds: list[Type]) -> Sql:
        def holds(value: Sql, type: Type) -> Sql:
            return exp.paren(value) if type.kind == "bool" else exp.NEQ(this=exp.paren(value), expression=number(0))

        operands = [holds(value, kind) for value, kind in zip(values, kinds, strict=True)]
        match function:
            case "lnot":
                result: Sql = exp.not_(operands[0])
            case "land":
                result = exp.and_(*operands)
            case _:
                result = exp.or_(*operands)
        if kinds[0].kind == "bool":
            return exp.paren(result)
        return when(result, self.dialect.convert(number(1), kinds[0]), self.dialect.convert(number(0), kinds[0]))

    def _conversion(self, value: Sql, source: Type, target: Type) -> Sql:
        dialect, name = self.dialect, self.dialect.type_name(target.wide)
        match source.kind, target.kind:
            case a, b if a == b:
                return value
            case "float", "symbol":
                return dialect.float_text(value)
            case "symbol", "number" | "unsigned" | "float":
                pattern = FLOAT_TEXT if target.kind == "float" else INTEGER_TEXT
                matches = dialect.full_match(value, self._pattern(pattern))
                made = dialect.try_cast(value.copy(), name)
                return when(matches, self._unsigned_zero(made) if target.kind == "float" else made)
            case "float", "number" | "unsigned":
                # 2^63 and 2^64 are floats, the largest integers are not: the upper bound is exclusive.
                low, high = (-(2.0**63), 2.0**63) if target.kind == "number" else (-1.0, 2.0**64)
                above = exp.GT if target.kind == "unsigned" else exp.GTE
                inside = exp.and_(
                    above(this=value, expression=self._float(low)),
                    exp.LT(this=value.copy(), expression=self._float(high)),
                )
                return when(inside, dialect.truncate(value.copy(), target.wide))
            case "decimal", "number" | "unsigned":
                whole = call("floor", call("abs", value))
                negative = exp.LT(this=value.copy(), expression=number(0))
                dropped = when(negative, exp.Neg(this=whole), whole.copy())  # its fraction
                return in_range(dropped, target.wide, cast(dropped.copy(), name))
            case "number" | "unsigned", "number" | "unsigned":
                fits = (
                    exp.GTE(this=value, expression=number(0))
                    if target.kind == "unsigned"
                    else exp.LTE(this=value, expression=number(INT64_MAX))
                )
                return when(fits, cast(value.copy(), name))
            case _, "symbol":
                return dialect.as_text(value, source)
            case _:
                return cast(value, name)

    def _unsigned_zero(self, value: Sql) -> Sql:
        return unsigned_zero(value, self.dialect)

    def _matched(self, value: Sql, pattern: Sql, written: Sql) -> Sql:
        """Does the whole text match? `pattern` is the engine's, `written` that of the program: long texts are matched
        outside of an engine that they would harm."""
        longest = self.dialect.longest_text
        if longest is None:
            return self.dialect.full_match(value, pattern)
        is_long = exp.GT(this=call("length", value), expression=number(longest))
        outside = call(MATCHES, when(is_long, value.copy()), written)
        return when(is_long.copy(), outside, self.dialect.full_match(value.copy(), pattern))

    def _extracted(self, value: Sql, pattern: str, group: int) -> Sql:
        """What the group of the pattern matches; long texts are searched outside of an engine that they would harm."""
        engines = self.parameter(self.dialect.finder_text(pattern, group))
        found = call("regexp_extract", value, engines, number(min(group, 1)))
        longest = self.dialect.longest_text
        if longest is None or not may_go_deep(pattern):
            return found
        is_long = exp.GT(this=call("length", value.copy()), expression=number(longest))
        outside = call(EXTRACT, when(is_long, value.copy()), self.parameter(pattern), number(group))
        return when(is_long.copy(), outside, found)

    def _pattern(self, pattern: str) -> Sql:
        return self.parameter(self.dialect.pattern_text(pattern))

    def _float(self, value: float) -> Sql:
        return cast(self.parameter(value), self.dialect.float64)

    def _narrow(self, function: str, value: Sql, source: Type) -> Sql:
        if function == "float32":
            rounded = cast(value, "REAL" if self.dialect.name == "duckdb" else "FLOAT")
            return self._unsigned_zero(cast(rounded, self.dialect.float64))
        kind = "unsigned" if function.startswith("u") else "number"
        type = Type(kind, bits=int(function.lstrip("uint")))  # type: ignore[arg-type]
        return in_range(value, type, value.copy())


def unsigned_zero(value: Sql, dialect: Dialect) -> Sql:
    """A float that may be -0.0, which no value of a program is: with 0.0 added, it is 0.0."""
    return exp.paren(exp.Add(this=exp.paren(value), expression=dialect.convert(number(0), FLOAT)))


# Functions whose SQL gives a value although an argument is NULL.
_NOT_STRICT = frozenset({"min", "max", "relu", "clip", "land", "lor", "lnot", "substr", "^", "pow", "abs", "%",
                         "split", "lpad"})  # fmt: skip
