"""Clauses, directives, goals and BigDatalog's schemas."""

from __future__ import annotations

import pytest

from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.nodes import (
    Atom,
    Attribute,
    Comparison,
    Constant,
    Declaration,
    Directive,
    Goal,
    Item,
    Pragma,
    Rule,
    TypeDeclaration,
    Variable,
)
from emberlog.syntax.parser import parse, parse_goal


def items(text: str) -> list[Item]:
    return list(parse(Source("test", text)).items)


def fact(predicate: str, *values: int | float | str | bool) -> Rule:
    return Rule((Atom(predicate, tuple(Constant(value) for value in values)),), None)


x, X, Y = Variable("x"), Variable("X"), Variable("Y")
xs = (Attribute("x", "number"),)


def x_from(low: int) -> Comparison:
    return Comparison(">=", Variable("x"), Constant(low))


def x_below(high: int) -> Comparison:
    return Comparison("<", Variable("x"), Constant(high))


a, b, c = (Atom(name, (x,)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a(x) :- b(x).", [Rule((a,), b)]),
        ("a(x), b(x) :- c(x).", [Rule((a, b), c)]),
        (
            "p(X, Y) :- q(X, Y), is_min((X), Y).",
            [Rule((Atom("p", (X, nodes.Aggregate("min", (Y,)))),), Atom("q", (X, Y)))],
        ),
        ("e(1, -2). e(1.5,'y').", [fact("e", 1, -2), fact("e", 1.5, "y")]),
        ("e(1),e(2).", [Rule((fact("e", 1).heads[0], fact("e", 2).heads[0]), None)]),
        ('e("a.b", "c\\n").', [fact("e", "a.b", "c\n")]),
        ("e(true, 5u).", [Rule((Atom("e", (Constant(True), Constant(5, "unsigned"))),), None)]),
        ("rain. sun().", [fact("rain"), fact("sun")]),
        ("p :- q.", [Rule((Atom("p", ()),), Atom("q", ()))]),
        ("r1. r2. r3.", [fact("r1"), fact("r2"), fact("r3")]),
        ("r1.\nrain().", [fact("r1"), fact("rain")]),
        ("r1. rain().", [fact("rain")]),
        ("r1. e(1). r2: e(2). r1.3. e(3).", [fact("e", 1), fact("e", 2), fact("e", 3)]),
        ("select(1). def(1). not_(1). None().", [fact("select", 1), fact("def", 1), fact("not_", 1), fact("None")]),
    ],
)
def test_clauses(text: str, expected: list[Item]) -> None:
    assert items(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".decl p(x: number)", [Declaration("p", xs)]),
        (".decl p()", [Declaration("p", ())]),
        (".decl p,q(x:number)", [Declaration("p", xs), Declaration("q", xs)]),
        (
            ".decl p(x: number, y: Name) inline brie",
            [Declaration("p", (*xs, Attribute("y", "Name")), ("inline", "brie"))],
        ),
        (".decl p(x: number)\nmagic", [Declaration("p", xs, ("magic",))]),
        (".decl p(x: number)\np(1).", [Declaration("p", xs), fact("p", 1)]),
        (".decl p(x: number)\nrain.", [Declaration("p", xs), fact("rain")]),
        (".decl p(x: number)\nmagic.", [Declaration("p", xs), fact("magic")]),
        (".decl p(x: number) rain.", [Declaration("p", xs), fact("rain")]),
        (".decl p(x: number) eqrel .output p", [Declaration("p", xs, ("eqrel",)), Directive("output", "p")]),
        (".decl p(x: number) choice-domain x", [Declaration("p", xs, ("choice-domain x",))]),
        (".decl p(x: decimal( 10 , 2 ))", [Declaration("p", (Attribute("x", "decimal(10,2)"),))]),
        (".decl p(x: float where 0 <= x)", [Declaration("p", (Attribute("x", "float", (x_from(0),)),))]),
        (
            ".decl p(x: float where 0 <= x < 5, y: number)",
            [Declaration("p", (Attribute("x", "float", (x_from(0), x_below(5))), Attribute("y", "number")))],
        ),
        (
            ".decl p(x: number) input output",
            [Declaration("p", xs), Directive("input", "p"), Directive("output", "p")],
        ),
        (".type T <: symbol", [TypeDeclaration("T", ("symbol",), True)]),
        (".type T = A | B", [TypeDeclaration("T", ("A", "B"), False)]),
        (".type T = number", [TypeDeclaration("T", ("number",), False)]),
        (".type T\n.type S", [TypeDeclaration("T", ("symbol",), True), TypeDeclaration("S", ("symbol",), True)]),
        (".symbol_type T", [TypeDeclaration("T", ("symbol",), True)]),
        (".number_type T", [TypeDeclaration("T", ("number",), True)]),
        (".pragma \"a\" 'b'", [Pragma("pragma", '"a" "b"')]),
        (".plan 0:(1,2), 1:( 2, 1 )", [Pragma("plan", "0:(1,2), 1:(2,1)")]),
    ],
)
def test_declarations(text: str, expected: list[Item]) -> None:
    assert items(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".input R", [Directive("input", "R")]),
        (".output A, B", [Directive("output", "A"), Directive("output", "B")]),
        (".output A .output B p(1).", [Directive("output", "A"), Directive("output", "B"), fact("p", 1)]),
        (".printsize R", [Directive("printsize", "R")]),
        (".limitsize R(n=5)", [Directive("limitsize", "R", (("n", 5),))]),
        (
            '.input R(IO=file, filename="x", delimiter=",", headers=true, rate=-1.5)',
            [
                Directive(
                    "input",
                    "R",
                    (("IO", "file"), ("filename", "x"), ("delimiter", ","), ("headers", True), ("rate", -1.5)),
                )
            ],
        ),
        (
            ".input A, B(IO=x), C()",
            [Directive("input", "A", (("IO", "x"),)), Directive("input", "B", (("IO", "x"),)), Directive("input", "C")],
        ),
    ],
)
def test_directives(text: str, expected: list[Item]) -> None:
    assert items(text) == expected


