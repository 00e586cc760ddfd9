"""Where rows move between tasks. The counts are those of Spark's own plans when it may not broadcast."""

from __future__ import annotations

import pytest

from emberlog.plan.logical import Distinct, Fold, Group, Join, Plan, Project, Scan, Top, Union, Unit
from emberlog.plan.physical import exchanges, physical, show_physical
from emberlog.plan.rounds import PhysicalStratum, physical_stratum
from emberlog.syntax.nodes import Variable
from emberlog.types import NUMBER
from planned import planned

TC = "tc(X, Y) :- arc(X, Y). tc(X, Y) :- tc(X, Z), arc(Z, Y)."
SG = "sg(X, Y) :- arc(P, X), arc(P, Y), X != Y. sg(X, Y) :- arc(A, X), sg(A, B), arc(B, Y)."
SSSP = "d(Y, min(D)) :- s(Y), D = 0. d(Y, min(D)) :- d(X, C), arc(X, Y, W), D = C + W."
PATHS = "n(Y, sum(C)) :- s(Y), C = 1. n(Y, sum(C)) :- n(X, C), arc(X, Y)."
RANK = "r(0, X, v) :- n(X), v = 1.0. r(i+1, Y, sum[v]) :- r(i, X, u), e(X, Y), v = 0.5 * u; {sum[delta v] < 0.1}."


def scan(relation: str, *names: str) -> Scan:
    return Scan(relation, names, (NUMBER,) * len(names))


def only_stratum(text: str, *, distributed: bool = True) -> PhysicalStratum:
    _, _, plan = planned(text)
    (stratum,) = plan.strata
    return physical_stratum(stratum, plan, distributed=distributed)


@pytest.mark.parametrize(
    ("text", "once", "a_round"),
    [
        (TC, 1, 4),  # to the join both sides, the result to its distinct, what is known to be taken away
        (SG, 3, 7),  # two joins, with a distinct in between
        (SSSP, 1, 6),  # both sides of the join, of the minimum and what is known, of the merge
        ("p(X) :- q(X), !r(X).", 2, 0),  # the antijoin leaves rows where the distinct wants them
        ("p(count(X)) :- q(X).", 1, 0),  # one group of all
        ("p(X, Y) :- q(X), r(Y).", 2, 0),  # a cross product sends one side everywhere; then a distinct
        ("p(X, topk(3, Y)) :- q(X, Y).", 2, 0),
    ],
)
def test_exchanges_of_a_stratum(text: str, once: int, a_round: int) -> None:
    stratum = only_stratum(text)
    assert (stratum.exchanges_once, stratum.exchanges_a_round) == (once, a_round)


@pytest.mark.parametrize("text", [TC, SG, SSSP, PATHS, RANK])
def test_no_rows_move_in_one_process(text: str) -> None:
    stratum = only_stratum(text, distributed=False)
    assert stratum.exchanges_once == stratum.exchanges_a_round == 0


def test_a_round_of_tc() -> None:
    (_, step) = only_stratum(TC).steps
    assert step.repeated
    assert show_physical(step.plan).split("\n") == [
        "AntiHashJoin on #0, #1",
        "  HashDistinct",
        "    Exchange by #0, #1",
        "      Compute #0 = X, #1 = Y",
        "        HashJoin on Z",
        "          Exchange by Z",
        "            ScanTable tc(X, Z) recent",
        "          Exchange by Z",
        "            ScanTable arc(Z, Y)",
        "  Exchange by #0, #1",
        "    ScanTable tc(#0, #1)",
    ]


def test_a_partitioning_is_used_again() -> None:
    grouped = Group(scan("p", "X", "Y"), ("X",), (Fold("Y", "min", "Y"),))
    assert exchanges(physical(grouped)) == 1
    assert exchanges(physical(Join(grouped, scan("q", "X")))) == 2
    assert exchanges(physical(Distinct(grouped))) == 1
    assert exchanges(physical(Join(grouped, scan("q", "Y")))) == 3


def test_a_projection_keeps_a_partitioning_whose_columns_it_keeps() -> None:
    joined = Join(scan("p", "X", "Y"), scan("q", "X", "Z"))
    kept = Project(joined, (("A", Variable("X")), ("B", Variable("Y"))))
    lost = Project(joined, (("A", Variable("Z")), ("B", Variable("Y"))))
    assert exchanges(physical(Distinct(kept))) == 2
    assert exchanges(physical(Distinct(lost))) == 3


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (Distinct(Unit()), 0),
        (Union((Distinct(scan("p", "X")), Distinct(scan("q", "X")))), 2),
        (Distinct(Union((Distinct(scan("p", "X")), Distinct(scan("q", "X"))))), 3),
        (Distinct(Top(scan("p", "X"), (("X", True),), (), 5)), 1),
    ],
)
def test_what_is_in_one_place_stays_there(plan: Plan, count: int) -> None:
    assert exchanges(physical(plan)) == count
