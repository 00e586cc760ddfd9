"""Aggregates inside recursion: which are right, under which conditions, and how they are evaluated."""

from __future__ import annotations

import pytest

from analysis.checking import checked, component, mistakes
from emberlog.analysis.check import check_aggregates
from emberlog.analysis.program import Bound, Obligation, Verdict
from emberlog.source import Source
from emberlog.syntax.parser import parse

SOURCES = """
arc(number, number, number)
edge(number, number)
node(number)
start(number, number)
weight(number, number, float)
counted(number, number, unsigned)
own(symbol, symbol, number)
"""
EXIT_MIN = "p(X, min<D>) <- start(X, D).\n"
EXIT_MAX = "p(X, max<D>) <- start(X, D).\n"
EXIT_SUM = "p(X, sum<D>) <- start(X, D).\n"


def verdict(text: str, predicate: str = "p", sources: str = SOURCES) -> Verdict:
    """The verdict on the aggregate of a predicate, whether it may be evaluated or not."""
    program = checked(text, sources, {"BETA": 0.1}, naive=True)
    return next(v for part in program.components for v in part.verdicts if v.predicate == predicate)


# --- the programs of the papers --------------------------------------------------------------------------------------

PROGRAMS = [
    (
        "rank",
        "degree(X, count(Y)) :- edge(X, Y).\nrank(0, X, r) :- node(X), r = 0.\n"
        "rank(i+1, Y, sum[r]) :- node(Y), r = 0.15; :- rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d;\n"
        "{sum[delta r] < 0.0001}.",
        "proved", (), "until clause",
    ),
    (
        "L",
        "I(x, i) :- node(x), i = 1.\nL(0, x, l) :- node(x), l = 0.\n"
        "L(j+1, y, sum[a1]) :- I(y, i), p_i(y, p2), a1 = i * p2;\n"
        ":- L(j, x, a), weight(x, y, w), p_i(x, p), a1 = 0.7 * a * w * p; {sum[delta a] < 0.001}.",
        "proved", (), "until clause",
    ),
    (
        "K",
        "I(X, k) :- X = 0, k = 10000.\n"
        "K(i+1, y, sum[k1]) :- I(y, j), k1 = j; :- K(i, x, k), edge(x, y), k1 = $BETA * k; {sum[delta k] < 0.001}.",
        "proved", (), "until clause",
    ),
    (
        "B",
        "B(0, v, c, b) :- weight(v, c, b).\nB(j+1, t, c2, sum[b1]) :- weight(t, c2, e), b1 = e;\n"
        ":- B(j, s, c1, b), weight(s, t, w), weight(c1, c2, h), b1 = 0.8 * w * b * h; {sum[delta b] < 0.0001}.",
        "proved", (), "until clause",
    ),
    (
        "paths",
        "paths(Y, sum<C>) <- node(Y), C = 1.\npaths(Y, sum<C>) <- paths(X, C), edge(X, Y).",
        "proved", (), "no cycle, contraction or until clause",
    ),
    (
        "cost",
        "cost(P, sum<C>) <- start(P, C).\ncost(P, sum<C>) <- arc(P, S, Q), cost(S, C1), C = Q * C1.",
        "proved", (), "no cycle, contraction or until clause",
    ),
    (
        "v",
        "v(T, Y, max<L>) <- T = 0, edge(0, O), p_i(Y, L2), weight(Y, O, L1), L = L1 * L2.\n"
        "v(T, Y, max<L>) <- v(S, X, L3), T = S + 1, edge(T, O), t(X, Y, L2), weight(Y, O, L1), L = L1 * L2 * L3.",
        "conditional", ("L1 >= 0", "L2 >= 0"), "no cycle whose product improves the max",
    ),
    (
        "sim",
        "sim(0, A, B, s) :- node(A), B = A, s = 1.\nsim(i+1, A, B, sum[s]) :- node(A), B = A, s = 1;\n"
        ":- sim(i, X, Y, q), edge(X, A), edge(Y, B), A != B, start(A, da), start(B, db), s = 0.8 * q / (da * db);\n"
        "{sum[delta s] < 0.0001}.",
        "conditional", ("da * db != 0",), "until clause",
    ),
    (
        "up",
        "up(X, A, min<D>) <- node(X), A = X, D = 0.\nup(X, P, min<D>) <- up(X, A, C), edge(A, P), D = C + 1.",
        "proved", (), "finite: a cycle never improves the min",
    ),
    (
        "path",
        "path(X, Y, min<D>) <- arc(X, Y, D).\npath(X, Y, min<D>) <- path(X, Z, D1), arc(Z, Y, D2), D = D1 + D2.",
        "proved", (), "no negative cycle",
    ),
    (
        "path2",
        "path2(X, Y, min<D>) <- arc(X, Y, D).\npath2(X, Y, min<D>) <- path2(X, Z, D1), path2(Z, Y, D2), D = D1 + D2.",
        "proved", (), "no negative cycle",
    ),
    (
        "gcn",
        "gcn(i+1, Y, sum[g1]) :- gcn(i, X, g), weight(X, Y, w), para(p), h = g * p, g1 = max(h, 0.0) * w.",
        "refuted", (), "no cycle, contraction or until clause",
    ),
    (
        "comm",
        "comm(i+1, Y, sum[h]) :- comm(i, X, g), weight(X, Y, w), para(p), h = max(-1.0, min(1.0, g * p)) * w.",
        "refuted", (), "no cycle, contraction or until clause",
    ),
    (
        "comm",
        "comm(i+1, Y, sum[h]) :- comm(i, X, g), weight(X, Y, w), para(p), h = tanh(g * p) * w.",
        "unknown", (), "no cycle, contraction or until clause",
    ),
    ("p", "p(Y, sum<C>) <- Y = 1, C = 1.\np(Y, sum<C>) <- p(X, C), edge(X, Y).", "proved", (),
     "no cycle, contraction or until clause"),
    ("p", "p(Y, count<X>) <- edge(X, Y), X = 1.\np(Y, count<X>) <- p(X, C), edge(X, Y).", "proved", (),
     "finite domain"),
    (
        "cnt",
        "cnt(Y, mcount(X)) <- attend(X), edge(Y, X).\nattend(X) <- node(X).\nattend(X) <- cnt(X, N), N >= 3.",
        "proved", (), "finite domain",
    ),
    (
        "cnt",
        "cnt(Y, mcount(X)) <- attend(X), edge(Y, X).\nattend(X) <- node(X).\nattend(X) <- cnt(X, N), N = 3.",
        "refuted", (), "finite domain",
    ),
    (
        "cv",
        "cv(X, Y, sum(V)) <- cs(X, Y, _, V).\ncs(X, Y, X, V) <- own(X, Y, V).\n"
        "cs(X, Y, Z, V) <- control(X, Z), own(Z, Y, V).\ncontrol(X, Y) <- cv(X, Y, S), S > 50.",
        "conditional", ("V >= 0",), "finite domain",
    ),
    (
        "rank",
        "rank(X, sum<(X, I)>) <- weight(X, _, _), I = (1 - 0.5) / 3.\n"
        "rank(X, sum<(Y, K)>) <- rank(Y, C), weight(Y, X, D), K = 0.5 * (C / D).",
        "conditional", ("D != 0",), "no cycle, contraction or until clause",
    ),
]  # fmt: skip
MORE = SOURCES + "p_i(number, float)\nt(number, number, float)\npara(float)"


