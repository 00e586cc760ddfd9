"""Printed trees are read back as the same trees."""

from __future__ import annotations

import pytest
from hypothesis import given

from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show
from syntax import trees


def read(text: str) -> nodes.Program:
    return parse(Source("test", text))


@given(trees.programs)
def test_reading_what_is_printed_gives_the_tree(program: nodes.Program) -> None:
    assert read(show(program)) == program


@given(trees.bodies)
def test_reading_a_printed_body_gives_the_body(body: nodes.Formula) -> None:
    rule = nodes.Rule((nodes.Atom("p", ()),), body)
    assert read(f"p() :- {show(body)}.").items == (rule,)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("p(x)<-q(x),~r(x).", "p(x) :- q(x), !r(x)."),
        ("p(x), q :- r(x).", "p(x), q() :- r(x)."),
        ("p(min<D>) <- q(D).", "p(min(D)) :- q(D)."),
        ("p(msum[(K,V)]) <- q(K,V).", "p(msum((K, V))) :- q(K, V)."),
        ("p(topk<3,V>) <- q(V).", "p(topk(3, V)) :- q(V)."),
        ("p(x) :- x = (1+2)*3-(4-5).", "p(x) :- x = (1 + 2) * 3 - (4 - 5)."),
        ("p(x) :- x = -(2^2), y = (-2)^2, z = -(5).", "p(x) :- x = -2 ^ 2, y = (-2) ^ 2, z = -(5)."),
        ("p(x) :- x = a band b.", "p(x) :- x = band(a, b)."),
        ("p(x) :- !(x = 1; q(x)).", "p(x) :- !(x = 1; q(x))."),
        ("p(x) :- a(x); :- b(x); {sum[Δx] < 1};.", "p(x) :- a(x);\n    b(x);\n    {sum[delta x] < 1}."),
        ("p(c) :- c = count:{q(_)}, d = sum 2*x:{q(x)}.", "p(c) :- c = count : { q(_) }, d = sum (2 * x) : { q(x) }."),
        ("p(x) :- q(x), sort((x,desc)), limit(3).", "p(x) :- q(x), sort((x, desc)), limit(3)."),
        ("p('it\\'s \"x\"\n').".replace("\n", "\\n"), 'p("it\'s \\"x\\"\\n").'),
        (
            ".decl a,b(x:number) inline input",
            ".decl a(x: number) inline\n.decl b(x: number) inline\n.input a\n.input b",
        ),
        (".input R(IO=file,headers=TRUE,n=3)", '.input R(IO="file", headers="TRUE", n=3)'),
        (".type T=A|B", ".type T = A | B"),
        ("?-p(X)", "?- p(X)."),
        (
            "database({a(X:Integer),b()}) p(a,X)<-a(X).",
            'database({a(X: Integer)}).\ndatabase({b()}).\np("a", X) :- a(X).',
        ),
        ("database({}).", "database({})."),
    ],
)
def test_one_spelling_for_each_thing(written: str, printed: str) -> None:
    program = read(written)
    assert show(program) == printed + "\n"
    assert read(show(program)) == program


def test_a_function_named_like_an_aggregate_stays_one() -> None:
    program = read("p((min(x)), (min(x)) + 1, 1 + min(x)) :- q(x).")
    assert show(program) == "p((min(x)), (min(x) + 1), 1 + min(x)) :- q(x).\n"
    assert read(show(program)) == program
