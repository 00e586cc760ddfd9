"""Dictionaries: every value comes back, and ids are in the order of values."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.components.program import Domain, Id, KernelProgram, Kind, Static
from emberlog.kernels.dictionaries import Dictionary, Listed, Range, dictionary
from emberlog.kernels.encode import Encoder
from emberlog.kernels.watch import Unsuited
from emberlog.types import BOOL, DATE, INT64_MAX, INT64_MIN, NUMBER, SYMBOL, TIMESTAMP, Type

SOME = settings(max_examples=80)
DECIMAL = Type("decimal", precision=12, scale=2)

dense = st.integers(-(2**62), 2**62).flatmap(lambda low: st.lists(st.integers(low, low + 50), max_size=20))
numbers = st.one_of(
    st.lists(st.integers(0, 20), max_size=20),
    dense,
    st.lists(st.integers(INT64_MIN, INT64_MAX), max_size=20),
    st.lists(st.sampled_from((INT64_MIN, -1, 0, 2**31, 2**32, 2**62, INT64_MAX)), max_size=9),
)
KINDS: list[tuple[Type, pa.DataType, st.SearchStrategy[list[Any]]]] = [
    (NUMBER, pa.int64(), numbers),
    (SYMBOL, pa.string(), st.lists(st.text(max_size=4), max_size=20)),
    (BOOL, pa.bool_(), st.lists(st.booleans(), max_size=5)),
    (DATE, pa.date32(), st.lists(st.dates(date(1800, 1, 1), date(2400, 1, 1)), max_size=20)),
    (
        TIMESTAMP,
        pa.timestamp("us"),
        st.lists(st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)), max_size=9),
    ),
    (
        DECIMAL,
        pa.decimal128(12, 2),
        st.lists(st.decimals("-1e8", "1e8", places=2, allow_nan=False), max_size=20),
    ),
]


def check(found: Dictionary, values: list[Any], type: pa.DataType) -> None:
    ids = found.encode(pa.array(values, type))
    assert ids.dtype == np.uint32
    assert all(0 <= int(one) < found.size for one in ids)
    assert found.decode(ids).cast(type).to_pylist() == pa.array(values, type).to_pylist()
    order = sorted(range(len(values)), key=lambda i: sortable(values[i]))
    for one, other in pairwise(order):
        assert (ids[one] < ids[other]) == (sortable(values[one]) < sortable(values[other]))
        assert (ids[one] == ids[other]) == (values[one] == values[other])


def sortable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize(("kind", "arrow", "drawn"), KINDS, ids=[str(kind[0]) for kind in KINDS])
def test_values_come_back_and_keep_their_order(
    kind: Type, arrow: pa.DataType, drawn: st.SearchStrategy[list[Any]]
) -> None:
    @SOME
    @given(drawn, drawn)
    def holds(first: list[Any], second: list[Any]) -> None:
        found = dictionary(Domain(kind, (("e", 0), ("e", 1))), [pa.array(first, arrow), pa.array(second, arrow)])
        check(found, first, arrow)
        check(found, second, arrow)

    holds()


@SOME
@given(numbers, st.lists(st.integers(INT64_MIN, INT64_MAX), max_size=3))
def test_constants_of_rules_have_an_id(values: list[int], constants: list[int]) -> None:
    found = dictionary(Domain(NUMBER, (("e", 0),), tuple(constants)), [pa.array(values, pa.int64())])
    for constant in constants:
        assert found.decode(np.array([found.code(constant)], np.uint32)).to_pylist() == [constant]


@pytest.mark.parametrize(
    ("kind", "arrow", "constant", "value"),
    [
        (SYMBOL, pa.string(), "b", "b"),
        (BOOL, pa.bool_(), True, True),
        (DATE, pa.date32(), "2024-02-29", date(2024, 2, 29)),
        (TIMESTAMP, pa.timestamp("us"), "2024-02-29T12:30:00", datetime(2024, 2, 29, 12, 30)),
        (TIMESTAMP, pa.timestamp("us"), "2024-02-29", datetime(2024, 2, 29)),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [0, 2])
def test_constants_of_other_types(kind: Type, arrow: pa.DataType, constant: Any, value: Any, rows: int) -> None:
    columns = [pa.array([value] * rows, arrow)]
    found = dictionary(Domain(kind, (("e", 0),), (constant,)), columns)
    assert found.decode(np.array([found.code(constant)], np.uint32)).to_pylist() == [value]


def test_numbers_close_together_are_ids_as_they_are() -> None:
    def of(*values: int) -> Dictionary:
        return dictionary(Domain(NUMBER, (("e", 0),)), [pa.array(values, pa.int64())])

    near, far, apart = of(5, 9), of(2**40, 2**40 + 100), of(0, 2**40)
    assert isinstance(near, Range) and near.low == 0 and near.size == 10
    assert isinstance(far, Range) and far.low == 2**40 and far.size == 101
    assert isinstance(apart, Listed) and apart.size == 2
    assert of().size == 0


def encoder(*values: Any) -> tuple[Encoder, pa.Array]:
    column = pa.array(values)
    kind = "float" if pa.types.is_floating(column.type) else "int"
    program = KernelProgram((), (Static("e", (kind,)),), (), (), {})  # type: ignore[arg-type]
    return Encoder(program, {"e": [[column]]}), column


@pytest.mark.parametrize("value", [INT64_MIN, INT64_MAX, float("nan"), float("inf"), float("-inf")])
def test_what_loops_cannot_compute_with_is_refused(value: Any) -> None:
    made, column = encoder(value)
    with pytest.raises(Unsuited):
        made.rows("e", [column])


@pytest.mark.parametrize("value", [INT64_MIN + 1, INT64_MAX - 1, 1.7e308, -0.0])
def test_what_they_can_compute_with_is_not(value: Any) -> None:
    made, column = encoder(value)
    assert made.rows("e", [column])[0].tolist() == [value]


def test_the_ends_of_64_bits_may_be_ids() -> None:
    values = [INT64_MIN, INT64_MAX, 0]
    program = KernelProgram((), (Static("e", (Id(0),)),), (Domain(NUMBER, (("e", 0),)),), (), {})
    column = pa.array(values, pa.int64())
    made = Encoder(program, {"e": [[column]]})
    assert made.rows("e", [column])[0].tolist() == [0, 2, 1]
    assert made.sizes == {0: 3}


def test_dates_are_days() -> None:
    first = date(1969, 12, 30)
    values = [first + timedelta(days=i) for i in range(4)]
    check(dictionary(Domain(DATE, (("e", 0),)), [pa.array(values)]), values, pa.date32())


def test_decimals_of_several_columns() -> None:
    values = [Decimal("1.50"), Decimal("-2.25")]
    found = dictionary(Domain(DECIMAL, (("e", 0),), ()), [pa.array(values, pa.decimal128(12, 2))])
    check(found, values, pa.decimal128(12, 2))


@SOME
@given(st.lists(st.lists(st.integers(3, 12), max_size=6), max_size=5))
def test_chunks_make_one_array(parts: list[list[int]]) -> None:
    column = pa.chunked_array([pa.array(part, pa.int64()) for part in parts], pa.int64())
    found = dictionary(Domain(NUMBER, (("e", 0),)), [column])
    assert found.decode(found.encode(column)).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("values", "dtype"),
    [((-(2**31), 2**31 - 1), "int32"), ((-(2**31) - 1, 0), "int64"), ((0, 2**31), "int64"), ((), "int64")],
)
def test_numbers_are_narrowed_where_they_fit(values: tuple[int, ...], dtype: str) -> None:
    program = KernelProgram((), (Static("e", ("int",)),), (), (), {})
    column = pa.array(values, pa.int64())
    made = Encoder(program, {"e": [[column]]})
    lazy = made.columns("e", [column])
    raw = np.concatenate([np.empty(0, np.int64), *lazy.pieces(0)])
    (narrow,) = lazy
    (wide,) = made.rows("e", [column])
    assert lazy.dtype(0) == narrow.dtype == dtype and wide.dtype == np.int64
    assert raw.tolist() == narrow.tolist() == wide.tolist() == list(values)


# --- columns that are encoded when somebody asks ---------------------------------------------------------------------

LAZY: dict[str, tuple[Kind, Type, pa.DataType, st.SearchStrategy[list[Any]]]] = {
    "ids": (Id(0), NUMBER, pa.int64(), st.lists(st.integers(0, 300), max_size=30)),
    "ids that do not begin at 0": (Id(0), NUMBER, pa.int64(), st.lists(st.integers(2**31, 2**31 + 99), max_size=30)),
    "negative ids": (Id(0), NUMBER, pa.int64(), st.lists(st.integers(-5, 99), max_size=30)),
    "ids far apart": (Id(0), NUMBER, pa.int64(), st.lists(st.sampled_from((0, 2**40, -(2**62))), max_size=30)),
    "narrow ids": (Id(0), NUMBER, pa.int32(), st.lists(st.integers(0, 300), max_size=30)),
    "bytes": (Id(0), NUMBER, pa.uint8(), st.lists(st.integers(0, 255), max_size=30)),
    "symbols": (Id(0), SYMBOL, pa.string(), st.lists(st.text(max_size=3), max_size=30)),
    "dates": (Id(0), DATE, pa.date32(), st.lists(st.dates(date(1960, 1, 1), date(2030, 1, 1)), max_size=30)),
    "numbers": ("int", NUMBER, pa.int64(), st.lists(st.integers(-(2**31) - 1, 2**31), max_size=30)),
    "small numbers": ("int", NUMBER, pa.int64(), st.lists(st.integers(-9, 9), max_size=30)),
    "large numbers": ("int", NUMBER, pa.int64(), st.lists(st.integers(INT64_MIN + 1, INT64_MAX - 1), max_size=30)),
    "numbers of 32 bits": ("int", NUMBER, pa.int32(), st.lists(st.integers(-(2**31), 2**31 - 1), max_size=30)),
    "numbers of 8 bits": ("int", NUMBER, pa.uint8(), st.lists(st.integers(0, 255), max_size=30)),
    "floats": ("float", NUMBER, pa.float64(), st.lists(st.sampled_from((0.5, -1e300, 0.0)), max_size=30)),
    "floats from integers": ("float", NUMBER, pa.int64(), st.lists(st.integers(-9, 9), max_size=30)),
}


def in_pieces(values: list[Any], arrow: pa.DataType, cuts: list[int], chunked: bool) -> pa.Array | pa.ChunkedArray:
    """The values somewhere in a longer array, which is what slices of Arrow are; with `chunked` in several of them."""
    if not values:
        return pa.chunked_array([], arrow) if chunked else pa.array([], arrow)
    around = pa.array([values[0], *values, values[-1]], arrow)
    if not chunked:
        return around.slice(1, len(values))
    ends = sorted(min(spot, len(values)) for spot in cuts)
    parts = [around.slice(1 + low, high - low) for low, high in zip([0, *ends], [*ends, len(values)], strict=True)]
    return pa.chunked_array(parts, arrow)


@pytest.mark.parametrize(("kind", "type", "arrow", "drawn"), LAZY.values(), ids=LAZY)
def test_pieces_of_a_column_are_the_column(
    kind: Kind, type: Type, arrow: pa.DataType, drawn: st.SearchStrategy[list[Any]]
) -> None:
    @settings(max_examples=50)
    @given(drawn, drawn, st.lists(st.integers(0, 30), max_size=4), st.booleans(), st.booleans())
    def holds(values: list[Any], others: list[Any], cuts: list[int], chunked: bool, array_first: bool) -> None:
        columns = [in_pieces(one, arrow, cuts, chunked) for one in (values, others)]
        domains = (Domain(type, (("e", 0), ("f", 0))),) if isinstance(kind, Id) else ()
        program = KernelProgram((), (Static("e", (kind,)), Static("f", (kind,))), domains, (), {})
        made = Encoder(program, {"e": [[columns[0]]], "f": [[columns[1]]]})
        for name, column, wanted in zip("ef", columns, (values, others), strict=True):
            lazy = made.columns(name, [column])
            array = lazy[0] if array_first else None  # pieces may be those of what was encoded already
            pieces = lazy.pieces(0)
            array = lazy[0] if array is None else array
            assert len(pieces) and len(lazy) == 1 and lazy.rows == len(wanted)
            assert array.dtype == lazy.dtype(0) and array.flags.writeable
            assert np.concatenate(pieces).tolist() == array.tolist()
            if isinstance(kind, Id):
                found = made.dictionaries[0].decode(array).to_pylist() if wanted else []
                assert found == pa.array(wanted, arrow).to_pylist()
            else:
                assert array.tolist() == wanted and made.rows(name, [column])[0].tolist() == wanted

    holds()


@SOME
@given(
    st.sampled_from((0, 3, 2**31 - 4, -40, 10**12)),
    st.lists(st.integers(0, 40), min_size=1, max_size=80),
    st.integers(1, 4),
    st.lists(st.integers(0, 80), max_size=3),
    st.booleans(),
)
def test_rows_of_one_column_are_found_without_duplicates(
    low: int, values: list[int], workers: int, cuts: list[int], chunked: bool
) -> None:
    """Whatever the columns are: ids of one domain or of two, numbers, or one that nobody reads."""
    values = [low + value for value in values]
    column = in_pieces(values, pa.int64(), cuts, chunked)
    domains = (Domain(NUMBER, (("e", 0), ("f", 0), ("g", 0))), Domain(NUMBER, (("g", 1), ("h", 0))))
    kinds: dict[str, tuple[Kind, ...]] = {
        "e": (Id(0), Id(0)),
        "f": (Id(0), "int"),
        "g": (Id(0), Id(1)),
        "i": ("int", "int"),
    }
    statics = tuple(Static(name, columns) for name, columns in kinds.items())
    program = KernelProgram((), statics, domains, (), {})
    tables = {name: [[column, column]] for name in kinds} | {"h": [[pa.array([low - 7, low + 70], pa.int64())]]}
    made = Encoder(program, tables, workers)
    distinct = sorted(set(values))
    for name, columns in kinds.items():
        found = made.distinct_rows(name, [column, column])
        if name == "i" or len(values) < made.sizes[0]:
            assert found is None
            continue
        assert found is not None and len(found) == 2
        for kind, numbers in zip(columns, found, strict=True):
            plain = made.dictionaries[kind.domain].decode(numbers) if isinstance(kind, Id) else numbers
            assert plain.tolist() == distinct
            assert numbers.dtype == (np.uint32 if isinstance(kind, Id) else np.int64)


def test_columns_that_differ_have_no_distinct_rows() -> None:
    domains = (Domain(NUMBER, (("e", 0), ("e", 1))),)
    program = KernelProgram((), (Static("e", (Id(0), Id(0))),), domains, (), {})
    whole = pa.array([0, 1, 0, 1, 1, 0], pa.int64())
    for one, other in ((whole.slice(0, 4), whole.slice(1, 4)), (whole, pa.array(whole.to_pylist(), pa.int64()))):
        made = Encoder(program, {"e": [[one, other]]})
        assert made.distinct_rows("e", [one, other]) is None
        assert [column.tolist() for column in made.rows("e", [one, other])] == [one.to_pylist(), other.to_pylist()]
