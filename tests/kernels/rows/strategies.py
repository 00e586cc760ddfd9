"""Random programs of rows with their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from emberlog.components.compositions import Composition, Operator, RowRelation, RowsProgram, Side, StaticRelation
from kernels.rows.twin import Number

SIZES = st.sampled_from((1, 2, 3, 7, 40, 63, 64, 65, 130, 700))


@dataclass(frozen=True)
class Case:
    program: RowsProgram
    domains: dict[str, int]
    statics: dict[str, list[tuple[Number, ...]]]
    exits: dict[str, list[tuple[Number, ...]]]


def ids(size: int) -> st.SearchStrategy[int]:
    """Ids, the first and last more often than others, from a few so that joins find partners."""
    return st.one_of(
        st.integers(0, min(size, 9) - 1), st.integers(max(size - 4, 0), size - 1), st.integers(0, size - 1)
    )


@st.composite
def cases(draw: st.DrawFn, kinds: Literal["sets", "min", "max", "mixed"] = "sets", real: bool = False) -> Case:
    domains = {"a": draw(SIZES), "b": draw(SIZES)} if draw(st.booleans()) else {"a": draw(SIZES)}
    names = st.sampled_from(sorted(domains))
    recursive = tuple(
        RowRelation(f"r{i}", draw(names), draw(names), _kind(draw, kinds, i), "float" if real else "int")
        for i in range(draw(st.integers(1, 3)))
    )
    statics = tuple(
        StaticRelation(f"s{i}", draw(names), draw(names), kinds != "sets" and draw(st.booleans()))
        for i in range(draw(st.integers(0, 2)))
    )
    program = RowsProgram(recursive, statics, tuple(draw(_rules(recursive, statics, kinds))))
    values = _values(kinds, real)

    def rows(relation: RowRelation | StaticRelation, valued: bool, least: int) -> Any:
        pair = (ids(domains[relation.first]), ids(domains[relation.second]))
        return draw(st.lists(st.tuples(*pair, values) if valued else st.tuples(*pair), min_size=least, max_size=40))

    return Case(
        program,
        domains,
        {static.name: rows(static, static.valued, 0) for static in statics},
        {relation.name: rows(relation, relation.kind != "set", 0) for relation in recursive if draw(st.booleans())},
    )


def _kind(draw: st.DrawFn, kinds: str, place: int) -> Any:
    match kinds:
        case "sets":
            return "set"
        case "mixed":
            return "min" if place == 0 or draw(st.booleans()) else "set"
        case _:
            return kinds


def _values(kinds: str, real: bool) -> st.SearchStrategy[Number]:
    """Values with which sums and products come to an end, and are exact as floats."""
    if real:
        return st.sampled_from((0.125, 0.5, 1.0, 1.5)) if kinds != "max" else st.sampled_from((0.0, -0.25, -1.0))
    return st.integers(1, 9) if kinds != "max" else st.integers(-9, 0)


@st.composite
def _rules(
    draw: st.DrawFn, recursive: tuple[RowRelation, ...], statics: tuple[StaticRelation, ...], kinds: str
) -> list[Composition]:
    relations: tuple[RowRelation | StaticRelation, ...] = (*recursive, *statics)
    rules = []
    for _ in range(draw(st.integers(0, 5))):
        head = draw(st.sampled_from(recursive))
        sides = [
            (Side(r.name, flipped), (r.second, r.first) if flipped else (r.first, r.second), r)
            for r in relations
            for flipped in (False, True)
        ]
        pairs = [
            (left, right)
            for left in sides
            for right in (None, *sides)
            if left[1][0] == head.first
            and (left if right is None else right)[1][1] == head.second
            and (right is None or right[1][0] == left[1][1])
        ]
        if not pairs:
            continue
        left, right = draw(st.sampled_from(pairs))
        operators = _operators(_valued(left[2]), right is not None and _valued(right[2]), kinds)
        if head.kind != "set" and not operators:
            continue
        value = draw(st.sampled_from(operators)) if head.kind != "set" else None
        irreflexive = head.first == head.second and draw(st.booleans())
        rules.append(Composition(head.name, left[0], right[0] if right is not None else None, irreflexive, value))
    return rules


def _valued(relation: RowRelation | StaticRelation) -> bool:
    return relation.valued if isinstance(relation, StaticRelation) else relation.kind != "set"


def _operators(left: bool, right: bool, kinds: str) -> list[Operator]:
    made: list[Operator] = []
    if left:
        made.append("left")
    if right:
        made.append("right")
    if left and right:
        made.extend(("+", "min", "max"))
        if kinds == "min":
            made.append("*")
    return made
