"""The functions and operators of the language: how many arguments they take, of which types, and what can fail.

`FUNCTIONS` is the table. The narrowing calls (`int8` ... `float32`) are no functions of the language: the analysis
puts them where a value enters a column of a sized type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import assert_never

from emberlog.analysis.arithmetic import DURATIONS, always_fits, is_mixed, mean_type, mixed_type, rounded_type
from emberlog.analysis.constants import decimal_type
from emberlog.callables import PythonFunction
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Collect, Constant, Parameter, Term, Variable
from emberlog.types import BOOL, DATE, FLOAT, MAX_DIGITS, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Type


class Family(Enum):
    """What the arguments of a function must be; all of one type but for ANY. Operators also compute with decimals,
    dates and timestamps (see `arithmetic`)."""

    NUMERIC = "numbers"
    INTEGER = "whole numbers"
    AMOUNT = "numbers or decimals"
    DECIMAL = "decimals"
    WRITTEN_NUMBER = "texts, whole numbers or decimals"
    MOMENT = "dates or timestamps"
    WRITTEN_MOMENT = "texts, dates or timestamps"
    LOGICAL = "numbers or booleans"
    SAME = "of one type"
    ANY = "of any type"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of `least` to `most` arguments (None: any number).

    `parameters` is a family, or the type of each argument, of which the last repeats. `result` is None where it is the
    type that the arguments share.
    """

    least: int
    most: int | None
    parameters: Family | tuple[Type, ...]
    result: Type | None = None

    def takes(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def arity(self) -> str:
        """How many arguments, in words."""
        if self.most is None:
            return f"at least {self.least} arguments"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        return f"{self.least} or {self.most} arguments"

    @property
    def signature(self) -> str | None:
        """The types of the arguments, where each has its own."""
        if not isinstance(self.parameters, tuple):
            return None
        types = [*self.parameters, *[self.parameters[-1]] * (self.least - len(self.parameters))]
        return f"({', '.join(map(str, types))}{', ...' if self.most is None else ''})"


_UNARY = Function(1, 1, Family.NUMERIC)
_PART = Function(1, 1, Family.MOMENT, NUMBER)
_BINARY = Function(2, 2, Family.NUMERIC)
_REAL = Function(1, 1, (FLOAT,), FLOAT)
_BITS = Function(2, 2, Family.INTEGER)

# Functions that no program can call. The step of a range that gives none: 1, or -1 where it goes down.
DEFAULT_STEP = "#step"
# 1 if one of the arguments has no value, else 0; and the first argument, but no value if the second one is not 0.
MISSING, UNLESS = "#missing", "#unless"
# The first of the arguments that has a value.
FIRST = "#first"
# A decimal with 38 digits, as many of them behind the point as the second argument, a constant, says.
DIGITS = "#digits"
# The average of decimals, from their sum and their number, with as many digits as the last two arguments say.
MEAN = "#mean"

FUNCTIONS: Mapping[str, Function] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "^", "pow"), _BINARY),
    **dict.fromkeys(("neg", "abs"), Function(1, 1, Family.AMOUNT)),
    "relu": _UNARY,
    "clip": Function(3, 3, Family.NUMERIC),
    **dict.fromkeys(("min", "max"), Function(2, None, Family.SAME)),
    **dict.fromkeys(("exp", "log", "sqrt", "tanh"), _REAL),
    "ord": Function(1, 1, (SYMBOL,), NUMBER),
    "cat": Function(2, None, (SYMBOL,), SYMBOL),
    "strlen": Function(1, 1, (SYMBOL,), NUMBER),
    "substr": Function(3, 3, (SYMBOL, NUMBER, NUMBER), SYMBOL),
    **dict.fromkeys(("contains", "match", "starts_with", "ends_with"), Function(2, 2, (SYMBOL,), BOOL)),
    **dict.fromkeys(("lower", "upper", "trim"), Function(1, 1, (SYMBOL,), SYMBOL)),
    "replace": Function(3, 3, (SYMBOL,), SYMBOL),
    "split": Function(3, 3, (SYMBOL, SYMBOL, NUMBER), SYMBOL),
    "lpad": Function(3, 3, (SYMBOL, NUMBER, SYMBOL), SYMBOL),
    "regexp_extract": Function(3, 3, (SYMBOL, SYMBOL, NUMBER), SYMBOL),
    "concat_ws": Function(2, None, (SYMBOL,), SYMBOL),
    "to_number": Function(1, 1, Family.ANY, NUMBER),
    "to_string": Function(1, 1, Family.ANY, SYMBOL),
    "to_float": Function(1, 1, Family.ANY, FLOAT),
    "to_unsigned": Function(1, 1, Family.ANY, UNSIGNED),
    "to_decimal": Function(3, 3, Family.ANY),
    "to_date": Function(1, 1, Family.WRITTEN_MOMENT, DATE),
    "to_timestamp": Function(1, 1, Family.WRITTEN_MOMENT, TIMESTAMP),
    "round": Function(2, 2, Family.ANY),
    **dict.fromkeys(("year", "month", "day"), _PART),
    **dict.fromkeys(("hour", "minute", "second"), Function(1, 1, (TIMESTAMP,), NUMBER)),
    **dict.fromkeys(DURATIONS, Function(1, 1, (NUMBER,), NUMBER)),
    "date_trunc": Function(2, 2, Family.ANY),
    "range": Function(2, 3, Family.NUMERIC),
    DEFAULT_STEP: Function(2, 2, Family.NUMERIC),
    MISSING: Function(1, None, Family.ANY, NUMBER),
    UNLESS: Function(2, 2, Family.ANY),
    FIRST: Function(2, 2, Family.ANY),
    DIGITS: Function(2, 2, Family.ANY),
    MEAN: Function(4, 4, Family.ANY),
    **dict.fromkeys(("band", "bor", "bxor", "bshl", "bshr"), _BITS),
    "bnot": Function(1, 1, Family.INTEGER),
    **dict.fromkeys(("land", "lor"), Function(2, 2, Family.LOGICAL)),
    "lnot": Function(1, 1, Family.LOGICAL),
}

