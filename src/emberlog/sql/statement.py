"""SQL text as engines take it. What writes such text is loaded where there is a plan to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from emberlog.sql.calling import Calling

Parameter = bool | int | float | str | Decimal

# Functions that engines are given: a float as programs show it; a pattern as the engine reads it, null if it is none;
# does a long text match a pattern, and what does a group of it match; texts in small and in large letters; arithmetic
# on decimals that are given as texts.
FLOAT_TEXT, PATTERN, MATCHES = "emberlog_float_text", "emberlog_pattern", "emberlog_matches"
EXTRACT, LOWER, UPPER = "emberlog_extract", "emberlog_lower", "emberlog_upper"
EXACT = "emberlog_exact"
OUR_FUNCTIONS = (FLOAT_TEXT, PATTERN, MATCHES, EXTRACT, LOWER, UPPER, EXACT)

# Static helper functions of a DuckDB connection. Lambdas and 128-bit integers have no common spelling in sqlglot.
DUCKDB_PRELUDE = (
    """CREATE OR REPLACE MACRO emberlog_power(a, b) AS
         TRY(list_reduce(list_resize([a], b, a), lambda x, y: x * y))""",
    """CREATE OR REPLACE MACRO emberlog_shift_left(a, n) AS
         ((a::HUGEINT * (1::HUGEINT << (n & 63)::INTEGER)) % 18446744073709551616::HUGEINT
           + 18446744073709551616::HUGEINT) % 18446744073709551616::HUGEINT""",
    """CREATE OR REPLACE MACRO emberlog_signed(a) AS
         (CASE WHEN a > 9223372036854775807::HUGEINT THEN a - 18446744073709551616::HUGEINT ELSE a END)::BIGINT""",
)

# What an error says between a decimal and the type that it does not fit.
TOO_MANY_DIGITS = "has too many digits for"

# An error that a statement raises carries its guard and values between these marks.
MARK_START, MARK_END, MARK_BETWEEN = "<<emberlog ", ">>", "|~|"


@dataclass(frozen=True)
class Statement:
    """SQL text with named parameters. `needs` are those of our functions that it calls.

    It reads the tables of its stages, which no other statement reads.
    """

    sql: str
    parameters: Mapping[str, Parameter]
    needs: frozenset[str] = frozenset()
    stages: tuple[Stage, ...] = ()  # what is computed before, in this order
    calls: Mapping[str, GivenFunction] = field(
        default_factory=dict
    )  # functions of the user, by their names in the text


@dataclass(frozen=True)
class GivenFunction:
    """A function of the user for arguments of these types, which are those of the engine."""

    calling: Calling
    parameters: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Stage:
    """A table that holds the rows of a part of a statement while the statement runs."""

    name: str
    statement: Statement
