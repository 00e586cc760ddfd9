"""Strata above a recursion by loops, which go on with them or pass through its rows: random ones, by the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import emberlog
from emberlog.choose import strata
from emberlog.kernels import once
from emberlog.kernels.cache import COMPILES
from emberlog.kernels.choices import Evaluated
from kernels.variants import FEW, WAYS, by_kernels, in_every_way
from naive.values import Row
from strategies import Case, assert_agrees

SOME = settings(max_examples=6 if COMPILES else 60, suppress_health_check=list(HealthCheck), deadline=None)
LOTS = settings(max_examples=60 if COMPILES else 3000, suppress_health_check=list(HealthCheck), deadline=None)

NODES = 6
TEXTS = ("", "a", "b", "é")

# A recursion of `r(P, X)`, whatever else it has, by pivots.
RECURSIONS = {
    "closure": "r(P,X) <- e(P,X). r(P,Y) <- r(P,X), e(X,Y).",
    "kept apart": "r(P,X) <- e(P,X). r(P,Y) <- r(P,X), e(X,Y), !b(P,Y).",
    "two apart": "r(P,X) <- e(P,X). q(P,Y) <- r(P,X), k(P,X,Y). r(P,Y) <- q(P,X), e(X,Y).",
    "mutual": "r(P,X) <- e(P,X). q(P,Y) <- r(P,X), e(X,Y). r(P,Y) <- q(P,X), b(X,Y).",
    "labelled": "r(P,X) <- e(P,X). r(P,Y) <- r(P,X), k(X,K,Y), K < 3.",
}

# Bodies above it: atoms that follow, and the variables that they bind beside P and X.
BODIES = {
    "r(P,X)": "",
    "r(P,X), e(X,Y)": "Y",
    "r(P,X), !b(P,X)": "",
    "r(P,X), e(X,Y), !r(P,Y)": "Y",
    "r(P,X), r(P,Y), e(X,Y)": "Y",
    "r(P,X), r(P,Y), e(Y,X), X != Y": "Y",
    "r(P,X), X > P": "",
    "r(P,X), X != 2": "",
    "r(P,3), k(P,N,X)": "N",
    "r(P,X), t(X,T)": "T",
    "r(P,X), f(X,F)": "F",
    "r(P,X), k(X,N,Y), !t(Y,_)": "NY",
    "e(P,X), r(P,Y), k(Y,N,X)": "YN",
}
FOLDS = {"": "{0}", "N": "sum<N>", "F": "min<F>", "X": "max<X>", "Y": "min<Y>", "count": "count<X>"}


@st.composite
def heads(draw: st.DrawFn, name: str, variables: str) -> str:
    """The head of a stratum: the pivot and some others, or an aggregate over what a body binds."""
    places = draw(st.permutations(["P", draw(st.sampled_from(sorted({"X", *variables} - {"F"})))]))
    if draw(st.booleans()):
        return f"{name}({', '.join(places)})"
    fold = draw(st.sampled_from([FOLDS[v] for v in ("count", "X", *variables) if v in FOLDS]))
    keys = ["P"] if draw(st.booleans()) else list(places)
    return f"{name}({', '.join([*keys, fold])})"


@st.composite
def programs(draw: st.DrawFn) -> Case:
    nodes = st.integers(0, NODES - 1)
    recursion = draw(st.sampled_from(["kept apart", "two apart", *sorted(RECURSIONS)]))
    bodies = draw(st.lists(st.sampled_from(sorted(BODIES)), min_size=1, max_size=3))
    rules, derived = [RECURSIONS[recursion]], ["r"]
    for number, body in enumerate(bodies):
        name, head = f"s{number}", draw(heads(f"s{number}", BODIES[body]))
        rules.append(f"{head} <- {body}.")
        plain = "<" not in head and head.startswith(f"{name}(P") and "T" not in head
        if plain and draw(st.booleans()):  # another rule, or a stratum above the stratum above
            rules.append(f"{name}(P,X) <- r(P,X), b(X,P).")
        if plain and draw(st.booleans()):
            rules.append(f"u{number}(P,X) <- r(P,X), !{name}(P,X).")
            derived.append(f"u{number}")
        derived.append(name)
    asked = draw(st.sampled_from([derived, derived[1:]]))
    columns = {
        "e": ("number",) * 2,
        "b": ("number",) * 2,
        "k": ("number",) * 3,
        "t": ("number", "symbol"),
        "f": ("number", "float"),
    }
    values: dict[str, st.SearchStrategy[Any]] = {
        "number": nodes,
        "symbol": st.sampled_from(TEXTS),
        "float": st.sampled_from([0.0, -1.5, 2.25]),
    }
    facts = {
        name: draw(st.lists(st.tuples(*(values[kind] for kind in kinds)), max_size=12, unique=True))
        for name, kinds in columns.items()
    }
    declared = [f".decl {name}({', '.join(f'c{i}: {k}' for i, k in enumerate(ks))})" for name, ks in columns.items()]
    return Case("\n".join((*declared, *rules)), facts, columns, tuple(asked))


@contextmanager
def in_one_pass() -> Iterator[list[str]]:
    """No loops go on with strata above: all that can be is evaluated in one pass over rows of the recursion."""
    done: list[str] = []
    real = once.evaluate_once

    def evaluate_once(*given: Any) -> Evaluated:
        found = real(*given)
        done.append(found.how)
        return found

    with (
        mock.patch.object(strata, "continued_components", lambda *_: {}),
        mock.patch("emberlog.choose.once.LOOPED_ROWS", 0),
        mock.patch.object(once, "evaluate_once", evaluate_once),
    ):
        yield done


def agree_in_one_pass(how_many: settings) -> None:
    passes = 0

    @how_many
    @given(programs())
    def agrees(case: Case) -> None:
        def run(case: Case) -> Mapping[str, Iterable[Row]]:
            nonlocal passes
            with in_one_pass() as done:
                found = by_kernels(case, workers=2)
            passes += len(done)
            return found

        assert_agrees(case, run)

    agrees()
    if how_many.max_examples >= 1000:
        assert passes >= 0.5 * how_many.max_examples


def agree(how_many: settings) -> None:
    gone_on: Counter[bool] = Counter()

    @how_many
    @given(programs())
    def agrees(case: Case) -> None:
        def run(case: Case) -> Mapping[str, Iterable[Row]]:
            with in_every_way(FEW if COMPILES else WAYS) as done:
                found = by_kernels(case)
            gone_on["s0: 1" in done[0] or "s0: 2" in done[0]] += 1
            event(done[0])
            return found

        assert_agrees(case, run)

    agrees()
    if how_many.max_examples >= 1000:
        assert gone_on[True] >= 0.3 * gone_on.total(), gone_on


def test_strata_above_agree() -> None:
    agree(SOME)


def test_strata_in_one_pass_agree() -> None:
    agree_in_one_pass(SOME)


@pytest.mark.slow
def test_thousands_of_strata_in_one_pass_agree() -> None:
    agree_in_one_pass(LOTS)


@pytest.mark.slow
def test_thousands_of_strata_above_agree() -> None:
    agree(LOTS)


# --- programs whose answers are known --------------------------------------------------------------------------------

FLOW = """
.decl cfg(s: number, t: number)
.decl moved(p: symbol, s: number)
uninit(P, S) <- moved(P, S).
uninit(P, T) <- uninit(P, S), cfg(S, T).
"""
CHAIN = [(s, s + 1) for s in range(20)]
MOVED = [("a", 3), ("b", 0), ("é", 19), ("", 20)]
UNINIT = {(p, t) for p, s in MOVED for t in range(s, 21)}


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=2, warnings="ignore") as engine:
        engine.register("cfg", pa.table({"s": [s for s, _ in CHAIN], "t": [t for _, t in CHAIN]}))
        engine.register("moved", pa.table({"p": [p for p, _ in MOVED], "s": [s for _, s in MOVED]}))
        yield engine


def run(engine: emberlog.Engine, rules: str, **options: Any) -> emberlog.Result:
    return engine.run(FLOW + rules, evaluator="kernel", **options)


def test_what_is_only_counted_is_not_kept_and_computed_again_when_it_is_read(engine: emberlog.Engine) -> None:
    result = run(engine, "error(P, T) <- uninit(P, S), cfg(S, T).\n.printsize error\n")
    assert result["error"].count() == len(UNINIT) - len(MOVED)
    assert "rows not kept" in result.stats[0].kept
    assert set(result["error"].rows()) == {(p, t) for p, t in UNINIT if (p, t) not in MOVED}


def test_stats_and_choices_tell_who_went_on(engine: emberlog.Engine) -> None:
    result = run(engine, "error(P, T) <- uninit(P, S), cfg(S, T).\n.output error\n")
    below, above = result.stats
    assert "error: 1" in below.how and below.facts == len(UNINIT)
    assert above.how == "by the loops of uninit, pivot by pivot"
    assert above.facts == len(result["error"].rows())


def test_loops_leave_strata_to_statements_where_that_is_asked(engine: emberlog.Engine) -> None:
    result = run(engine, "error(P, T) <- uninit(P, S), cfg(S, T).\n.output error\n", strata="sql")
    assert result.stats[1].evaluator == "sql"
    assert len(result["error"].rows()) == len(UNINIT) - len(MOVED)


def test_a_sum_above_that_leaves_64_bits_is_an_error_and_the_recursion_is_not(engine: emberlog.Engine) -> None:
    rules = "heavy(P, sum<V>) <- uninit(P, S), weight(S, V).\nweight(3, 9223372036854775806). weight(4, 5).\n"
    late = "uninit(P, T) <- uninit(P, S), cfg(S, T), !moved(P, T).\n"  # so that loops go pivot by pivot
    with pytest.raises(emberlog.DataError, match="sum"):
        run(engine, late + rules + ".output heavy\n")
    assert len(run(engine, late + rules + ".output uninit\n")["uninit"].rows()) == len(UNINIT)


def test_an_operation_without_a_value_is_told_as_statements_tell_it(engine: emberlog.Engine) -> None:
    rules = "share(P, T) <- uninit(P, S), cfg(S, T), 10 / (T - 7) > 0.\n.output share\n"
    told = []
    for strata_by in ("auto", "sql"):
        with pytest.raises(emberlog.DataError) as error:
            run(engine, rules, strata=strata_by)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_nothing_comes_of_nothing(engine: emberlog.Engine) -> None:
    for name, kinds in (("cfg", (pa.int64(), pa.int64())), ("moved", (pa.string(), pa.int64()))):
        engine.register(name, pa.table({f"c{i}": pa.array([], kind) for i, kind in enumerate(kinds)}))
    assert run(engine, "error(P, T) <- uninit(P, S), cfg(S, T).\n.output error\n")["error"].rows() == []


def test_rows_of_a_recursion_in_one_pass_with_values_that_are_computed_with(engine: emberlog.Engine) -> None:
    with in_one_pass() as done:
        result = run(engine, "next(P, T) <- uninit(P, S), T = S + 100.\n.output next\n")
        assert set(result["next"].rows()) == {(p, s + 100) for p, s in UNINIT}
    assert len(done) == 1
