"""Every case and example with recursion that loops can evaluate, by loops, in several ways."""

from __future__ import annotations

from pathlib import Path

import pytest

import emberlog
from kernels.variants import WAYS, in_every_way
from test_cases import ANSWERS, assert_rows, expected_rows, name, parameters
from test_examples import EXAMPLES, Example, asked_for, assert_same, rows_of

OTHERS = {name: WAYS[name] for name in ("whole, hashed", "columns")}
# Programs without recursion, or whose recursion loops do not take: every other one they have to evaluate.
BESIDE = {
    "language/bigdatalog_dialect",
    "language/body_aggregates",
    "language/failing_expressions_of_dropped_bindings_are_no_error",
    "language/names_that_are_keywords",
    "language/nan_equals_nothing",
    "language/negation_in_three_spellings",
    "language/nullary_predicates",
    "language/numbers_and_bits",
    "language/repeated_variables_and_constants",
    "language/several_heads_and_disjunction",
    "language/strings",
    "language/sums_pass_through_large_values",
    "language/two_equations_of_one_variable_both_hold",
    "language/witness_of_an_extremum",
    "recursion/states_are_kept_when_the_index_is_read",
    "semantics/s01_equal_values_of_different_bindings_all_count",
    "semantics/s02_count_ranges_over_bindings",
    "semantics/s02_countd_counts_values",
    "semantics/s03_all_rules_feed_one_group",
    "semantics/s05_aggregates_over_nothing",
    "semantics/s11_topk",
    "semantics/s12_division_truncates_toward_zero",
    "semantics/s12_names_are_case_sensitive",
    "bigdatalog/triangles.dl",
    "bigdatalog/pymk.dl",
}


@pytest.mark.parametrize("case", [case for case in ANSWERS if name(case) not in BESIDE], ids=name)
def test_answer(case: Path) -> None:
    tolerance = case / "tolerance.txt"
    absolute = float(tolerance.read_text()) if tolerance.exists() else 0.0
    with emberlog.Engine(executor="local", workers=1) as engine, in_every_way(OTHERS) as done:
        result = engine.run_file(case / "program.dl", case / "facts", params=parameters(case), evaluator="kernel")
        for path in sorted((case / "expected").iterdir()):
            relation = result[path.stem]
            assert_rows(relation.rows(), expected_rows(path, relation), absolute)
    assert done


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.path not in BESIDE], ids=lambda example: example.path
)
def test_example(example: Example) -> None:
    relations = example.relations(example.data())
    with emberlog.Engine(executor="local", workers=1) as engine, in_every_way(OTHERS) as done:
        for relation, table in relations.items():
            engine.register(relation, table)
        result = engine.run(example.text, params=dict(example.params), evaluator="kernel")
        want = example.oracle({relation: rows_of(table) for relation, table in relations.items()})
        for relation in asked_for(example, want):
            assert_same(result[relation].rows(), want[relation], example.tolerance)
    assert done
