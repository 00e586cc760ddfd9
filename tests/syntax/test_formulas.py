"""Bodies: what each spelling means, and where its span lies."""

from __future__ import annotations

import pytest

from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.nodes import (
    And,
    Atom,
    Call,
    Comparison,
    Constant,
    Formula,
    Limit,
    Not,
    Or,
    Parameter,
    Sort,
    Truth,
    Until,
    Variable,
)
from emberlog.syntax.parser import parse


def body(text: str) -> Formula:
    (item,) = parse(Source("test", f"h(x) :- {text}.")).items
    assert isinstance(item, nodes.Rule) and item.body is not None
    return item.body


x, y, z = (Variable(name) for name in "xyz")
p, q, r = (Atom(name, (x,)) for name in "pqr")
one = Constant(1)


def less(left: nodes.Term, right: nodes.Term) -> Comparison:
    return Comparison("<", left, right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(x)", p),
        ("p", Atom("p", ())),
        ("p()", Atom("p", ())),
        ("p(x), q(x)", And((p, q))),
        ("p(x); q(x)", Or((p, q))),
        ("p(x), q(x); r(x)", Or((And((p, q)), r))),
        ("p(x), (q(x); r(x))", And((p, Or((q, r))))),
        ("(p(x), q(x)), r(x)", And((And((p, q)), r))),
        ("((p(x)))", p),
        ("p(x); :- q(x); <- r(x)", Or((p, q, r))),
        ("p(x);", p),
        ("p(x); q(x);", Or((p, q))),
        ("true", Truth(True)),
        ("false, p(x)", And((Truth(False), p))),
        ("true = x", Comparison("=", Constant(True), x)),
        ("contains(x, y)", nodes.Test(Call("contains", (x, y)))),
        ("!match(x, y)", Not(nodes.Test(Call("match", (x, y))))),
        ("count(x)", Atom("count", (x,))),
    ],
)
def test_joins_and_goals(text: str, expected: Formula) -> None:
    assert body(text) == expected


@pytest.mark.parametrize("text", ["!p(x)", "~p(x)", "not p(x)", "¬p(x)", "! p(x)", "not(p(x))", "~ (p(x))"])
def test_spellings_of_not(text: str) -> None:
    assert body(text) == Not(p)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!x < 1", Not(less(x, one))),
        ("not x < 1, p(x)", And((Not(less(x, one)), p))),
        ("!(p(x), q(x))", Not(And((p, q)))),
        ("!(p(x); q(x)), r(x)", And((Not(Or((p, q))), r))),
        ("!!p(x)", Not(Not(p))),
        ("!(x + 1) < y", Not(less(Call("+", (x, one)), y))),
        ("!p", Not(Atom("p", ()))),
    ],
)
def test_scope_of_not(text: str, expected: Formula) -> None:
    assert body(text) == expected


@pytest.mark.parametrize(
    ("sign", "operator"),
    [
        ("=", "="), ("!=", "!="), ("<>", "!="), ("~=", "!="), ("≠", "!="), ("! =", "!="),
        ("<", "<"), ("<=", "<="), ("≤", "<="), (">", ">"), (">=", ">="), ("≥", ">="),
    ],
)  # fmt: skip
def test_spellings_of_comparisons(sign: str, operator: str) -> None:
    assert body(f"x {sign} 1") == Comparison(operator, x, one)
    assert body(f"x{sign}1") == Comparison(operator, x, one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x + 1) * 2 > y", Comparison(">", Call("*", (Call("+", (x, one)), Constant(2))), y)),
        ("((x)) < y", less(x, y)),
        ("(x < 1)", less(x, one)),
        ("(x < 1; p(x))", Or((less(x, one), p))),
        ("f(x) = 1", Comparison("=", Call("f", (x,)), one)),
        ("f(x) + 1 < y", less(Call("+", (Call("f", (x,)), one)), y)),
        ("contains(x, y) = true", Comparison("=", Call("contains", (x, y)), Constant(True))),
        ("x <-1", less(x, Constant(-1))),
        ("x<-y", less(x, Call("neg", (y,)))),
        ("1 < x", less(one, x)),
        ("x mod y < 1", less(Call("%", (x, y)), one)),
        ("count : { p(x) } > 1", Comparison(">", nodes.Collect("count", None, p), one)),
        ("sum (x) : { p(x) } > 1", Comparison(">", nodes.Collect("sum", x, p), one)),
        ("x = sort", Comparison("=", x, Variable("sort"))),
    ],
)
def test_a_comparison_is_told_from_a_goal(text: str, expected: Formula) -> None:
    assert body(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{sum[delta r] < 0.001}", Until("sum", "r", "<", Constant(0.001))),
        ("{sum[Δ r] < eps}", Until("sum", "r", "<", Variable("eps"))),
        ("{sum[Δr] <= $EPS}", Until("sum", "r", "<=", Parameter("EPS"))),
        ("{ max [ delta delta_r ] < 1 }", Until("max", "delta_r", "<", one)),
        ("{sum(delta r) < 1}", Until("sum", "r", "<", one)),
    ],
)
def test_until(text: str, expected: Formula) -> None:
    assert body(text) == expected
    assert body(f"p(x), {text}") == And((p, expected))
    assert body(f"p(x); {text}") == Or((p, expected))
    assert body(f"p(x); :- q(x); {text};") == Or((p, q, expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sort((z, desc), (x, asc))", Sort(((z, True), (x, False)))),
        ("sort((z))", Sort(((z, False),))),
        ("limit(10)", Limit(Constant(10))),
        ("limit($N)", Limit(Parameter("N"))),
        ("limit(x)", Atom("limit", (x,))),
        ("sort(x)", Atom("sort", (x,))),
    ],
)
def test_sort_and_limit(text: str, expected: Formula) -> None:
    assert body(f"p(x), {text}") == And((p, expected))


@pytest.mark.parametrize(
    "program",
    [
        ".decl limit(x: number)\nh(x) :- p(x), limit(1).",
        "limit(1). h(x) :- p(x), limit(1).",
        "limit(x) :- p(x). h(x) :- p(x), limit(1).",
    ],
)
def test_a_relation_may_be_named_limit(program: str) -> None:
    last = parse(Source("test", program)).items[-1]
    assert isinstance(last, nodes.Rule)
    assert last.body == And((p, Atom("limit", (one,))))


def test_spans() -> None:
    formula = body("p(x), ! (x < 1 ; q( x )) ; x+1 = y, {sum[delta x] < 1};")
    assert isinstance(formula, Or)
    assert formula.span.text == "p(x), ! (x < 1 ; q( x )) ; x+1 = y, {sum[delta x] < 1}"
    first, second = formula.parts
    assert isinstance(first, And) and isinstance(second, And)
    assert [part.span.text for part in first.parts] == ["p(x)", "! (x < 1 ; q( x ))"]
    assert [part.span.text for part in second.parts] == ["x+1 = y", "{sum[delta x] < 1}"]
    (_, negation) = first.parts
    assert isinstance(negation, Not) and isinstance(negation.formula, Or)
    assert [part.span.text for part in negation.formula.parts] == ["x < 1", "q( x )"]
