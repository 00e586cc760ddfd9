"""Arithmetic on decimals: exact, with Spark's types, the same in every place; compared with Python's decimals."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext
from random import Random

import pyarrow as pa
import pytest

import emberlog
from engine.places import Place

NINES = "9" * 38


def table(*values: str, precision: int, scale: int) -> pa.Table:
    column = pa.array(map(Decimal, values), pa.decimal128(precision, scale))
    return pa.table({"i": list(range(len(values))), "x": column})


def types(result: emberlog.Result, name: str = "q") -> list[str]:
    return [str(type) for type in result[name].to_arrow().schema.types]


def random_decimals(precision: int, scale: int, count: int) -> list[Decimal]:
    """Decimals of the type: small ones and large ones, with few and with many digits."""
    random = Random(f"{precision},{scale}")
    with localcontext(prec=80):
        return [
            Decimal(random.choice((1, -1)) * random.randrange(10 ** random.randint(1, precision))).scaleb(-scale)
            for _ in range(count)
        ]


PAIRS = [((10, 2), (10, 2)), ((18, 4), (5, 4)), ((38, 18), (38, 18)), ((38, 0), (38, 10)), ((20, 6), (38, 30))]


@pytest.mark.spark_sample(7)
@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_every_result_is_exact_or_an_error(
    place: Place, operator: str, one: tuple[int, int], other: tuple[int, int]
) -> None:
    left, right = random_decimals(*one, 40), random_decimals(*other, 40)
    rows = pa.table({
        "i": list(range(40)), "x": pa.array(left, pa.decimal128(*one)), "y": pa.array(right, pa.decimal128(*other)),
    })  # fmt: skip
    engine = place.engine({"p": rows, "empty": rows.slice(0, 0)})
    text = f"q(I, X {operator} Y) <- p(I, X, Y)"
    kind = engine.run(f"{text.replace('p(', 'empty(')}.")["q"].to_arrow().schema.types[1]
    with localcontext(prec=200):
        exact = [{"+": a + b, "-": a - b, "*": a * b}[operator] for a, b in zip(left, right, strict=True)]
        unit, most = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)
        fits = [value == value.quantize(unit) and abs(value) < most for value in exact]
        found = engine.run(
            f"{text}, $FITS(I).", {"FITS": [i for i, fit in enumerate(fits) if fit]}, placement=place.placement
        )
    assert dict(found["q"].rows()) == {i: value for i, value in enumerate(exact) if fits[i]}
    for i in [i for i, fit in enumerate(fits) if not fit][:2]:
        with pytest.raises(emberlog.DataError, match="has no value"):
            engine.run(f"{text}, I = {i}.", placement=place.placement)["q"].rows()


@pytest.mark.parametrize(("term", "type"), [
    ("X + X", "decimal128(11, 2)"), ("X - 1", "decimal128(11, 2)"), ("X * X", "decimal128(21, 4)"),
    ("X * 2", "decimal128(12, 2)"), ("X * 1.19", "decimal128(14, 4)"), ("X + I", "decimal128(23, 2)"),
    ("-X", "decimal128(10, 2)"), ("abs(X)", "decimal128(10, 2)"), ("round(X, 1)", "decimal128(10, 1)"),
    ("round(X, 5)", "decimal128(10, 2)"), ("X * to_float(2)", "double"), ("to_decimal(I, 6, 2)", "decimal128(6, 2)"),
])  # fmt: skip
def test_results_have_the_types_of_spark(local: Place, term: str, type: str) -> None:
    result = local.run(f"q({term}) <- p(I, X).", {"p": table("1.25", precision=10, scale=2)})
    assert types(result) == [type]


def test_the_values_of_terms(place: Place) -> None:
    text = "q(-X, abs(X), round(X, 1), X * 1.5, 1 - X, to_number(X), to_string(X * 2)) <- p(_, X)."
    found = place.run(text, {"p": table("-1.25", precision=10, scale=2)})["q"].rows()
    expected = [Decimal("1.25"), Decimal("1.25"), Decimal("-1.3"), Decimal("-1.875"), Decimal("2.25"), -1, "-2.50"]
    assert found == [tuple(expected)]


def test_averages_are_rounded_half_up(place: Place) -> None:
    values = ["0.01", "0.02", "-1.00", "7.77", "3.33", "0.00", "2.22"]
    sources = {"p": table(*values, precision=10, scale=2), "wide": table(NINES, NINES[1:], precision=38, scale=0)}
    text = "q(I % 2, avg(X)) <- p(I, X). m(A) <- A = mean X : { p(_, X) }. w(avg(X)) <- wide(0, X)."
    result = place.run(text, sources)
    numbers = [Decimal(value) for value in values]
    with localcontext(prec=60):
        parts = [numbers[0::2], numbers[1::2], numbers]
        means = [(sum(part, Decimal(0)) / len(part)).quantize(Decimal("0.000001"), ROUND_HALF_UP) for part in parts]
    assert sorted(result["q"].rows()) == [(0, means[0]), (1, means[1])]
    assert (result["m"].rows(), result["w"].rows()) == ([(means[2],)], [(Decimal(NINES),)])
    assert types(result) == ["int64", "decimal128(14, 6)"]


def test_an_average_beside_numbers_of_values(local: Place) -> None:
    text = "q(avg(X), countd(I)) <- p(I, X). q(X, 3) <- p(0, X)."
    found = local.run(text, {"p": table("1.00", "2.00", precision=10, scale=2)})["q"].rows()
    assert found == [(Decimal("1.333333"), 5)]


@pytest.mark.spark_sample(5)
@pytest.mark.parametrize(("goal", "answer"), [
    ("X = N", [3]), ("X > N", [1, 3]), ("X < N", [1, 2]), ("X = 3", [3]), ("X >= 1.25", [1, 3]),
    ("X > 100000000000000", []), ("X = to_float(N)", [3]), ("X != 3.0", [1, 2]), ("X + 0.25 = 1.5", [1]),
])  # fmt: skip
def test_comparisons_are_exact(place: Place, goal: str, answer: list[int]) -> None:
    rows = pa.table({"i": [1, 2, 3], "x": pa.array(map(Decimal, ("1.25", "0.50", "3")), pa.decimal128(10, 2))})
    found = place.run(f"q(I) <- p(I, X), n(N), {goal}.", {"p": rows, "n": [(3,), (1,)]})["q"].rows()
    assert sorted(found) == [(i,) for i in answer]


def test_large_numbers_are_not_compared_as_floats(place: Place) -> None:
    sources = {"p": table(str(2**53), precision=38, scale=4), "n": [(2**53 + 1,)]}
    result = place.run("q(X) <- p(_, X), n(N), X = N. r(X) <- p(_, X), n(N), X < N.", sources)
    assert (result["q"].rows(), result["r"].count()) == ([], 1)


SHORTEST = """
sp(Y, min<D>) <- Y = 0, D = 0.
sp(Y, min<D>) <- sp(X, C), arc(X, Y, W), D = C + W.
"""


def test_shortest_paths_over_decimals(place: Place) -> None:
    arcs = [(0, 1, "7.10"), (0, 2, "2.25"), (2, 1, "3.05"), (1, 3, "0.01"), (3, 0, "1.00")]
    rows = pa.table({
        "x": [x for x, _, _ in arcs], "y": [y for _, y, _ in arcs],
        "w": pa.array([Decimal(w) for *_, w in arcs], pa.decimal128(10, 2)),
    })  # fmt: skip
    engine = place.engine({"arc": rows})
    assert [verdict.status for verdict in engine.check(SHORTEST)] == ["proved"]
    found = dict(engine.run(SHORTEST, placement=place.placement)["sp"].rows())
    assert found == {0: Decimal(0), 2: Decimal("2.25"), 1: Decimal("5.30"), 3: Decimal("5.31")}


@pytest.mark.parametrize(("text", "value", "answer"), [
    ("to_decimal(S, 5, 2)", "123.45", "123.45"), ("to_decimal(S, 5, 2)", "1e2", "100"),
    ("to_decimal(S, 5, 2)", "1.234", None), ("to_decimal(S, 5, 2)", "1234", None), ("to_decimal(S, 5, 2)", "x", None),
    ("to_decimal(S, 5, 2)", "nan", None),
    ("to_decimal(strlen(S), 2, 1)", "abc", "3.0"), ("to_decimal(strlen(S), 1, 1)", "abc", None),
    ("to_decimal(to_decimal(S, 9, 4), 5, 2)", "1.25", "1.25"), ("to_decimal(to_decimal(S, 9, 4), 5, 2)", "1.255", None),
])  # fmt: skip
@pytest.mark.spark_sample(4)
def test_conversions(place: Place, text: str, value: str, answer: str | None) -> None:
    engine = place.engine({"s": [(value,)]})
    if answer is None:
        with pytest.raises(emberlog.DataError, match="does not fit"):
            engine.run(f"q({text}) <- s(S).", placement=place.placement)["q"].rows()
    else:
        assert engine.run(f"q({text}) <- s(S).", placement=place.placement)["q"].rows() == [(Decimal(answer),)]


@pytest.mark.parametrize(("rule", "message"), [
    ("q(X / 2) <- p(_, X).", "takes numbers"), ('q(X + "a") <- p(_, X).', "has no meaning"),
    ("q(round(I, 1)) <- p(I, _).", "takes decimals"), ("q(round(X, I)) <- p(I, X).", "as a constant"),
    ("q(to_decimal(X, 39, 2)) <- p(_, X).", "as a constant"), ("q(to_decimal(X, 3, 4)) <- p(_, X).", "as a constant"),
    ("q(to_decimal(1.5, 3, 1)) <- p(_, _).", "takes texts, whole numbers or decimals"),
])  # fmt: skip
def test_mistakes(local: Place, rule: str, message: str) -> None:
    with pytest.raises(emberlog.ProgramError, match=message):
        local.run(rule, {"p": table("1.25", precision=10, scale=2)})


def test_views_follow_decimals(local: Place) -> None:
    text = """
    doubled(I, X * 2 + 1) <- p(I, X).
    least(min<Y>) <- doubled(_, Y).
    cheap(I) <- p(I, X), X < 2.
    total(sum<X>) <- p(_, X).
    """
    engine = local.engine({"p": table("1.25", "3.50", precision=10, scale=2)})
    view = engine.maintain(text)
    change = view.apply(insert={"p": [(7, Decimal("0.25"))]}, delete={"p": [(0, Decimal("1.25"))]})
    assert change["doubled"].inserted == {(7, Decimal("1.50"))}
    for name, rows in {
        "doubled": [(1, Decimal("8.00")), (7, Decimal("1.50"))],
        "least": [(Decimal("1.50"),)],
        "cheap": [(7,)],
        "total": [(Decimal("3.75"),)],
    }.items():
        assert sorted(view[name].rows()) == rows
