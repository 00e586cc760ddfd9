"""Arguments by name: the columns that are not named are `_`, and not read where `_` is not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import emberlog
from emberlog.source import Source
from emberlog.syntax.parser import parse
from engine.places import Place
from naive import evaluate

PROGRAM = """
.decl visit(customer: symbol, day: number, shop: symbol, spent: number)
.decl closed(shop: symbol, day: number)
day_of(D, C) <- visit(day=D, customer=C).
same(C) <- visit(customer=C, spent=S), visit(shop="a", customer=C, spent=S + 1).
open(S) <- visit(shop=S), !closed(shop=S).
spent(C, sum(V)) <- visit(customer=C, spent=V).
visits(C, count(_)) <- visit(customer=C).
best(C, M) <- visit(customer=C), M = max V : { visit(spent=V, customer=C) }.
"""
VISITS = [("x", 1, "a", 3), ("x", 1, "b", 3), ("x", 2, "b", 2), ("y", 2, "c", 3), ("y", 2, "b", 3)]
CLOSED = [("b", 1), ("c", 7)]


def test_columns_that_are_not_named_match_anything(place: Place) -> None:
    right = evaluate(parse(Source("named.dl", PROGRAM)), {"visit": VISITS, "closed": CLOSED})
    assert right["spent"] == {("x", 8), ("y", 6)} and right["visits"] == {("x", 3), ("y", 2)}
    found = place.run(PROGRAM, {"visit": VISITS, "closed": CLOSED})
    for name in ("day_of", "same", "open", "spent", "visits", "best"):
        assert set(found[name].rows()) == right[name], name


def test_columns_of_a_source_are_named_and_the_others_not_read(place: Place) -> None:
    """The list has no type of the language, and `note` has a null."""
    table = pa.table({"id": [1, 2], "tags": [["a"], []], "note": ["n", None], "order no": ["x", "y"]})
    found = place.run('p(I, N) <- t("order no"=N, id=I). q(I) <- p(I=I), p(N="x", I=I).', {"t": table})
    assert sorted(found["p"].rows()) == [(1, "x"), (2, "y")]
    assert found["q"].rows() == [(1,)]
    with pytest.raises(emberlog.DataError, match="tags"):
        place.run("n(count(_)) <- t(id=_).", {"t": table})


def test_goals_name_columns(place: Place) -> None:
    engine = place.engine({"t": pa.table({"id": [1, 2], "name": ["a", "b"]})})
    assert engine.run('?- t(name="b").', placement=place.placement).goals[0].rows() == [(2, "b")]
    assert engine.query("r(I=1)", "r(I, N) <- t(id=I, name=N).").rows() == [(1, "a")]
    assert "t(" in str(engine.explain("r(I) <- t(id=I)."))
    assert engine.check("r(I) <- t(id=I).") == []


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("p(X) <- t(idd=X).", "`t` has no column `idd`(.|\n)*did you mean `id`"),
        ("p(X) <- t(name=X), !t(id=X, id=X).", "the column `id` is named twice"),
        ("p(X) <- t(id=X, _).", "by position and by name"),
        ("p(X) <- t(X, name=_).", "by position and by name"),
        ("p(X) <- u(id=X).", "the columns of `u` are not known"),
        ("p(i+1, X) <- p(i, X). p(0, X) <- t(id=X). q(X) <- p(X=X).", "the columns of `p` are not known"),
    ],
)
def test_a_name_that_says_nothing_is_an_error(rule: str, why: str, local: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match=why):
        local.run(rule, {"t": pa.table({"id": [1], "name": ["a"]})})
