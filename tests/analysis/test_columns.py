"""Which columns of base relations a program uses, and programs without the others."""

from __future__ import annotations

import pytest

from emberlog.analysis.check import check
from emberlog.analysis.columns import project, unread_columns
from emberlog.analysis.program import Absent, Match
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import FLOAT, NUMBER, SYMBOL, Column

# A program, and the columns of `e` that it does not use.
CASES: list[tuple[str, set[int]]] = [
    ("p(X) <- e(X, _, _).", {1, 2}),
    ("p(X) <- e(X, Y, _), Y > 1.", {2}),
    ("p(X) <- e(X, _, _). q(Z) <- e(_, _, Z).", {1}),
    ("p(X) <- e(X, Y, Z).", set()),  # named: a null there is told
    ("p(X) <- e(X, _y, _z).", {1, 2}),
    ("p(X) <- e(X, _y, _y).", set()),
    ("p(_x) <- e(_x, _, _).", {1, 2}),
    ("p(1) <- e(_, _, _).", {0, 1, 2}),
    ("p(X) <- f(X), !e(X, _, _).", {1, 2}),
    ("p(X) <- f(X), !(e(X, _, Z), Z > 1).", {1}),
    ("p(X) <- f(X), (e(X, _, _); e(_, X, _)).", {2}),
    ("p(X) <- e(X, 5, _).", {2}),
    ("p(X), q(Y) <- e(X, Y, _).", {2}),
    # A rule that counts has `_` among its bindings; so has every rule of its predicate.
    ("p(X, count(Y)) <- e(X, Y, _).", set()),
    ("p(X, sum(Y)) <- e(X, Y, _).", set()),
    ("p(X, avg(Y)) <- e(X, Y, _).", set()),
    ("p(count(_)) <- e(_, _, _).", set()),
    ("p(X, sum(V)) <- g(X, V). p(X, V) <- e(X, V, _).", set()),
    ("p(X, sum(V)) <- g(X, V), !e(X, _, _).", {1, 2}),
    ("p(X, countd(Y)) <- e(X, Y, _).", {2}),
    ("p(X, min(Y)) <- e(X, Y, _).", {2}),
    ("p(X, max(Y)) <- e(X, Y, _).", {2}),
    ("p(X, sum(V)) <- g(X, V). q(X) <- e(X, _, _).", {1, 2}),
    ("p(X, sum(V)) <- g(X, V), q(X). q(X) <- e(X, _, _).", {1, 2}),
    (".decl p(x: number)\np(N) :- N = count : { e(_, _, _) }.", set()),
    (".decl p(x: number)\np(N) :- N = sum y : { e(y, _, _) }.", set()),
    (".decl p(x: number)\np(N) :- N = min y : { e(y, _, _) }.", {1, 2}),
    (".decl p(x: number)\np(N) :- N = min y : { e(y, _, _), M = count : { g(y, _) } }.", {1, 2}),
    # A relation that is asked for, or has rows in the program, is whole.
    ("p(X) <- e(X, _, _). ?- e(1, _, _).", set()),
    ("p(X) <- e(X, _, _).\n.output e\n", set()),
    ("p(X) <- e(X, _, _).\n.printsize e\n", set()),
    ("p(X) <- e(X, _, _). e(1, 2, 3).", set()),
    ("p(X) <- e(X, _, _). e(Y, X, Z) <- e(X, Y, Z).", set()),
    # A declared condition is checked.
    (".decl e(x: number, y: number where y > 0, z: number)\n.decl p(x: number)\np(X) :- e(X, _, _).", {2}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "unread"), CASES, ids=[case[0] for case in CASES])
def test_columns_that_are_not_used(text: str, unread: set[int]) -> None:
    found = unread_columns(parse(Source("<program>", text)))
    assert set(found.get("e", ())) == unread


def test_a_program_without_them() -> None:
    text = "p(X, min(D)) <- e(X, _, D, _). p(Y, min(D)) <- p(X, C), e(X, Y, W, _), f(_), D = C * W, !g(X, _)."
    program = parse(Source("<program>", text))
    columns = {"e": (NUMBER, NUMBER, FLOAT, SYMBOL), "f": (SYMBOL,), "g": (NUMBER, SYMBOL)}
    catalog = {name: tuple(Column(f"{name}{i}", t) for i, t in enumerate(types)) for name, types in columns.items()}
    checked = check(program, catalog, naive=True)
    found = project(checked, unread_columns(program))
    assert {name: [column.name for column in found.signatures[name].columns] for name in "efgp"} == {
        "e": ["e0", "e1", "e2"],
        "f": [],
        "g": ["g0"],
        "p": ["X", "D"],
    }
    reading = found.signatures["e"].reading
    assert reading is not None and (reading.whole, reading.positions) == (catalog["e"], (0, 1, 2))
    assert found.signatures["e"].row((1, 2, 0.5)) == (1, 2, 0.5, None)
    widths = {
        (literal.predicate, len(literal.arguments))
        for component in found.components
        for rule in component.rules
        for literal in rule.body
        if isinstance(literal, Match | Absent)
    }
    assert widths == {("e", 3), ("f", 0), ("g", 1), ("p", 2)}


def test_what_a_proof_asks_of_the_data_moves_with_its_column() -> None:
    text = "p(X, min(D)) <- X = 1, D = 1.0. p(Y, min(D)) <- p(X, C), e(_, X, Y, W), D = C * W."
    program = parse(Source("<program>", text))
    catalog = {"e": tuple(Column(f"e{i}", t) for i, t in enumerate((SYMBOL, NUMBER, NUMBER, FLOAT)))}
    found = project(check(program, catalog), unread_columns(program))
    (verdict,) = (verdict for component in found.components for verdict in component.verdicts)
    assert [(one.relation, one.position) for one in verdict.obligations] == [("e", 2)]


def test_a_program_that_uses_everything_stays_as_it_is() -> None:
    program = parse(Source("<program>", "p(X) <- e(X, Y), Y > 1."))
    checked = check(program, {"e": (Column("a", NUMBER), Column("b", NUMBER))})
    assert project(checked, unread_columns(program)) is checked
