"""Every folder below `cases` with a `program.dl` and `expected/` or `raises.txt` is a test, on every executor.

`facts/R.facts` are inputs, `expected/R.csv` the rows of R, `params.txt` lines `K=V`, `tolerance.txt` an absolute
tolerance for floats (none: 1e-9 relative). `raises.txt` names an error and texts that its message must have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import emberlog

CASES = Path(__file__).parent / "cases"
FOUND = sorted(path.parent for path in CASES.rglob("program.dl"))
ANSWERS = [case for case in FOUND if (case / "expected").is_dir()]
FAILURES = [case for case in FOUND if (case / "raises.txt").exists()]

EXECUTORS = [
    pytest.param(("local", "auto"), id="local"),
    pytest.param(("spark", "auto"), id="spark-auto", marks=pytest.mark.spark),
    pytest.param(("spark", "spark"), id="spark", marks=pytest.mark.spark),
]


def name(case: Path) -> str:
    return str(case.relative_to(CASES))


def parameters(case: Path) -> dict[str, Any]:
    path = case / "params.txt"
    pairs = [line.split("=", 1) for line in path.read_text().splitlines()] if path.exists() else []
    return {key: float(value) if "." in value else int(value) for key, value in pairs}


def expected_rows(path: Path, relation: emberlog.Relation) -> list[tuple[Any, ...]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not relation.schema:
        return [() for _ in lines]
    read: dict[str, Callable[[str], Any]] = {"number": int, "unsigned": int, "float": float, "bool": "true".__eq__}
    kinds = [read.get(column.type.kind, str) for column in relation.schema]
    return [tuple(kind(text) for kind, text in zip(kinds, line.split("\t"), strict=True)) for line in lines]


def assert_rows(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], absolute: float) -> None:
    if not any(isinstance(value, float) for row in wanted for value in row):
        assert sorted(found) == sorted(wanted)
        return
    for row, other in zip(sorted(found), sorted(wanted), strict=True):
        for value, near in zip(row, other, strict=True):
            assert value == (pytest.approx(near, rel=1e-9, abs=absolute) if isinstance(near, float) else near)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Any:
    executor, placement = request.param
    session = request.getfixturevalue("spark") if executor == "spark" else None
    with emberlog.Engine(session, executor) as made:
        yield made, placement


# Recursion by Spark's statements, where a round takes a second or more: three programs and two aggregates run always.
LONG = {
    "facts_and_rules_of_one_predicate",
    "nonlinear_transitive_closure",
    "same_generation",
    "transitive_closure",
    "s06_count_of_contributors",
    "s06_paths_in_a_dag",
    "s08_pagerank_by_contributors",
    "s09_pagerank_with_a_dangling_node",
    "s12_pagerank_until",
}


def answers() -> Iterator[Any]:
    for case in ANSWERS:
        for executor in EXECUTORS:
            marks = [pytest.mark.slow] if executor.id == "spark" and case.name in LONG else []
            yield pytest.param(
                case, *executor.values, id=f"{name(case)}-{executor.id}", marks=[*executor.marks, *marks]
            )


@pytest.mark.parametrize(("case", "engine"), list(answers()), indirect=["engine"])
def test_answer(case: Path, engine: Any) -> None:
    run, placement = engine
    result = run.run_file(case / "program.dl", case / "facts", params=parameters(case), placement=placement)
    tolerance = case / "tolerance.txt"
    absolute = float(tolerance.read_text()) if tolerance.exists() else 0.0
    for path in sorted((case / "expected").iterdir()):
        relation = result[path.stem]
        assert_rows(relation.rows(), expected_rows(path, relation), absolute)


@pytest.mark.parametrize("engine", EXECUTORS, indirect=True)
@pytest.mark.parametrize("case", FAILURES, ids=name)
def test_failure(case: Path, engine: Any) -> None:
    run, placement = engine
    kind, *texts = (case / "raises.txt").read_text(encoding="utf-8").splitlines()
    with pytest.raises(getattr(emberlog, kind)) as raised:
        result = run.run_file(
            case / "program.dl", case / "facts", params=parameters(case), placement=placement, limits={"rounds": 20}
        )
        for relation in result:  # on Spark a relation that is not recursive is computed when it is read
            result[relation].rows()
    for text in texts:
        assert text in str(raised.value)