@pytest.mark.parametrize(("predicate", "text", "status", "assumptions", "terminates"), PROGRAMS)
def test_programs_of_the_papers(
    predicate: str, text: str, status: str, assumptions: tuple[str, ...], terminates: str
) -> None:
    found = verdict(text, predicate, MORE)
    assert (found.status, found.assumptions, found.terminates) == (status, assumptions, terminates)


def test_counterexamples() -> None:
    """The numbers of the paper, -1, 2, 1, -2, as facts of the program."""
    gcn = verdict("p(i+1, Y, sum[g]) :- p(i, X, h), weight(X, Y, w), g = relu(h) * w.")
    assert gcn.counterexample == (
        "with p(1, -1), p(1, 2), p(3, 1), p(3, -2), weight(1, 2, 1), weight(3, 2, 1): "
        "aggregating first gives 1, aggregating last gives 3"
    )
    assert gcn.facts[:2] == (("p", (1, -1.0)), ("p", (1, 2.0)))
    count = verdict("p(Y, count<X>) <- q(X), edge(X, Y).\nq(X) <- node(X).\nq(X) <- p(X, N), N = 3.")
    text = "with p(1, 3), p(1, 1): aggregating first gives nothing, aggregating last gives q(1)"
    assert count.counterexample == text


# --- values ----------------------------------------------------------------------------------------------------------

