"""Types, values and expressions of `wide` programs, as text of the language.

A type has few values, so that joins meet: small numbers, or those around 2^53 or at the ends of 64 bits; floats that
add up exactly; texts of which some are numbers; truth values, dates, unsigned numbers and decimals. Expressions may
have no value for some of them: an overflow, a division by zero, a root, a text that is no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from naive.values import Unsigned, Value

NUMBER, FLOAT, SYMBOL, UNSIGNED, BOOL, DATE, DECIMAL = (
    "number",
    "float",
    "symbol",
    "unsigned",
    "bool",
    "date",
    "decimal(10,2)",
)
REAL = "real"  # a float that may be rounded differently: it is only handed on
TYPES = (NUMBER, NUMBER, NUMBER, SYMBOL, SYMBOL, FLOAT, UNSIGNED, BOOL, DATE, DECIMAL)

SMALL = (-1, 0, 1, 2, 3)
NUMBERS: Mapping[str, tuple[int, ...]] = {
    "small": SMALL,
    "2^53": (2**53 - 1, 2**53, 2**53 + 1, 0, 2),
    "2^63": (2**63 - 1, 2**63 - 2, -(2**63), 0, -1),
}
VALUES: Mapping[str, tuple[Value, ...]] = {
    FLOAT: (0.0, -0.0, 0.5, -1.0, 2.0, 2.0**53),
    SYMBOL: ("a", "b", "1", "01", "x", "", "É", "é"),
    UNSIGNED: tuple(Unsigned(value) for value in (0, 1, 2, 2**63, 2**64 - 1)),
    BOOL: (True, False),
    DATE: (date(2024, 2, 29), date(2024, 3, 1), date(1999, 12, 31)),
    DECIMAL: (Decimal("0.50"), Decimal("-1.25"), Decimal("3.00")),
}
# The names of variables, by type: the few there are of a type are shared by the atoms of a body.
VARIABLES: Mapping[str, tuple[str, ...]] = {
    NUMBER: ("X", "Y", "Z", "x", "y"),
    FLOAT: ("F", "G", "f"),
    SYMBOL: ("S", "T", "s"),
    UNSIGNED: ("U", "V"),
    BOOL: ("B", "C"),
    DATE: ("D", "E"),
    DECIMAL: ("M", "N"),
}
PATTERNS = ("a|b", "(?i)é", "[0-9]+", ".*")


def written(value: Value) -> str:
    """The constant as it stands in a program."""
    match value:
        case bool():
            return "true" if value else "false"
        case Unsigned():
            return f"{value}u"
        case str():
            return f'"{value}"'
        case date():
            return f'"{value.isoformat()}"'
        case _:
            return repr(value)


def safe_terms(type: str, one: str, other: str) -> Sequence[str]:
    """Terms over two operands of the type that always have a value, few of them different: recursion over them ends.
    Of numbers the first three are ones that loops compute, too.
    """
    match type:
        case "number":
            return (f"min({one}, {other})", f"max({one}, 0)", f"clip({one}, -1, 2)", f"({one} band {other})")
        case "unsigned":
            return (f"min({one}, {other})", f"({one} bor {other})")
        case "float":
            return (f"max({one}, {other})", f"clip({one}, 0.0, 1.0)", f"relu({one})")
        case "symbol":
            return (f"substr({one}, 0, 1)", f"max({one}, {other})")
        case "bool":
            return (f"{one} land {other}", f"lnot {one}")
        case "date":
            return (f"min({one}, {other})", f'date_trunc("month", {one})')
        case _:
            return (one,)


def converted_terms(type: str, bound: Sequence[tuple[str, str]]) -> list[str]:
    """Terms of the type over variables of other types; those to numbers may have no value."""
    makers: Mapping[tuple[str, str], Sequence[str]] = {
        (SYMBOL, NUMBER): ("to_number({})", "strlen({})", "ord({})"),
        (FLOAT, NUMBER): ("to_number({})",),
        (UNSIGNED, NUMBER): ("to_number({})",),
        (BOOL, NUMBER): ("to_number({})",),
        (NUMBER, FLOAT): ("to_float({})",),
        (SYMBOL, FLOAT): ("to_float({})",),
        (NUMBER, SYMBOL): ("to_string({})",),
        (BOOL, SYMBOL): ("to_string({})",),
        (DATE, SYMBOL): ("to_string({})",),
        (FLOAT, SYMBOL): ("to_string({})",),
        (DATE, NUMBER): ("year({})", "day({})", '{} - "2024-02-29"', "month({} + 1)"),
        (DECIMAL, NUMBER): ("to_number({} * 2)", "to_number(round({}, 1) + 1)"),
        (DECIMAL, FLOAT): ("to_float({} - 0.5)",),
        (NUMBER, UNSIGNED): ("to_unsigned({})",),
        (SYMBOL, UNSIGNED): ("to_unsigned({})",),
    }
    return [maker.format(name) for name, given in bound for maker in makers.get((given, type), ())]


def unsure_terms(type: str, one: str, other: str) -> Sequence[str]:
    """Terms over two operands of the type that have no value for some of them."""
    match type:
        case "number":
            return (
                f"{one} / {other}",
                f"{one} % {other}",
                f"10 / {one}",
                f"{one} + {other}",
                f"{one} - {other}",
                f"{one} * {other}",
                f"{one} + 1",
                f"-({one})",
                f"abs({one})",
                f"({one}) ^ {other}",
                f"(5 / {one}) / {other}",
            )
        case "unsigned":
            return (f"{one} - {other}", f"{one} + {other}", f"{one} / {other}")
        case "float":
            return (f"{one} / {other}", f"sqrt({one})", f"{one} % {other}")
        case _:
            return ()
