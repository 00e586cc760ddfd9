"""Every case and example with recursion that loops can evaluate, by loops, in several ways."""

from __future__ import annotations

from pathlib import Path

import pytest

import emberlog
from kernels.variants import WAYS, in_every_way
from test_cases import ANSWERS, assert_rows, expected_rows, name, parameters
from test_examples import EXAMPLES, Example, asked_for, assert_same, rows_of

OTHERS = {name: WAYS[name] for name in ("whole, hashed", "columns")}


@pytest.mark.parametrize("case", ANSWERS, ids=name)
def test_answer(case: Path) -> None:
    tolerance = case / "tolerance.txt"
    absolute = float(tolerance.read_text()) if tolerance.exists() else 0.0
    with emberlog.Engine(executor="local", workers=1) as engine, in_every_way(OTHERS) as done:
        try:
            result = engine.run_file(case / "program.dl", case / "facts", params=parameters(case), evaluator="kernel")
        except emberlog.UsageError as refused:
            pytest.skip(str(refused))
        for path in sorted((case / "expected").iterdir()):
            relation = result[path.stem]
            assert_rows(relation.rows(), expected_rows(path, relation), absolute)
    if not done:
        pytest.skip("it is not recursive")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path)
def test_example(example: Example) -> None:
    relations = example.relations(example.data())
    with emberlog.Engine(executor="local", workers=1) as engine, in_every_way(OTHERS) as done:
        for relation, table in relations.items():
            engine.register(relation, table)
        try:
            result = engine.run(example.text, params=dict(example.params), evaluator="kernel")
        except emberlog.UsageError as refused:
            pytest.skip(str(refused))
        want = example.oracle({relation: rows_of(table) for relation, table in relations.items()})
        for relation in asked_for(example, want):
            assert_same(result[relation].rows(), want[relation], example.tolerance)
    if not done:
        pytest.skip("it is not recursive")