VALUES = [
    (EXIT_MIN, "D = C", "proved"),
    (EXIT_MIN, "D = C + W", "proved"),
    (EXIT_MIN, "D = W + C - 3", "proved"),
    (EXIT_MIN, "D = C * 2", "proved"),
    (EXIT_MIN, "D = C / 2", "proved"),
    (EXIT_MIN, "D = C * 0", "proved"),
    (EXIT_MIN, "D = min(C, W)", "proved"),
    (EXIT_MIN, "D = max(C, W) + relu(C)", "proved"),
    (EXIT_MIN, "D = clip(C, 0, W)", "proved"),
    (EXIT_MIN, "D = C * W", "conditional"),
    (EXIT_MIN, "D = (C + 1) * W * W", "proved"),
    (EXIT_MIN, "D = W - C", "refuted"),
    (EXIT_MIN, "D = -C", "refuted"),
    (EXIT_MIN, "D = C * -2", "refuted"),
    (EXIT_MIN, "D = C / -2", "refuted"),
    (EXIT_MIN, "D = C / W", "conditional"),
    (EXIT_MIN, "D = C * C", "conditional"),
    (EXIT_MIN, "D = C % 3", "refuted"),
    (EXIT_MIN, "D = abs(C)", "conditional"),
    (EXIT_MIN, "D = C - C * 2", "refuted"),
    (EXIT_MIN, "D = C * (W - 1)", "conditional"),
    (EXIT_MAX, "D = C + W", "proved"),
    (EXIT_MAX, "D = C * W", "conditional"),
    (EXIT_MAX, "D = 1 - C", "refuted"),
    (EXIT_SUM, "D = C", "proved"),
    (EXIT_SUM, "D = C * W", "proved"),
    (EXIT_SUM, "D = 2 * C - C * W", "proved"),
    (EXIT_SUM, "D = C + W", "refuted"),
    (EXIT_SUM, "D = W", "proved"),
    (EXIT_SUM, "D = C / 2", "refuted"),  # cut off: not linear
    (EXIT_SUM, "D = C * C", "refuted"),
    (EXIT_SUM, "D = W / C", "refuted"),
    (EXIT_SUM, "D = max(C, 0)", "refuted"),
    (EXIT_SUM, "D = clip(C, 0, 1)", "refuted"),
]


@pytest.mark.parametrize(("exit", "value", "status"), VALUES)
def test_values(exit: str, value: str, status: str) -> None:
    function = exit[5:8]
    text = f"{exit}p(Y, {function}<D>) <- p(X, C), arc(X, Y, W), {value}."
    assert verdict(text).status == status


def test_division_of_floats_is_linear() -> None:
    text = "p(X, sum<D>) <- weight(X, _, D).\np(Y, sum<D>) <- p(X, C), weight(X, Y, W), D = C / W + C / 2{}."
    found = verdict(text.format(""))
    assert (found.status, found.assumptions, found.obligations) == ("conditional", ("W != 0",), ())
    assert verdict(text.format(", W != 0")).status == "proved"


def test_conditions() -> None:
    rule = "p(Y, min<D>) <- p(X, C), arc(X, Y, W), {}."
    for value, assumptions in (
        ("D = C / W", ("W > 0",)),
        ("D = C * (W - 1)", ("W > 0",)),
        ("D = C * (1 - W)", ("W <= 1",)),
        ("D = C * C", ("D >= 0",)),
        ("D = C * W, W >= 0", ()),
    ):
        assert verdict(EXIT_MIN + rule.format(value)).assumptions == assumptions
    share = "p(X, max<D>) <- weight(X, _, D).\np(Y, max<D>) <- p(X, C), weight(X, Y, W), D = C * W * (1.0 - W)."
    found = verdict(share)
    assert found.assumptions == ("0 <= W <= 1",)
    assert [obligation.bound for obligation in found.obligations] == [Bound(">=", 0), Bound("<=", 1)]


