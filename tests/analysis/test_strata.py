"""Components: their order, their shape, and what may not go round in them."""

from __future__ import annotations

import pytest

from analysis.checking import checked, codes, component, mistakes
from emberlog.source import Source
from emberlog.syntax.parser import parse

ARC = "arc(number, number)\nnode(number)"

SHAPES = [
    ("p(X, Y) <- arc(X, Y).", "", False),
    ("p(X, Y) <- arc(X, Y).\np(X, Y) <- p(X, Z), arc(Z, Y).", "linear", False),
    ("p(X, Y) <- arc(X, Y).\np(X, Y) <- p(X, Z), p(Z, Y).", "non-linear", False),
    ("p(X) <- node(X).\np(Y) <- q(X), arc(X, Y).\nq(Y) <- p(X), arc(X, Y).", "mutual", False),
    ("p(0).\np(X + 1) <- p(X), X < 9.", "linear", False),
    ("p(0).\np(X + 1) <- p(X), X > 9.", "linear", True),
    ("p(0).\np(X + 1) <- p(X), X != 9.", "linear", True),
    ("p(0).\np(X - 1) <- p(X), X < 9.", "linear", True),
    ("p(0).\np(X - 1) <- p(X), -9 <= X.", "linear", False),
    ("p(0).\np(X + -1) <- p(X), -9 <= X.", "linear", False),
    ("p(0).\np(Y) <- p(X), Y = 2 + X, 9 > Y.", "linear", False),
    ("p(0).\np(Z) <- p(X), Y = X + 1, Z = Y + 1, X < 9.", "linear", False),
    ("p(0).\np(Z) <- p(X), Y = X + 1, Z = Y - 1, X < 9.", "linear", True),
    ("p(0).\np(X + 1) <- p(X), X < 9.\np(X - 1) <- p(X), X > 0.", "linear", False),
    ("p(0).\np(X + 1) <- p(X), X < 9.\np(X - 1) <- p(X).", "linear", True),
    ("p(0).\np(X + 1) <- p(X), node(X).", "linear", False),
    ("p(0).\np(X + 1) <- p(X), node(N), X < N.", "linear", False),
    ("p(0).\np(X + 1) <- p(X), !node(X).", "linear", True),
    ("p(0, 9).\np(X + 1, N) <- p(X, N), X < N.", "linear", False),
    ("p(0, 9).\np(X + 1, M) <- p(X, N), X < N, M = N + 1.", "linear", True),
    ("p(0, 9).\np(X + 1, X) <- p(X, N), X < N.", "linear", True),
    ("p(0, 9).\np(N, X + 1) <- p(X, N), X < N.", "linear", True),
    ("p(0.5).\np(X + 1) <- p(X), X < 9.", "linear", True),
    ("p(0, 1).\np(X + 1, Y + X) <- p(X, Y), X < 9.", "linear", True),
    ("p(0).\nq(X + 1) <- p(X), X < 9.\np(X) <- q(X).", "mutual", False),
    ("p(0).\np(X + 1) <- q(X).\nq(X) <- p(X), X < 9.", "mutual", False),
    ("p(0).\np(X - 1) <- q(X).\nq(X) <- p(X), X < 9.", "mutual", True),
    ("p(0).\np(X + 1) <- q(X).\nq(X) <- p(X), X < 9.\nq(X) <- p(X), node(X).", "mutual", False),
    ("p(0).\np(X + 1) <- q(X).\nq(X) <- p(X), X < 9.\nq(X) <- p(X), arc(_, _).", "mutual", True),
    ("p(0).\np(X + 1) <- q(X), X < 9.\nq(X) <- p(X).\nq(X) <- q(X).", "mutual", False),
    ("p(0).\np(Y) <- p(X), Y = X * 2, X < 9.", "linear", True),
    ("p(0).\np(Y) <- p(X), Y = range(0, X).", "linear", True),
    ("p(0).\np(Y) <- p(X), arc(X, Y), X + 1 > 3.", "linear", False),
    ("p(X, min(X)) <- node(X).\np(Y, min(L)) <- p(X, L), arc(X, Y).", "linear", False),
]


