"""Terms: what each spelling means, and where its span lies."""

from __future__ import annotations

import pytest

from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.nodes import Aggregate, Anonymous, Atom, Call, Collect, Comparison, Constant, Parameter, Variable
from emberlog.syntax.parser import parse


def body_term(text: str) -> nodes.Term:
    """The term on the right of a comparison in a body."""
    (item,) = parse(Source("test", f"p() :- v = {text}.")).items
    assert isinstance(item, nodes.Rule) and isinstance(item.body, Comparison)
    return item.body.right


def head_term(text: str) -> nodes.Term:
    """The term as the argument of a head."""
    (item,) = parse(Source("test", f"p({text}) :- q(x).")).items
    assert isinstance(item, nodes.Rule)
    (argument,) = item.heads[0].arguments
    return argument


a, b, c, x, y = (Variable(name) for name in "abcxy")
D, K, V = (Variable(name) for name in "DKV")
p_x = Atom("p", (x,))


def call(function: str, *arguments: nodes.Term) -> Call:
    return Call(function, arguments)


def number(value: int | float) -> Constant:
    return Constant(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", number(12)),
        ("0xfF", number(255)),
        ("0b101", number(5)),
        ("5u", Constant(5, "unsigned")),
        ("0xffu", Constant(255, "unsigned")),
        ("007", number(7)),
        ("1.5", number(1.5)),
        ("1e-3", number(0.001)),
        ("2E2", number(200.0)),
        ("18446744073709551615", number(2**64 - 1)),
        ("-9223372036854775808", number(-(2**63))),
        ("-1.5", number(-1.5)),
        ("- 3", number(-3)),
        ("-0.0", number(0.0)),
        ("true", Constant(True)),
        ("false", Constant(False)),
        ("$ID", Parameter("ID")),
        ("_", Anonymous()),
        ("_a", Variable("_a")),
        ("?a", Variable("?a")),
        ("select", Variable("select")),
        ("变量", Variable("变量")),
    ],
)
def test_simple_terms(text: str, expected: nodes.Term) -> None:
    assert body_term(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('""', ""),
        ("'it is'", "it is"),
        ("'say \"hi\"'", 'say "hi"'),
        (r'"a\n\t\r\0\\\""', 'a\n\t\r\0\\"'),
        (r"'it\'s'", "it's"),
        (r'"\x41\u00e9"', "Aé"),
        (r'"\ud83d\ude00"', "😀"),
        ('"// no comment % /* here"', "// no comment % /* here"),
        ('"\t😀\x00"', "\t😀\x00"),
        ('"{p}. :-"', "{p}. :-"),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert body_term(text) == Constant(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", call("+", a, call("*", b, c))),
        ("a - b - c", call("-", call("-", a, b), c)),
        ("a / b % c", call("%", call("/", a, b), c)),
        ("a mod b", call("%", a, b)),
        ("a ^ b ^ c", call("^", a, call("^", b, c))),
        ("(a ^ b) ^ c", call("^", call("^", a, b), c)),
        ("-a ^ b", call("neg", call("^", a, b))),
        ("-2 ^ 2", call("neg", call("^", number(2), number(2)))),
        ("(-2) ^ 2", call("^", number(-2), number(2))),
        ("a ^ -2", call("^", a, number(-2))),
        ("a ^ -b * c", call("*", call("^", a, call("neg", b)), c)),
        ("-a * b", call("*", call("neg", a), b)),
        ("a - -1", call("-", a, number(-1))),
        ("a--1", call("-", a, number(-1))),
        ("-(1)", call("neg", number(1))),
        ("-5u", call("neg", Constant(5, "unsigned"))),
        ("a · b", call("*", a, b)),
        ("a lor b land c", call("lor", a, call("land", b, c))),
        ("a bor b bxor c band x", call("bor", a, call("bxor", b, call("band", c, x)))),
        ("a bshl b + c", call("bshl", a, call("+", b, c))),
        ("band(a, b)", call("band", a, b)),
        ("bnot a + b", call("+", call("bnot", a), b)),
        ("lnot(a)", call("lnot", a)),
        ("bnot -1", call("bnot", number(-1))),
        ("as(a, number) + 1", call("+", a, number(1))),
        ("min(a, b)", call("min", a, b)),
        ("min(a)", call("min", a)),
        ("f()", call("f")),
        ('cat("x", to_string(a))', call("cat", Constant("x"), call("to_string", a))),
        ("min - 3", call("-", Variable("min"), number(3))),
        ("mod", Variable("mod")),
    ],
)
def test_expressions(text: str, expected: nodes.Term) -> None:
    assert body_term(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count : { p(x) }", Collect("count", None, p_x)),
        ("count : p(x)", Collect("count", None, p_x)),
        ("count : p(x) + 1", call("+", Collect("count", None, p_x), number(1))),
        ("min y : { p(x), q }", Collect("min", y, nodes.And((p_x, Atom("q", ()))))),
        ("sum (x + 1) : { p(x) }", Collect("sum", call("+", x, number(1)), p_x)),
        ("sum x * 2 : { p(x) }", Collect("sum", call("*", x, number(2)), p_x)),
        ("mean x : { p(x); q }", Collect("avg", x, nodes.Or((p_x, Atom("q", ()))))),
        ("sum count : { p(x) }", Collect("sum", Variable("count"), p_x)),
        ("max 1 : { p(x) }", Collect("max", number(1), p_x)),
        ("2 * count : { p(x) } + 1", call("+", call("*", number(2), Collect("count", None, p_x)), number(1))),
        (
            "sum y : { y = count : { p(x) } }",
            Collect("sum", y, Comparison("=", y, Collect("count", None, p_x))),
        ),
    ],
)
def test_aggregates_over_a_body(text: str, expected: nodes.Term) -> None:
    assert body_term(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min(D)", Aggregate("min", (D,))),
        ("min<D>", Aggregate("min", (D,))),
        ("min[D]", Aggregate("min", (D,))),
        ("max⟨D⟩", Aggregate("max", (D,))),
        ("min<a + b>", Aggregate("min", (call("+", a, b),))),
        ("min<-D>", Aggregate("min", (call("neg", D),))),
        ("sum((a + b) * c)", Aggregate("sum", (call("*", call("+", a, b), c),))),
        ("sum(f(a, b))", Aggregate("sum", (call("f", a, b),))),
        ("count(_)", Aggregate("count", (Anonymous(),))),
        ("countd<D>", Aggregate("countd", (D,))),
        ("mean(D)", Aggregate("avg", (D,))),
        ("mmin(D)", Aggregate("min", (D,), monotonic=True)),
        ("mcount<D>", Aggregate("count", (D,), monotonic=True)),
        ("sum<(K,V)>", Aggregate("sum", (K, V))),
        ("sum((K, V))", Aggregate("sum", (K, V))),
        ("msum[(K, V)]", Aggregate("sum", (K, V), monotonic=True)),
        ("topk(10, V)", Aggregate("topk", (V,), limit=number(10))),
        ("topk<$K, V>", Aggregate("topk", (V,), limit=Parameter("K"))),
        ("min(a, b)", call("min", a, b)),
        ("max(a, b) + 1", call("+", call("max", a, b), number(1))),
        ("(min(a))", call("min", a)),
        ("1 + min(a)", call("+", number(1), call("min", a))),
        ("min", Variable("min")),
        ("count + 1", call("+", Variable("count"), number(1))),
        ("sum (x) : { p(x) }", Collect("sum", x, p_x)),
    ],
)
def test_head_arguments(text: str, expected: nodes.Term) -> None:
    assert head_term(text) == expected


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("(a + b) * c", {"Call": ["(a + b) * c", "a + b"], "Variable": ["a", "b", "c"]}),
        ("-a - 1", {"Call": ["-a - 1", "-a"], "Constant": ["1"]}),
        ("a + -1", {"Constant": ["-1"]}),
        ("f(a, g( b ))", {"Call": ["f(a, g( b ))", "g( b )"]}),
        ("count : { p(x) }", {"Collect": ["count : { p(x) }"]}),
        ("$ID + _", {"Parameter": ["$ID"], "Anonymous": ["_"]}),
    ],
)
def test_spans(text: str, spans: dict[str, list[str]]) -> None:
    found: dict[str, list[str]] = {}

    def visit(term: nodes.Term) -> None:
        found.setdefault(type(term).__name__, []).append(term.span.text)
        if isinstance(term, Call):
            for argument in term.arguments:
                visit(argument)

    visit(body_term(text))
    assert {kind: found.get(kind) for kind in spans} == spans