def test_columns_that_rules_call_the_same() -> None:
    rules = "p(Y, min<D>) <- p(X, C), weight(X, Y, W), D = C * W.\np(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C / W."
    found = verdict("p(X, min<D>) <- X = 1, D = 1.0.\n" + rules.replace("C / W", "C / to_float(W)"))
    assert [text.partition(" ")[2] for text in found.assumptions] == [">= 0", "> 0"]
    assert [text.partition(".")[0] for text in found.assumptions] == ["weight", "arc"]


def test_conditions_that_leave_one_value() -> None:
    """W = 0 would do, as a start and as a step: nobody has such data, so that the counter-example says more."""
    rule = "p(X, min<D>) <- weight(X, _, D).\np(Y, min<D>) <- p(X, C), weight(X, Y, W), {}."
    assert verdict(rule.format("D = max(C, W) - min(C, W)")).status == "refuted"
    opposite = "\np(Y, min<D>) <- p(X, C), weight(X, Y, W), D = -(C / W)."
    assert verdict(rule.format("D = C / W") + opposite).status == "refuted"


def test_several_recursive_values() -> None:
    """The property is proved in each of them; what it needs of the others must be kept by all rules."""
    both = "p(X, A), p(Z, B), arc(X, Z, Y)"
    assert verdict(EXIT_SUM + f"p(Y, sum<D>) <- {both}, D = A + B.").status == "refuted"
    assert verdict(EXIT_SUM + f"p(Y, sum<D>) <- {both}, D = A * B.").status == "proved"
    product = verdict(EXIT_MIN + f"p(Y, min<D>) <- {both}, D = A * B.")
    assert (product.status, product.assumptions) == ("conditional", ("D >= 0",))
    assert verdict(EXIT_MIN + f"p(Y, min<D>) <- {both}, D = A * B - 1.").status == "refuted"


def test_texts_have_an_order() -> None:
    exit, sources = "p(X, min<N>) <- name(X, N).\n", SOURCES + "name(number, symbol)"
    assert verdict(exit + "p(Y, min<N>) <- p(X, N), edge(X, Y).", sources=sources).status == "proved"
    text = 'p(Y, min<M>) <- p(X, N), edge(X, Y), M = cat(N, "z").'
    assert verdict(exit + text, sources=sources).status == "unknown"


def test_functions_that_grow() -> None:
    exit = "p(X, max<D>) <- weight(X, _, D).\n"
    assert verdict(exit + "p(Y, max<D>) <- p(X, C), weight(X, Y, W), D = exp(C) + sqrt(W).").status == "proved"
    assert verdict(exit + "p(Y, max<D>) <- p(X, C), weight(X, Y, W), D = 0 - exp(C).").status == "unknown"


# --- filters and other uses ------------------------------------------------------------------------------------------

USES = [
    ("min", "C < 5", "proved"), ("min", "C <= W", "proved"), ("min", "5 > C", "proved"), ("min", "C + W < 9", "proved"),
    ("min", "C > 5", "refuted"), ("min", "C >= W", "refuted"), ("min", "C = 5", "refuted"),
    ("min", "C != 5", "refuted"), ("min", "0 - C > -5", "proved"), ("min", "0 - C < -5", "refuted"),
    ("min", "C % 2 < 1", "refuted"),
    ("max", "C > 5", "proved"), ("max", "W <= C", "proved"), ("max", "C < 5", "refuted"),
    ("count", "C >= 3", "proved"), ("count", "C < 3", "refuted"),
    ("min", "edge(C, Y)", "refuted"), ("min", "!edge(C, Y)", "refuted"), ("min", "edge(C + 1, Y)", "refuted"),
    ("min", "p(Y, C)", "refuted"),
    ("min", "K = count : { edge(C, _) }, K > 0", "unknown"), ("min", "K = range(0, C), K < 5", "unknown"),
    ("min", "K = C + 1, edge(K, _)", "refuted"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "use", "status"), USES)
