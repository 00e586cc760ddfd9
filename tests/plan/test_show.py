"""Plans as text: each folder of `cases/plans` has a program and the plan that it gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Fold,
    Group,
    Join,
    Lookup,
    Plan,
    Scan,
    Select,
    Top,
    Union,
    Unit,
)
from emberlog.plan.show import label, show, show_program
from emberlog.syntax.nodes import Comparison, Constant, Variable
from emberlog.types import NUMBER
from planned import planned

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "cases" / "plans").glob("*/program.dl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_plan_is_as_written(case: Path) -> None:
    _, _, plan = planned((case / "program.dl").read_text(encoding="utf-8"))
    expected = case / "plan.txt"
    if os.environ.get("UPDATE_CASES"):
        expected.write_text(show_program(plan) + "\n", encoding="utf-8")
    assert show_program(plan) + "\n" == expected.read_text(encoding="utf-8")


def scan(relation: str, *names: str | None) -> Scan:
    return Scan(relation, names, (NUMBER,) * len(names))


def test_a_tree_is_indented() -> None:
    above = Comparison(">", Variable("Y"), Constant(3))
    plan = Distinct(Join(Select(scan("arc", "X", "Y"), (above,)), scan("arc", "Y", None)))
    assert show(plan).split("\n") == [
        "Distinct",
        "  Join on Y",
        "    Select Y > 3",
        "      Scan arc(X, Y)",
        "    Scan arc(Y, _)",
    ]


def test_each_node_tells_what_it_does() -> None:
    left, right = scan("p", "X", "Y"), scan("q", "Y")
    nodes: dict[str, Plan] = {
        "Unit": Unit(),
        "Cross join": Join(scan("p", "X"), scan("q", "Y")),
        "Antijoin on Y": Antijoin(left, right),
        "Antijoin where X < Z": Antijoin(
            scan("p", "X"), scan("q", "Z"), (Comparison("<", Variable("X"), Variable("Z")),)
        ),
        "Lookup N on X, else 0": Lookup(scan("p", "X"), scan("q", "X", "N"), "N", Constant(0)),
        "Group all: #0 = count()": Group(right, (), (Fold("#0", "count", None),)),
        "Group by X: min(Y)": Group(left, ("X",), (Fold("Y", "min", "Y"),)),
        "Union": Union((right, right)),
        "Top 2 by Y descending, X": Top(left, (("Y", True),), ("X", "Y"), 2),
        "Sort by X": Top(left, (("X", False),), (), None),
    }
    assert [label(node) for node in nodes.values()] == list(nodes)


def test_a_deep_plan_is_shown_without_recursion() -> None:
    plan: Plan = scan("p", "X")
    for _ in range(3000):
        plan = Distinct(plan)
    assert show(plan).count("\n") == 3000