@pytest.mark.parametrize(("text", "shape", "invents"), SHAPES)
def test_classification(text: str, shape: str, invents: bool) -> None:
    part = component(checked(text, ARC), "p")
    assert (part.shape, part.recursive, part.invents) == (shape, bool(shape), invents)
    assert part.evaluation == ("delta" if shape else "once")


def test_components_come_after_what_they_read() -> None:
    program = checked("c(X) <- b(X), !a(X).\nb(X) <- a(X).\nb(X) <- b(X).\na(X) <- node(X).\nd(X) <- c(X), b(X).", ARC)
    assert [part.predicates for part in program.components] == [("a",), ("b",), ("c",), ("d",)]


def test_relations_without_rules_have_no_component() -> None:
    program = checked("f(1).\np(X) <- node(X), f(X).", ARC)
    assert [part.predicates for part in program.components] == [("p",)]


def test_thousands_of_predicates() -> None:
    chain = "".join(f"p{i}(X) <- p{i + 1}(X).\n" for i in range(3000)) + "p3000(X) <- node(X)."
    assert len(checked(chain, ARC).components) == 3001
    assert len(checked(chain + "p3000(X) <- p0(X).", ARC).components) == 1


def test_negation_below_is_no_mistake() -> None:
    checked("p(X) <- node(X), !q(X).\nq(X) <- arc(X, _).\nr(X) <- p(X), !q(X).\nr(X) <- r(X).", ARC)


def test_the_cycle_of_a_negation_is_printed() -> None:
    (found,) = mistakes("a(X) <- node(X), !b(X).\nb(X) <- c(X).\nc(X) <- a(X).", ARC)
    assert found.message == "negation through recursion: a -> b -> c -> a"
    assert [label.text for label in found.labels] == ["negated here", "`a` depends on it"]


FORBIDDEN = [
    ("p(X) <- node(X), !p(X).", "E0301"),
    ("p(X) <- node(X), C = count : { arc(X, Y), !p(Y) }, C > 0.", "E0301"),
    ("p(X) <- node(X), C = count : { p(_) }, C > 0.", "E0302"),
    ("p(X) <- node(X), !(p(X), arc(X, _)).", "E0302"),
    ("p(X, avg(Y)) <- arc(X, Y).\np(X, avg(Y)) <- p(Y, _), arc(X, Y).", "E0302"),
    ("p(topk(3, X)) <- node(X).\np(topk(3, Y)) <- p(X), arc(X, Y).", "E0302"),
    ("p(X) <- node(X).\np(Y) <- p(X), arc(X, Y), sort((Y, asc)), limit(3).", "E0303"),
    ("p(min(X), max(Y)) <- arc(X, Y).\np(min(X), max(Y)) <- p(X, Y).", "E0304"),
]


@pytest.mark.parametrize(("text", "code"), FORBIDDEN)
def test_what_may_not_go_through_recursion(text: str, code: str) -> None:
    assert set(codes(text, ARC)) == {code}


def test_several_aggregates_outside_of_recursion() -> None:
    program = checked("p(X, min(Y), max(Y), avg(Y)) <- arc(X, Y).", ARC)
    assert program.signatures["p"].aggregates == {1: "min", 2: "max", 3: "avg"}
    assert program.signatures["p"].groups == (0,)


def test_a_rule_keeps_the_span_of_its_text() -> None:
    text = "a(X) <- node(X).\nb(X) <- a(X) ; arc(X, _)."
    (_, later) = checked(text, ARC).components
    assert [rule.span.text for rule in later.rules] == ["b(X) <- a(X) ; arc(X, _)."] * 2
    assert parse(Source("test.dl", text)).items[1].span.text == "b(X) <- a(X) ; arc(X, _)."