def test_uses(function: str, use: str, status: str) -> None:
    text = f"p(X, {function}<D>) <- start(X, D).\np(Y, {function}<D>) <- p(X, C), arc(X, Y, W), D = C, {use}."
    assert verdict(text).status == status


def test_a_value_must_not_decide_a_group() -> None:
    assert verdict(EXIT_MIN + "p(C, min<D>) <- p(X, C), start(X, D).").status == "refuted"


def test_a_value_must_not_decide_who_contributes() -> None:
    assert verdict(EXIT_SUM + "p(Y, sum<(C, D)>) <- p(X, C), arc(X, Y, D).").status == "refuted"


def test_a_minimum_of_counts_is_wrong() -> None:
    text = EXIT_MIN + "p(Y, min<N>) <- q(X, N), edge(X, Y).\nq(X, count<Y>) <- p(X, _), edge(X, Y)."
    found = verdict(text, "p")
    assert (found.status, found.reason) == ("refuted", "it takes the min of values of count")
    assert verdict(text, "q").status == "proved"


def test_a_sum_of_minima_is_wrong() -> None:
    text = EXIT_MIN + "p(Y, min<D>) <- q(X, _), arc(X, Y, D).\nq(X, sum<C>) <- p(X, C)."
    assert (verdict(text, "q").status, verdict(text, "q").reason) == ("refuted", "it adds up values of min")


def test_a_maximum_of_sums_is_wrong() -> None:
    text = EXIT_SUM + "p(Y, sum<D>) <- q(X, D), edge(X, Y).\nq(Y, max<D>) <- p(X, D), edge(X, Y)."
    assert [verdict(text, name).status for name in "pq"] == ["refuted", "refuted"]
    assert verdict(text, "q").reason == "it takes the max of values of sum"


def test_values_come_through_plain_predicates() -> None:
    exit = "p(X, sum<V>) <- weight(X, _, V).\n"
    whole = exit + "m(X, Y, V) <- p(X, R), edge(X, Y), V = R * 0.5.\np(Y, sum<V>) <- m(_, Y, V)."
    assert verdict(whole).status == "proved"
    merged = exit + "m(Y, V) <- p(X, R), edge(X, Y), V = R * 0.5.\np(Y, sum<V>) <- m(Y, V)."
    assert "equal ones are one row" in verdict(merged).reason
    tested = EXIT_MIN + "m(X, V) <- p(X, V), V > 5.\np(Y, min<V>) <- m(X, V), edge(X, Y)."
    assert verdict(tested).status == "refuted"
    assert "aggregating first gives nothing" in (verdict(tested).counterexample or "")


def test_licences() -> None:
    """What a proof allows: PreM, deltas that add up, or contributions that stay."""
    assert verdict(EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C + W.").licence == "prem"
    assert verdict(EXIT_SUM + "p(Y, sum<D>) <- p(X, C), arc(X, Y, W), D = C * W.").licence == "mra"
    assert verdict(EXIT_SUM + "p(Y, sum<D>) <- p(X, _), arc(X, Y, D).").licence == "monotone"
    assert verdict(PROGRAMS[-2][1], "cv").licence == "monotone"
    assert verdict(EXIT_MIN + "p(Y, min<D>) <- p(X, C), D = 1 - C, edge(X, Y).").licence == ""


def test_counts_that_are_given_too() -> None:
    """A fact or a plain head contributes its value to a count, which may then become smaller."""
    attend = "cnt(Y, count(X)) <- attend(X), edge(Y, X).\nattend(X) <- node(X).\nattend(X) <- cnt(X, N), N >= 3.\n"
    assert verdict(attend + "cnt(1, 5).", "cnt").status == "proved"
    assert verdict(attend + "cnt(1, -5).", "cnt").status == "refuted"
    assert verdict(attend + "cnt(X, N) <- start(X, N).", "cnt").assumptions == ("N >= 0",)
    factor = (
        EXIT_MIN + "p(Y, min<D>) <- p(X, C), edge(X, Y), many(X, W), D = C * W.\nmany(X, count(Y)) <- edge(X, Y).\n"
    )
    assert verdict(factor).status == "proved"
    assert verdict(factor + "many(1, -1).").assumptions == ("W >= 0",)
    assert verdict(factor + "many(X, N) <- start(X, N).").assumptions == ("W >= 0",)


def test_contributors_of_a_sum() -> None:
    """With one binding for each contributor a keyed sum is a plain one."""
    text = "p(X, sum<(X, D)>) <- start(X, D).\np(Y, sum<(X, D)>) <- p(X, D), {}."
    assert verdict(text.format("edge(X, Y)")).licence == "monotone"  # the exit may have several values of one key
    text = text.replace("<- start(X, D)", "<- node(X), D = 1")
    assert verdict(text.format("edge(X, Y)")).licence == "mra"
    assert verdict(text.format("arc(X, Y, _)")).licence == "monotone"


# --- conditions on data ----------------------------------------------------------------------------------------------


def test_obligations_name_the_column() -> None:
    text = EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C * W."
    assert verdict(text).obligations == (Obligation("arc", 2, Bound(">=", 0), "W >= 0"),)


def test_the_schema_discharges_an_assumption() -> None:
    text = "p(X, min<D>) <- counted(X, _, D).\np(Y, min<D>) <- p(X, C), counted(X, Y, W), D = C * W."
    assert verdict(text).status == "proved"
    text = EXIT_MIN + "many(X, count(Y)) <- edge(X, Y).\np(Y, min<D>) <- p(X, C), edge(X, Y), many(X, W), D = C * W."
    assert verdict(text).status == "proved"


def test_factors_are_traced_through_equations() -> None:
    text = EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), V = (W + 1) * 2, D = C * V."
    assert verdict(text).assumptions == ("W >= 0",)


