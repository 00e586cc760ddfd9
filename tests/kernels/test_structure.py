"""What is decided about a component before it runs: what its columns are, its pivots, the order of its loops."""

from __future__ import annotations

import pytest

from emberlog.components.lower import lower
from emberlog.components.nests import Meet, Nest, Probe, Step, Walk, index_orders, nests
from emberlog.components.pivots import pivots
from emberlog.components.program import Check, Id, Ineligible, KernelProgram, Let
from planned import planned

ARC = ".decl arc(a: number, b: number)\n"
WEIGHTED = ".decl arc(a: number, b: number, w: number)\n"


def lowered(text: str) -> KernelProgram | Ineligible:
    """The last recursive component of a program."""
    plan = planned(text)[2]
    recursive = [stratum for stratum in plan.strata if stratum.evaluation != "once"]
    return lower(recursive[-1], plan)


def component(text: str) -> KernelProgram:
    found = lowered(text)
    assert isinstance(found, KernelProgram), found
    return found


# --- pivots ----------------------------------------------------------------------------------------------------------

PIVOTS = {
    "tc, right": ("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y).", {"tc": (0,)}),
    "tc, left": ("tc(X,Y) <- arc(X,Y). tc(X,Y) <- arc(X,Z), tc(Z,Y).", {"tc": (1,)}),
    "tc, non-linear": ("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y).", {"tc": ()}),
    "tc, both linear rules": (
        "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). tc(X,Y) <- arc(X,Z), tc(Z,Y).",
        {"tc": ()},
    ),
    "same generation": ("sg(X,Y) <- arc(P,X), arc(P,Y), X != Y. sg(X,Y) <- arc(A,X), sg(A,B), arc(B,Y).", {"sg": ()}),
    "reach": ("r(X) <- arc(0,X). r(Y) <- r(X), arc(X,Y).", {"r": ()}),
    "kept": ("r(X) <- arc(0,X). r(X) <- r(X), arc(X,_).", {"r": (0,)}),
    "two pivots": (
        "p(X,Y,Z) <- arc(X,Y), arc(Y,Z). p(X,U,Z) <- p(X,Y,Z), arc(Y,U).",
        {"p": (0, 2)},
    ),
    "swapped": ("p(X,Y,Z) <- arc(X,Y), arc(Y,Z). p(Y,X,U) <- p(X,Y,Z), arc(Z,U).", {"p": ()}),
    "mutual, moved": (
        "a(X,Y) <- arc(X,Y). b(Y,X) <- a(X,Z), arc(Z,Y). a(X,Y) <- b(Z,X), arc(Z,Y).",
        {"a": (0,), "b": (1,)},
    ),
    "mutual, lost": (
        "a(X,Y) <- arc(X,Y). b(X,Y) <- a(X,Z), arc(Z,Y). a(Y,X) <- b(X,Z), arc(Z,Y).",
        {"a": (), "b": ()},
    ),
    "constant in the head": ("p(X,Y) <- arc(X,Y). p(1,Y) <- p(X,Z), arc(Z,Y).", {"p": ()}),
    "the same variable twice": ("p(X,Y) <- arc(X,Y). p(Y,X) <- p(X,X), arc(X,Y).", {"p": (1,)}),
}


