"""Small components by the interpreter: the reference's answers, the errors of SQL, limits, and the switch to loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.choose import ways
from emberlog.diagnostics import UsageError
from emberlog.kernels import cache
from emberlog.kernels import evaluate as module
from emberlog.stats import StratumStats
from emberlog.thresholds import SMALL_SECONDS
from emberlog.types import INT64_MAX, INT64_MIN
from kernels.components import COMPONENTS
from kernels.variants import by_kernels, in_every_way
from naive.values import Row
from strategies import Case, assert_agrees

HOW = "interpreted over columns"
TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
NONLINEAR = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."
MANY = settings(max_examples=50, suppress_health_check=list(HealthCheck))
LOTS = settings(max_examples=3000, suppress_health_check=list(HealthCheck))
Rows = list[tuple[Any, ...]]


@pytest.fixture(autouse=True, scope="module")
def interpreter(loops: None) -> Iterator[None]:
    """The interpreter may evaluate, and has time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "INTERPRETS", True)
        patch.setattr(module, "SMALL_SECONDS", 60.0)
        yield


def run(text: str, tables: Mapping[str, Any], evaluator: str = "kernel", **how: Any) -> emberlog.Result:
    engine = emberlog.Engine(executor="local", workers=1)
    for name, rows in tables.items():
        engine.register(name, rows)
    return engine.run(text, evaluator=evaluator, **how)


def interpreted(text: str, tables: Mapping[str, Any], name: str, **how: Any) -> Rows:
    """The rows of a relation, which the interpreter computed, and which are those of SQL."""
    result = run(text, tables, **how)
    assert [stats.how for stats in recursive(result)] == [HOW] * len(recursive(result))
    found = sorted(result[name].rows())
    assert found == sorted(run(text, tables, "sql")[name].rows())
    return found


def recursive(result: emberlog.Result) -> list[StratumStats]:
    return [stats for stats in result.stats if stats.rounds]


# --- random programs -------------------------------------------------------------------------------------------------


def agree(drawn: st.SearchStrategy[Case], how_many: settings) -> None:
    """Every program that the kernels take, the interpreter evaluates as the reference does."""

    @how_many
    @given(drawn)
    def agrees(case: Case) -> None:
        def by_interpreter(case: Case) -> Mapping[str, Iterable[Row]]:
            with in_every_way({}) as done:
                found = by_kernels(case, limits={"rounds": 1000})
            assert all(how == HOW for how in done), done
            return found

        try:
            assert_agrees(case, by_interpreter)
        except UsageError as error:
            event(f"not by kernels: {error}")

    agrees()


@pytest.mark.parametrize("kind", COMPONENTS)
def test_the_interpreter_agrees(kind: str) -> None:
    agree(COMPONENTS[kind], MANY)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMPONENTS)
def test_the_interpreter_agrees_on_thousands(kind: str) -> None:
    agree(COMPONENTS[kind], LOTS)


# --- programs by hand ------------------------------------------------------------------------------------------------

GRAPHS: dict[str, Rows] = {
    "one edge": [(1, 2)],
    "a self-loop": [(5, 5)],
    "duplicates": [(1, 2), (1, 2), (2, 1)],
    "around 2^31": [(2**31 - 1, 2**31), (2**31, 2**31 + 1), (2**31 + 1, 2**31 - 1)],
    "around 2^62": [(2**62, 2**62 + 1), (2**62 + 1, -(2**62))],
    "the ends of 64 bits": [(INT64_MIN, INT64_MAX), (INT64_MAX, 0), (0, INT64_MIN)],
    "far apart": [(i * 10**6, (i + 1) * 10**6) for i in range(30)],
}


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("text", [TC, NONLINEAR], ids=["linear", "non-linear"])
def test_closures(text: str, edges: Rows) -> None:
    assert interpreted(text, {"arc": edges}, "tc")


def test_nothing_gives_nothing() -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    assert interpreted(TC, {"arc": empty}, "tc") == []


