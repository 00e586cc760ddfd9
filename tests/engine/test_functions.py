"""Functions of Python in rules: the same values in every place, and errors that name the rule and the row."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import emberlog
from engine.places import Place

ROWS = [(1, "a"), (2, "bb"), (3, "ccc")]


@pytest.fixture
def engine(place: Place) -> emberlog.Engine:
    made = place.engine({"p": ROWS})
    made.function("score", lambda n, s: n * 0.5 + len(s), "float", "number", "symbol")
    made.function("double", lambda n: pc.multiply(n, 2), "number", "number", vectorized=True)
    made.function("inverse", lambda n: 1 / (n - 2), "float", "number")
    return made


def rows(place: Place, engine: emberlog.Engine, text: str, name: str = "q") -> list[tuple[Any, ...]]:
    return sorted(engine.run(text, placement=place.placement)[name].rows())


RULES = [
    ("q(N, score(N, S)) <- p(N, S).", [(1, 1.5), (2, 3.0), (3, 4.5)]),
    ("q(N) <- p(N, S), score(N, S) > 2.", [(2,), (3,)]),
    ("q(F) <- p(N, _), N != 2, F = inverse(N) + 1.", [(0.0,), (2.0,)]),
    ("q(N) <- p(N, _), p(double(N), _).", [(1,)]),
    ("q(N) <- p(N, _), !p(double(N), _).", [(2,), (3,)]),
    ("q(A, B) <- p(A, S), p(B, T), score(A, S) > score(B, T) + 2.", [(3, 1)]),
    ("q(sum(F)) <- p(N, S), F = score(N, S).", [(9.0,)]),
    ("q(N) <- p(N, _). q(double(N)) <- q(N), N < 5.", [(1,), (2,), (3,), (4,), (6,), (8,)]),
    ("q(X) <- p(N, _), X = double(double(N)), X < 12.", [(4,), (8,)]),
    ("q(N, M) <- p(N, _), M = max X : { p(K, _), X = double(K), K < N }.", [(2, 2), (3, 4)]),
]


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize(("text", "answer"), RULES, ids=[text for text, _ in RULES])
def test_rules_call_functions(place: Place, engine: emberlog.Engine, text: str, answer: list[Any]) -> None:
    assert rows(place, engine, text) == answer


def test_values_of_every_type(place: Place) -> None:
    sources = {"d": pa.table({"d": [date(2024, 2, 28)], "m": pa.array([Decimal("1.25")], pa.decimal128(10, 2))})}
    engine = place.engine(sources)
    engine.function("following", lambda d: d + timedelta(days=1), "date", "date")
    engine.function("twice", lambda m: m * 2, "decimal(12,2)", "decimal(10,2)")
    engine.function("large", lambda d: 2**63 + d.day, "unsigned")
    engine.function("late", lambda d: d.day > 15, "bool")
    engine.function("name", lambda d: d.strftime("%d.%m.%Y"), "symbol", "date")
    text = "q(following(D), twice(M), U, late(D), name(D)) <- d(D, M), U = large(D), U + 1u > 5u."
    expected = (date(2024, 2, 29), Decimal("2.50"), 2**63 + 28, True, "28.02.2024")
    assert rows(place, engine, text) == [expected]


def test_a_vectorized_function_gets_whole_columns(place: Place) -> None:
    engine = place.engine({"n": [(i,) for i in range(3000)]})
    engine.function("root", lambda x: pc.sqrt(x), "float", "float", vectorized=True)
    found = dict(rows(place, engine, "q(X, root(to_float(X))) <- n(X)."))
    assert found == {i: math.sqrt(i) for i in range(3000)}


@pytest.mark.spark_sample(2)
@pytest.mark.parametrize(("function", "vectorized", "reason"), [
    (lambda n: 10 // (n - 2), False, "`f` raised ZeroDivisionError: integer division or modulo by zero"),
    (lambda n: None if n == 2 else n, False, "`f` gave no value"),
    (lambda n: "x" if n == 2 else n, False, "`f` gave 'x', which is no number"),
    (lambda n: 2**63 if n == 2 else n, False, "`f` gave 9223372036854775808, which is no number"),
    (lambda n: True if n == 2 else n, False, "`f` gave True, which is no number"),
    (lambda n: pc.divide(10, pc.subtract(n, 2)), True, "`f` raised ArrowInvalid: divide by zero"),
    (lambda n: pc.if_else(pc.equal(n, 2), None, n), True, "`f` gave no value"),
])  # fmt: skip
def test_errors_name_the_rule_and_the_row(place: Place, function: Any, vectorized: bool, reason: str) -> None:
    engine = place.engine({"p": ROWS})
    engine.function("f", function, "number", "number", vectorized=vectorized)
    with pytest.raises(emberlog.DataError) as raised:
        rows(place, engine, "r(X) <- p(X, _).\nq(N, F) <- p(N, S), F = f(N).")
    assert f"this rule has no value for N = 2: {reason}" in str(raised.value)
    assert "2 | q(N, F) <- p(N, S), F = f(N)." in str(raised.value)
    assert len(rows(place, engine, "q(N, F) <- p(N, S), F = f(N), N != 2.")) == 2


def test_types_are_checked_before_a_run(local: Place) -> None:
    engine = local.engine({"p": ROWS})
    engine.function("score", lambda n, s: 1.0, "float", "number", "symbol")
    for text, told in [
        ("q(score(N)) <- p(N, _).", "takes 2 arguments"),
        ("q(score(S, S)) <- p(_, S).", "takes a number here, not a symbol"),
        (".decl q(x: number)\nq(score(N, S)) <- p(N, S).", "type conflict"),
        ("q(scores(N, S)) <- p(N, S).", "there is no function `scores`"),
    ]:
        with pytest.raises(emberlog.ProgramError, match=told):
            engine.run(text)


def test_types_by_annotations(local: Place) -> None:
    def share(part: int, whole: float) -> float:
        return part / whole

    engine = local.engine({"p": ROWS})
    engine.function("share", share)
    assert sorted(engine.run("q(share(N, N)) <- p(N, _).")["q"].rows()) == [(1.0,)]
    with pytest.raises(emberlog.ProgramError, match="takes a number here"):
        engine.run("q(share(S, 1)) <- p(_, S).")


@pytest.mark.parametrize(("arguments", "told"), [
    (("sqrt", math.sqrt, "float"), "is a function of the language"), (("a b", len, "number"), "is a name"),
    (("f", 5, "number"), "is to be a function"), (("f", lambda x: x), "nothing tells the type"),
    (("f", len, "int8"), "is no type of a function"), (("f", len, "number", "texts"), "is no type of a function"),
])  # fmt: skip
def test_what_is_no_function_is_refused(local: Place, arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(emberlog.UsageError, match=told):
        local.engine().function(*arguments)


def test_a_function_can_be_given_again_and_taken_back(local: Place) -> None:
    engine = local.engine({"p": ROWS})
    for factor in (2, 3):
        engine.function("f", lambda n, factor=factor: n * factor, "number", "number")
        assert sorted(engine.run("q(f(N)) <- p(N, _).")["q"].rows()) == [(factor,), (2 * factor,), (3 * factor,)]
    engine.drop_function("f")
    with pytest.raises(emberlog.ProgramError, match="there is no function `f`"):
        engine.run("q(f(N)) <- p(N, _).")
    with pytest.raises(emberlog.UsageError, match="no function of Python"):
        engine.drop_function("f")


def test_nothing_is_proved_of_a_function(local: Place) -> None:
    engine = local.engine({"arc": [(1, 2)]})
    engine.function("step", lambda n: n + 1, "number", "number")
    text = "d(X, min<D>) <- X = 1, D = 0. d(Y, min<D>) <- d(X, C), arc(X, Y), D = step(C)."
    assert [verdict.status for verdict in engine.check(text)] == ["unknown"]
    with pytest.raises(emberlog.ProgramError, match="is not known to be right"):
        engine.run(text)
    assert sorted(engine.run(text, naive=True)["d"].rows()) == [(1, 0), (2, 1)]


def test_views_goals_and_reasons(local: Place) -> None:
    engine = local.engine({"p": ROWS})
    engine.function("score", lambda n, s: n * 0.5 + len(s), "float", "number", "symbol")
    text = "q(N, F) <- p(N, S), F = score(N, S)."
    view = engine.maintain(text)
    assert view.apply(insert={"p": [(7, "z")]}, delete={"p": [(1, "a")]})["q"].inserted == {(7, 4.5)}
    assert sorted(view["q"].rows()) == [(2, 3.0), (3, 4.5), (7, 4.5)]
    result = engine.run(text)
    assert 'p(2, "bb")' in str(result.why("q", (2, 3.0)))
    assert engine.query("q(N, F), p(N, S), score(N, S) > 3", program=text).rows() == [(3, 4.5)]


@pytest.mark.apart
def test_functions_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def score(x: int, s: str) -> float:\n    return x * _half + len(s)\n_half = 0.5\n"
    )
    (tmp_path / "p.dl").write_text('p(1, "a"). p(2, "bb").\nq(N, score(N, S)) <- p(N, S).\n.output q\n')
    command = [sys.executable, "-m", "emberlog", "run", "p.dl", "--executor", "local", "--functions", "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "q.csv").read_text().splitlines()) == ["1\t1.5", "2\t3.0"]
