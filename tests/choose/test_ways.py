"""The ways of the loops: from rules and wishes, and from the sizes of inputs. Nothing is run."""

from __future__ import annotations

from typing import Any

import pytest

from emberlog.choose.ways import Inputs, Way, choose_way
from emberlog.choose.wishes import Wishes
from emberlog.components.program import KernelProgram
from emberlog.thresholds import FEW_ROWS, MATRIX_BYTES
from planned import compiled

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
SG = "sg(X, Y) <- up(X, Z), up(Y, Z). sg(X, Y) <- up(X, A), sg(A, B), up(Y, B)."
REACH = "r(X) <- s(X). r(Y) <- r(X), arc(X, Y)."
CC = "cc(X, min<X>) <- arc(X, _). cc(Y, min<L>) <- cc(X, L), arc(X, Y)."
SSSP = "d(X, min<D>) <- s(X), D = 0. d(Y, min<D>) <- d(X, C), arc(X, Y, W), D = C + W."
APSP = "d(X, Y, min<D>) <- arc(X, Y, D). d(X, Y, min<D>) <- d(X, Z, C), arc(Z, Y, W), D = C + W."
SQUARE = "d(X, Y, min<D>) <- arc(X, Y, D). d(X, Y, min<D>) <- d(X, Z, C), d(Z, Y, W), D = C + W."
PATHS = "p(Y, sum<C>) <- s(Y, C). p(Y, sum<C>) <- p(X, C), arc(X, Y)."
WIDE = "p(A, B, C) <- e(A, B, C). p(A, B, D) <- p(B, A, C), e(C, A, D)."


def program_of(text: str) -> KernelProgram:
    declared = ".decl arc(x: number, y: number, w: number)\n.input arc\n" if "arc(X, Y, W)" in text else ""
    (program,) = (choice.program for choice in compiled(declared + text).choices.values() if choice.program)
    return program


def way_of(text: str, workers: int = 2, inputs: Inputs | None = None, **wishes: Any) -> Way:
    return choose_way(program_of(text), Wishes(**wishes), workers, inputs)


def sized(text: str, rows: int, size: int) -> Inputs:
    program = program_of(text)
    names = [static.name for static in program.statics] + [table.name for table in program.tables]
    return Inputs(dict.fromkeys(names, rows), dict.fromkeys(range(len(program.domains)), size))


@pytest.mark.parametrize(
    ("text", "wishes", "kind", "pivoted", "owned", "swaps"),
    [
        (TC, {}, "masks", True, False, False),
        (TC, {"storage": "hash"}, "facts", True, False, False),
        (TC, {"storage": "rows"}, "rows", False, False, False),
        (TC, {"decompose": False}, "rows", False, False, False),
        (TC, {"decompose": False, "storage": "loops"}, "facts", False, False, False),
        (TC, {"decompose": False, "exchange": True}, "facts", False, False, True),
        (TC, {"partition": {"tc": 0}}, "masks", True, False, False),
        (TC, {"partition": {"tc": 1}}, "facts", False, False, True),
        (SG, {}, "rows", False, False, False),
        (SG, {"exchange": True}, "facts", False, False, True),
        (SQUARE, {"exchange": True}, "rows", False, False, False),  # rules look up facts that others have
        (REACH, {}, "facts", False, True, False),
        (CC, {}, "facts", False, True, False),
        (SSSP, {}, "buckets", False, True, False),
        (SSSP, {"ordered": False}, "facts", False, True, False),
        (SSSP, {"exchange": True}, "facts", False, False, True),
        (APSP, {}, "buckets", True, False, False),
        (SQUARE, {}, "rows", False, False, False),
        (PATHS, {}, "facts", False, False, False),
        (WIDE, {}, "facts", False, False, False),
    ],
)
def test_the_way_of_a_program(
    text: str, wishes: dict[str, Any], kind: str, pivoted: bool, owned: bool, swaps: bool
) -> None:
    way = way_of(text, **wishes)
    assert (way.kind, way.pivoted, way.owned, way.swaps) == (kind, pivoted, owned, swaps)


def test_one_worker_swaps_nothing() -> None:
    way = way_of(TC, workers=1, decompose=False, exchange=True)
    assert not way.swaps and way.kind == "rows"


def test_few_rows_are_no_work_for_rows_of_sets() -> None:
    assert way_of(SG, inputs=sized(SG, FEW_ROWS, 10)).kind == "rows"
    assert way_of(SG, inputs=sized(SG, FEW_ROWS // 4, 10)).kind == "facts"


def test_a_matrix_of_values_has_to_fit() -> None:
    fits = int((MATRIX_BYTES // 8) ** 0.5)
    assert way_of(SQUARE, inputs=sized(SQUARE, FEW_ROWS, fits)).kind == "rows"
    assert way_of(SQUARE, inputs=sized(SQUARE, FEW_ROWS, fits + 1)).kind != "rows"


def test_large_domains_make_hashed_tables() -> None:
    small, large = (way_of(SSSP, inputs=sized(SSSP, 1000, size)) for size in (1000, 1 << 30))
    assert {layout.storage for layout in small.layouts.values()} == {"dense"}
    assert {layout.storage for layout in large.layouts.values()} == {"hash"}
    assert (large.kind, large.owned) == ("facts", False)


def test_without_rows_nothing_tells_how_far_values_lie_apart() -> None:
    assert way_of(SSSP, inputs=sized(SSSP, 0, 1)).kind == "facts"


def test_values_in_buckets_may_be_narrow() -> None:
    way = way_of(SSSP, inputs=sized(SSSP, 1000, 1000))
    assert {layout.dtype for layout in way.layouts.values()} == {"int64"}
    assert {layout.dtype for layout in way.narrowed().layouts.values()} == {"int32"}
    facts = way_of(REACH)
    assert facts.narrowed() is facts


def test_too_many_loops_are_not_compiled() -> None:
    body = ", ".join(f"p(X{i}, X{i + 1})" for i in range(20))
    way = way_of(f"p(X, Y) <- e(X, Y). p(X0, X20) <- {body}.", storage="loops")
    assert "loops inside one another" in way.unfit