ARCS = [(1, 2), (2, 3), (3, 1), (3, 3), (4, 2), (2, 4), (5, 6)]
PROGRAMS = {
    "a variable twice": "p(X,X) <- arc(X,_). p(X,Y) <- p(X,Z), arc(Z,Y), arc(Y,Y).",
    "a fact with equal columns": "p(X,Y) <- arc(X,Y). p(Y,X) <- p(X,X), arc(X,Y).",
    "constants": "p(X,Y) <- arc(X,Y). p(X,7) <- p(X,3). p(1,Y) <- p(2,Y), arc(3,Y).",
    "negation": "p(X) <- X = 1. p(Y) <- p(X), arc(X,Y), !arc(Y,X).",
    "negation of a column": "p(X) <- X = 1. p(Y) <- p(X), arc(X,Y), !arc(_,7), !arc(6,_).",
    "a triangle": "p(X,Y) <- arc(X,Y). p(X,Z) <- p(X,Y), arc(Y,Z), arc(Z,X).",
    "a row that exists": "p(X) <- X = 1. p(Y) <- p(X), arc(X,Y), arc(_,_), arc(Y,_).",
    "no column in common": "p(X,Y) <- arc(X,Y), X = 1. p(X,Y) <- p(X,_), arc(Y,_).",
    "mutual": "p(X,Y) <- arc(X,Y). p(X,Y) <- q(X,Z), arc(Z,Y). q(X,Y) <- p(X,Z), arc(Z,Y).",
    "mutual and non-linear": "p(X,Y) <- arc(X,Y). p(X,Y) <- q(X,Z), p(Z,Y). q(X,Y) <- p(X,Y), X != Y.",
    "three facts": "p(X,Y) <- arc(X,Y). p(X,Y) <- p(X,A), p(A,B), p(B,Y).",
    "one column": "p(X) <- X = 0. p(Y) <- p(X), Y = X + 3, Y < 40.",
    "four columns": "p(A,B,C,N) <- arc(A,B), C = A, N = 0. p(B,C,A,M) <- p(A,B,C,N), arc(A,_), M = N + 1, M < 9.",
    "numbers as keys": "p(X,N) <- arc(X,_), N = 0. p(Y,M) <- p(X,N), arc(X,Y), M = N * 2 + X, M < 50.",
    "a number that is looked up": "p(N) <- N = 1. p(M) <- p(N), arc(A,M), A = N + 1 - 1.",
    "a least value": "p(X,min<C>) <- X = 1, C = 0. p(Y,min<C>) <- p(X,B), arc(X,Y), C = B + Y.",
    "a least id": "p(X,min<X>) <- arc(X,_). p(Y,min<V>) <- p(X,V), arc(X,Y).",
    "a greatest value": "p(X,max<C>) <- arc(X,C). p(Y,max<C>) <- p(X,B), arc(X,Y), C = min(B + 1, 20).",
    "a value without a key": "p(min<C>) <- arc(C,_). p(min<C>) <- p(B), arc(A,_), C = max(B - A, -9).",
    "values of values": "p(X,Y,min<C>) <- arc(X,Y), C = 1. p(X,Y,min<C>) <- p(X,Z,A), p(Z,Y,B), C = A + B.",
    "text": 'p(T,U) <- t(T,U). p(T,U) <- p(T,V), t(V,U), T < U, V != "c".',
}
TEXTS = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("b", "d"), ("d", "e")]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(text: str) -> None:
    assert interpreted(text, {"arc": ARCS, "t": TEXTS}, "p")


SUMS = {
    "paths": "p(X,sum<C>) <- X = 1, C = 1. p(Y,sum<C>) <- p(X,C), arc(X,Y).",
    "by contributor": "p(X,sum<(Z,C)>) <- X = 1, Z = 0, C = 1. p(Y,sum<(X,C)>) <- p(X,C), arc(X,Y).",
    "parts of a float": "p(X,sum<C>) <- X = 1, C = 1.0. p(Y,sum<C>) <- p(X,B), w(X,Y,F), C = B * F.",
    "a value that is tested": "p(X,count<Z>) <- s(X,Z). p(Y,count<X>) <- p(X,B), arc(X,Y), B >= 2.",
    "a value that is not read": "p(X,count<Z>) <- s(X,Z). p(Y,count<X>) <- p(X,_), arc(X,Y).",
    "a count of what is in": "n(Y,count<X>) <- in(X), arc(X,Y). in(X) <- X = 1. in(Y) <- n(Y,N), N >= 1.",
}
DAG = {"arc": [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (2, 5), (5, 6)]}
WEIGHTS = {"w": [(x, y, 0.25) for x, y in DAG["arc"]]}


