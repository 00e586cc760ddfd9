"""What `explain` tells: the text, the page, the picture."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

import emberlog
from emberlog.explain.report import Plan
from planned import compiled

TC = "tc(X, Y) :- arc(X, Y). tc(X, Y) :- tc(X, Z), arc(Z, Y)."
ATTEND = """
cnt(Y, mcount(X)) :- attend(X), friend(Y, X).
attend(X) :- organizer(X).
attend(X) :- cnt(X, N), N >= 3.
"""
RANK = """
degree(X, count(Y)) :- edge(X, Y).
rank(0, X, r) :- node(X), r = 0.
rank(i+1, Y, sum[r]) :- node(Y), r = 0.15;
                     :- rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d;
                     {sum[delta r] < 0.0001}.
"""
HOSTILE = r"""
p("<script>alert('x')</script>&amp;\"]]>", X) :- q(X, "</text></svg>", "\t").
q(X, Y, Z) :- r(X, Y, Z), Y != "<!--", Z != "--> \\ %s {0}".
?- p("'\"><img src=x>", Y).
"""
BY_PIVOTS = (
    "one fixpoint for each value of the pivot tc(1), without an exchange; "
    "ids are numbered along the edges if they lie in disorder"
)


def explained(text: str, executor: str = "spark", **options: object) -> Plan:
    return Plan(compiled(text, executor, **options))


def section(plan: Plan, title: str) -> list[str]:
    return next(lines for name, lines in plan.sections if name.startswith(title))


def strata(plan: Plan) -> list[dict[str, str]]:
    return [dict(stratum.rows()) for stratum in plan.strata]


# --- text ------------------------------------------------------------------------------------------------------------


def test_the_and_or_tree_of_tc() -> None:
    assert section(explained(TC), "Predicates") == [
        "OR tc: linear recursion",
        "  AND tc(X, Y) :- arc(X, Y).",
        "    OR arc: source",
        "  AND tc(X, Y) :- tc(X, Z), arc(Z, Y).",
        "    OR tc: recursive",
        "    OR arc: source",
    ]


def test_a_predicate_is_opened_once() -> None:
    plan = explained("a(X) :- b(X), c(X). b(X) :- c(X), !e(X). c(X) :- d(X). d(1). d(2). w(N) :- N = count : { a(_) }.")
    assert section(plan, "Predicates") == [
        "OR w",
        "  AND w(N) :- N = count : { a(_1) }.",
        "    OR a, aggregated",
        "      AND a(X) :- b(X), c(X).",
        "        OR b",
        "          AND b(X) :- c(X), !e(X).",
        "            OR c",
        "              AND c(X) :- d(X).",
        "                OR d: 2 facts",
        "            OR e, negated: source",
        "        OR c: above",
    ]


def test_mutual_recursion_is_marked() -> None:
    plan = explained(ATTEND)
    lines = section(plan, "Predicates")
    assert sum(line.endswith(": mutual recursion") for line in lines) == 2
    assert sum(line.endswith(": recursive") for line in lines) == 1
    assert "mutual" in section(plan, "Recursion")[0]
    assert any("count" in line and "proved" in line for line in section(plan, "Recursion"))


def test_a_long_chain_of_predicates_stays_narrow() -> None:
    rules = " ".join(f"p{i}(X) :- p{i - 1}(X), X > {i}." for i in range(1, 200))
    lines = section(explained(f"{rules} p0(X) :- e(X)."), "Predicates")
    assert max(len(line) for line in lines) < 100
    assert sum(line.strip().startswith("AND") for line in lines) == 200


def test_where_strata_run_and_why() -> None:
    (spark,) = strata(explained(TC))
    wait = ", unless it takes less time to fetch them"
    assert spark["runs"] == f"in the driver if arc has at most 100,000 rows, else on Spark{wait}"
    told = "on Spark its inputs go to every task once, which share out the pivots; none in rounds"
    assert spark["exchanges"] == told
    (sql,) = strata(explained(TC, evaluator="sql"))
    assert sql["exchanges"] == "on Spark 1 to start, 4 a round; in the driver none"
    (local,) = strata(explained(TC, "local"))
    assert local["runs"] == "in this process"
    assert local["exchanges"].startswith("none")
    (facts,) = strata(explained(f"arc(1, 2). {TC}"))
    assert facts["runs"] == "in the driver: it reads nothing but facts of the program"


def test_a_stratum_depends_on_the_sources_below_it() -> None:
    rank = strata(explained(RANK))[-1]
    assert rank["reads"] == "node, edge, degree"
    assert "if edge and node have at most 100,000 rows each" in rank["runs"]
    assert "until sum[delta r] < 0.0001" in rank["evaluation"]
    assert rank["limits"].startswith("1,000 rounds and 2 more for each fact")


def test_a_theorem_licenses_deltas() -> None:
    (stratum,) = strata(explained("d(Y, min(D)) :- s(Y), D = 0. d(Y, min(D)) :- d(X, C), arc(X, Y, W), D = C + W."))
    assert "licensed by PreM" in stratum["evaluation"]


def test_why_a_proved_minimum_is_evaluated_naively() -> None:
    text = (
        "sp(X, min(D)) :- X = 0, D = 0. c(Y, D) :- sp(X, C), arc(X, Y, W), D = C + W, W > 0. sp(Y, min(D)) :- c(Y, D)."
    )
    (stratum,) = strata(explained(text))
    assert stratum["evaluation"].endswith(
        "by deltas c would keep rows that follow from values which better ones have replaced"
    )
    assert stratum["evaluator"] == "sql: `c` has no aggregate, and in naive rounds its rows may go again"
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(0, 1, 5), (0, 2, 1), (2, 1, 1), (1, 3, 1)])
        result = engine.run(text)
    assert result.stats[0].because == "`c` has no aggregate, and in naive rounds its rows may go again"


def test_logical_and_physical_plans_are_told() -> None:
    text = str(explained(TC, evaluator="sql"))
    assert "Fixpoint tc(X, Y)\n     exit\n       Distinct\n" in text
    assert "Exchange by Z" in text
    assert "Exchange" not in str(explained(TC, "local", evaluator="sql"))


def test_what_kernels_evaluate_is_told_as_loops() -> None:
    assert section(explained(TC), "Physical")[1:] == [
        f"     {BY_PIVOTS}",
        "       for each new tc(_, Z)",
        "         for each arc(Z, Y)",
        "           put tc(X, Y)",
    ]
    assert section(explained(TC, decompose=False, storage="loops"), "Physical")[1:] == [
        "     rounds over tables of facts",
        "       for each new tc(X, Z)",
        "         for each arc(Z, Y)",
        "           put tc(X, Y)",
    ]


@pytest.mark.apart  # the choice is another one where nothing is compiled
def test_what_is_registered_refines_the_choice() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(1, 2), (2, 3)])
        (few,) = strata(engine.explain(TC))
        engine.register("arc", [(i, i + 1) for i in range(60_000)])
        (many,) = strata(engine.explain(TC))
    assert few["evaluator"].startswith("kernel: interpreted over columns (its inputs have 2 rows)")
    assert many["evaluator"] == f"kernel: {BY_PIVOTS}"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"evaluator": "sql"}, "sql: the evaluator was forced"),
        ({"storage": "rows"}, "kernel: row by row, tc |= arc~ . tc; sql while it is small"),
        ({"evaluator": "kernel", "decompose": False, "storage": "hash"}, "kernel: rounds over tables of facts"),
    ],
)
def test_options_are_those_of_a_run(options: dict[str, Any], told: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        (stratum,) = strata(engine.explain(TC, **options))
        assert stratum["evaluator"] == told
        with pytest.raises(emberlog.UsageError, match="there is no option"):
            engine.explain(TC, storag="rows")
        with pytest.raises(emberlog.UsageError, match="`arc` is not recursive"):
            engine.explain(TC, partition={"arc": 0})


def test_a_goal_is_told_as_written() -> None:
    plan = explained(f"{TC} ?- tc(1, Y).")
    assert "  AND ?- tc(1, Y)." in section(plan, "Predicates")
    assert plan.strata[-1].title == "?- tc(1, Y)."


def test_nothing_to_evaluate() -> None:
    plan = explained(".decl p(x: number)")
    assert str(plan) == "nothing to evaluate"
    ElementTree.fromstring(plan.to_svg())
    assert "nothing to evaluate" in plan.to_html()


def test_the_engine_explains_without_sources_and_without_spark() -> None:
    with emberlog.Engine() as engine:
        assert "Fixpoint tc(X, Y)" in str(engine.explain(TC))


# --- picture and page ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["spark", "local"])
@pytest.mark.parametrize("text", [TC, ATTEND, RANK, HOSTILE])
def test_pictures_and_pages_are_well_formed(text: str, executor: str) -> None:
    plan = explained(text, executor)
    root = ElementTree.fromstring(plan.to_svg())
    tags = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}
    assert tags <= {"svg", "title", "rect", "text", "polyline", "path"}
    checker = _Tags()
    checker.feed(plan.to_html())
    checker.feed(plan._repr_html_())
    assert not checker.seen & {"script", "img"}
    assert checker.open == []


class _Tags(HTMLParser):
    """The tags of a page; every one that is opened must be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_what_xml_forbids_is_replaced() -> None:
    plan = explained('p("a\u202eb\u0001\ufffe", X) :- q(X).')
    ElementTree.fromstring(plan.to_svg())
    assert "\u202e" not in plan.to_html()