def test_contributions_are_traced_through_the_component() -> None:
    text = PROGRAMS[-2][1]
    assert verdict(text, "cv").obligations == (Obligation("own", 2, Bound(">=", 0), "V >= 0"),)


def test_a_negative_fact_among_the_contributions() -> None:
    text = PROGRAMS[-2][1] + '\ncs("a", "b", "c", {}).'
    assert verdict(text.format(1), "cv").status == "conditional"
    assert verdict(text.format(-1), "cv").status == "refuted"


def test_contributions_that_may_be_negative() -> None:
    text = PROGRAMS[-2][1].replace("sum(V)", "sum(W)").replace("cs(X, Y, _, V).", "cs(X, Y, _, V), W = V - 1.")
    assert verdict(text, "cv").assumptions == ("V > 0",)


# --- evaluation ------------------------------------------------------------------------------------------------------


def test_proved_and_conditional_aggregates_go_by_deltas() -> None:
    program = checked(EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), D = C * W.", SOURCES)
    assert component(program, "p").evaluation == "delta"


def test_values_in_plain_columns_are_recomputed() -> None:
    program = checked(EXIT_MIN + "q(Y, D) <- p(X, C), arc(X, Y, W), D = C + W.\np(Y, min<D>) <- q(Y, D).", SOURCES)
    part = component(program, "p")
    assert [v.status for v in part.verdicts] == ["proved"]
    assert part.evaluation == "naive"


def test_what_is_not_right_is_an_error_unless_naive() -> None:
    text = EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), C > 5, D = C + W."
    (found,) = mistakes(text, SOURCES)
    assert found.code == "E0505"
    assert found.span is not None
    assert found.span.text == "min<D>"
    assert component(checked(text, SOURCES, naive=True), "p").evaluation == "naive"


def test_an_index_lets_it_run() -> None:
    text = "p(0, X, D) :- start(X, D).\np(i+1, Y, min<D>) :- p(i, X, C), arc(X, Y, W), C > 5, D = C + W."
    assert component(checked(text, SOURCES), "p").evaluation == "naive"


def test_verdicts_are_listed_without_sources() -> None:
    text = EXIT_MIN + "p(Y, min<D>) <- p(X, C), arc(X, Y, W), C > 5, D = C + W."
    (found,) = check_aggregates(parse(Source("test.dl", text))).verdicts
    assert (found.predicate, found.aggregate, found.status, found.holds) == ("p", "min", "refuted", False)


def test_aggregates_outside_of_recursion_have_no_verdict() -> None:
    assert check_aggregates(parse(Source("test.dl", "p(X, avg(Y)) <- q(X, Y)."))).verdicts == ()