@pytest.mark.parametrize("text", ["?- p(0, Y).", "?- p(0, Y)", "?-p(0,Y) ."])
def test_goals(text: str) -> None:
    goal = Goal(Atom("p", (Constant(0), Y)))
    assert items(text) == [goal]
    assert parse_goal(text) == goal
    assert parse_goal(text.removeprefix("?-")) == goal


def test_goal_without_variables() -> None:
    expected = Goal(Atom("p", (Constant(0),)))
    assert parse_goal("p(0)") == parse_goal("p(0).") == parse_goal("?- p(0).") == expected
    assert parse_goal("rain") == Goal(Atom("rain", ()))


DATABASE = "database({arc(X: Integer, Y: String), price(N: string, P: decimal(8,2))})."


class TestBigDatalog:
    def test_schema(self) -> None:
        program = parse(Source("test", DATABASE))
        assert program.bigdatalog
        assert list(program.items) == [
            Declaration("arc", (Attribute("X", "Integer"), Attribute("Y", "String")), base=True),
            Declaration("price", (Attribute("N", "string"), Attribute("P", "decimal(8,2)")), base=True),
        ]

    @pytest.mark.parametrize("end", [".", "", " ."])
    def test_what_follows_the_schema(self, end: str) -> None:
        schema = "database({arc(X: Integer)})" + end
        base = Declaration("arc", (Attribute("X", "Integer"),), base=True)
        assert items(schema + "\n.output p") == [base, Directive("output", "p")]
        assert items(schema + "p(1).") == [base, fact("p", 1)]

    def test_lower_case_names_are_constants_wherever_the_schema_stands(self) -> None:
        text = "avg(a, A) <- price(a, A), A > b, A ~= 'c', _x = true." + DATABASE
        (rule, *_) = items(text)
        quoted = 'avg("a", A) <- price("a", A), A > "b", A != "c", _x = true.'
        assert rule == items(quoted)[0]

    def test_elsewhere_they_are_variables(self) -> None:
        assert items("p(a) :- q(a).") == [Rule((Atom("p", (Variable("a"),)),), Atom("q", (Variable("a"),)))]
        assert not parse(Source("test", "p(a) :- q(a).")).bigdatalog

    def test_goal(self) -> None:
        assert parse_goal("p(a, X)", bigdatalog=True) == Goal(Atom("p", (Constant("a"), X)))
        assert parse_goal("p(x, X)") == Goal(Atom("p", (x, X)))

    def test_empty_schema(self) -> None:
        program = parse(Source("test", "database({})."))
        assert program == nodes.Program((), bigdatalog=True)


def test_spans() -> None:
    text = "r1. p( x ) , q(y):- r(x)  ;s . // end\n.input R(IO=file)\n e(1 , 'a') .\n?- e( 1, X )."
    rule, read, plain, goal = items(text)
    assert isinstance(rule, Rule) and isinstance(plain, Rule) and isinstance(goal, Goal)
    assert rule.span.text == "p( x ) , q(y):- r(x)  ;s ."
    assert [head.span.text for head in rule.heads] == ["p( x )", "q(y)"]
    assert read.span.text == "R"
    assert plain.span.text == "e(1 , 'a') ."
    assert [argument.span.text for argument in plain.heads[0].arguments] == ["1", "'a'"]
    assert plain.heads[0].span.text == "e(1 , 'a')"
    assert goal.span.text == "?- e( 1, X )." and goal.atom.span.text == "e( 1, X )"
    assert str(plain.span) == "test:3:2"
