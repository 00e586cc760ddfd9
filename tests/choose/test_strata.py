"""Choices for strata: from the program, and from what is known of the inputs. Nothing is run."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from emberlog.choose.strata import Choice, refine
from emberlog.choose.ways import Inputs
from emberlog.thresholds import SMALL_ROOM, SMALL_ROWS
from planned import compiled

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
SG = "sg(X, Y) <- up(X, Z), up(Y, Z). sg(X, Y) <- up(X, A), sg(A, B), up(Y, B)."
CC = """
edge(X, Y) <- arc(X, Y). edge(X, Y) <- arc(Y, X).
cc(X, min<X>) <- edge(X, _). cc(Y, min<L>) <- cc(X, L), edge(X, Y).
"""
RANK = """
rank(0, X, r) <- node(X), r = 0.1.
rank(i+1, Y, sum[r]) <- node(Y), r = 0.15;
                     <- rank(i, X, q), edge(X, Y), r = 0.85 * q;
                     {sum[delta r] < 0.0001}.
"""


def chosen(text: str, name: str, executor: str = "local", **options: Any) -> Choice:
    return compiled(text, executor, **options).choices[name,]


def known(choice: Choice, rows: int, room: int | None = None) -> Choice:
    assert choice.program is not None
    return refine(choice, Inputs({static.name: rows for static in choice.program.statics}, room=room))


@pytest.mark.parametrize(
    ("text", "name", "options", "evaluator", "why"),
    [
        (TC, "tc", {}, "interpreter", "small"),
        (TC, "tc", {"evaluator": "sql"}, "sql", "the evaluator was forced"),
        (TC, "tc", {"storage": "loops"}, "trial", ""),
        (TC, "tc", {"storage": "loops", "evaluator": "kernel"}, "loops", "the evaluator was forced"),
        (CC, "edge", {}, "sql", ""),  # it is asked for
        (f"{CC} .output cc", "edge", {}, "columns", "only kernels read it"),
        (f"{CC} .output cc", "edge", {"evaluator": "sql"}, "sql", ""),
    ],
)
def test_who_evaluates(text: str, name: str, options: dict[str, Any], evaluator: str, why: str) -> None:
    choice = chosen(text, name, **options)
    assert (choice.evaluator, choice.why) == (evaluator, why)


def test_rows_decide_between_interpreter_and_loops() -> None:
    choice = chosen(TC, "tc")
    few, many = known(choice, SMALL_ROWS), known(choice, SMALL_ROWS + 1)
    assert (few.evaluator, few.why) == ("interpreter", "its inputs have 50,000 rows")
    assert (many.evaluator, many.why) == ("loops", "its inputs have more than 50,000 rows")
    assert known(choice, 1, room=SMALL_ROOM - 1).evaluator == "loops"


def test_an_iteration_is_tried_by_statements_while_it_is_small() -> None:
    (choice,) = (choice for choice in compiled(RANK).choices.values() if choice.program is not None)
    assert choice.evaluator == "trial"
    assert known(choice, 10).evaluator == "trial"
    assert known(choice, SMALL_ROWS + 1).evaluator == "loops"


def test_kernels_that_cannot_are_refused_before_a_run() -> None:
    text = "p(X) <- s(X). p(Y) <- p(X), Y = cat(X, X)."
    with pytest.raises(emberlog.UsageError, match="the kernels cannot evaluate `p`"):
        compiled(text, evaluator="kernel")
    choice = chosen(text, "p")
    assert choice.evaluator == "sql" and choice.why


@pytest.mark.parametrize(
    ("text", "name", "options", "shared", "split"),
    [
        (TC, "tc", {}, True, {"tc": (0,)}),
        (TC, "tc", {"decompose": False}, False, {"tc": ()}),
        (TC, "tc", {"decompose": False, "exchange": True}, True, {"tc": None}),
        (SG, "sg", {}, False, {"sg": ()}),
    ],
)
def test_what_tasks_of_spark_share_out(text: str, name: str, options: Any, shared: bool, split: Any) -> None:
    made = compiled(text, "spark", **options)
    choice = made.choices[name,]
    assert choice.is_shared == shared
    assert choice.split(made.plan.strata[-1]) == split


def test_what_is_kept_is_a_part_of_the_choice() -> None:
    counted = chosen(f"{TC} n(count<X>) <- tc(X, _). .output n", "tc")
    assert counted.kept is not None and not counted.kept.keep
    asked = chosen(TC, "tc")
    assert asked.kept is not None and asked.kept.keep == {"tc"}
