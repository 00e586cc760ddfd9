"""What answers say, for every construct of the language, on every way of evaluating."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emberlog
from emberlog.diagnostics import LimitError, UsageError
from emberlog.result import Result
from emberlog.why.tree import Node, walk
from trees import check, height, key, smallest_heights

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
ARCS = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5)]


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", warnings="ignore") as made:
        yield made


def run(engine: emberlog.Engine, program: str, **options: Any) -> Result:
    return engine.run(program, **options)


def nodes(node: Node, kind: str) -> list[Node]:
    return [found for _, found in walk(node) if found.kind == kind]


def lines(answer: object) -> list[str]:
    return [line.strip("├─└│ ").partition("    ")[0] for line in str(answer).splitlines()]


@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_a_derivation_prints_as_a_tree(engine: emberlog.Engine, evaluator: str) -> None:
    engine.register("arc", ARCS)
    why = run(engine, TC, evaluator=evaluator).why("tc", (1, 4))
    assert str(why) == (
        "tc(1, 4)    by tc(X, Y) :- tc(X, Z), arc(Z, Y).  (<program>:1)\n"
        "├─ tc(1, 3)    by tc(X, Y) :- tc(X, Z), arc(Z, Y).  (<program>:1)\n"
        "│  ├─ tc(1, 2)    by tc(X, Y) :- arc(X, Y).  (<program>:1)\n"
        "│  │  └─ arc(1, 2)    a row of `arc`\n"
        "│  └─ arc(2, 3)    a row of `arc`\n"
        "└─ arc(3, 4)    a row of `arc`"
    )
    assert (why.height, why.smallest) == (3, True)


def test_rows_that_rest_on_each_other_are_never_below_themselves(engine: emberlog.Engine) -> None:
    engine.register("arc", ARCS)
    result = run(engine, TC)
    final = {"tc": set(result["tc"].rows()), "arc": set(ARCS)}
    heights = smallest_heights(TC, {"arc": ARCS}, final)
    for row in final["tc"]:
        for number, why in enumerate(result.why("tc", row, all=True)):
            check(why, {"arc": ARCS}, final)
            assert number or why.height == heights["tc", row]


def test_all_gives_every_body_once_the_smallest_first(engine: emberlog.Engine) -> None:
    engine.register("arc", [(1, 2), (1, 3), (3, 2), (1, 4), (4, 5), (5, 2)])
    found = list(run(engine, TC).why("tc", (1, 2), all=True))
    assert [why.height for why in found] == [1, 2, 3]
    assert len({str(why) for why in found}) == 3


def test_a_chain_of_a_thousand_rows_is_followed_to_its_end(engine: emberlog.Engine) -> None:
    engine.register("arc", [(i, i + 1) for i in range(1000)])
    result = run(engine, TC)
    assert result.why("tc", (0, 1000)).height == 1000
    whole = result.why("tc", (0, 1000), depth=2000)
    assert len(nodes(whole.root, "given")) == 1000
    assert len(whole.to_html()) > 100_000
    with pytest.raises(UsageError, match="too deep for JSON"):
        whole.to_json()
    assert len(nodes(result.why("tc", (0, 1000), depth=3).root, "cut")) == 1


def test_too_many_bodies_give_a_tree_that_says_so(engine: emberlog.Engine) -> None:
    """Each pair has 24 nodes between its ends, and a complete search looks at all of them."""
    arcs = [(i, (i + step) % 24) for i in range(24) for step in (1, 2)]
    engine.register("arc", arcs)
    program = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y)."
    result = run(engine, program)
    why = result.why("tc", (0, 13), budget=500)
    assert not why.smallest
    assert "may be a derivation of a smaller height" in str(why)
    final = {"tc": set(result["tc"].rows()), "arc": set(arcs)}
    check(why, {"arc": arcs}, final)
    whole = result.why("tc", (0, 13), budget=100_000)
    assert whole.smallest
    assert whole.height == 4 == smallest_heights(program, {"arc": arcs}, final)["tc", (0, 13)]
    engine.register("arc", [(i, i + 1) for i in range(50)] + [(i, i + 2) for i in range(50)])
    with pytest.raises(LimitError, match="no derivation of tc"):
        run(engine, TC).why("tc", (0, 50), budget=5)


@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_a_minimum_is_told_by_its_witness(engine: emberlog.Engine, evaluator: str) -> None:
    engine.register("arc", [(1, 2, 7), (1, 3, 2), (3, 2, 3), (2, 1, 0), (2, 4, 0), (4, 2, 0)])
    program = "d(Y, min<D>) <- Y = 1, D = 0. d(Y, min<D>) <- d(X, C), arc(X, Y, W), D = C + W."
    result = run(engine, program, evaluator=evaluator)
    assert lines(result.why("d", (4, 5))) == [
        "d(4, 5)", "d(2, 5)", "d(3, 2)", "d(1, 0)", "arc(1, 3, 2)", "D = 0 + 2 = 2", "arc(3, 2, 3)", "D = 2 + 3 = 5",
        "arc(2, 4, 0)", "D = 5 + 0 = 5",
    ]  # fmt: skip


def test_sums_and_counts_are_told_by_contributions_the_largest_first(engine: emberlog.Engine) -> None:
    engine.register("sale", [("a", i) for i in range(100)] + [("b", 1)])
    result = run(engine, 'total(S, sum(V), count(V)) <- sale(S, V). total("a", 1000, 1).')
    why = result.why("total", ("a", 4950 + 1000, 101), width=3)
    assert lines(why) == [
        'total("a", 5950, 101)', 'total("a", 1000, 1)', "99", 'sale("a", 99)', "98", 'sale("a", 98)',
        "and 98 contributions more",
    ]  # fmt: skip


def test_a_count_that_feeds_itself_is_unfolded_without_itself(engine: emberlog.Engine) -> None:
    engine.register("organizer", [(1,), (2,), (3,)])
    engine.register("friend", [(4, 1), (4, 2), (4, 3), (5, 4), (5, 1), (5, 2), (4, 5)])
    result = run(
        engine,
        "cnt(Y, mcount(X)) <- attend(X), friend(Y, X). attend(X) <- organizer(X). attend(X) <- cnt(X, N), N >= 3.",
    )
    why = result.why("cnt", (4, 4))
    (cut,) = nodes(why.root, "cut")
    assert cut.text == "attend(4)"
    assert "needs a row above (cnt(4, 4), cnt(5, 3))" in cut.note


def test_negation_aggregates_in_bodies_and_functions(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 5), (2, 7), (2, 9)])
    program = """
        n(X, c, m) :- e(X, _), c = count : { e(X, _) }, m = max y : { e(X, y) }, !gone(X, _), X > to_number("0").
        gone(3, "x").
    """
    why = run(engine, program).why("n", (2, 2, 9))
    assert lines(why)[2:] == [
        "c = count : { e(2, _2) } = 2", "1", "e(2, 7)", "1", "e(2, 9)", "m = max y : { e(2, y) } = 9", "9", "e(2, 9)",
        "no row of `gone` matches gone(2, _)", '2 > to_number("0")',
    ]  # fmt: skip


def test_an_iteration_shows_its_last_state(engine: emberlog.Engine) -> None:
    engine.register("edge", [(1, 2), (2, 1)])
    result = run(
        engine,
        "rank(0, X, r) :- edge(X, _), r = 0.0. rank(i+1, Y, sum[r]) :- edge(Y, _), r = 0.5; "
        ":- rank(i, X, q), edge(X, Y), r = 0.5 * q; {sum[delta r] < 0.001}.",
    )
    row = next(row for row in result["rank"].rows() if row[0] == 1)
    why = result.why("rank", row)
    assert why.root.note.startswith("the last state of an iteration")
    assert [node.text.partition("(")[0] for node in nodes(why.root, "cut")] == ["rank"]


def test_facts_and_rows_of_base_relations(engine: emberlog.Engine) -> None:
    engine.register("wide", [(1, "x", 2), (1, "y", 2)])
    result = run(engine, "p(X) <- wide(X, _, _), X > 0. p(7).")
    assert result.why("p", (7,)).root.note == "a fact of `p`"
    assert lines(result.why("p", (1,))) == ["p(1)", "wide(1, _, _)", "1 > 0"]
    assert nodes(result.why("p", (1,)).root, "given")[0].values == (1, None, None)
    assert result.why("wide", (1, "x", 2)).height == 0


def test_dates_decimals_texts_and_unsigned_numbers(engine: emberlog.Engine) -> None:
    import datetime
    from decimal import Decimal

    day, price = datetime.date(2024, 2, 29), Decimal("1.50")
    engine.register("e", [(day, price, 'a "b"', 2**64 - 1, True)])
    result = run(engine, "p(D, P, S, U, B) <- e(D, P, S, U, B).")
    why = result.why("p", ("2024-02-29", "1.5", 'a "b"', 2**64 - 1, True))
    assert key(why.root)[1] == (day, price, 'a "b"', 2**64 - 1, True)
    assert json.loads(why.to_json())["tree"]["values"] == ["2024-02-29", "1.50", 'a "b"', 2**64 - 1, True]


@pytest.mark.parametrize(
    ("relation", "row", "message", "fix"),
    [
        ("tcc", (1, 2), "no relation `tcc`", "did you mean `tc`"),
        ("tc", (5, 1), "does not hold", "why_not"),
        ("tc", (1,), "has 2 columns, the row 1 value", "X: number, Y: number"),
        ("tc", (1, "b"), "'b' is no number", "such as 7"),
        ("tc", (1, True), "True is no number", "such as 7"),
        ("tc", (1, 2**63), "is no number", "such as 7"),
        ("tc", 5, "a row is a tuple", "(1, 5)"),
        ("tc", "ab", "a row is a tuple", "(1, 5)"),
        (3, (1, 2), "is a text", "result.why"),
    ],
)
def test_wrong_questions_are_told_with_a_fix(
    engine: emberlog.Engine, relation: Any, row: Any, message: str, fix: str
) -> None:
    engine.register("arc", ARCS)
    result = run(engine, TC)
    with pytest.raises(UsageError) as raised:
        result.why(relation, row)
    assert message in str(raised.value)
    assert fix in str(raised.value)


def test_wrong_limits_and_closed_runs_are_told(engine: emberlog.Engine, tmp_path: Path) -> None:
    engine.register("arc", ARCS)
    result = run(engine, TC)
    with pytest.raises(UsageError, match="depth is a number of at least 0"):
        result.why("tc", (1, 2), depth=-1)
    with pytest.raises(UsageError, match="width is a number of at least 1"):
        result.why_not("tc", (5, 1), width=0)
    with pytest.raises(UsageError, match="budget is a number of at least 1"):
        result.why("tc", (1, 2), budget=0)
    with pytest.raises(UsageError, match="holds"):
        result.why_not("tc", (1, 2))
    with pytest.raises(UsageError, match="closed"):
        run(engine, TC, persist=tmp_path / "kept").why("tc", (1, 2))
    engine.close()
    with pytest.raises(UsageError, match="closed"):
        result.why("tc", (1, 2))


def test_relations_whose_rows_were_not_kept_are_evaluated_again(engine: emberlog.Engine) -> None:
    engine.register("arc", [(i, (i * 7 + step) % 300) for i in range(300) for step in range(3)])
    result = run(engine, f"{TC} n(count(X)) <- tc(X, Y). .output n", evaluator="kernel")
    (row,) = result["n"].rows()
    why = result.why("n", row, width=2)
    assert len(nodes(why.root, "contribution")) == 2
    assert nodes(why.root, "given")


def test_forms_show_the_same_rows_and_nothing_of_users_is_markup(engine: emberlog.Engine) -> None:
    engine.register("e", [("<b>&",)])
    why = run(engine, "p(X) <- e(X).").why("p", ("<b>&",))
    for form in (why.to_html(), why.to_svg(), why._repr_html_()):
        assert "<b>" not in form
        assert form.count("&lt;b&gt;&amp;") >= 2
    assert "<details open><summary>" in why.to_html()
    tree = json.loads(why.to_json())
    assert (tree["question"], tree["height"], tree["smallest"]) == ('why p("<b>&")', 1, True)
    assert tree["tree"]["children"][0]["kind"] == "given"
    assert height(why.root, {}) == 1


def test_the_example_writes_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = runpy.run_path(str(EXAMPLES / "why.py"))["answers"](tmp_path / "out")
    assert all(path.read_text(encoding="utf-8") for path in written)
    assert "no row of `denied` matches" in capsys.readouterr().out


@pytest.mark.parametrize("fetched", [True, False])
def test_spark_answers_as_the_local_executor(
    spark: Any, engine: emberlog.Engine, monkeypatch: pytest.MonkeyPatch, fetched: bool
) -> None:
    """In the driver, which fetches what it needs, and by statements of Spark, where that would be too much."""
    if not fetched:
        monkeypatch.setattr("emberlog.executors.spark.MOST_TO_LOOK_AT", 0)
    program = "p(X, Y) <- arc(X, Y), !off(X). off(9). n(X, sum(Y)) <- p(X, Y)."
    frame = spark.createDataFrame(ARCS, "x long, y long")
    engine.register("arc", frame.toArrow())
    here = run(engine, program)
    with emberlog.Engine(spark, warnings="ignore") as other:
        other.register("arc", frame)
        there = other.run(program, placement="spark")
        assert str(there.why("n", (3, 5))) == str(here.why("n", (3, 5)))
        assert str(there.why_not("p", (5, 1))) == str(here.why_not("p", (5, 1)))
        assert there._run.executor.answer(["arc"], lambda one: one.engine.place) == ("duckdb" if fetched else "spark")
