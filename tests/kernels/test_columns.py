"""The operators of the interpreter against naive twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlog.components.program import Check, Id, Kind, Table
from emberlog.kernels.columns import joins
from emberlog.kernels.columns.facts import BestFacts, Facts, Keys, Numbering, Places, SetFacts, SumFacts, facts
from emberlog.kernels.columns.joins import Index, expanded, ranked
from emberlog.kernels.columns.terms import Terms
from emberlog.kernels.watch import Failed, Overworked
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable
from emberlog.types import INT64_MAX, INT64_MIN

ENDS = (0, 1, 2, -1, 2**31 - 1, 2**31, 2**62, -(2**62), INT64_MAX, INT64_MIN)
IDS = st.integers(0, 5)
NUMBERS = st.sampled_from(ENDS)
Rows = list[tuple[int, ...]]


def column(values: Any) -> Any:
    return np.array(list(values), np.int64)


def columns(rows: Rows, width: int) -> list[Any]:
    return [column(row[spot] for row in rows) for spot in range(width)]


@st.composite
def rows_and_keys(draw: st.DrawFn) -> tuple[list[int | None], Rows, Rows]:
    """Columns of ids and numbers, rows of them, and rows to look for."""
    sizes = draw(st.lists(st.sampled_from([6, None]), max_size=4))
    row = st.tuples(*(IDS if size else NUMBERS for size in sizes))
    return sizes, draw(st.lists(row, max_size=20)), draw(st.lists(row, max_size=20))


# --- joins -----------------------------------------------------------------------------------------------------------


@given(rows_and_keys(), st.sampled_from([1 << 62, 4]), st.sampled_from([1 << 17, 0]))
def test_an_index_finds_the_rows(drawn: tuple[list[int | None], Rows, Rows], codes: int, offsets: int) -> None:
    sizes, rows, asked = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "MOST_CODES", codes)  # codes that become too large on the way
        patch.setattr(joins, "MOST_OFFSETS", offsets)
        index = Index(columns(rows, len(sizes)), sizes, len(rows))
        low, high = index.ranges(columns(asked, len(sizes)), len(asked))
    for key, begin, end in zip(asked, low, high, strict=True):
        assert sorted(index.order[begin:end]) == [i for i, row in enumerate(rows) if row == key]
    first, places = expanded(low, high)
    found = sorted((asked[i], rows[index.order[place]]) for i, place in zip(first, places, strict=True))
    assert found == sorted((key, row) for key in asked for row in rows if key == row)


@given(st.lists(NUMBERS), st.lists(NUMBERS))
def test_ranked(values: list[int], asked: list[int]) -> None:
    known = np.unique(column(values))
    places, there = ranked(known, column(asked))
    assert [bool(one) for one in there] == [one in values for one in asked]
    assert all(known[place] == one for place, one, found in zip(places, asked, there, strict=True) if found)


def test_ranges_of_nothing() -> None:
    first, places = expanded(column([]), column([]))
    assert len(first) == len(places) == 0
    first, places = expanded(column([3, 5, 5]), column([3, 7, 5]))
    assert (list(first), list(places)) == ([1, 1], [5, 6])


# --- facts -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(NUMBERS)), st.lists(NUMBERS))
def test_numbers_of_numbers(parts: list[list[int]], asked: list[int]) -> None:
    numbering, given_ = Numbering(len(ENDS)), dict[int, int]()
    for part in parts:
        found, there = numbering(column(part), True)
        assert there.all()
        for value, number in zip(part, found, strict=True):
            assert given_.setdefault(value, number) == number
    assert sorted(given_.values()) == list(range(len(given_)))
    found, there = numbering(column(asked), False)
    assert [bool(one) for one in there] == [one in given_ for one in asked]


def test_more_numbers_than_there_is_room_for() -> None:
    with pytest.raises(Overworked):
        Numbering(4)(column(range(5)), True)


def test_keys_that_are_too_wide() -> None:
    with pytest.raises(Overworked):
        Keys(Table("p", (Id(0), Id(0), Id(0))), {0: 1 << 30})
    with pytest.raises(Overworked):
        Keys(Table("p", (Id(0), Id(0), "int")), {0: 1 << 30})
    Keys(Table("p", ("int",)), {})


@given(st.sampled_from([64, None]), st.lists(st.lists(st.integers(0, 63))))
def test_places(space: int | None, parts: list[list[int]]) -> None:
    places, rows, total = Places(space), dict[int, int](), 0
    for part in parts:
        found, new = places.place(column(part))
        assert len({part[spot] for spot in new}) == len(new)
        for code, row in zip(part, found, strict=True):
            assert rows.setdefault(code, row) == row
        total += len(new)
        assert places.count == total == len(rows)
    assert sorted(rows.values()) == list(range(total))
    found = places.find(column(range(64)))
    assert [int(row) for row in found] == [rows.get(code, -1) for code in range(64)]


KINDS: st.SearchStrategy[Kind] = st.sampled_from([Id(0), "int"])


@st.composite
def tables_and_rows(draw: st.DrawFn, fold: Any) -> tuple[Table, list[Rows]]:
    kinds = draw(st.lists(KINDS, min_size=0 if fold != "set" else 1, max_size=4))
    value = None if fold == "set" else draw(st.integers(0, len(kinds)))
    if value is not None:
        kinds.insert(value, "int")
    small = st.integers(-5, 5)
    row = st.tuples(
        *(small if spot == value else IDS if isinstance(kind, Id) else NUMBERS for spot, kind in enumerate(kinds))
    )
    return Table("p", tuple(kinds), fold, value), draw(st.lists(st.lists(row, min_size=1), max_size=4))


def put(made: Facts, rows: Rows) -> None:
    made.put(columns(rows, len(made.table.kinds)), len(rows))


def all_rows(made: Facts) -> Rows:
    return sorted(zip(*(map(int, one) for one in made.columns()), strict=True))


def taken_rows(made: Facts, rows: Any) -> Rows:
    return sorted(zip(*(map(int, made.column(i, rows)) for i in range(len(made.table.kinds))), strict=True))


@given(tables_and_rows("set"))
def test_sets(drawn: tuple[Table, list[Rows]]) -> None:
    table, parts = drawn
    made, known = SetFacts(table, {0: 6}), set[tuple[int, ...]]()
    for part in parts:
        put(made, part)
        assert taken_rows(made, made.take()) == sorted(set(part) - known)
        known |= set(part)
        found = made.find(columns(part, len(table.kinds)), len(part))
        assert [tuple(int(made.stored[key][row]) for key in table.keys) for row in found] == part
    assert all_rows(made) == sorted(known)


@pytest.mark.parametrize("fold", ["min", "max"])
def test_best_values(fold: Any) -> None:
    best = min if fold == "min" else max

    @given(tables_and_rows(fold))
    def check(drawn: tuple[Table, list[Rows]]) -> None:
        table, parts = drawn
        made, known = BestFacts(table, {0: 6}), dict[tuple[int, ...], tuple[int, ...]]()
        for part in parts:
            put(made, part)
            before = dict(known)
            for row in part:
                key = tuple(row[spot] for spot in table.keys)
                known[key] = best(known.get(key, row), row, key=lambda one: one[table.value or 0])
            changed = sorted(row for key, row in known.items() if before.get(key) != row)
            rows, first = made.take()
            assert taken_rows(made, rows) == changed
            assert int(first.sum()) == len(known) - len(before)
        assert all_rows(made) == sorted(known.values())

    check()


@given(tables_and_rows("sum"))
def test_sums(drawn: tuple[Table, list[Rows]]) -> None:
    table, parts = drawn
    made, known = SumFacts(table, {0: 6}), Counter[tuple[int, ...]]()
    value = table.value or 0
    for part in parts:
        put(made, part)
        before = Counter(known)
        for row in part:
            known[tuple(row[spot] for spot in table.keys)] += row[value]
        rows, _, changes, old = made.take_changes()
        keys = list(zip(*(map(int, made.stored[key][rows]) for key in table.keys), strict=True)) or [()] * len(rows)
        assert {key: int(one) for key, one in zip(keys, old, strict=True)} == {key: before[key] for key in keys}
        assert {key: int(one) for key, one in zip(keys, changes, strict=True)} == {
            key: known[key] - before[key] for key in {tuple(row[spot] for spot in table.keys) for row in part}
        }
    sums = {tuple(row[spot] for spot in table.keys): row[value] for row in all_rows(made)}
    assert sums == known


def test_facts_that_were_not_taken_up_are_not_found() -> None:
    made = facts(Table("p", (Id(0), Id(0))), {0: 6})
    assert isinstance(made, SetFacts)
    put(made, [(1, 2), (1, 3)])
    assert list(made.find([column([1]), column([2])], 1)) == [-1]
    assert len(made.index((0,))[0]) == 0
    made.take()
    put(made, [(1, 4)])
    taken, index = made.index((0,))
    low, high = index.ranges([column([1])], 1)
    assert sorted(int(made.stored[1][taken[index.order[i]]]) for i in range(low[0], high[0])) == [2, 3]


def test_values_that_are_none() -> None:
    least = BestFacts(Table("p", (Id(0), "int"), "min", 1), {0: 6})
    put(least, [(0, INT64_MAX - 1), (1, INT64_MIN)])
    with pytest.raises(Failed):
        put(least, [(0, INT64_MAX)])
    greatest = BestFacts(Table("p", (Id(0), "float"), "max", 1), {0: 6})
    for value in (float("nan"), float("-inf")):
        with pytest.raises(Failed):
            greatest.put([column([0]), np.array([value])], 1)


def test_sums_up_to_the_end_of_64_bits() -> None:
    made = SumFacts(Table("p", (Id(0), "int"), "sum", 1), {0: 6})
    put(made, [(0, 2**62), (1, -(2**62)), (0, 2**62 - 1), (1, -(2**62) + 1)])
    assert all_rows(made) == [(0, INT64_MAX), (1, -INT64_MAX)]
    for row in ((0, 1), (1, -1)):
        with pytest.raises(Failed):
            put(made, [row])


# --- terms -----------------------------------------------------------------------------------------------------------

BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "min": min,
    "max": max,
}


def computed(function: str, *values: int) -> int:
    """A term over one binding, whose last argument is a constant."""
    names = [f"V{i}" for i in range(len(values) - 1)]
    arguments: tuple[Term, ...] = (*(Variable(name) for name in names), Constant(values[-1]))
    terms = Terms(dict.fromkeys(names, "int"), lambda kind, value: value)
    env = {name: column([value]) for name, value in zip(names, values, strict=False)}
    return int(terms.column(Call(function, arguments), env, 1)[0])


@given(st.sampled_from(sorted(BINARY)), NUMBERS | st.integers(-9, 9), NUMBERS | st.integers(-9, 9))
def test_arithmetic(function: str, one: int, other: int) -> None:
    if function in ("/", "%") and (other == 0 or (one, other) == (INT64_MIN, -1)):
        expected = None
    else:
        expected = BINARY[function](one, other)
    if expected is None or not INT64_MIN <= expected <= INT64_MAX:
        with pytest.raises(Failed):
            computed(function, one, other)
    else:
        assert computed(function, one, other) == expected


@given(NUMBERS | st.integers(-9, 9), NUMBERS | st.integers(-9, 9))
def test_products(one: int, other: int) -> None:
    if abs(one * other) >= 9.2e18:
        with pytest.raises(Failed):
            computed("*", one, other)
    else:
        assert computed("*", one, other) == one * other


@given(NUMBERS)
def test_signs(value: int) -> None:
    for function, expected in (("neg", -value), ("abs", abs(value))):
        if value == INT64_MIN:
            with pytest.raises(Failed):
                computed(function, value)
        else:
            assert computed(function, value) == expected
    assert computed("relu", value) == max(value, 0)
    assert computed("clip", value, -2, 2) == max(min(value, 2), -2)


@pytest.mark.parametrize(
    ("function", "value"), [("/", 0.0), ("log", 0.0), ("log", -1.0), ("sqrt", -1.0), ("%", 2.0), ("log", float("nan"))]
)
def test_floats_without_a_value(function: str, value: float) -> None:
    terms = Terms({"A": "float", "B": "float"}, lambda kind, value: value)
    names = ("A", "B") if function in "/%" else ("B",)
    with pytest.raises(Failed):
        terms.column(
            Call(function, tuple(Variable(name) for name in names)), {"A": np.ones(1), "B": np.array([value])}, 1
        )


def test_a_comparison_that_is_denied_holds_of_what_is_no_number() -> None:
    terms = Terms({"A": "float"}, lambda kind, value: value)
    env = {"A": np.array([1.0, 3.0, float("nan")])}
    for operator, expected in (("<", [True, False, False]), ("!<", [False, True, True]), ("!=", [True, True, True])):
        check = Check(Comparison(operator, Variable("A"), Constant(2.0)))
        assert list(terms.holds(check, env, 3)) == expected
