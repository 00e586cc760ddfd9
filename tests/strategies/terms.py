"""Values, constants and expressions of the three types, as text of the language.

Everything is small and exact: numbers are 0 to 6, floats are multiples of a quarter, and the expressions here keep them
exact, so that engines agree to the last bit and can be compared through joins, groups and negations. A value that may
be rounded has the type `real`: it is copied to heads and otherwise left alone. No expression here can fail; those that
can are in `failing_expressions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from naive.values import Value

NUMBER, FLOAT, SYMBOL, REAL = "number", "float", "symbol", "real"
EXACT = (NUMBER, FLOAT, SYMBOL)

TEXTS = ("a", "b", "c", "ab", "", "A", "it's", 'a "b"', "ü", "1")

numbers = st.integers(0, 6)
floats = st.integers(-4, 16).map(lambda quarters: quarters / 4)
symbols = st.sampled_from(TEXTS)
types = st.sampled_from((NUMBER, NUMBER, NUMBER, SYMBOL, FLOAT))


def values(type: str) -> st.SearchStrategy[Value]:
    """What columns of base relations hold."""
    of_type: dict[str, st.SearchStrategy[Value]] = {NUMBER: numbers, FLOAT: floats, SYMBOL: symbols}
    return of_type[type]


def written(value: Value) -> str:
    """The constant as it stands in a program."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def constants(type: str) -> st.SearchStrategy[str]:
    return values(type).map(written)


def variables(type: str, bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    """A bound variable of the type, of which there must be one."""
    return st.sampled_from([name for name, other in bound if other == type])


def has(type: str, bound: Sequence[tuple[str, str]]) -> bool:
    return any(other == type for _, other in bound)


def operands(type: str, bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    """A variable or a constant."""
    return variables(type, bound) | constants(type) if has(type, bound) else constants(type)


def expressions(type: str, bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    """A term of the type over bound variables."""
    plain = operands(type, bound)
    return plain | {NUMBER: number_terms, FLOAT: float_terms, SYMBOL: symbol_terms}[type](plain, bound)


def number_terms(plain: st.SearchStrategy[str], bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    small = st.integers(1, 3).map(str)
    choices = [
        st.builds("({} {} {})".format, plain, st.sampled_from("+-"), plain),
        st.builds("{} {} {}".format, plain, st.sampled_from("*/%"), small),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), plain, plain),
        st.builds("{}({} - {})".format, st.sampled_from(["abs", "relu"]), plain, plain),
        st.builds("clip({}, {}, 4)".format, plain, small),
        st.builds("({} {} {})".format, plain, st.sampled_from(["band", "bor", "bxor", "land", "lor"]), plain),
        st.builds("({} {} {})".format, plain, st.sampled_from(["bshl", "bshr"]), small),
        st.builds("{} {}".format, st.sampled_from(["bnot", "lnot", "-"]), plain),
        st.builds("to_number(to_string({}))".format, plain),
        st.builds("({} ^ 2)".format, small),
    ]
    if has(SYMBOL, bound):
        choices.append(st.builds("{}({})".format, st.sampled_from(["strlen", "ord"]), variables(SYMBOL, bound)))
    if has(FLOAT, bound):
        choices.append(st.builds("to_number({})".format, variables(FLOAT, bound)))
    return st.one_of(choices)


def float_terms(plain: st.SearchStrategy[str], bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    choices = [
        st.builds("({} {} {})".format, plain, st.sampled_from("+-"), plain),
        st.builds("{} {}".format, plain, st.sampled_from(["* 0.5", "/ 2.0", "* 2.0"])),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), plain, plain),
        st.builds("{}({} - {})".format, st.sampled_from(["abs", "relu"]), plain, plain),
        st.builds("clip({}, 0.25, 2.5)".format, plain),
    ]
    if has(NUMBER, bound):
        choices.append(st.builds("to_float({})".format, variables(NUMBER, bound)))
        choices.append(st.builds("({} + {})".format, variables(NUMBER, bound), plain))
    return st.one_of(choices)


def symbol_terms(plain: st.SearchStrategy[str], bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[str]:
    choices = [
        st.builds("cat({}, {})".format, plain, plain),
        st.builds("substr({}, {}, {})".format, plain, st.integers(-1, 2), st.integers(-1, 2)),
    ]
    for type in (NUMBER, FLOAT):
        if has(type, bound):
            choices.append(st.builds("to_string({})".format, variables(type, bound)))
    return st.one_of(choices)


EXTREMES = (
    "9223372036854775807",
    "-9223372036854775807",
    "4611686018427387904",
    "3037000500",
    "-1",
    "0",
    "1",
    "2",
    "5",
)


def failing_expressions(bound: Sequence[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """A term that has no value for some values of its variables, and its type."""
    number = operands(NUMBER, bound) | st.sampled_from(EXTREMES)
    real = operands(FLOAT, bound)
    number_choices = [
        st.builds("({}) {} ({})".format, number, st.sampled_from("+-*/%^"), number),
        st.builds("({} - {}) {} ({} - {})".format, number, number, st.sampled_from("/%"), number, number),
        st.builds("{}({})".format, st.sampled_from(["abs", "-"]), number),
        st.builds("to_number({})".format, operands(SYMBOL, bound)),
    ]
    exact = st.builds("{} / ({} - {})".format, real, real, real)
    rounded = st.builds("{}({})".format, st.sampled_from(["log", "sqrt"]), real)
    return st.one_of(st.tuples(st.one_of(number_choices), st.just(NUMBER)), st.tuples(exact | rounded, st.just(REAL)))
