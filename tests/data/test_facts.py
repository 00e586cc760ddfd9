"""Facts and csv files: what is read, what is refused and with which words."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlog.data.arrow import arrow_schema, rows
from emberlog.data.convert import without_signs
from emberlog.data.facts import find_header, infer_columns, read_facts
from emberlog.data.records import BOM, Layout, read_exactly
from emberlog.diagnostics import DataError, UsageError
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Column, Type

INT8 = Type("number", bits=8)
UINT8 = Type("unsigned", bits=8)
FLOAT32 = Type("float", bits=32)
DECIMAL = Type("decimal", precision=5, scale=2)


def columns(*types: Type) -> tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in zip("xyzuvw", types, strict=False))


def read(folder: Path, data: bytes, *types: Type, **options: Any) -> list[tuple[Any, ...]]:
    """The rows that `data` holds, read by the fast way where it goes; the exact way must agree."""
    path = folder / "p.facts"
    path.write_bytes(data)
    table = read_facts(path, columns(*types), **options)
    assert table.schema == arrow_schema(columns(*types))
    layout = Layout(path, options.get("delimiter", "\t"), options.get("header", False), options.get("rfc4180", False))
    if all(type.bits == 64 for type in types):
        exact = read_exactly(data.removeprefix(BOM), columns(*types), layout)
        unsigned = [without_signs(values) for values in exact.columns]  # `read_facts` takes the sign off a zero
        assert repr(rows(pa.table(unsigned, schema=exact.schema) if types else exact)) == repr(rows(table))
    return rows(table)


def refusal(folder: Path, data: bytes, *types: Type, **options: Any) -> str:
    path = folder / "p.facts"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read_facts(path, columns(*types), **options)
    return caught.value.message.removeprefix(f"{folder}/")


READ: list[tuple[str, bytes, tuple[Type, ...], list[tuple[Any, ...]]]] = [
    ("rows", b"1\t2\n3\t4\n", (NUMBER, NUMBER), [(1, 2), (3, 4)]),
    ("no line end at the end", b"1\t2\n3\t4", (NUMBER, NUMBER), [(1, 2), (3, 4)]),
    ("windows line ends", b"1\ta\r\n3\tb\r\n", (NUMBER, SYMBOL), [(1, "a"), (3, "b")]),
    ("mixed line ends", b"1\ta\r\n3\tb\n", (NUMBER, SYMBOL), [(1, "a"), (3, "b")]),
    ("a carriage return inside", b"a\rb\tc\nd\te\n", (SYMBOL, SYMBOL), [("a\rb", "c"), ("d", "e")]),
    ("other line breaks", "a\x0b\x0c\x85\u2028b\n".encode(), (SYMBOL,), [("a\x0b\x0c\x85\u2028b",)]),
    ("empty lines at the end", b"1\t2\n\n\r\n\n", (NUMBER, NUMBER), [(1, 2)]),
    ("empty lines at the end of numbers", b"1\n\n", (NUMBER,), [(1,)]),
    ("only empty lines", b"\n\n", (SYMBOL, SYMBOL), []),
    ("an empty line is the empty symbol", b"a\n\nb\n\n", (SYMBOL,), [("a",), ("",), ("b",), ("",)]),
    ("one empty symbol", b"\n", (SYMBOL,), [("",)]),
    ("nothing", b"", (NUMBER, SYMBOL), []),
    ("empty fields", b"\t\n", (SYMBOL, SYMBOL), [("", "")]),
    ("quotes are plain", b'"a\t\'b"\n"\tc""\n', (SYMBOL, SYMBOL), [('"a', "'b\""), ('"', 'c""')]),
    ("blanks are kept in symbols", b" a \t b\n", (SYMBOL, SYMBOL), [(" a ", " b")]),
    ("null words are symbols", b"NULL\nNA\nnull\nnan\n", (SYMBOL,), [("NULL",), ("NA",), ("null",), ("nan",)]),
    ("nul", b"a\0b\t\0\n", (SYMBOL, SYMBOL), [("a\0b", "\0")]),
    ("a byte-order mark is not data", b"\xef\xbb\xbfa\tb\n", (SYMBOL, SYMBOL), [("a", "b")]),
    ("nor before a number", b"\xef\xbb\xbf1\tb\n", (NUMBER, SYMBOL), [(1, "b")]),
    ("behind the mark it is", b"\xef\xbb\xbf\xef\xbb\xbfa\tb\n", (SYMBOL, SYMBOL), [("\ufeffa", "b")]),
    ("a mark alone is an empty file", b"\xef\xbb\xbf", (NUMBER, SYMBOL), []),
    ("keywords", b"select\tNone\ntrue\tdrop table\n", (SYMBOL, SYMBOL), [("select", "None"), ("true", "drop table")]),
    ("hexadecimal", b"0x10\t0xFF\n", (NUMBER, UNSIGNED), [(16, 255)]),
    ("hexadecimal, negative and binary", b"-0x10\t0b101\n", (NUMBER, UNSIGNED), [(-16, 5)]),
    ("signs and zeros", b"+5\t007\n-0\t0\n", (NUMBER, UNSIGNED), [(5, 7), (0, 0)]),
    ("blanks around numbers", b" 5\t6 \n", (NUMBER, FLOAT), [(5, 6.0)]),
    ("extremes", b"-9223372036854775808\t18446744073709551615\n", (NUMBER, UNSIGNED), [(-(2**63), 2**64 - 1)]),
    ("narrow extremes", b"-128\t255\n127\t0\n", (INT8, UINT8), [(-128, 255), (127, 0)]),
    ("narrow floats are rounded", b"0.1\n", (FLOAT32,), [(0.10000000149011612,)]),
    ("floats", b"1\n.5\n1.\n1e5\n-0.0\n", (FLOAT,), [(1.0,), (0.5,), (1.0,), (1e5,), (0.0,)]),
    ("not finite", b"inf\n-inf\nInfinity\n", (FLOAT,), [(math.inf,), (-math.inf,), (math.inf,)]),
    ("booleans", b"true\nfalse\n", (BOOL,), [(True,), (False,)]),
    ("dates", b"2020-02-29\n", (DATE,), [(date(2020, 2, 29),)]),
    (
        "timestamps",
        b"2020-02-29\n2020-02-29 01:02:03\n2020-02-29T01:02:03.5\n",
        (TIMESTAMP,),
        [(datetime(2020, 2, 29),), (datetime(2020, 2, 29, 1, 2, 3),), (datetime(2020, 2, 29, 1, 2, 3, 500000),)],
    ),
    ("decimals", b"1.5\n-999.99\n", (DECIMAL,), [(Decimal("1.50"),), (Decimal("-999.99"),)]),
    ("a nullary relation that holds", b"()\n", (), [()]),
    ("a nullary relation that does not", b"", (), []),
    ("a nullary relation that holds twice", b"()\r\n()", (), [()]),
]


@pytest.mark.parametrize(("data", "types", "expected"), [case[1:] for case in READ], ids=[case[0] for case in READ])
def test_read(tmp_path: Path, data: bytes, types: tuple[Type, ...], expected: list[tuple[Any, ...]]) -> None:
    assert repr(read(tmp_path, data, *types)) == repr(expected)


def test_a_nan_is_read(tmp_path: Path) -> None:
    [(value,)] = read(tmp_path, b"nan\n", FLOAT)
    assert math.isnan(value)


REFUSED: list[tuple[bytes, tuple[Type, ...], str]] = [
    (b"1\t2\n1\tabc\n", (NUMBER, NUMBER), "p.facts:2: column y: 'abc' is not a number"),
    (b"1\t2\n\n3\t4\n", (NUMBER, NUMBER), "p.facts:2: the line is empty"),
    (b"a\tb\n\nc\td\n", (SYMBOL, SYMBOL), "p.facts:2: the line is empty"),
    (b"1\n\n2\n", (NUMBER,), "p.facts:2: column x: '' is not a number"),
    (b"1.0\n", (NUMBER,), "p.facts:1: column x: '1.0' is not a number"),
    (b"1_000\n", (NUMBER,), "p.facts:1: column x: '1_000' is not a number"),
    ("\u0663\n".encode(), (NUMBER,), "p.facts:1: column x: '\u0663' is not a number"),
    (b"0x\n", (NUMBER,), "p.facts:1: column x: '0x' is not a number"),
    (b"-1\n", (UNSIGNED,), "p.facts:1: column x: '-1' is out of range for unsigned (0 to 18446744073709551615)"),
    (b"x\n", (UNSIGNED,), "p.facts:1: column x: 'x' is not an unsigned number"),
    (b"1\n128\n", (INT8,), "p.facts:2: column x: '128' is out of range for int8 (-128 to 127)"),
    (b"0xFF\n", (INT8,), "p.facts:1: column x: '0xFF' is out of range for int8 (-128 to 127)"),
    (b"x\n", (INT8,), "p.facts:1: column x: 'x' is not an int8"),
    (
        b"0xFFFFFFFFFFFFFFFF\n",
        (NUMBER,),
        "p.facts:1: column x: '0xFFFFFFFFFFFFFFFF' is out of range for number"
        " (-9223372036854775808 to 9223372036854775807)",
    ),
    (
        b"9" * 5000 + b"\n",
        (NUMBER,),
        f"p.facts:1: column x: '{'9' * 59}... is out of range for number (-9223372036854775808 to 9223372036854775807)",
    ),
    (b"1,5\n", (FLOAT,), "p.facts:1: column x: '1,5' is not a float"),
    (b"True\n", (BOOL,), "p.facts:1: column x: 'True' is not a bool (true or false)"),
    (b"29.2.2020\n", (DATE,), "p.facts:1: column x: '29.2.2020' is not a date (YYYY-MM-DD)"),
    (b"2021-02-29\n", (DATE,), "p.facts:1: column x: '2021-02-29' is not a date (YYYY-MM-DD)"),
    (b"now\n", (TIMESTAMP,), "p.facts:1: column x: 'now' is not a timestamp (YYYY-MM-DD hh:mm:ss)"),
    (b"1.234\n", (DECIMAL,), "p.facts:1: column x: '1.234' is not a decimal(5,2)"),
    (b"a\tb\tc\n", (SYMBOL, SYMBOL), "p.facts:1: 3 fields where 2 are expected (x, y)"),
    (
        b"1 2\n",
        (NUMBER, NUMBER),
        "p.facts:1: 1 field where 2 are expected (x, y); the delimiter is '\\t', this line seems to use ' '",
    ),
    (b"ok\n\xff\n", (SYMBOL,), "p.facts:2: the text is not UTF-8"),
    (b"true\n", (), "p.facts:1: a relation without columns is the line `()`"),
]


@pytest.mark.parametrize(("data", "types", "message"), REFUSED)
def test_refused(tmp_path: Path, data: bytes, types: tuple[Type, ...], message: str) -> None:
    assert refusal(tmp_path, data, *types) == message


QUOTED: list[tuple[bytes, list[tuple[Any, ...]]]] = [
    (b"1,a\n", [(1, "a")]),
    (b'1,"a,b"\n2,"c""d"\n', [(1, "a,b"), (2, 'c"d')]),
    (b'1,"a\nb"\r\n2,"c\r\nd"\r\n', [(1, "a\nb"), (2, "c\r\nd")]),
    (b'1,"a\rb"\n', [(1, "a\rb")]),
    (b'"1",\n"2",""\n', [(1, ""), (2, "")]),
    (b'1,a"b\n', [(1, 'a"b')]),
    (b'\xef\xbb\xbf1,"\xef\xbb\xbfa"\n', [(1, "\ufeffa")]),
    (b"1,a\n\n", [(1, "a")]),
    (b"1,", [(1, "")]),
]


@pytest.mark.parametrize(("data", "expected"), QUOTED)
def test_quoted(tmp_path: Path, data: bytes, expected: list[tuple[Any, ...]]) -> None:
    assert read(tmp_path, data, NUMBER, SYMBOL, delimiter=",", rfc4180=True) == expected


def test_quoted_header_over_two_lines(tmp_path: Path) -> None:
    assert read(tmp_path, b'"a\nb",c\n1,x\n', NUMBER, SYMBOL, delimiter=",", rfc4180=True, header=True) == [(1, "x")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'1,"a\nb"\n2,"c\n', "p.facts:3: a quoted field does not end, or text follows its closing quote"),
        (b'1,"a\nb"\nx,c\n', "p.facts:3: column x: 'x' is not a number"),
        (b'1,"a\nb"\n2,"\xff"\n', "p.facts:3: the text is not UTF-8"),
    ],
)
def test_quoted_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert refusal(tmp_path, data, NUMBER, SYMBOL, delimiter=",", rfc4180=True) == message


def test_delimiters_may_be_long_or_not_ascii(tmp_path: Path) -> None:
    assert read(tmp_path, b"1||a|b\n", NUMBER, SYMBOL, delimiter="||") == [(1, "a|b")]
    assert read(tmp_path, "1→a\n".encode(), NUMBER, SYMBOL, delimiter="→") == [(1, "a")]


@pytest.mark.parametrize("delimiter", ["", "\n", "a\r"])
def test_impossible_delimiters(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "p.facts").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be a delimiter"):
        read_facts(tmp_path / "p.facts", columns(NUMBER), delimiter=delimiter)


def test_a_header_is_skipped(tmp_path: Path) -> None:
    assert read(tmp_path, b"a\tb\n1\t2\n", NUMBER, NUMBER, header=True) == [(1, 2)]
    assert read(tmp_path, b"a\tb\n", NUMBER, NUMBER, header=True) == []


def test_a_symbol_longer_than_a_block(tmp_path: Path) -> None:
    long = "x" * 10_000_000
    assert read(tmp_path, f"1\t{long}\n2\ty\n".encode(), NUMBER, SYMBOL) == [(1, long), (2, "y")]


def test_the_other_bad_rows_are_told_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    path.write_text("x\n" * 20)
    with pytest.raises(DataError) as caught:
        read_facts(path, columns(NUMBER))
    first, *lines, last = (caught.value.fix or "").splitlines()
    assert first == "19 more bad rows:"
    assert lines == [f"    line {line}: column x: 'x' is not a number" for line in range(2, 7)]
    assert last == "    ..."


def test_a_missing_file_lists_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "arcs.facts").touch()
    (tmp_path / "zoo.csv").touch()
    with pytest.raises(DataError) as caught:
        read_facts(tmp_path / "arc.facts", columns(NUMBER), relation="arc")
    assert caught.value.message == f"cannot read `arc`: {tmp_path}/arc.facts does not exist"
    assert caught.value.fix == f"{tmp_path} has arcs.facts, zoo.csv; did you mean `arcs.facts`?"
    with pytest.raises(DataError, match="nor does the folder"):
        read_facts(tmp_path / "no" / "arc.facts", columns(NUMBER))


def test_a_folder_is_not_a_facts_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        read_facts(tmp_path, columns(NUMBER))


INFERRED: list[tuple[bytes, tuple[Type, ...] | None]] = [
    (b"1\n-2\n", (NUMBER,)),
    (b"1\n18446744073709551615\n", (UNSIGNED,)),
    (b"1\n99999999999999999999\n", (SYMBOL,)),
    (b"-1\n18446744073709551615\n", (SYMBOL,)),
    (b"1\n2.5\n1e5\ninf\nnan\n", (FLOAT,)),
    (b"nan\ninf\n", (SYMBOL,)),
    (b"007\n", (SYMBOL,)),
    (b"0x10\n", (SYMBOL,)),
    (b"1\n\n2\n", (SYMBOL,)),
    (b"1\tb\t2.0\n", (NUMBER, SYMBOL, FLOAT)),
    (b"()\n", ()),
    (b"", None),
]


@pytest.mark.parametrize(("data", "expected"), INFERRED)
def test_infer_columns(tmp_path: Path, data: bytes, expected: tuple[Type, ...] | None) -> None:
    path = tmp_path / "p.facts"
    path.write_bytes(data)
    found = infer_columns(path)
    assert (None if found is None else tuple(column.type for column in found)) == expected
    if expected is not None:
        assert found is not None and [column.name for column in found] == [f"c{i}" for i in range(len(expected))]
        assert read_facts(path, None).schema == arrow_schema(found)
    else:
        with pytest.raises(DataError, match="has no rows"):
            read_facts(path, None)


def test_inferred_columns_take_the_names_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,name\n1,a\n")
    assert infer_columns(path, ",", header=True, rfc4180=True) == (Column("id", NUMBER), Column("name", SYMBOL))
    path.write_text("id,id\n1,a\n")
    assert infer_columns(path, ",", header=True, rfc4180=True) == (Column("c0", NUMBER), Column("c1", SYMBOL))


def test_a_file_that_is_not_utf8_is_not_inferred(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    path.write_bytes(b"\xff\ta\n")
    with pytest.raises(DataError, match=r"p\.facts:1: the text is not UTF-8"):
        infer_columns(path)


HEADERS: list[tuple[str, tuple[Column, ...] | None, bool | None]] = [
    ("id,name\n1,a\n2,b\n", None, True),
    ("1,a\n2,b\n", None, False),
    ("name,city\nann,rome\n", None, None),
    ("name,city\nann,rome\n", (Column("Name", SYMBOL), Column("City", SYMBOL)), True),
    ("name,city\nann,rome\n", (Column("x", SYMBOL), Column("y", SYMBOL)), None),
    ("from,to\n", (Column("x", NUMBER), Column("y", NUMBER)), True),
    ("name,city\nann,1\n", (Column("x", SYMBOL), Column("y", SYMBOL)), True),
    ("true,x\n1,2\n", None, False),
    ("a,a\n1,2\n", None, False),
    (",a\n1,2\n", None, False),
    ("", None, False),
]


@pytest.mark.parametrize(("text", "declared", "expected"), HEADERS)
def test_find_header(tmp_path: Path, text: str, declared: tuple[Column, ...] | None, expected: bool | None) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    assert find_header(path, declared) is expected


CELLS = st.one_of(
    st.sampled_from(
        ["", "1", "-1", "+1", "0x1F", "0b1", "1.5", "nan", "x", " 1", "007", "true", '"', "a\rb", "\0", "é"]
    ),
    st.text(st.sampled_from('ab01 -+.e"\r\x00é'), max_size=4),
)


@given(
    lines=st.lists(st.lists(CELLS, min_size=1, max_size=3).map("\t".join) | st.just(""), max_size=5),
    types=st.lists(st.sampled_from([NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL]), min_size=1, max_size=2),
    end=st.sampled_from(["", "\n", "\r\n", "\n\n"]),
)
def test_the_fast_way_reads_what_the_exact_one_does(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], types: list[Type], end: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "fast.facts"
    data = ("\n".join(lines) + end).encode()
    path.write_bytes(data)
    try:
        expected = repr(rows(read_exactly(data, columns(*types), Layout(path, "\t", False, False))))
    except DataError as error:
        expected = str(error)
    try:
        found = repr(rows(read_facts(path, columns(*types))))
    except DataError as error:
        found = str(error)
    assert found == expected
