"""Values that are one value in every engine: zeros, numbers against floats, what stands at the start of a file."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.places import Place

FLOATS = [-0.0, 0.0, 1.5]
SHOWN = "p(X, S) <- a(X), S = to_string(X)."
ONE_ZERO = [(0.0, "0.0"), (1.5, "1.5")]


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    """The rows as text: -0.0 and 0.0 are the same to Python."""
    return sorted(map(repr, rows))


def written(folder: Path, name: str) -> Path:
    path = folder / name
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.table({"x": FLOATS}), path)
        case ".arrow":
            with pa.ipc.new_file(path, pa.schema([("x", pa.float64())])) as file:
                file.write_table(pa.table({"x": FLOATS}))
        case _:
            path.write_text("".join(f"{value}\n" for value in FLOATS))
    return path


@pytest.mark.spark_sample(5)
@pytest.mark.parametrize(
    "kind", ["list", "arrow", "float32", "pandas", "polars", "a.parquet", "a.arrow", "a.csv", "a.facts"]
)
def test_a_zero_that_is_loaded_has_no_sign(place: Place, kind: str, tmp_path: Path) -> None:
    source: Any
    match kind:
        case "list":
            source = [(value,) for value in FLOATS]
        case "arrow":
            source = pa.table({"x": FLOATS})
        case "float32":
            source = pa.table({"x": pa.array(FLOATS, pa.float32())})
        case "pandas":
            source = pytest.importorskip("pandas").DataFrame({"x": FLOATS})
        case "polars":
            source = pytest.importorskip("polars").DataFrame({"x": FLOATS})
        case _:
            source = str(written(tmp_path, kind))
    assert shown(place.run(SHOWN, {"a": source})["p"].rows()) == shown(ONE_ZERO)


def test_a_zero_of_a_spark_frame_has_no_sign(on_spark: Place, tmp_path: Path) -> None:
    session = on_spark.session
    frame = session.createDataFrame([(value,) for value in FLOATS], "x double")
    assert shown(on_spark.run(SHOWN, {"a": frame})["p"].rows()) == shown(ONE_ZERO)
    frame.createOrReplaceTempView("signed_zeros")
    text = f'.decl a(x: float)\n.input a(IO="table", name="signed_zeros")\n{SHOWN}'
    assert shown(on_spark.run(text)["p"].rows()) == shown(ONE_ZERO)
    session.catalog.dropTempView("signed_zeros")


COMPUTED = """
p(0, S) <- a(X), S = to_string(X * -1.0).
p(1, S) <- a(X), S = to_string(-X).
p(2, S) <- a(X), S = to_string(X / -3.0).
p(3, S) <- a(X), S = to_string((X - 4.0) % 2.0).
p(4, S) <- a(X), S = to_string((X - 1e-200) ^ 3.0).
p(5, S) <- t(T), S = to_string(to_float(T)).
p(6, S) <- S = to_string(-0.0).
p(7, S) <- S = to_string($ZERO).
p(8, S) <- f(X), S = to_string(X).
p(9, S) <- small(X), S = to_string(X).
p(10, S) <- mean(X), S = to_string(X).
f(-0.0). f(0.0).
.decl small(x: float32)
small(X) <- a(Y), X = Y - 1e-200.
mean(avg<Y>) <- tiny(Y).
tiny(-5e-324). tiny(0.0).
r(-X) <- a(X).
"""


def test_a_zero_that_is_computed_has_no_sign(place: Place) -> None:
    result = place.run(COMPUTED, {"a": [(0.0,)], "t": [("-0",), ("-0.0",), ("0",)]}, {"ZERO": -0.0})
    assert sorted(result["p"].rows()) == [(number, "0.0") for number in range(11)]
    assert shown(result["r"].rows()) == ["(0.0,)"]


@pytest.mark.parametrize("evaluator", ["auto", "kernel", "sql"])
def test_a_zero_of_a_recursion_has_no_sign(local: Place, evaluator: str) -> None:
    engine = local.engine({"e": [(1, 2, 0.0), (2, 3, -0.5)]})
    result = engine.run("d(1, 1.0). d(Y, min<D>) <- d(X, C), e(X, Y, W), D = min(C, -W).", evaluator=evaluator)
    assert shown(result["d"].rows()) == ["(1, 1.0)", "(2, 0.0)", "(3, 0.0)"]


# --- numbers against floats ------------------------------------------------------------------------------------------

BIG = 2**53
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def test_a_number_against_a_float_compares_floats_and_numbers_compare_exactly(place: Place) -> None:
    numbers = [BIG - 1, BIG, BIG + 1, BIG + 2, 2**63 - 1, -(2**63)]
    floats = [float(BIG), float(BIG + 2), 2.0**63, -(2.0**63), 0.5]
    rules = [f'p("{sign}", X, Y) <- n(X), f(Y), X {sign} Y.' for sign in COMPARISONS]
    rules += [f'q("{sign}", X) <- n(X), X {sign} {float(BIG)!r}.' for sign in COMPARISONS]
    rules += [f'i("{sign}", X, Y) <- n(X), n(Y), X {sign} Y.' for sign in COMPARISONS]
    result = place.run("\n".join(rules), {"n": [(x,) for x in numbers], "f": [(y,) for y in floats]})

    def holds(sign: str, a: Any, b: Any) -> bool:
        return bool(eval(f"a {'==' if sign == '=' else sign} b", {"a": a, "b": b}))

    floated = {(s, x, y) for s in COMPARISONS for x in numbers for y in floats if holds(s, float(x), y)}
    assert set(result["p"].rows()) == floated
    assert set(result["q"].rows()) == {(s, x) for s, x, y in floated if y == float(BIG)}
    exact = {(s, x, y) for s in COMPARISONS for x in numbers for y in numbers if holds(s, x, y)}
    assert set(result["i"].rows()) == exact


def test_an_unsigned_number_against_a_float_compares_floats(place: Place) -> None:
    result = place.run("p(X, Y) <- n(X), f(Y), X >= Y.", {"n": [(2**64 - 1,), (2**64 - 2049,)], "f": [(2.0**64,)]})
    assert result["p"].rows() == [(2**64 - 1, 2.0**64)]


@pytest.mark.parametrize("evaluator", ["auto", "kernel", "sql"])
def test_numbers_against_floats_in_recursion(local: Place, evaluator: str) -> None:
    engine = local.engine({"e": [(1, 2, BIG), (2, 3, BIG + 1), (3, 4, BIG + 2)]})
    text = f"r(1). r(Y) <- r(X), e(X, Y, W), W <= {float(BIG)!r}. s(1). s(Y) <- s(X), e(X, Y, W), W <= {BIG}."
    result = engine.run(text, evaluator=evaluator)
    assert sorted(result["r"].rows()) == [(1,), (2,), (3,)]
    assert sorted(result["s"].rows()) == [(1,), (2,)]


# --- byte-order marks ------------------------------------------------------------------------------------------------


@pytest.mark.spark_sample(4)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "x,y\n1,b\n"),
        ("a.csv", '"1","b"\n'),
        ("a.tsv", "1\tb\n"),
        ("a.facts", "1\tb\r\n"),
    ],
)
def test_a_mark_at_the_start_of_a_file_is_not_data(place: Place, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert place.run("p(X, Y) <- a(X, Y).", {"a": str(tmp_path / name)})["p"].rows() == [(1, "b")]


def test_a_mark_at_the_start_of_a_program_is_not_text(local: Place, tmp_path: Path) -> None:
    for start in ("p(1).", ".decl p(x: number)\np(1).", "// remark\np(1).", "# remark\np(1)."):
        (tmp_path / "program.dl").write_bytes(b"\xef\xbb\xbf" + start.encode())
        assert local.engine().run_file(tmp_path / "program.dl")["p"].rows() == [(1,)]
        assert local.run("\ufeff" + start)["p"].rows() == [(1,)]


def test_text_that_begins_with_a_mark_comes_back(local: Place, tmp_path: Path) -> None:
    for name in ("p.facts", "p.csv", "p.tsv"):
        local.run("p(X, 1) <- a(X).", {"a": ["\ufeffa", "b"]})["p"].write(tmp_path / name)
        again = local.run("q(X) <- p(X, _).", {"p": str(tmp_path / name)})
        assert sorted(again["q"].rows()) == [("b",), ("\ufeffa",)]


# --- floats as integers ----------------------------------------------------------------------------------------------


def test_floats_at_the_ends_of_the_integers(place: Place) -> None:
    floats = [-(2.0**63), -2.75, -0.5, 2.75, 2.0**63 - 1024]
    found = place.run("p(N) <- a(X), N = to_number(X).", {"a": [(value,) for value in floats]})["p"].rows()
    assert sorted(found) == [(-(2**63),), (-2,), (0,), (2,), (2**63 - 1024,)]
    floats = [-0.5, 2.75, 2.0**63 - 1024, 2.0**63, 2.0**64 - 2048]
    found = place.run("p(N) <- a(X), N = to_unsigned(X).", {"a": [(value,) for value in floats]})["p"].rows()
    assert sorted(found) == [(0,), (2,), (2**63 - 1024,), (2**63,), (2**64 - 2048,)]


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]),
        (pa.timestamp("us"), [datetime(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(2026, 1, 2)]),
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("1.51"), Decimal("2.00")]),
        (pa.uint64(), [1, 2**63, 2**64 - 1]),
        (pa.bool_(), [False, True]),
        (pa.string(), ["a", "", "é"]),
    ],
    ids=str,
)
def test_constants_of_any_type_meet_the_values_of_a_recursion(
    kind: pa.DataType, values: list[Any], place: Place
) -> None:
    """`p` starts from the first value of a path and does not go on behind the last one."""
    path = pa.table({"x": pa.array(values[:-1], kind), "y": pa.array(values[1:], kind)})
    first, last = "$A", "18446744073709551615" if values[-1] == 2**64 - 1 else "$B"
    declared = f".decl e(x: {DECLARED[kind.id]}, y: {DECLARED[kind.id]})\n.input e\n"
    text = f"{declared}p(X) <- e(X, _), X = {first}. p(Y) <- p(X), e(X, Y), X != {last}."
    params = {"A": values[0]} | ({} if last.isdigit() else {"B": values[-1]})
    found = place.run(text, {"e": path}, params)["p"].rows()
    assert set(found) == {(value,) for value in values}


DECLARED = {
    pa.date32().id: "date",
    pa.timestamp("us").id: "timestamp",
    pa.decimal128(5, 2).id: "decimal(5, 2)",
    pa.uint64().id: "unsigned",
    pa.bool_().id: "boolean",
    pa.string().id: "symbol",
}