@pytest.mark.parametrize("executor", ["spark", "local"])
def test_boxes_do_not_overlap(executor: str) -> None:
    """Of two rectangles one holds the other, or they are apart."""
    rules = [f"s{i}(X, Z) :- s{i - 1}(X, Y), s{max(i - 3, 0)}(Y, Z), f{i % 3}(X)." for i in range(1, 30)]
    boxes = rectangles(explained(f"s0(X, Y) :- e(X, Y). {' '.join(rules)} {TC}", executor).to_svg())
    for index, one in enumerate(boxes):
        for other in boxes[index + 1 :]:
            assert apart(one, other) or holds(one, other) or holds(other, one)


Box = tuple[float, float, float, float]


def rectangles(svg: str) -> list[Box]:
    found = re.findall(r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"', svg)
    return [(float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in found]


def apart(one: Box, other: Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def holds(one: Box, other: Box) -> bool:
    return one[0] <= other[0] and one[1] <= other[1] and one[2] >= other[2] and one[3] >= other[3]


def test_a_picture_shows_recursion_and_exchanges() -> None:
    svg = explained(TC).to_svg()
    assert 'stroke-dasharray="5 3"' in svg
    assert svg.count(">by Z<") == 2
    assert ">exchange on Spark<" in svg
    assert ">by Z<" not in explained(TC, "local").to_svg()