NARROWING: Mapping[str, Type] = {
    **{f"int{bits}": Type("number", bits) for bits in (8, 16, 32)},
    **{f"uint{bits}": Type("unsigned", bits) for bits in (8, 16, 32)},
    "float32": Type("float", 32),
}

# Characters to which `lpad` fills up a text at most; more is an error.
LONGEST_PADDED = 1_000_000

_CHECKED_ON_INTEGERS = frozenset({"+", "-", "*", "neg", "abs"})
_CONVERSIONS = {"to_number": "number", "to_unsigned": "unsigned"}


def function_of(call: Call) -> Function | None:
    """The function that a call names, given or of the language; None if there is none."""
    given = call.given
    if given is None:
        return FUNCTIONS.get(call.function)
    return Function(given.least, given.most, given.parameters or Family.ANY, given.result)


def type_of(term: Term, types: Mapping[str, Type]) -> Type:
    """The type of an elaborated term, given the types of its variables."""
    match term:
        case Variable(name):
            return types[name]
        case Constant():
            return constant_type(term)
        case Call(given=PythonFunction(result=given)):
            return given
        case Call(function, arguments):
            if function in NARROWING:
                return NARROWING[function]
            result = FUNCTIONS[function].result
            return _type_of_arguments(function, arguments, types) if result is None else result
        case Aggregate(function, arguments):
            inner = type_of(arguments[-1], types)
            return aggregate_type(function, inner)
        case Anonymous() | Parameter() | Collect():
            raise ValueError(f"not an elaborated term: {term}")
        case _:
            assert_never(term)


def _type_of_arguments(function: str, arguments: Sequence[Term], types: Mapping[str, Type]) -> Type:
    """The type of a function whose type depends on its arguments."""
    first = type_of(arguments[0], types).wide
    match function, arguments:
        case "#digits", (_, Constant(int(scale))):
            return Type("decimal", precision=MAX_DIGITS, scale=scale)
        case "to_decimal" | "#mean", (*_, Constant(int(precision)), Constant(int(scale))):
            return Type("decimal", precision=precision, scale=scale)
        case "round", (_, Constant(int(places))):
            return rounded_type(first, places)
        case "date_trunc", (_, moment):
            return type_of(moment, types)
        case "min" | "max" | "#first", _ if first.kind == "decimal":
            return reduce(Type.with_room_for, (type_of(argument, types) for argument in arguments))
        case _, (_, other) if is_mixed(function, (first, type_of(other, types))):
            found = mixed_type(function, first, type_of(other, types))
            assert found is not None, f"`{function}` of {first} and {type_of(other, types)}"
            return found
        case _:
            return first


def constant_type(constant: Constant) -> Type:
    """The type of an elaborated constant."""
    match constant.value:
        case bool():
            return BOOL
        case int():
            return UNSIGNED if constant.kind == "unsigned" else NUMBER
        case float():
            return FLOAT
        case str() if constant.kind == "decimal":
            return decimal_type(constant)
        case str():
            return {"date": DATE, "timestamp": TIMESTAMP}.get(constant.kind, SYMBOL)
        case _:
            assert_never(constant.value)


def aggregate_type(function: str, argument: Type) -> Type:
    """The type of an aggregate over values of type `argument`."""
    match function:
        case "count" | "countd":
            return NUMBER
        case "avg":
            return mean_type(argument)
        case "sum" if argument.kind == "decimal":
            return Type("decimal", precision=MAX_DIGITS, scale=argument.scale)
        case _:
            return argument.wide


def fallible(term: Term, types: Mapping[str, Type]) -> bool:
    """Can this elaborated term have no value for some values of its variables?"""
    match term:
        case Call(function, arguments):
            if term.given is not None or any(fallible(argument, types) for argument in arguments):
                return True
            if function == "match":
                return not isinstance(arguments[0], Constant)  # a pattern from the facts may be none
            return _fails(function, tuple(type_of(argument, types) for argument in arguments))
        case Aggregate(_, arguments):
            return any(fallible(argument, types) for argument in arguments)
        case _:
            return False


def may_lack(term: Term, types: Mapping[str, Type], unsure: Collection[str]) -> bool:
    """True if a term may have no value where the columns `unsure` may have none."""
    match term:
        case Variable(name):
            return name in unsure
        case Call(function, arguments):
            if function == MISSING:
                return False
            if function == FIRST:
                return all(may_lack(argument, types, unsure) for argument in arguments)
            return fallible(term, types) or any(may_lack(argument, types, unsure) for argument in arguments)
        case _:
            return False


def _fails(function: str, operands: tuple[Type, ...]) -> bool:
    """Can `function` fail on operands of these types?"""
    if is_mixed(function, operands):
        return mixed_type(function, *operands) not in (NUMBER, FLOAT) and not always_fits(function, *operands)
    operand = operands[0]
    if function in ("/", "%", "^", "log", "sqrt", "lpad", "to_decimal", UNLESS, MEAN, *DURATIONS):
        return True
    if function in ("to_date", "to_timestamp"):
        return operand.kind == "symbol"
    if function in _CHECKED_ON_INTEGERS:
        return operand.is_integer
    if function in _CONVERSIONS:
        return operand.kind not in (_CONVERSIONS[function], "bool")
    if function == "to_float":
        return operand.kind == "symbol"
    return function in NARROWING and NARROWING[function].is_integer