@pytest.mark.parametrize("text", SUMS.values(), ids=SUMS)
def test_sums(text: str) -> None:
    tables = {**DAG, **WEIGHTS, "s": [(1, 7), (1, 8), (2, 7), (2, 9), (3, 4)]}
    result = run(text, tables)
    assert [stats.how for stats in recursive(result)] == [HOW]
    for name in result:
        assert sorted(result[name].rows()) == sorted(run(text, tables, "sql")[name].rows())


# --- errors and limits -----------------------------------------------------------------------------------------------

LARGE = {"e": [(1, 2**62 + 1), (2, 2**62), (4, -(2**62) - 1)], "f": [(1, 2), (2, 3), (4, 5)]}
FAILING = {
    "a sum": "p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y), D = V + V.",
    "a product": "p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y), D = V * 3.",
    "a division": "p(X,max<V>) <- e(X,V). p(Y,max<D>) <- p(X,V), f(X,Y), D = V / (X - 1).",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
def test_an_operation_without_a_value_is_the_error_of_sql(text: str) -> None:
    told = []
    for evaluator in ("kernel", "auto", "sql"):
        with pytest.raises(emberlog.DataError) as error:
            run(text, LARGE, evaluator)
        told.append(str(error.value))
    assert len(set(told)) == 1


def test_numbers_at_the_ends_of_64_bits_are_left_to_sql() -> None:
    text = "p(X,min<V>) <- e(X,V). p(Y,min<D>) <- p(X,V), f(X,Y), D = max(V, V / 2)."
    tables = {"e": [(1, INT64_MAX), (2, 5)], "f": [(1, 2), (2, 3)]}
    with pytest.raises(UsageError, match="at the end of what 64 bits hold"):
        run(text, tables)
    result = run(text, tables, "auto")
    assert (result.stats[-1].evaluator, result.stats[-1].how) == ("sql", "")


CHAIN = [(i, i + 1) for i in range(40)]


@pytest.mark.parametrize(
    ("limits", "message"), [({"rounds": 20}, "limit of 20 rounds"), ({"rows": 500}, "limit of 500 rows")]
)
def test_a_limit_is_an_error(limits: Any, message: str) -> None:
    with pytest.raises(emberlog.LimitError, match=message):
        run(TC, {"arc": CHAIN}, limits=limits)


def test_a_limit_that_is_kept_is_none() -> None:
    result = run(TC, {"arc": CHAIN}, limits={"rounds": 41, "rows": 820, "seconds": 300})
    assert (result.stats[-1].how, result["tc"].count()) == (HOW, 820)


def test_figures_are_those_of_plain_rounds() -> None:
    ours, theirs = (run(TC, {"arc": CHAIN}, evaluator).stats[-1] for evaluator in ("kernel", "sql"))
    assert (ours.rounds, ours.deltas, ours.facts) == (theirs.rounds, theirs.deltas, theirs.facts)
    assert ours.derivations == 820 - 40


@pytest.mark.parametrize(
    "text", ["n(X) <- X = 0. n(Y) <- n(X), Y = X + 1.", FAILING["a sum"].replace("V + V", "V + 1")]
)
def test_what_grows_for_ever_is_stopped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_BINDINGS", 1 << 40)
    with pytest.raises(emberlog.LimitError, match="seem to grow for ever"):
        run(text, {"e": [(1, 1)], "f": [(1, 2), (2, 1)]})


# --- who evaluates ---------------------------------------------------------------------------------------------------


def test_small_work_is_interpreted_by_default() -> None:
    result = run(TC, {"arc": CHAIN}, "auto")
    assert (result.stats[-1].evaluator, result.stats[-1].how) == ("kernel", HOW)


def test_what_is_over_budget_begins_again_with_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_BINDINGS", 100)
    first, second = (run(TC, {"arc": CHAIN}).stats[-1] for _ in range(2))
    assert list(map(str, first.events)) == ["compiled loops, because the interpreter stopped: more than 100 bindings"]
    assert not second.events  # its loops are there now
    for stats in (first, second):
        assert stats.facts == 820 and stats.rounds < 50 and len(stats.deltas) <= stats.rounds


def test_what_takes_long_begins_again_with_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_SECONDS", 1e-9)
    result = run(TC, {"arc": CHAIN})
    (event,) = result.stats[-1].events
    assert "takes longer than loading a compiler" in event.why
    assert result["tc"].count() == 820


def test_what_is_done_often_is_done_by_loops_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NO_SECONDS", 0.0)
    assert run(TC, {"arc": CHAIN}).stats[-1].how == "interpreted over columns"
    (key,) = module._SPENT
    assert 0 < module._SPENT[key] < SMALL_SECONDS
    module._SPENT[key] = 60.0  # what the tests allow
    assert "interpreted" not in run(TC, {"arc": CHAIN}).stats[-1].how


def test_what_is_done_at_once_is_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NO_SECONDS", 60.0)
    run(TC, {"arc": CHAIN})
    assert list(module._SPENT.values()) == [0.0]


WAYS: list[dict[str, Any]] = [{"storage": "hash"}, {"decompose": False}, {"exchange": True}, {"storage": "loops"}]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_who_chooses_a_way_of_the_loops_gets_them(how: dict[str, Any]) -> None:
    result = run(TC, {"arc": CHAIN}, **how)
    assert "interpreted" not in result.stats[-1].how and result["tc"].count() == 820


def test_many_rows_go_to_loops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SMALL_ROWS", 10)
    assert "interpret" not in run(TC, {"arc": CHAIN}).stats[-1].how


def test_the_interpreter_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SMALL_ROWS", 10)
    monkeypatch.setattr(module, "SMALL_BINDINGS", 10)
    assert run(TC, {"arc": CHAIN}, storage="columns").stats[-1].how == HOW


def test_an_iteration_is_none_for_the_interpreter() -> None:
    text = """r(0,X,R) <- arc(X,_), R = 1.0.
              r(i+1,Y,sum<R>) <- r(i,X,V), arc(X,Y), R = V * 0.5, {sum[delta R] < 0.001}."""
    with pytest.raises(UsageError, match="an iteration is not evaluated over columns"):
        run(text, {"arc": CHAIN}, storage="columns")


@pytest.mark.parametrize("how", [{"storage": "columns"}, {"storage": "loops"}, {"evaluator": "sql"}], ids=str)
def test_decimals_of_different_digits_meet(how: dict[str, Any]) -> None:
    one, other = pa.decimal128(5, 2), pa.decimal128(12, 4)
    arc = [(Decimal("1.50"), Decimal("2.25")), (Decimal("2.25"), Decimal("3.00"))]
    brc = [(Decimal("3.0000"), Decimal("99999999.1234")), (Decimal("2.2500"), Decimal("1.0000"))]
    tables = {
        name: pa.table([pa.array(column, type) for column in zip(*rows, strict=True)], names=["x", "y"])
        for name, rows, type in (("arc", arc, one), ("brc", brc, other))
    }
    found = run("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), brc(Z,Y).", tables, **how)
    want = {*arc, (Decimal("1.50"), Decimal("1")), (Decimal("2.25"), Decimal("99999999.1234"))}
    assert set(found["tc"].rows()) == want


def test_what_is_asked_for_keeps_to_limits() -> None:
    rows = [(x, (x * k + 1) % 900) for x in range(900) for k in (2, 3, 5)]
    text = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."
    with pytest.raises(emberlog.LimitError, match="second"):
        run(text, {"arc": rows}, storage="columns", limits={"seconds": 0.5})


@pytest.mark.parametrize("how", [{"exchange": True}, {"partition": {"tc": 0}}, {"decompose": False}], ids=str)
def test_it_has_no_other_choices(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="one worker that interprets"):
        run(TC, {"arc": CHAIN}, storage="columns", **how)


@pytest.mark.parametrize("storage", ["columns", "loops", "hash"])
def test_rounds_are_those_that_are_told(storage: str) -> None:
    ring = [(x, (x + 1) % 20) for x in range(20)]
    rounds = run(TC, {"arc": ring}, storage=storage).stats[-1].rounds
    assert run(TC, {"arc": ring}, storage=storage, limits={"rounds": rounds})["tc"].count() == 400
    with pytest.raises(emberlog.LimitError, match="rounds"):
        run(TC, {"arc": ring}, storage=storage, limits={"rounds": rounds - 1})
