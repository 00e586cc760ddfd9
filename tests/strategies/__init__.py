"""Random valid programs with data, and the check that an evaluator agrees with the reference on them.

A differential test is three lines:

    @given(programs())
    def test_duckdb_agrees(case: Case) -> None:
        assert_agrees(case, on_duckdb)

`terms` has values and expressions, `rules` bodies, `templates` aggregates inside recursion, `programs` puts them
together, `joins` draws recursive rules with several growing atoms, `wide` what these leave out (with `universe` and
`goals`), `small` single rules about values that are missing, `cases` compares.
"""

from __future__ import annotations

from strategies.cases import Case, Outcome, Run, assert_agrees, difference, expected, reference, same_rows
from strategies.joins import wide_joins
from strategies.programs import aggregate_programs, arithmetic_programs, programs, recursive_programs
from strategies.small import small_programs
from strategies.wide import broken_programs, wide_programs

__all__ = [
    "Case",
    "Outcome",
    "Run",
    "aggregate_programs",
    "arithmetic_programs",
    "assert_agrees",
    "broken_programs",
    "difference",
    "expected",
    "programs",
    "recursive_programs",
    "reference",
    "same_rows",
    "small_programs",
    "wide_joins",
    "wide_programs",
]