@pytest.mark.parametrize(("text", "expected"), PIVOTS.values(), ids=PIVOTS)
def test_pivots(text: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert pivots(component(ARC + text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(X,Y,min<D>) <- arc(X,Y,D). p(X,Y,min<D>) <- p(X,Z,C), arc(Z,Y,W), D = C + W.", (0,)),
        ("p(X,Y,min<D>) <- arc(X,Y,D). p(X,Y,min<D>) <- p(X,Z,C), p(Z,Y,W), D = C + W.", ()),
        # What is computed has no dictionary to take pivots from.
        ("p(X,Y) <- arc(X,Y,_). p(X,Y) <- p(X,Z), arc(Z,Y,W), W < X + 1.", ()),
    ],
)
def test_pivots_of_groups(text: str, expected: tuple[int, ...]) -> None:
    assert pivots(component(WEIGHTED + text))["p"] == expected


# --- loops -----------------------------------------------------------------------------------------------------------


def described(step: Step) -> str:
    match step:
        case Probe(relation, bound, _, binds, exists, absent):
            kind = "no" if absent else "some" if exists else "each"
            return f"{kind} {relation} by {bound} gives {tuple(name for _, name in binds)}"
        case Walk(relation, bound, _, binds):
            return f"fact {relation} by {bound} gives {tuple(name for _, name in binds)}"
        case Check(condition):
            return f"check {condition.operator}"
        case Let(variable):
            return f"let {variable}"
        case Meet(_):
            return "meet"


def loops(text: str, pivoted: bool = False) -> list[list[str]]:
    program = component(text)
    made = nests(program, pivots(program) if pivoted else {})
    return [[described(step) for step in (*nest.checks, *nest.steps)] for nest in made]


def test_a_nest_for_each_recursive_atom() -> None:
    text = ARC + "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."
    assert loops(text) == [["fact tc by (0,) gives ('Y',)"], ["fact tc by (1,) gives ('X',)"]]


def test_conditions_stand_as_far_out_as_they_can() -> None:
    text = ARC + ".decl ok(a: number)\np(X,Y) <- arc(X,Y). p(X,Y) <- p(X,Z), arc(Z,Y), X < Z, ok(Y), !ok(X)."
    assert loops(text) == [
        ["check <", "no ok by (0,) gives ()", "each arc by (0,) gives ('Y',)", "some ok by (0,) gives ()"]
    ]


def test_what_is_not_read_is_only_looked_for() -> None:
    text = ARC + "p(X) <- arc(X,_). p(X) <- p(X), arc(X,_)."
    assert loops(text) == [["some arc by (0,) gives ()"]]


def test_a_sum_counts_every_row() -> None:
    text = ARC + ".decl s0(a: number, b: number)\ns(X,sum<D>) <- s0(X,D). s(Y,sum<C>) <- s(X,C), arc(X,Y), arc(Y,_)."
    assert loops(text) == [["each arc by (0,) gives ('Y',)", "each arc by (0,) gives ()"]]


def test_atoms_of_which_one_row_matches_go_first() -> None:
    text = ARC + "c(X,count<Y>) <- arc(X,Y). p(X,N) <- c(X,N). p(Y,N) <- p(X,_), arc(X,Y), c(X,N)."
    assert loops(text) == [["each c by (0,) gives ('N',)", "each arc by (0,) gives ('Y',)"]]


def test_repeated_variables_are_checked() -> None:
    text = ARC + "p(X,Y) <- arc(X,Y). p(X,Y) <- p(X,X), arc(Y,Y), arc(X,Y)."
    assert loops(text) == [["check =", "each arc by (0,) gives ('Y',)", "some arc by (0, 1) gives ()"]]


def test_what_is_known_of_a_pivot_is_not_read() -> None:
    text = ARC + "p(X,Y) <- arc(X,Y). p(Y,X) <- p(X,X), arc(X,Y)."
    program = component(text)
    (nest,) = nests(program, pivots(program))
    assert [position for position, _ in nest.binds] == [0]
    assert [described(step) for step in nest.checks] == ["check ="]


def test_extra_variables_have_the_kinds_of_their_columns_in_each_nest() -> None:
    text = '.decl e(a: symbol, b: number)\np(S,X) <- e(S,X). p(S,Y) <- p("a",X), p(S,3), e(S,Y), e(_,X).'
    program = component(text)
    made: tuple[Nest, ...] = nests(program, {})
    extra = [
        (nest.kinds[name], program.kinds("p")[spot])
        for nest in made
        for spot, name in nest.binds
        if name.startswith("@")
    ]
    assert len(extra) == 2 and extra[0] != extra[1]
    assert all(kind == wanted for kind, wanted in extra)
    assert not any(name.startswith("@") for rule in program.rules for name in rule.kinds)


def test_indexes_are_shared() -> None:
    text = ARC + "p(X,Y) <- arc(X,Y). p(X,Y) <- p(X,Z), arc(Z,Y). p(X,Y) <- p(X,Z), arc(Z,U), arc(U,Y)."
    assert set(index_orders(nests(component(text), {}))) == {("arc", (0,))}


# --- kinds -----------------------------------------------------------------------------------------------------------


def test_columns_that_are_matched_share_a_domain() -> None:
    program = component(WEIGHTED + "d(X,min<D>) <- X = 1, D = 0. d(Y,min<D>) <- d(X,C), arc(X,Y,W), D = C + W.")
    (table,), (static,) = program.tables, program.statics
    assert isinstance(table.kinds[0], Id) and table.kinds[1] == "int"
    assert static.kinds == (table.kinds[0], table.kinds[0], "int")


def test_a_minimum_of_what_is_only_copied_is_an_id() -> None:
    program = component(ARC + "c(X,min<Y>) <- arc(X,Y). c(Y,min<V>) <- c(X,V), arc(X,Y).")
    assert all(isinstance(kind, Id) for kind in program.tables[0].kinds)


NOT_ELIGIBLE = {
    'e(X) <- arc(X,_). e(Y) <- e(X), arc(X,Y), match("a", to_string(Y)).': "a rule tests text",
    "e(X) <- arc(X,_). e(Y) <- e(X), Y = range(0, 3), arc(X,Y).": "a rule has a range",
    "e(X) <- arc(X,_). e(Y) <- e(X), Y = (X bxor 1).": "it calls `bxor`",
    "e(X) <- arc(X,_). e(Y) <- e(X), Y = count : {arc(X,_)}.": "a recursive rule has an aggregate in its body",
    "e() <- arc(_,_). e() <- e(), arc(_,_).": "`e` has no columns",
    "e(X,V) <- arc(X,_), V = 0.5. e(Y,V) <- e(X,U), arc(X,Y), V = U * 0.5, V > 0.1.": "a key of `e` is a float",
}


@pytest.mark.parametrize(("text", "reason"), NOT_ELIGIBLE.items())
def test_reasons(text: str, reason: str) -> None:
    found = lowered(ARC + text)
    assert isinstance(found, Ineligible)
    assert found.reason == reason
